// Package tooltest runs parsers over recorded output in tests. The result for a recording is in a
// golden file beside it, in the form of `benchwatch parse`; `go test ./agent/model/tool/...
// -update` writes them all.
package tooltest

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

var update = flag.Bool("update", false, "write golden files from what the code does now; read the difference before committing it")

// Lines splits the text of one stream into lines, like a follower.
func Lines(stream tool.Stream, text []byte) []tool.Line {
	var lines []tool.Line
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		lines = append(lines, tool.Line{Stream: stream, Text: line})
		text = rest
	}
	return lines
}

// Read returns the lines of a recorded stream; none if the file does not exist.
func Read(t testing.TB, stream tool.Stream, path string) []tool.Line {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return Lines(stream, text)
}

// Recorded returns the lines of a recorded run, standard output first.
func Recorded(t testing.TB, dir string) []tool.Line {
	t.Helper()
	return append(Read(t, tool.Stdout, filepath.Join(dir, "stdout.txt")), Read(t, tool.Stderr, filepath.Join(dir, "stderr.txt"))...)
}

// Alternate returns the lines of a and b alternately.
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

// On returns the lines as if all were written to one stream.
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

// Parse runs a parser of tl over lines to their end, without a command line.
func Parse(tl *tool.Tool, lines []tool.Line) Result {
	return ParseOf(tl, tool.Description{}, lines)
}

// ParseOf is Parse with a known command line.
func ParseOf(tl *tool.Tool, d tool.Description, lines []tool.Line) Result {
	var res Result
	emit := func(r *tool.Report) { res.Reports = append(res.Reports, r.Clone()) }
	p := tl.NewParser(d)
	for _, l := range lines {
		// A copy that is overwritten afterwards, since a parser must not keep the bytes.
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

// JSON returns the reports as `benchwatch parse` prints them.
func (res Result) JSON() string {
	var b strings.Builder
	for _, r := range res.Reports {
		b.WriteString(Render(r) + "\n")
	}
	return b.String()
}

// String returns the reports as JSON and the verdict on each line.
func (res Result) String() string {
	return res.JSON() + fmt.Sprintf("lines: %d reported, %d ignored, %d malformed\n", res.Reported, res.Ignored, res.Malformed)
}

// Sorted returns the lines of String in an order that does not depend on the order of reports.
func (res Result) Sorted() []string {
	lines := strings.Split(res.String(), "\n")
	slices.Sort(lines)
	return lines
}

// Check fails if the report is invalid: a value below 0 or not a number, or a run before the first.
func Check(t testing.TB, r *tool.Report) {
	t.Helper()
	values := []float64{r.ElapsedSeconds.Value, r.IntervalSeconds.Value}
	for _, v := range r.Values {
		values = append(values, v.Value)
	}
	for _, v := range r.Rates {
		values = append(values, v.PerSecond)
	}
	for _, v := range r.Latencies {
		values = append(values, v.Seconds)
	}
	for _, b := range r.Buckets {
		values = append(values, b.Low, min(b.Bound, 1e9), min(b.High, 1e9)-b.Low)
	}
	bad := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) || v < 0 }
	if r.Run < 1 || slices.ContainsFunc(values, bad) {
		t.Errorf("%s of %v", Render(r), values)
	}
}

// Fuzz runs a parser of tl over any bytes on both streams, starting with the recorded runs in
// testdata. Neither stream may change the reports of the other.
func Fuzz(f *testing.F, tl *tool.Tool) {
	for _, file := range Cases(f, "testdata/*/*/stdout.txt") {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text[:min(len(text), 8000)], []byte("panic: x\n2002, HY000, x\nmysqlslap: x\n"))
		f.Add(text[max(0, len(text)-4000):], []byte{})
	}
	f.Fuzz(func(t *testing.T, stdout, stderr []byte) {
		out, err := Lines(tool.Stdout, stdout), Lines(tool.Stderr, stderr)
		first, second := Parse(tl, slices.Concat(out, err)), Parse(tl, slices.Concat(err, out))
		if len(first.Reports) != len(second.Reports) || first.Malformed != second.Malformed {
			t.Errorf("%s\nor\n%s", first, second)
		}
		for _, r := range first.Reports {
			if text := Render(r); strings.Contains(text, "TWICE") {
				t.Error(text)
			}
		}
		tl.Sniff(stdout)
	})
}

// Sniffs checks that tl recognises each recorded file with at least this score, and scores 0 for
// others.
func Sniffs(t *testing.T, tl *tool.Tool, least int, files []string, others ...string) {
	t.Helper()
	for _, file := range files {
		head, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if s := tl.Sniff(head[:min(len(head), 4096)]); s < least {
			t.Errorf("%s: %d", file, s)
		}
	}
	for _, text := range append(others, "") {
		if s := tl.Sniff([]byte(text)); s != 0 {
			t.Errorf("%q: %d", text, s)
		}
	}
}

// Render returns a report in the form of `benchwatch parse`. A value that the parser set twice is
// printed once; the second one follows after "TWICE".
func Render(r *tool.Report) string {
	text := string(tool.AppendJSON(nil, r))
	for i, v := range r.Rates {
		if slices.ContainsFunc(r.Rates[:i], func(o tool.Rate) bool { return o.Operation == v.Operation }) {
			text += " TWICE rate of " + v.Operation
		}
	}
	for i, v := range r.Counts {
		if slices.ContainsFunc(r.Counts[:i], func(o tool.Count) bool { return o.Operation == v.Operation }) {
			text += " TWICE count of " + v.Operation
		}
	}
	for i, v := range r.Latencies {
		if slices.ContainsFunc(r.Latencies[:i], func(o tool.Latency) bool { return o.Operation == v.Operation && o.Stat == v.Stat }) {
			text += " TWICE " + v.Stat + " of " + v.Operation
		}
	}
	return text
}

// Golden compares got with the file at path. With -update it writes the file.
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

// Cases returns the folders below testdata that contain recorded output.
func Cases(t testing.TB, pattern string) []string {
	t.Helper()
	cases, err := filepath.Glob(pattern)
	if err != nil || len(cases) == 0 {
		t.Fatalf("no recorded output at %s: %v", pattern, err)
	}
	return cases
}
