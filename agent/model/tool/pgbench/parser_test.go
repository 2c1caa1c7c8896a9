package pgbench

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

const recordings = "testdata/*/*"

func TestGolden(t *testing.T) {
	for _, dir := range tooltest.Cases(t, recordings) {
		t.Run(strings.TrimPrefix(dir, "testdata/"), func(t *testing.T) {
			out := tooltest.Read(t, tool.Stdout, filepath.Join(dir, "stdout.txt"))
			err := tooltest.Read(t, tool.Stderr, filepath.Join(dir, "stderr.txt"))
			got := tooltest.Parse(Tool, slices.Concat(out, err))
			tooltest.Golden(t, filepath.Join(dir, "golden.txt"), got.String())
			for name, lines := range map[string][]tool.Line{"stderr first": slices.Concat(err, out), "in turns": tooltest.Alternate(err, out)} {
				if diff := cmp.Diff(got.Sorted(), tooltest.Parse(Tool, lines).Sorted()); diff != "" {
					t.Errorf("%s: other reports:\n%s", name, diff)
				}
			}
			for _, r := range got.Reports {
				tooltest.Check(t, r)
			}
			mixed := tooltest.Parse(Tool, tooltest.On(tool.Stdout, slices.Concat(err, out)))
			if got.Malformed+mixed.Malformed > 0 {
				t.Errorf("malformed lines of a recording")
			}
			for _, r := range mixed.Reports {
				if r.Run != 1 {
					t.Errorf("in one file: run %d: %s", r.Run, tooltest.Render(r))
				}
			}
			for _, stream := range []string{"stdout.txt", "stderr.txt"} {
				head, err := os.ReadFile(filepath.Join(dir, stream))
				if err == nil && Tool.Sniff(head) == 0 && len(tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, head)).Reports) > 0 {
					t.Errorf("%s is not recognised", stream)
				}
			}
		})
	}
}

// Every truncated line is malformed or has the same values: half a number is never a value.
func TestCutLines(t *testing.T) {
	for _, line := range []string{
		"progress: 1.0 s, 191.4 tps, lat 5.905 ms stddev 8.998, 12 failed, lag 2.400 ms, 17 skipped, 13 retried, 15 retries",
		"0 1 6770 0 1795399462 912254 67 1",
		"1795399675 500 1013655 6825253389 327 23107 202600 402869740 0 4954 25 0 0 0 0",
	} {
		whole := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(line)))
		if len(whole.Reports) < 2 {
			t.Fatalf("%q: %s", line, whole)
		}
		if v := newParser(tool.Description{}).Parse(tool.Line{Text: []byte(line), Cut: true}, nil); v != tool.Malformed {
			t.Errorf("a line over the limit: %v", v)
		}
		if line[0] != 'p' {
			continue // without a unit after it, a truncated number is still a number
		}
		for i := len("progress: "); i < len(line); i++ {
			res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(line[:i])))
			complete := strings.HasSuffix(line[:i], " failed") || strings.HasSuffix(line[:i], "2.400 ms") || strings.HasSuffix(line[:i], " skipped") ||
				strings.HasSuffix(line[:i], " retried") || strings.HasSuffix(line[:i], "8.998")
			if complete == (res.Malformed == 1) {
				t.Errorf("%q: %s", line[:i], res)
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	for _, line := range []string{
		"progress: 1.0 s, 191.4 tps, lat 5.905 ms stddev 8.998, 1 failed, 2 failed",
		"progress: -1.0 s, 191.4 tps, lat 5.905 ms stddev 8.998",
		"progress: 1 s, 191.4 tps, lat 5.905 ms stddev 8.998",
		"progress: 1.0 s, 191.4 tps, lat 5.905 ms stddev 8.998, 99999999999999999999 failed",
		"0 1 6770 0 17953 912254",
		"0 1 6770 0 1795399462 1000000",
		"0 1 -5 0 1795399462 912254",
		"0 1 skip 0 1795399462 912254",
		"0 1 6770 0 1795399462 912254 1 2 3",
		"1795399675 500 1013655 6825253389 327",
		"1795399675 500 1013655 6825253389 327 23107 1",
		"1795399675 2 10 50 9 4",
		"1795399675 1e3 10 50 9 4",
		"1795399675 1 10 100 10 10 0 0 0 0 2",
	} {
		if res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(line))); res.Malformed != 1 || len(res.Reports) > 0 {
			t.Errorf("%q: %s", line, res)
		}
	}
}

