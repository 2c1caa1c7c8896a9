package goycsb

import (
	"os"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

// For any input: no panic, no report with a value that is not a number, and Flush reports early
// only what would be reported later.
func FuzzParser(f *testing.F) {
	for _, file := range tooltest.Cases(f, captures) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text[:min(len(text), 6000)])
		f.Add(text[max(0, len(text)-3000):])
	}
	f.Add([]byte(read1 + total1 + read2 + total2))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := tooltest.Lines(tool.Stdout, text)
		for _, r := range tooltest.Parse(Tool, lines).Reports {
			check(t, r)
		}
		tooltest.Parse(Tool, tooltest.On(tool.Stderr, lines))
		p := Tool.NewParser(tool.Description{})
		for _, l := range lines {
			p.Parse(l, func(r *tool.Report) { check(t, r) })
			p.(tool.Flusher).Flush(func(r *tool.Report) { check(t, r) })
		}
		p.Close(func(r *tool.Report) { check(t, r) })
		sniff(text)
	})
}

func check(t *testing.T, r *tool.Report) {
	t.Helper()
	tooltest.Check(t, r)
	for _, v := range r.Counts {
		if v.N > 1<<62 {
			t.Errorf("a count that went below 0: %s", tooltest.Render(r))
		}
	}
	if r.Kind == tool.Interval && len(r.Latencies) > 0 {
		t.Errorf("cumulative latencies in an interval: %s", tooltest.Render(r))
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add("run\x00mysql\x00-P\x00w\x00-p\x00mysql.password=x\x00--threads=4", "target=4")
	f.Fuzz(func(t *testing.T, args, file string) {
		inv := tool.Invocation{Args: strings.Split(args, "\x00"), ReadFile: func(string) ([]byte, error) { return []byte(file), nil }}
		describe(inv)
	})
}

func BenchmarkInterval(b *testing.B) {
	for name, file := range map[string]string{
		"plain": "testdata/mysql-run-a-t10-int1-plain/stdout.txt",
		"table": "testdata/mysql-run-b-t4-int2-table/stdout.txt",
		"json":  "testdata/mysql-run-f-t4-int1-json/stdout.txt",
	} {
		b.Run(name, func(b *testing.B) {
			var lines []tool.Line
			size := 0
			for _, l := range tooltest.Read(b, tool.Stdout, file) {
				if string(l.Text[:min(len(l.Text), 12)]) == "Run finished" {
					break
				}
				if isPlain(l.Text) || isJSON(l.Text) || isHeader(l.Text) || isRule(l.Text) || len(l.Text) > 0 && l.Text[0] == '|' {
					lines = append(lines, l)
					size += len(l.Text) + 1
				}
			}
			p := newParser(tool.Description{})
			n := 0
			emit := func(*tool.Report) { n++ }
			for range 2 {
				for _, l := range lines {
					p.Parse(l, emit) // names are stored once
				}
			}
			b.SetBytes(int64(size / len(lines)))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if p.Parse(lines[i], emit) == tool.Malformed {
					b.Fatalf("line %d", i)
				}
				if i++; i == len(lines) {
					i = 0
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
