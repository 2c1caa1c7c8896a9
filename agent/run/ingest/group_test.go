package ingest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// groupMeta is a group of n sysbench that report each second.
func groupMeta(n int) *rundir.Meta {
	at := time.Unix(0, 0)
	return &rundir.Meta{
		ID:        "g",
		Benchmark: rundir.Benchmark{Tool: "sysbench", Verb: "run", Threads: 4 * n, ReportIntervalSeconds: 1},
		Timing:    rundir.Timing{StartedAt: at},
		End:       rundir.End{EndedAt: &at},
		Closing:   rundir.Closing{ClosedAt: &at},
		Origin:    rundir.Origin{Group: &rundir.Group{Name: "g", Generators: n}},
	}
}

func printed(second int, tps, p95 float64) string {
	return fmt.Sprintf("[ %ds ] thds: 4 tps: %.2f qps: %.2f (r/w/o: %.2f/0.00/0.00) lat (ms,95%%): %.2f err/s: 0.00 reconn/s: 0.00", second, tps, tps, tps, p95)
}

func readJournal(t *testing.T, n int, lines ...string) (Snapshot, *Intervals) {
	t.Helper()
	meta := groupMeta(n)
	f := NewFeed(sysbench.Tool, meta)
	f.Series = &Intervals{Totals: true}
	for _, line := range lines {
		f.line(tool.Line{Text: []byte(line)}, time.Unix(0, 0), true)
	}
	f.Close(time.Unix(0, 0))
	return f.Snapshot(*meta, time.Unix(0, 0)), f.Series
}

func TestGroupIntervalsAreAdded(t *testing.T) {
	_, v := readJournal(t, 2,
		"1# start 0.001", "2# start 0.012",
		"1> "+printed(1, 100, 5), "1> "+printed(2, 110, 4),
		"2> "+printed(1, 50, 9), "2> "+printed(2, 40, 1), "1# end", "2# end")
	if d := cmp.Diff([]float64{150, 150}, v.Rate(tool.Transaction)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{0.009, 0.004}, v.Values(LatencyOf(tool.Transaction, tool.Worst("p95")))); d != "" {
		t.Error(d)
	}
	if v.Values(LatencyOf(tool.Transaction, "p95")) != nil {
		t.Error("a percentile of several generators is called p95")
	}
	if d := cmp.Diff([]float64{8, 8}, v.Values(Column{Measure: tool.Threads})); d != "" {
		t.Error(d)
	}
}

// A second in which a generator is missing has no sum, since it would be too low.
func TestGroupWithoutAGenerator(t *testing.T) {
	_, v := readJournal(t, 2,
		"1> "+printed(1, 100, 5), "2> "+printed(1, 50, 9),
		"1> "+printed(2, 110, 4), "1> "+printed(3, 120, 4), "2# late", "1> "+printed(4, 130, 4),
		"2> "+printed(4, 10, 4), "2> "+printed(5, 20, 4), "2# end", "1> "+printed(5, 100, 1), "1> "+printed(6, 100, 1), "1# end")
	if d := cmp.Diff([]float64{1, 2, 3, 4, 5, 6}, v.Elapsed); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{2, 1, 1, 1, 2, 1}, v.Values(Column{Measure: tool.Generators})); d != "" {
		t.Error(d)
	}
	got := fmt.Sprint(v.Rate(tool.Transaction))
	if want := "[150 NaN NaN NaN 120 100]"; got != want { // after its end the others are the group
		t.Errorf("rates %s, want %s", got, want)
	}
}

// A generator that never started is known at the end: the group consists of the others.
func TestGroupWithAGeneratorThatNeverStarted(t *testing.T) {
	for absent, want := range map[bool]string{false: "[]", true: "[100 110]"} {
		meta := groupMeta(2)
		meta.Group.Members = []rundir.Member{{}, {Absent: absent}}
		f := NewFeed(sysbench.Tool, meta)
		f.Series = &Intervals{Totals: true}
		for _, line := range []string{"1# start 0", "1> " + printed(1, 100, 5), "2# late", "1> " + printed(2, 110, 4), "1# end"} {
			f.line(tool.Line{Text: []byte(line)}, time.Unix(0, 0), true)
		}
		f.Close(time.Unix(0, 0))
		if got := fmt.Sprint(f.Series.Rate(tool.Transaction)); got != want {
			t.Errorf("absent %t: rates %s, want %s", absent, got, want)
		}
	}
}

// What each generator does is known at each line.
func TestGeneratorStates(t *testing.T) {
	meta := groupMeta(2)
	f := NewFeed(sysbench.Tool, meta)
	for _, step := range []struct{ line, want string }{
		{"1# start 0", "running waiting"},
		{"2# start 0", "running running"},
		{"2> " + printed(1, 50, 9), "running running"},
		{"2# late", "running silent"},
		{"2> " + printed(2, 70, 9), "running running"},
		{"2# end", "running ended"},
	} {
		f.line(tool.Line{Text: []byte(step.line)}, time.Unix(0, 0), true)
		g := f.Snapshot(*meta, time.Unix(0, 0)).Generators
		if got := fmt.Sprint(g[0].State, " ", g[1].State); got != step.want {
			t.Errorf("after %q: %s, want %s", step.line, got, step.want)
		}
		if strings.HasPrefix(step.line, "2> ") && !g[1].Throughput.Known {
			t.Errorf("after %q: no throughput", step.line)
		}
	}
}

