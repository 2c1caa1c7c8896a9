//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// output is what a tool printed in a real run, and mtail's program for it.
type output struct {
	name    string
	tool    string
	capture string // below agent/model/tool
	program string // below mtail
}

var outputs = []output{
	{"sysbench-1.0", "sysbench", "sysbench/testdata/1.0.20/oltp_read_write-th4-ri1-p99.txt", "sysbench"},
	{"sysbench-0.5", "sysbench", "sysbench/testdata/0.5/oltp-th4-ri1.txt", "sysbench-0.5"},
	{"ycsb", "ycsb", "ycsb/testdata/0.17.0/jdbc-run-a-t10-int1/stderr.txt", "ycsb"},
	{"go-ycsb", "go-ycsb", "goycsb/testdata/mysql-run-a-t10-int1-plain/stdout.txt", "go-ycsb"},
	{"tpcc-mysql", "tpcc-mysql", "tpccmysql/testdata/2017-01/c4-r5-l30-i1/stdout.txt", "tpcc-mysql"},
	{"go-tpc", "go-tpc", "gotpc/testdata/1.0.12/run-th4-20s-i1-plain/stdout.txt", "go-tpc"},
	{"hammerdb", "hammerdb", "hammerdb/testdata/4.12/mariadb-run/stdout.txt", "hammerdb"},
	{"benchbase", "benchbase", "benchbase/testdata/2023/tpcc-postgresql18/stdout.txt", "benchbase"},
}

const (
	intervalLines = 1_000_000
	outputLines   = 200_000
)

// read returns the text of a captured output.
func (o output) read(b *testing.B) []byte {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("../../agent/model/tool", o.capture))
	return must(b, text, err)
}

// longLog writes a log of sysbench with the interval lines of a captured run over and over,
// with ascending times.
func longLog(b *testing.B, count int) (path string) {
	b.Helper()
	var text bytes.Buffer
	var intervals [][]byte
	for line := range bytes.Lines(outputs[0].read(b)) {
		if bytes.HasPrefix(line, []byte("[ ")) {
			_, rest, _ := bytes.Cut(line, []byte("s ]"))
			intervals = append(intervals, slices.Clone(rest))
		} else if len(intervals) == 0 {
			text.Write(line)
		}
	}
	for i := range count {
		fmt.Fprintf(&text, "[ %ds ]%s", i+1, intervals[i%len(intervals)])
	}
	path = filepath.Join(b.TempDir(), "long.log")
	write(b, path, text.String())
	return path
}

// prefixed are what other programs put before and behind each line of a log, with a time that ascends.
var prefixed = []struct {
	name string
	line func(at time.Time, text string) string
}{
	{"ts", func(at time.Time, text string) string { return at.Format("Jan 02 15:04:05 ") + text }},
	{"docker", func(at time.Time, text string) string {
		return `{"log":"` + text + `\n","stream":"stdout","time":"` + at.Format("2006-01-02T15:04:05.000000000Z") + `"}`
	}},
}

// prefixLog writes a log again with something before each of its lines.
func prefixLog(b *testing.B, path string, line func(at time.Time, text string) string) string {
	b.Helper()
	text, err := os.ReadFile(path)
	must(b, text, err)
	at := time.Date(2026, 5, 10, 11, 14, 15, 0, time.UTC)
	var out strings.Builder
	for l := range strings.Lines(string(text)) {
		out.WriteString(line(at, strings.TrimSuffix(l, "\n")) + "\n")
		at = at.Add(time.Second)
	}
	path = filepath.Join(b.TempDir(), "prefixed.log")
	write(b, path, out.String())
	return path
}

