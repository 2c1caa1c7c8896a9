package ycsb

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

func parse(stream tool.Stream, text string) tooltest.Result {
	return tooltest.Parse(Tool, tooltest.Lines(stream, []byte(text)))
}

const (
	at0 = "2026-11-21 01:38:24:059 0 sec: 11 operations; ∞ current ops/sec; est completion in 0 second [READ: Count=12, Max=44895, Min=3780, Avg=17321.08, 90=35519] \n"
	at1 = "2026-11-21 01:38:25:060 1 sec: 76 operations; 64.94 current ops/sec; est completion in 13 seconds [READ: Count=64, Max=35839, Min=0, Avg=5463.73, 90=9407] \n"
)

const (
	want0 = `{"kind":"interval","run":1,"elapsed_seconds":0,"phase":"measure","counts":{"transaction":11,"read":12},"latency_seconds":{"read":{"max":0.044895,"min":0.00378,"avg":0.01732108,"p90":0.035519}}}`
	want1 = `{"kind":"interval","run":1,"elapsed_seconds":1,"interval_seconds":1.001,"phase":"measure","rates":{"transaction":64.94,"read":63.936063936063945},"counts":{"transaction":65,"read":64},"latency_seconds":{"read":{"max":0.035839,"min":0,"avg":0.00546373,"p90":0.009407}}}`
)

