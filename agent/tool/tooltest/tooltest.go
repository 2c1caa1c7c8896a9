// Package tooltest runs parsers over recorded output in tests.
package tooltest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

var update = flag.Bool("update", false, "write golden files from what the code does now; read the difference before committing it")

// Lines splits what one stream holds into lines, as a follower would.
func Lines(stream tool.Stream, text []byte) []tool.Line {
	var lines []tool.Line
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		lines = append(lines, tool.Line{Stream: stream, Text: line})
		text = rest
	}
	return lines
}

// Read returns the lines of a recorded stream; none if there is no such file.
func Read(t testing.TB, stream tool.Stream, path string) []tool.Line {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return Lines(stream, text)
}

// Alternate returns the lines of a and b in turns.
func Alternate(a, b []tool.Line) []tool.Line {
	var lines []tool.Line
	for i := range max(len(a), len(b)) {
		if i < len(a) {
			lines = append(lines, a[i])
		}
		if i < len(b) {
			lines = append(lines, b[i])
		}
	}
	return lines
}

// On returns the lines as if all had come on one stream.
func On(stream tool.Stream, lines []tool.Line) []tool.Line {
	lines = append([]tool.Line(nil), lines...)
	for i := range lines {
		lines[i].Stream = stream
	}
	return lines
}

// Result is what a parser made of lines.
type Result struct {
	Reports                      []*tool.Report
	Reported, Ignored, Malformed int
}

// Parse runs a parser of tl, which knows no command line, over lines to the end.
func Parse(tl *tool.Tool, lines []tool.Line) Result {
	return ParseOf(tl, tool.Description{}, lines)
}

// ParseOf is Parse for the output of a known command line.
func ParseOf(tl *tool.Tool, d tool.Description, lines []tool.Line) Result {
	var res Result
	emit := func(r *tool.Report) { res.Reports = append(res.Reports, r.Clone()) }
	p := tl.NewParser(d)
	for _, l := range lines {
		// A copy, and garbage behind it: a parser must not keep the bytes.
		text := append([]byte(nil), l.Text...)
		switch p.Parse(tool.Line{Stream: l.Stream, Text: text, Cut: l.Cut}, emit) {
		case tool.Reported:
			res.Reported++
		case tool.Malformed:
			res.Malformed++
		default:
			res.Ignored++
		}
		for i := range text {
			text[i] = '#'
		}
	}
	p.Close(emit)
	return res
}

// String renders the reports in the form of `benchwatch parse`, one a line,
// and how the lines were judged.
func (res Result) String() string {
	var b strings.Builder
	for _, r := range res.Reports {
		b.WriteString(Render(r))
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "lines: %d reported, %d ignored, %d malformed\n", res.Reported, res.Ignored, res.Malformed)
	return b.String()
}

// Render renders one report.
func Render(r *tool.Report) string {
	var b strings.Builder
	b.WriteByte('{')
	field := func(key string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte(fmt.Sprintf("%q", err))
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", key, text)
	}
	field("kind", r.Kind)
	field("run", r.Run)
	for _, f := range []struct{ key, value string }{
		{"tool", r.Tool}, {"tool_version", r.Version}, {"command", r.Command}, {"workload", r.Workload}, {"phase", string(r.Phase)},
	} {
		if f.value != "" {
			field(f.key, f.value)
		}
	}
	optional(field, "threads", r.Threads)
	optional(field, "elapsed_seconds", r.ElapsedSeconds)
	optional(field, "interval_seconds", r.IntervalSeconds)
	if r.Checkpoint {
		field("checkpoint", true)
	}
	rates, counts := map[string]float64{}, map[string]uint64{}
	for _, v := range r.Rates {
		once(rates, v.Operation, v.PerSecond)
	}
	for _, v := range r.Counts {
		once(counts, v.Operation, v.N)
	}
	latencies := map[string]map[string]float64{}
	for _, v := range r.Latencies {
		if latencies[v.Operation] == nil {
			latencies[v.Operation] = map[string]float64{}
		}
		once(latencies[v.Operation], v.Stat, v.Seconds)
	}
	if len(rates) > 0 {
		field("rates", rates)
	}
	if len(counts) > 0 {
		field("counts", counts)
	}
	if len(latencies) > 0 {
		field("latency_seconds", latencies)
	}
	optional(field, "errors_per_second", r.ErrorsPerSecond)
	optional(field, "reconnects_per_second", r.ReconnectsPerSecond)
	optional(field, "queue_length", r.QueueLength)
	optional(field, "concurrency", r.Concurrency)
	optional(field, "tpmc", r.TpmC)
	if r.Message != "" {
		field("message", r.Message)
	}
	if r.Failed {
		field("failed", true)
	}
	b.WriteByte('}')
	return b.String()
}

func optional[T any](field func(string, any), key string, v series.Optional[T]) {
	if v.Known {
		field(key, v.Value)
	}
}

// once sets a value that may be set only once in a report; a second one shows
// under a name that no golden file has.
func once[T any](m map[string]T, key string, v T) {
	if _, twice := m[key]; twice {
		key += " TWICE"
	}
	m[key] = v
}

// Golden compares got with the file at path; with -update it writes the file.
func Golden(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s: differs (-want +got):\n%s", path, diff)
	}
}

// Cases returns the folders below testdata that hold recorded output.
func Cases(t testing.TB, pattern string) []string {
	t.Helper()
	cases, err := filepath.Glob(pattern)
	if err != nil || len(cases) == 0 {
		t.Fatalf("no recorded output at %s: %v", pattern, err)
	}
	return cases
}