// All runs in a log with many runs are reported, in order.
func TestRunsInOneFile(t *testing.T) {
	var all []tool.Line
	want := 0
	for _, dir := range tooltest.Cases(t, "testdata/*/*") {
		if _, err := os.Stat(filepath.Join(dir, "stdout.txt")); err != nil || strings.HasSuffix(dir, "bad-option") {
			continue
		}
		all = append(all, tooltest.Read(t, tool.Stdout, filepath.Join(dir, "stderr.txt"))...)
		all = append(all, tooltest.Read(t, tool.Stdout, filepath.Join(dir, "stdout.txt"))...)
		want++
	}
	var summaries []int
	for _, r := range tooltest.Parse(Tool, all).Reports {
		if r.Kind == tool.Summary {
			summaries = append(summaries, r.Run)
		}
	}
	if len(summaries) != want || !slices.IsSorted(summaries) || len(slices.Compact(slices.Clone(summaries))) != want {
		t.Errorf("summaries of the runs %v, want %d", summaries, want)
	}
}

// If lines contain the wall clock, the run began one interval before the first line, whatever that
// interval is.
func TestProgressTimestamp(t *testing.T) {
	lines := tooltest.Read(t, tool.Stderr, "testdata/15/select/stderr.txt")
	for every, first := range map[string]bool{"": false, "2": true} {
		d := tool.Description{}
		if first {
			d = describe(tool.Invocation{Args: []string{"-P", every, "--progress-timestamp"}})
		}
		var elapsed []float64
		for _, r := range tooltest.ParseOf(Tool, d, lines).Reports {
			if r.Kind == tool.Interval && r.ElapsedSeconds.Known {
				elapsed = append(elapsed, r.ElapsedSeconds.Value)
				if want := int64(1795258735133); r.Began.UnixMilli() != want-1000 && !first {
					t.Errorf("began %v", r.Began)
				}
			}
		}
		want := []float64{2.001, 3.001, 4.003}
		if first {
			want = []float64{2, 3.001, 4.001, 5.003}
		}
		if diff := cmp.Diff(want, elapsed); diff != "" {
			t.Errorf("every %q: %s", every, diff)
		}
	}
}

// The output of other programs is not taken for pgbench's.
func TestSniff(t *testing.T) {
	for _, text := range []string{"", "0 1 2\n", "1795399675 500\n", "sysbench 1.0.20\n", "10, 20(0):1.0|2.0\n", "pgbench (PostgreSQL) 15.1\n", "progress: 50 %\n"} {
		if got := Tool.Sniff([]byte(text)); got != 0 && !strings.HasPrefix(text, "pgbench") {
			t.Errorf("%q: %d", text, got)
		}
	}
	whole, err := os.ReadFile("testdata/log-15/plain/stdout.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, tail, _ := bytes.Cut(whole[len(whole)/2:], []byte("\n"))
	if Tool.Sniff(tail) == 0 {
		t.Error("a log without its beginning is not recognised")
	}
}

func FuzzParser(f *testing.F) {
	for _, name := range []string{"log-15/limit", "log-15/tries", "log-15/aggregate-limit", "log-14/aggregate"} {
		text, err := os.ReadFile("testdata/" + name + "/stdout.txt")
		if err != nil {
			f.Fatal(err)
		}
		progress, err := os.ReadFile("testdata/15/rate/stderr.txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text[:min(len(text), 2000)], progress)
	}
	tooltest.Fuzz(f, Tool)
}

// TestScriptsInAnotherOrder guards that runs whose script_1 is not the same script are different workloads.
func TestScriptsInAnotherOrder(t *testing.T) {
	const first, second = "SQL script 1: <builtin: select only>\n - weight: 1 (targets 50.0% of total)\n - 30 transactions (60.0% of total, tps = 30.000000)\n",
		"SQL script 2: /srv/transfer.sql\n - weight: 1 (targets 50.0% of total)\n - 20 transactions (40.0% of total, tps = 20.000000)\n"
	const head = "transaction type: multiple scripts\nnumber of clients: 1\nnumber of transactions actually processed: 50\ntps = 50.000000 (without initial connection time)\n"
	swap := strings.NewReplacer("script 1", "script 2", "script 2", "script 1")
	for _, test := range []struct{ text, workload, rate string }{
		{first + second, "select-only+transfer.sql", `"script_1":30,"script_2":20`},
		{swap.Replace(second) + swap.Replace(first), "transfer.sql+select-only", `"script_1":20,"script_2":30`},
	} {
		got := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(head+test.text))).String()
		if !strings.Contains(got, `"workload":"`+test.workload+`"`) || !strings.Contains(got, test.rate) {
			t.Errorf("want %s, %s:\n%s", test.workload, test.rate, got)
		}
	}
}