// BenchmarkParse compares reading long logs: follower and parser alone, and mtail. The
// outputs of all tools are read whole, heads and summaries included.
func BenchmarkParse(b *testing.B) {
	read := func(b *testing.B, o output, path string, lines int) {
		measure(b, ours, func(b *testing.B) values { return reading(b, o, lines, path, reader(b), o.tool) })
		if command := os.Getenv("BENCHWATCH_BEFORE_READ"); command != "" {
			measure(b, before, func(b *testing.B) values {
				return reading(b, o, lines, path, append(strings.Fields(command), o.tool)...)
			})
		}
		measure(b, "mtail", func(b *testing.B) values { return mtail(b, lines, path, o) })
	}
	b.Run("log=sysbench-intervals", func(b *testing.B) {
		read(b, outputs[0], longLog(b, intervalLines), intervalLines)
	})
	for _, form := range prefixed {
		b.Run("log=sysbench-intervals-"+form.name, func(b *testing.B) {
			o := outputs[0]
			o.program = "sysbench-prefixed"
			read(b, o, prefixLog(b, longLog(b, intervalLines), form.line), intervalLines)
		})
	}
	for _, o := range outputs {
		b.Run("log="+o.name, func(b *testing.B) {
			text := o.read(b)
			lines := bytes.Count(text, []byte("\n"))
			times := outputLines/lines + 1
			path := filepath.Join(b.TempDir(), "whole.log")
			write(b, path, strings.Repeat(string(text), times))
			read(b, o, path, lines*times)
		})
	}
}

// BenchmarkParseCommand compares `benchwatch parse`, which prints every report as JSON.
func BenchmarkParseCommand(b *testing.B) {
	path := longLog(b, intervalLines)
	builds(func(program, binary string) {
		measure(b, program, func(b *testing.B) values {
			return reading(b, outputs[0], intervalLines, path, binary, "parse", "--tool=sysbench")
		})
	})
	measure(b, "mtail", func(b *testing.B) values { return mtail(b, intervalLines, path, outputs[0]) })
}

// reader returns the program ./read, built.
func reader(b *testing.B) string {
	b.Helper()
	path := filepath.Join(dir, "read")
	cpuOf(b, "go", "build", "-o", path, "./read")
	return path
}

func mtail(b *testing.B, lines int, path string, o output) values {
	b.Helper()
	return reading(b, o, lines, path, "mtail", "--one_shot", "--one_shot_format=prometheus", "--logtostderr",
		"--progs="+filepath.Join("mtail", o.program), "--logs")
}

// reading returns the lines per CPU second of a program whose last argument is the path of a log, and its allocations
// if that is all it prints. The cost of a short log, one captured output, is subtracted.
func reading(b *testing.B, o output, lines int, path string, command ...string) values {
	b.Helper()
	text := o.read(b)
	short := filepath.Join(b.TempDir(), "short.log")
	write(b, short, string(text))
	begin, _ := cpuOf(b, append(slices.Clone(command), short)...)
	all, out := cpuOf(b, append(command, path)...)
	v := values{"lines/cpu-s": float64(lines-bytes.Count(text, []byte("\n"))) / (all - begin)}
	if allocations, err := strconv.ParseFloat(strings.TrimSpace(out), 64); err == nil {
		v["allocs/line"] = allocations
	}
	return v
}

// BenchmarkExport compares the export of eleven days of reports with what promtool needs to
// make blocks of it.
func BenchmarkExport(b *testing.B) {
	log, text := longLog(b, 1_000_000), filepath.Join(b.TempDir(), "runs.om")
	builds(func(program, binary string) {
		measure(b, program, func(b *testing.B) values {
			cpu, _ := cpuOf(b, binary, "export", "--tool=sysbench", "--start=2026-01-01T00:00:00Z", "--output="+text, log)
			return values{"cpu-s": cpu}
		})
		if program == before {
			return
		}
		measure(b, "promtool", func(b *testing.B) values {
			cpu, _ := cpuOf(b, "promtool", "tsdb", "create-blocks-from", "--max-block-duration=24h", "openmetrics", text, b.TempDir())
			return values{"cpu-s": cpu}
		})
	})
}