// A generator that starts late is missing before, and its first second is the group's
// of that time.
func TestGroupStartedLate(t *testing.T) {
	_, v := readJournal(t, 2, "1# start 0", "2# start 2.02",
		"1> "+printed(1, 100, 5), "1> "+printed(2, 100, 5), "1> "+printed(3, 100, 5), "2> "+printed(1, 50, 9), "1# end", "2# end")
	if got, want := fmt.Sprint(v.Rate(tool.Transaction)), "[NaN NaN 150]"; got != want {
		t.Errorf("rates %s, want %s", got, want)
	}
}

// However the lines of the generators interleave, the group is the same.
func TestGroupOrder(t *testing.T) {
	outputs := make([][]string, 3)
	for g := range outputs {
		for s := 1; s <= 30; s++ {
			outputs[g] = append(outputs[g], fmt.Sprintf("%d> %s", g+1, printed(s, float64(100*g+s), float64(s*7%11)+1)))
		}
		for line := range strings.SplitSeq(printedSummary(1000*(g+1), 30), "\n") {
			outputs[g] = append(outputs[g], fmt.Sprintf("%d> %s", g+1, line))
		}
		outputs[g] = append(outputs[g], fmt.Sprintf("%d# end", g+1))
	}
	var want Snapshot
	var rates []float64
	for try := range 20 {
		next := [3]int{}
		var lines []string
		for {
			var left []int
			for g := range outputs {
				if next[g] < len(outputs[g]) {
					left = append(left, g)
				}
			}
			if len(left) == 0 {
				break
			}
			g := left[rand.IntN(len(left))]
			lines = append(lines, outputs[g][next[g]])
			next[g]++
		}
		snap, v := readJournal(t, 3, lines...)
		if try == 0 {
			want, rates = snap, v.Rate(tool.Transaction)
			if len(rates) != 30 {
				t.Fatalf("%d intervals", len(rates))
			}
			continue
		}
		if d := cmp.Diff(want.Summary, snap.Summary); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(rates, v.Rate(tool.Transaction)); d != "" {
			t.Fatal(d)
		}
	}
	if n := want.Summary.Report().Count(tool.Transaction).Value; n != 6000 {
		t.Errorf("%d transactions", n)
	}
	if rate := want.Summary.Report().Rate(tool.Transaction).Value; rate != 200 {
		t.Errorf("%v transactions/s", rate)
	}
}

func printedSummary(transactions, seconds int) string {
	return fmt.Sprintf(`SQL statistics:
    queries performed:
        read:                            %[1]d
        write:                           0
        other:                           0
        total:                           %[1]d
    transactions:                        %[1]d (%.2[3]f per sec.)
    queries:                             %[1]d (%.2[3]f per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          %[2]d.0000s
    total number of events:              %[1]d

Latency (ms):
         min:                                    0.38
         avg:                                    %[4]d.00
         max:                                   %[4]d7.43
         95th percentile:                        %[4]d.45
         sum:                               119856.54

Threads fairness:
    events (avg/stddev):           66000.0000/0.00
    execution time (avg/stddev):   29.0000/0.00
`, transactions, seconds, float64(transactions)/float64(seconds), transactions/1000)
}

// A generator that was killed printed no summary; its intervals count.
func TestGroupWithAKilledGenerator(t *testing.T) {
	lines := []string{"2> sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)", "2> Running the test with following options:", "2> Number of threads: 4", "2> Report intermediate results every 1 second(s)", "1> " + printed(1, 100, 5), "2> " + printed(1, 50, 9), "2# end"}
	for line := range strings.SplitSeq(printedSummary(1000, 10), "\n") {
		lines = append(lines, "1> "+line)
	}
	snap, _ := readJournal(t, 2, append(lines, "1# end")...)
	r := snap.Summary.Report()
	if n := r.Count(tool.Transaction).Value; n != 1050 || snap.Summary.Estimated != 1 {
		t.Errorf("%d transactions, %d estimated", n, snap.Summary.Estimated)
	}
	if len(r.Latencies) > 0 {
		t.Errorf("latencies %v of one generator for the group", r.Latencies)
	}
}

func FuzzGroupJournal(f *testing.F) {
	f.Add("1# start 0\n2# start 5\n1> " + printed(1, 1, 1) + "\n2# late\n2> " + printed(9, 1, 1) + "\n1# end\n2# end\n")
	f.Add("9> x\n# \n1#\n1# start NaN\n-1> \n1> [ 99999999999999999999s ] thds: 4 tps: 1.00")
	f.Fuzz(func(t *testing.T, journal string) {
		meta := groupMeta(3)
		p := newGroupParser(sysbench.Tool, meta)
		last := 0.0
		tool.ParseAll(p, tool.Stdout, []byte(journal), func(r *tool.Report) {
			if r.Kind != tool.Interval {
				return
			}
			if !r.ElapsedSeconds.Known || r.ElapsedSeconds.Value <= last || r.Value(tool.Generators).Value < 1 || r.Value(tool.Generators).Value > 3 {
				t.Fatalf("interval at %v of %v generators after %v", r.ElapsedSeconds, r.Value(tool.Generators), last)
			}
			last = r.ElapsedSeconds.Value
		})
		for _, g := range p.generators {
			if len(g.reports) > waitingIntervals+1 {
				t.Fatalf("%d intervals wait", len(g.reports))
			}
		}
	})
}
