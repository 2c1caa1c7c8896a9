package ingest

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// A log that other programs or people damaged has the run of the undamaged one: nothing is counted twice or invented.
func TestDamagedLogs(t *testing.T) {
	tl := allTools.ByName("sysbench")
	var lines []string
	for _, text := range recordings(t, tl) {
		if bytes.Count(text, []byte("\n[ ")) > 5 && bytes.Contains(text, []byte("Threads fairness:")) && printable(text) {
			lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			break
		}
	}
	stamped := func(n int, line string) string { return at(n).Format(time.RFC3339Nano) + " " + line }
	compose := func(_ int, line string) string { return "gen-1  | " + line }
	each := func(add func(n int, line string) string) string {
		var text strings.Builder
		for n, line := range lines {
			text.WriteString(add(n, line) + "\n")
		}
		return text.String()
	}
	plain := each(func(_ int, line string) string { return line })
	whole := split(t, tl, plain)[0].Snapshot()
	for _, test := range []struct {
		name, text string
		runs       int  // 0: unknown
		cut        bool // lines are missing
	}{
		{name: "prefix changes in the middle", runs: 1, text: each(func(n int, line string) string {
			if n < len(lines)/2 {
				return compose(n, line)
			}
			return stamped(n, line)
		})},
		{name: "half prefixed", runs: 1, text: each(func(n int, line string) string {
			if n < len(lines)/2 {
				return line
			}
			return stamped(n, line)
		})},
		{name: "times go back", runs: 1, text: each(func(n int, line string) string { return stamped(n%3*1000-n, line) })},
		{name: "two containers with the same name", cut: true, text: each(func(n int, line string) string {
			return compose(n, line) + "\n" + compose(n, line)
		})},
		{name: "JSON lines cut off", runs: 1, cut: true, text: each(func(n int, line string) string {
			object := `{"log":` + strconv.Quote(line+"\n") + `,"stream":"stdout","time":"` + at(n).Format(time.RFC3339Nano) + `"}`
			if strings.HasPrefix(line, "[ 3s ]") {
				return object[:40]
			}
			return object
		})},
		{name: "half log and half prose", runs: 1, text: "Dear all,\n\nthe server was slow: see below.\n\n" + plain + "\nWe expected 30 % more.\n\n- tps = high\n"},
		{name: "the same log twice", runs: 2, text: plain + plain},
	} {
		t.Run(test.name, func(t *testing.T) {
			parts := split(t, tl, test.text)
			if len(parts) != test.runs && test.runs > 0 {
				t.Fatalf("%d runs, want %d", len(parts), test.runs)
			}
			for _, p := range parts {
				got := p.Snapshot()
				if got.Summary == nil && test.runs == 0 { // only the heads that the two processes printed
					continue
				}
				if !test.cut && !sameContent(&got, &whole) {
					t.Errorf("summary %+v, want %+v", got.Summary, whole.Summary)
				} else if got.Summary == nil || fmt.Sprint(got.Summary.Counts) != fmt.Sprint(whole.Summary.Counts) {
					t.Errorf("counts of %+v, want those of %+v", got.Summary, whole.Summary)
				}
			}
		})
	}
}

func split(t *testing.T, tl *tool.Tool, text string) []*Part {
	t.Helper()
	parts, err := SplitLog(t.Context(), section([]byte(text)), tl, 0, time.Time{})
	if err != nil || len(parts) == 0 {
		t.Fatal(len(parts), err)
	}
	return parts
}

// The memory of a parser does not grow with the lines of a log that has prefixes.
func TestPrefixedLogIsBounded(t *testing.T) {
	front := allTools.ByName("sysbench").NewFront(tool.Description{})
	parser, reports := front.Parser(), 0
	emit := func(*tool.Report) { reports++ }
	var line []byte
	read := func(from, to int) {
		for n := from; n < to; n++ {
			line = append(at(n%3600).AppendFormat(line[:0], time.RFC3339Nano), " [ "...)
			line = append(strconv.AppendInt(line, int64(n), 10), "s ] thds: 4 tps: 1131.42 qps: 22631.34 (r/w/o: 15842.62/4525.88/2262.84) "...)
			line = append(line, "lat (ms,95%): 5.09 err/s: 0.00 reconn/s: 0.00"...)
			parser.Parse(tool.Line{Text: line}, emit)
		}
	}
	read(1, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read(1000, 101_000)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 || reports < 100_000 {
		t.Errorf("%d bytes allocated for %d reports", grown, reports)
	}
}
