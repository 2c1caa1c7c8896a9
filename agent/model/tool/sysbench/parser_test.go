package sysbench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

const (
	banner10 = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)"
	banner05 = "sysbench 0.5:  multi-threaded system evaluation benchmark"
	banner04 = "sysbench 0.4.12:  multi-threaded system evaluation benchmark"

	options10 = "Running the test with following options:\nNumber of threads: 4\nReport intermediate results every 1 second(s)\nThreads started!\n"
	start10   = `{"kind":"start","run":1,"tool":"sysbench","tool_version":"1.0.20","threads":4}`

	line10 = "[ 1s ] thds: 4 tps: 10.50 qps: 210.00 (r/w/o: 147.00/42.00/21.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00"
	json10 = `{"kind":"interval","run":1,"elapsed_seconds":1,"interval_seconds":1,"threads":4,"phase":"measure",` +
		`"rates":{"transaction":10.5,"query":210,"read":147,"write":42,"other":21},"latency_seconds":{"transaction":{"p95":0.00104}},` +
		`"errors_per_second":0,"reconnects_per_second":0}`
	line05 = "[   1s] threads: 4, tps: 10.50, reads: 147.00, writes: 42.00, response time: 1.04ms (95%), errors: 0.00, reconnects:  0.00"
	json05 = `{"kind":"interval","run":1,"elapsed_seconds":1,"interval_seconds":1,"threads":4,"phase":"measure",` +
		`"rates":{"transaction":10.5,"read":147,"write":42,"query":189},"latency_seconds":{"transaction":{"p95":0.00104}},` +
		`"errors_per_second":0,"reconnects_per_second":0}`
)

// at returns a line like line10 at another second.
func at(line string, seconds int) string {
	return regexp.MustCompile(`^\[( *)1s`).ReplaceAllString(line, fmt.Sprintf("[${1}%ds", seconds))
}

// after returns json10 or json05 at another second.
func after(report string, seconds int) string {
	return strings.Replace(report, `"elapsed_seconds":1,`, fmt.Sprintf(`"elapsed_seconds":%d,`, seconds), 1)
}

// Short names for the tables below.
var sprintf = fmt.Sprintf

func replace(s, old, with string) string { return strings.Replace(s, old, with, 1) }

func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

// intervals counts interval lines independently of the parser, as a person would with grep.
var intervals = regexp.MustCompile(`(?m)^(\[ *\d+s ?\] (thds|threads|reads): ?.*|\[ \d+s \] [\d.]+ MiB/sec|\d+,\d+,[\d.]+,.*|    "tps": .*)$`)

func TestIntervalCountsOfCaptures(t *testing.T) {
	for _, path := range captures(t) {
		stdout, stderr := readCapture(t, path)
		want := len(intervals.FindAll(stdout, -1))
		got := strings.Count(parse(stdout, stderr).JSON(), `"kind":"interval"`)
		if got != want {
			t.Errorf("%s: %d intervals, want %d", path, got, want)
		}
	}
}

func TestCapturesHoldNoMalformedLine(t *testing.T) {
	for _, path := range captures(t) {
		if n := parse(readCapture(t, path)).Malformed; n > 0 {
			t.Errorf("%s: %d malformed lines", path, n)
		}
	}
}

func TestLineEndsDoNotMatter(t *testing.T) {
	for _, path := range captures(t) {
		stdout, stderr := readCapture(t, path)
		want := parse(stdout, stderr).String()
		crlf := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }
		if diff := cmp.Diff(want, parse(crlf(stdout), crlf(stderr)).String()); diff != "" {
			t.Errorf("%s with CRLF: -want +got\n%s", path, diff)
		}
	}
}

// TestStreamsAreIndependent guards that the reports stay the same after a restart, when one stream
// is read after the other.
func TestStreamsAreIndependent(t *testing.T) {
	for _, path := range captures(t) {
		stdout, stderr := readCapture(t, path)
		if len(stderr) == 0 {
			stderr = []byte("PANIC: unprotected error in call to Lua API (no)\nWARNING: no\n(last message repeated 3 times)\n")
		}
		out, errs := tooltest.Lines(tool.Stdout, stdout), tooltest.Lines(tool.Stderr, stderr)
		want := sorted(parse(stdout, stderr).String())
		middle := min(12, len(out))
		for name, lines := range map[string][]tool.Line{
			"first":   slices.Concat(errs, out),
			"between": slices.Concat(out[:middle], errs, out[middle:]),
			"in turn": tooltest.Alternate(out, errs),
		} {
			if diff := cmp.Diff(want, sorted(tooltest.Parse(Tool, lines).String())); diff != "" {
				t.Errorf("%s, stderr %s: -want +got\n%s", path, name, diff)
			}
		}
	}
}

