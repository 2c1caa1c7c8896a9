package sysbench

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// BenchmarkIntervalLines measures recorded interval lines of each version, including their queue
// lines.
func BenchmarkIntervalLines(b *testing.B) {
	for _, name := range []string{
		"1.0.20/oltp_read_write-th4-ri1-p99", "1.0.20/oltp_read_write-th4-rate200", "1.0.20/cpu", "1.0.20/hook-report_csv",
		"0.5/oltp-th4-ri1", "0.4.12-branch-tip/complex-th4-ri1",
	} {
		b.Run(name, func(b *testing.B) {
			stdout, _ := readCapture(b, "testdata/"+name+".txt")
			p := NewParser(tool.Description{})
			emit := func(*tool.Report) {}
			var lines [][]byte
			for line := range bytes.Lines(stdout) {
				line = bytes.TrimSuffix(line, []byte("\n"))
				p.Parse(tool.Line{Text: line}, emit)
				if len(line) > 0 && (line[0] == '[' || bytes.Count(line, []byte(",")) == 9) {
					lines = append(lines, line)
				}
			}
			if len(lines) < 4 {
				b.Fatal("no interval lines")
			}
			p = NewParser(tool.Description{})
			for _, line := range lines {
				p.Parse(tool.Line{Text: line}, emit)
			}
			size := 0
			b.ReportAllocs()
			b.ResetTimer()
			begin := cpuSeconds(b)
			for i := range b.N {
				// The run continues: the clock must not go back.
				if i%len(lines) == 0 {
					p.run.clock.Known = false
				}
				line := lines[i%len(lines)]
				size += len(line)
				if p.Parse(tool.Line{Text: line}, emit) != tool.Reported {
					b.Fatalf("not reported: %s", line)
				}
			}
			b.ReportMetric(float64(b.N)/(cpuSeconds(b)-begin), "lines/cpu-s")
			b.SetBytes(int64(size / b.N))
		})
	}
}

// cpuSeconds returns the CPU time of this process so far, which other processes on the machine do
// not affect.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}