func TestStatus(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // reports
		malformed  int
	}{
		{"two lines", at0 + at1, []string{want0, want1}, 0},
		{"Windows line ends", strings.ReplaceAll(at0+at1, "\n", "\r\n"), []string{want0, want1}, 0},
		{"blanks at line ends taken away", strings.ReplaceAll(at0+at1, " \n", "\n"), []string{want0, want1}, 0},
		{"a label", "lab1:" + at0 + "lab1:" + at1, []string{want0, want1}, 0},
		{"a label of digits", "2026" + at0 + "2026" + at1, []string{want0, want1}, 0},
		{"a label like a status", "7 sec: x" + at0, []string{want0}, 0},
		{"noise between", at0 + "\tat site.ycsb.ClientThread.run(ClientThread.java:91)\n" + at1, []string{want0, want1}, 0},
		{"German", strings.NewReplacer("17321.08", "17321,08").Replace(at0) + strings.NewReplacer("64.94", "64,94", "5463.73", "5463,73").Replace(at1), []string{want0, want1}, 0},
		{"Arabic digits", at0 + strings.NewReplacer("64.94", "٦٤٫٩٤", "5463.73", "٥٤٦٣٫٧٣").Replace(at1), []string{want0}, 1},
		{"cut in a group", at0 + at1[:len(at1)-20] + "\n", []string{want0}, 1},
		{"cut in the rate", at0 + at1[:54] + "\n", []string{want0}, 1},
		{"cut in the operations", at0 + at1[:34] + "\n", []string{want0}, 1},
		{"cut behind the date", at0 + at1[:26] + "\n", []string{want0}, 1},
		{"two lines in one", at0 + at1[:40] + at1, []string{want0}, 1},
		{"text behind", at0 + strings.TrimSuffix(at1, "\n") + "Exception\n", []string{want0}, 1},
		{"a rate that is none", at0 + strings.Replace(at1, "64.94", "1e999", 1), []string{want0}, 1},
		{"a negative rate", at0 + strings.Replace(at1, "64.94", "-64.94", 1), []string{want0}, 1},
		{"a rate of letters", at0 + strings.Replace(at1, "64.94", "many", 1), []string{want0}, 1},
		{"too many operations", at0 + strings.Replace(at1, "76", "99999999999999999999", 1), []string{want0}, 1},
		{"no latency", at0 + strings.Replace(at1, "Min=0", "Min=9223372036854775807", 1), []string{want0}, 1},
		{"NaN with samples", at0 + strings.Replace(at1, "5463.73", "NaN", 1), []string{want0}, 1},
		{"invalid UTF-8", at0 + strings.Replace(at1, "READ", "RE\xff", 1), []string{want0}, 1},
		{"a logger's line", at0 + "2026-11-21 01:38:25.060 1 sec: 76 operations; \n", []string{want0}, 0},
		{"empty groups", strings.Replace(at0, "Count=12, Max=44895, Min=3780, Avg=17321.08, 90=35519", "Count=0, Max=0, Min=9223372036854775807, Avg=\uFFFD, 90=0", 1),
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":0,"phase":"measure","counts":{"transaction":11,"read":0}}`}, 0},
		{"nothing ended", "2026-11-21 01:38:24:059 0 sec: 0 operations; est completion in 0 second \n" +
			"2026-11-21 01:38:25:059 1 sec: 0 operations; est completion in 106751991167300 days 15 hours \n",
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":0,"phase":"measure","counts":{"transaction":0}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":1,"interval_seconds":1,"phase":"measure","rates":{"transaction":0},"counts":{"transaction":0}}`}, 0},
		{"the second half of a log", strings.Replace(at1, " 1 sec: ", " 501 sec: ", 1),
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":501,"phase":"measure","rates":{"transaction":64.94},"counts":{"read":64},"latency_seconds":{"read":{"max":0.035839,"min":0,"avg":0.00546373,"p90":0.009407}}}`}, 0},
		{"a line lost: the operations of both, no rate per kind", at0 + at1[:60] + "\n" + "2026-11-21 01:38:26:060 2 sec: 176 operations; 100 current ops/sec; [READ: Count=99, Max=3, Min=1, Avg=2, 90=3] \n",
			[]string{want0, `{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":2.001,"phase":"measure","rates":{"transaction":100},"counts":{"transaction":165,"read":99},"latency_seconds":{"read":{"max":0.000003,"min":0.000001,"avg":0.000002,"p90":0.000003}}}`}, 1},
		{"winter time begins", "2026-10-25 02:59:59:500 7 sec: 5 operations; 0 current ops/sec; \n2026-10-25 02:00:00:500 8 sec: 5 operations; 0 current ops/sec; \n",
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":7,"phase":"measure","rates":{"transaction":0}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":8,"interval_seconds":1,"phase":"measure","rates":{"transaction":0},"counts":{"transaction":0}}`}, 0},
		{"new year", "2024-12-31 23:59:59:500 7 sec: 5 operations; 0 current ops/sec; \n2025-01-01 00:00:00:400 7 sec: 5 operations; 0 current ops/sec; \n",
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":7,"phase":"measure","rates":{"transaction":0}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":7,"interval_seconds":0.9,"phase":"measure","rates":{"transaction":0},"counts":{"transaction":0}}`}, 0},
		{"a leap day", "2024-02-28 23:59:59:500 7 sec: 5 operations; 0 current ops/sec; \n2024-02-29 00:00:00:500 8 sec: 5 operations; 0 current ops/sec; \n2024-03-01 00:00:00:500 86408 sec: 5 operations; 0 current ops/sec; \n",
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":7,"phase":"measure","rates":{"transaction":0}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":8,"interval_seconds":1,"phase":"measure","rates":{"transaction":0},"counts":{"transaction":0}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":86408,"interval_seconds":86400,"phase":"measure","rates":{"transaction":0},"counts":{"transaction":0}}`}, 0},
		{"another run without a banner", at0 + at1 + at0, []string{want0, want1, strings.Replace(want0, `"run":1`, `"run":2`, 1)}, 0},
		{"failures", strings.Replace(at1, "] \n", "] [READ-FAILED: Count=3, Max=3, Min=3, Avg=3] [Intended-READ-FAILED: Count=3, Max=9, Min=9, Avg=9] \n", 1),
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":1,"phase":"measure","rates":{"transaction":64.94},"counts":{"read":64,"read_failed":3,"intended_read_failed":3,"error":3},` +
				`"latency_seconds":{"read":{"max":0.035839,"min":0,"avg":0.00546373,"p90":0.009407},"read_failed":{"max":0.000003,"min":0.000003,"avg":0.000003},"intended_read_failed":{"max":0.000009,"min":0.000009,"avg":0.000009}}}`}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, stream := range []tool.Stream{tool.Stdout, tool.Stderr} {
				res := parse(stream, test.text)
				var got []string
				for _, r := range res.Reports {
					got = append(got, tooltest.Render(r))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("stream %d:\n%s", stream, diff)
				}
				if res.Malformed != test.malformed {
					t.Errorf("stream %d: %d malformed, want %d", stream, res.Malformed, test.malformed)
				}
			}
		})
	}
}

// A line that the follower truncated has no values, however correct its beginning is.
func TestCutLine(t *testing.T) {
	res := tooltest.Parse(Tool, []tool.Line{{Stream: tool.Stderr, Text: []byte(strings.TrimSuffix(at0, "\n")), Cut: true}})
	if len(res.Reports) != 0 || res.Malformed != 1 {
		t.Error(res)
	}
}