func sorted(s string) []string {
	all := strings.Split(s, "\n")
	slices.Sort(all)
	return all
}

// TestRunsInOneFile guards that many runs can be appended to one log.
func TestRunsInOneFile(t *testing.T) {
	var log []byte
	var want strings.Builder
	for i, path := range captures(t) {
		stdout, _ := readCapture(t, path)
		log = append(log, stdout...)
		want.WriteString(strings.ReplaceAll(parse(stdout, nil).JSON(), `"run":1,`, fmt.Sprintf(`"run":%d,`, i+1)))
	}
	if diff := cmp.Diff(want.String(), parse(log, nil).JSON()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestReportsComeAtOnce guards that an interval is reported with its own last line, not with the
// line after it.
func TestReportsComeAtOnce(t *testing.T) {
	for _, path := range captures(t) {
		stdout, _ := readCapture(t, path)
		p := NewParser(tool.Description{})
		for _, line := range tooltest.Lines(tool.Stdout, stdout) {
			reported := false
			p.Parse(line, func(*tool.Report) { reported = true })
			text := string(bytes.TrimSpace(line.Text))
			held := p.holding
			switch {
			case intervals.MatchString(text) && !strings.HasPrefix(text, `"tps"`):
				if !reported && !held {
					t.Fatalf("%s: not reported: %s", path, text)
				}
				if held && !bytes.Contains(stdout, []byte("] queue length: ")) {
					t.Fatalf("%s: held back without need: %s", path, text)
				}
			case strings.HasPrefix(text, `"reconnects"`), strings.Contains(text, "queue length: "):
				if !reported {
					t.Fatalf("%s: not reported: %s", path, text)
				}
			}
		}
	}
}

// TestDamagedIntervalLines truncates recorded interval lines at every byte and inserts foreign
// bytes at every place: no value may result.
func TestDamagedIntervalLines(t *testing.T) {
	seen := map[string]bool{}
	for _, path := range captures(t) {
		stdout, _ := readCapture(t, path)
		found := intervals.FindAll(stdout, 2)
		if len(found) == 0 || bytes.HasPrefix(found[0], []byte(" ")) {
			continue
		}
		whole, next := found[0], found[len(found)-1]
		shape := string(regexp.MustCompile(`\d`).ReplaceAll(whole, []byte("0")))
		if seen[shape] {
			continue
		}
		seen[shape] = true
		try := func(damaged []byte) {
			p := NewParser(tool.Description{})
			reports := 0
			count := func(r *tool.Report) {
				if r.Kind == tool.Interval {
					reports++
				}
			}
			p.Parse(tool.Line{Text: whole}, count)
			reports = 0
			if v := p.Parse(tool.Line{Text: damaged}, count); v == tool.Reported {
				t.Errorf("%s: taken as a report: %q", path, damaged)
			}
			p.Close(count)
			if reports != 0 {
				t.Errorf("%s: %d reports made of %q", path, reports, damaged)
			}
		}
		for i := range next {
			try(next[:i])
			if i > 0 {
				try(next[i:])
				try(slices.Concat(next[:i], []byte("x"), next[i:]))
			}
			if i > 0 && next[0] == '[' { // a digit before a digit is another number
				try(slices.Concat(next[:i], next))
			}
			try(slices.Concat(next[:i], []byte("\xff\x00"), next[i:]))
		}
		try(slices.Concat(next, next))
		try(slices.Concat(next, []byte("FATAL: no")))
	}
}

func TestReports(t *testing.T) {
	for _, c := range []struct {
		name, input string
		want        []string
		malformed   int
	}{
		{
			"percentile off",
			lines("[ 1s ] thds: 4 eps: 10.00 lat (ms,0%): 0.00"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench"}`,
				`{"kind":"interval","run":1,"elapsed_seconds":1,"threads":4,"phase":"measure","rates":{"transaction":10}}`}, 0,
		},
		{
			"percentile with decimals, and a list",
			lines("[ 1s ] thds: 4 eps: 10.00 lat (ms,99.90%): 2.00 lat (ms,50.00%): 1.00"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench"}`,
				`{"kind":"interval","run":1,"elapsed_seconds":1,"threads":4,"phase":"measure","rates":{"transaction":10},"latency_seconds":{"transaction":{"p99.9":0.002,"p50":0.001}}}`}, 0,
		},
		{
			"what C calls no number is absent",
			lines("[ 1s ] thds: 4 tps: -nan qps: inf (r/w/o: nan/1.00/2.00) lat (ms,95%): nan err/s: -inf reconn/s: nan"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench"}`,
				`{"kind":"interval","run":1,"elapsed_seconds":1,"threads":4,"phase":"measure","rates":{"write":1,"other":2}}`}, 0,
		},
		{
			"an interval between two malformed ones is as long as asked for",
			lines(banner10, options10+line10, at(line10, 2)+"FATAL: x", at(line10, 3), "[ 4s ] thds: 4 tps: 1", at(line10, 6)),
			[]string{start10, json10, after(json10, 3), after(json10, 6)}, 2,
		},
		{
			"the time between two reports is measured by their clock",
			lines(banner10, options10+line10, at(line10, 4)),
			[]string{start10, json10, strings.Replace(after(json10, 4), `"interval_seconds":1`, `"interval_seconds":3`, 1)}, 0,
		},
		{
			"the same second twice: the length is unknown",
			lines(banner10, options10+line10, line10),
			[]string{start10, json10, strings.Replace(json10, `"interval_seconds":1,`, "", 1)}, 0,
		},
		{
			"numbers out of range",
			lines(banner10, options10+line10,
				strings.Replace(at(line10, 2), "10.50", "1e999", 1),
				strings.Replace(at(line10, 3), "10.50", strings.Repeat("9", 400)+".00", 1),
				strings.Replace(at(line10, 4), "10.50", "-1.00", 1),
				strings.Replace(at(line10, 5), "thds: 4", "thds: 99999999999999999999", 1),
				strings.Replace(at(line10, 6), "thds: 4", "thds: -1", 1),
				strings.Replace(at(line10, 7), "95%", "195%", 1),
				"[ 99999999999s ] "+line10[7:],
				"[ 1e9s ] "+line10[7:]),
			[]string{start10, json10}, 8,
		},
		{
			"a large number is read right",
			lines("[ 1s ] 12345678901234567.89 MiB/sec"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench"}`,
				`{"kind":"interval","run":1,"elapsed_seconds":1,"phase":"measure","rates":{"byte":1.2945382599540938e+22}}`}, 0,
		},
		{
			"what a script prints behind a time is its own business",
			lines(banner10, options10+line10, "[ 1s ] my metric: 12", "[ 1s ] 12 things", "[ 1s ] 12.00 things", "[info] x", "[", "12,13", "a,b,c"),
			[]string{start10, json10}, 0,
		},
		{
			"queue lines are merged, with and without comma",
			lines(banner10, "Target transaction rate: 5/sec", line10, "[ 1s ] queue length: 65, concurrency: 4", "DEBUG: x",
				"[ 2s ] thds: 4 eps: 10.00 lat (ms,95%): 0.00", "[ 2s ] queue length: 1 concurrency: 2"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench","tool_version":"1.0.20"}`,
				strings.Replace(strings.Replace(json10, `,"reconnects_per_second":0}`, `,"reconnects_per_second":0,"queue_length":65,"concurrency":4}`, 1), `"interval_seconds":1,`, "", 1),
				`{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":1,"threads":4,"phase":"measure","rates":{"transaction":10},"queue_length":1,"concurrency":2}`}, 0,
		},
		{
			"a queue line out of range or of another second is not taken, its interval is",
			lines(banner10, "Target transaction rate: 5/sec", "Report intermediate results every 1 second(s)",
				line10, "[ 1s ] queue length: 1, concurrency: 18446744073709551615", at(line10, 2), "[ 3s ] queue length: 1, concurrency: 1",
				at(line10, 3), "[ 3s ] queue len", at(line10, 4), "[ 4s ] queue length: 1, concurrency: 1x"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench","tool_version":"1.0.20"}`, json10, after(json10, 2), after(json10, 3), after(json10, 4)}, 3,
		},
		{
			"a version that prints no queue line",
			lines(banner10, "Target transaction rate: 5/sec", "Report intermediate results every 1 second(s)", line10, at(line10, 2), at(line10, 3)),
			[]string{`{"kind":"start","run":1,"tool":"sysbench","tool_version":"1.0.20"}`, json10, after(json10, 2), after(json10, 3)}, 0,
		},
		{
			"1.0 before its release",
			lines("[   1s] threads: 4 tps: 10.50 qps: 210.00 (r/w/o: 147.00/42.00/21.00) latency: 1.04ms (95%) errors/s: 0.00 reconnects/s: 0.00",
				"[   2s] threads: 4 tps: 10.50 qps: 210.00 (r/w/o: 147.00/42.00/21.00) latency (ms,95%): 1.04 errors/s: 0.00 reconnects/s: 0.00",
				"[   3s] threads: 4 events/s: 10.50 latency (ms,95%): 1.04"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench"}`, strings.Replace(json10, `"interval_seconds":1,`, "", 1), after(json10, 2),
				`{"kind":"interval","run":1,"elapsed_seconds":3,"interval_seconds":1,"threads":4,"phase":"measure","rates":{"transaction":10.5},"latency_seconds":{"transaction":{"p95":0.00104}}}`}, 0,
		},
		{
			"0.5 through the years",
			lines("[   1s] threads: 4, tps: 10.50",
				"[   2s] threads: 4, tps: 10.50, reads/s: 147.00, writes/s: 42.00",
				"[   3s] threads: 4, tps: 10.50, reads/s: 147.00, writes/s: 42.00 response time: 1.04ms (95%), 2.00ms (99%)",
				"[   4s] threads: 4, tps: 10.50, reads/s: 147.00, writes/s: 42.00, response time: 1.04ms (95%)",
				at(line05, 5)),
			[]string{`{"kind":"start","run":1,"tool":"sysbench"}`,
				`{"kind":"interval","run":1,"elapsed_seconds":1,"threads":4,"phase":"measure","rates":{"transaction":10.5}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":1,"threads":4,"phase":"measure","rates":{"transaction":10.5,"read":147,"write":42,"query":189}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":3,"interval_seconds":1,"threads":4,"phase":"measure","rates":{"transaction":10.5,"read":147,"write":42,"query":189},"latency_seconds":{"transaction":{"p95":0.00104,"p99":0.002}}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":4,"interval_seconds":1,"threads":4,"phase":"measure","rates":{"transaction":10.5,"read":147,"write":42,"query":189},"latency_seconds":{"transaction":{"p95":0.00104}}}`,
				after(json05, 5)}, 0,
		},
		{
			"memory and fileio of 0.x",
			lines("[   1s] 2.50 MB/sec,", "[   2s] reads: 1.00 MB/s writes: 0.50 MB/s fsyncs: 2.00/s response time: 0.01ms (95%)"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench"}`,
				`{"kind":"interval","run":1,"elapsed_seconds":1,"phase":"measure","rates":{"byte":2621440}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":1,"phase":"measure","rates":{"read_byte":1048576,"write_byte":524288,"fsync":2},"latency_seconds":{"transaction":{"p95":0.00001}}}`}, 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.input, c.want, c.malformed) })
	}
}

// check parses input as standard output and compares the reports and the number of malformed lines.
func check(t *testing.T, input string, want []string, malformed int) {
	t.Helper()
	res := parse([]byte(input), nil)
	got := strings.Split(strings.TrimSuffix(res.JSON(), "\n"), "\n")
	if len(want) == 0 {
		want = []string{""}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if res.Malformed != malformed {
		t.Errorf("%d malformed lines, want %d", res.Malformed, malformed)
	}
	for _, report := range got {
		if report != "" && !json.Valid([]byte(report)) {
			t.Errorf("invalid JSON: %s", report)
		}
	}
}