// The combined measurement types put line ends into a status. The first lines count even if later
// lines are damaged.
func TestStatusOfSeveralLines(t *testing.T) {
	const (
		one   = "2026-11-21 01:44:06:504 0 sec: 81 operations; ∞ current ops/sec; est completion in 0 second [HdrREAD: Count=41, Max=9, Min=6, Avg=8]\n"
		two   = "RawREAD count: 49, average latency(us): 39069.67 [HdrUPDATE: Count=52, Max=7, Min=3, Avg=5]\n"
		three = "RawUPDATE count: 55, average latency(us): 36121.51 \n"
		read  = `{"kind":"interval","run":1,"elapsed_seconds":0,"phase":"measure","counts":{"transaction":81,"read":41},"latency_seconds":{"read":{"max":0.000009,"min":0.000006,"avg":0.000008}}}`
		both  = `{"kind":"interval","run":1,"elapsed_seconds":0,"phase":"measure","counts":{"transaction":81,"read":41,"update":52},"latency_seconds":{"read":{"max":0.000009,"min":0.000006,"avg":0.000008},"update":{"max":0.000007,"min":0.000003,"avg":0.000005}}}`
	)
	tests := []struct {
		name, text string
		want       string
		malformed  int
	}{
		{"all", one + two + three, both, 0},
		{"the output ends", one, read, 0},
		{"the output ends later", one + two, both, 0},
		{"an empty second half", one + " [HdrUPDATE: Count=52, Max=7, Min=3, Avg=5]\n \n", both, 0},
		{"a cut half", one + "[BucketREAD AverageLat\n", read, 1},
		{"another line", one + "Maximum time elapsed. Requesting stop for the workload.\n", read, 0},
		{"another line that begins alike", one + "Raw data measurement: will output to stdout.\n", read, 0},
	}
	for _, test := range tests {
		res := parse(tool.Stderr, test.text)
		if len(res.Reports) != 1 || tooltest.Render(res.Reports[0]) != test.want || res.Malformed != test.malformed {
			t.Errorf("%s: got\n%swant\n%s\n%d malformed", test.name, res, test.want, test.malformed)
		}
	}
}

// A load and a run in one file are two runs.
func TestRunsInOneFile(t *testing.T) {
	var lines []tool.Line
	for _, name := range []string{"0.17.0/basic-load-t1", "0.17.0/basic-run-a-json-exporter", "0.17.0/basic-unknown-workload-file", "0.17.0/basic-noflag-s-run-t10"} {
		out, err := streams(t, filepath.Join("testdata", name))
		lines = slices.Concat(lines, tooltest.On(tool.Stdout, err), out)
	}
	var got []string
	for _, r := range tooltest.Parse(Tool, lines).Reports {
		if r.Kind != tool.Interval {
			got = append(got, fmt.Sprintf("%d %s %s %s %v", r.Run, r.Kind, r.Command, r.Workload, r.Failed))
		}
	}
	want := []string{
		"1 start load workloada false", "1 summary   false",
		"2 start run workloada false", "2 summary   false",
		"3 start run nosuch false", "3 error   true",
		"4 start run workloada false", "4 summary   false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// stdout alone, where only the summaries separate the runs
	got = nil
	for _, r := range tooltest.Parse(Tool, slices.Concat(
		tooltest.Read(t, tool.Stdout, "testdata/0.17.0/basic-load-t1/stdout.txt"),
		tooltest.Read(t, tool.Stdout, "testdata/0.17.0/basic-run-b-jsonarray-exporter/stdout.txt"),
		tooltest.Read(t, tool.Stdout, "testdata/0.17.0/basic-run-a-json-exporter/stdout.txt"),
	)).Reports {
		got = append(got, fmt.Sprintf("%d %s %v", r.Run, r.Kind, r.ElapsedSeconds.Value))
	}
	if diff := cmp.Diff([]string{"1 summary 5.106", "2 summary 3.556", "3 summary 3.275"}, got); diff != "" {
		t.Error(diff)
	}
}

// If two pipes write to one file, the last status line can appear within the summary or after it;
// it still belongs to the same run.
func TestStatusBehindSummary(t *testing.T) {
	const (
		overall = "[OVERALL], RunTime(ms), 1100\n[OVERALL], Throughput(ops/sec), 100.0\n"
		read    = "[READ], Operations, 110\n"
		late    = "2026-11-21 01:38:25:150 1 sec: 110 operations; 377.78 current ops/sec; \n"
		next    = "2026-11-21 01:38:28:150 0 sec: 200 operations; ∞ current ops/sec; \n"
	)
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"inside":      {at0 + at1 + overall + late + read, []string{"1 interval 11", "1 interval 65", "1 interval 34", "1 summary 110"}},
		"behind":      {at0 + at1 + overall + read + late, []string{"1 interval 11", "1 interval 65", "1 interval 34", "1 summary 110"}},
		"another run": {at0 + at1 + overall + read + next, []string{"1 interval 11", "1 interval 65", "1 summary 110", "2 interval 200"}},
		"no status":   {overall + read + at0, []string{"1 summary 110", "2 interval 11"}},
	} {
		var got []string
		for _, r := range parse(tool.Stdout, test.text).Reports {
			got = append(got, fmt.Sprintf("%d %s %d", r.Run, r.Kind, r.Count(tool.Transaction).Value))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
