package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func interval(elapsed, seconds, tps float64) *tool.Report {
	r := &tool.Report{Kind: tool.Interval, Run: 1, Phase: tool.Measure, ElapsedSeconds: series.Some(elapsed), IntervalSeconds: series.Some(seconds)}
	r.AddRate("transaction", tps)
	return r
}

func summaryOf(elapsed float64, n uint64, minimum, avg, maximum float64) *tool.Report {
	r := &tool.Report{Kind: tool.Summary, Run: 1, ElapsedSeconds: series.Some(elapsed)}
	r.AddCount("transaction", n)
	r.AddRate("transaction", float64(n)/elapsed)
	r.AddLatency("transaction", "min", minimum)
	r.AddLatency("transaction", "avg", avg)
	r.AddLatency("transaction", "max", maximum)
	r.AddLatency("transaction", "p95", avg*2)
	return r
}

func TestTotals(t *testing.T) {
	now := time.Unix(1000, 0)
	tests := map[string]struct {
		reports []*tool.Report
		want    float64
	}{
		"rates times length":                  {[]*tool.Report{interval(10, 10, 5), interval(20, 10, 7)}, 120},
		"set right by the summary":            {[]*tool.Report{interval(10, 10, 5), summaryOf(12, 61, 0, 0, 0)}, 61},
		"never falls":                         {[]*tool.Report{interval(10, 10, 5), summaryOf(10, 49, 0, 0, 0)}, 50},
		"checkpoints add up":                  {[]*tool.Report{interval(10, 10, 5), summaryOf(10, 50, 0, 0, 0), interval(20, 10, 7), summaryOf(10, 71, 0, 0, 0)}, 121},
		"no length, no guess":                 {[]*tool.Report{{Kind: tool.Interval, Rates: []tool.Rate{{Operation: "transaction", PerSecond: 9}}}}, 0},
		"a printed count wins over its rate":  {[]*tool.Report{{Kind: tool.Interval, IntervalSeconds: series.Some(1.0), Rates: []tool.Rate{{Operation: "transaction", PerSecond: 9}}, Counts: []tool.Count{{Operation: "transaction", N: 8}}}}, 8},
		"the run before in the same log ends": {[]*tool.Report{{Kind: tool.Start}, interval(1, 1, 5), {Kind: tool.Start}, interval(1, 1, 5)}, 10},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newState()
			for _, r := range tt.reports {
				s.apply(r, now)
			}
			if got := s.totals["transaction"].value(); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSummaryOfCheckpoints(t *testing.T) {
	s := newState()
	s.apply(summaryOf(10, 100, 1, 2, 9), time.Time{})
	s.apply(summaryOf(30, 500, 2, 4, 8), time.Time{})
	got := s.final()
	want := &Summary{
		Parts: 2, ElapsedSeconds: series.Some(40.0),
		Rates:  []tool.Rate{{Operation: "transaction", PerSecond: 15}},
		Counts: []tool.Count{{Operation: "transaction", N: 600}},
		Latencies: []tool.Latency{
			{Operation: "transaction", Stat: "min", Seconds: 1},
			{Operation: "transaction", Stat: "avg", Seconds: (200.0 + 2000) / 600},
			{Operation: "transaction", Stat: "max", Seconds: 9},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// sysbench 1.x prints the time since the start at a checkpoint, and counts
// since the last one.
func TestSummaryOfCheckpointsWithRunningClock(t *testing.T) {
	s := newState()
	for _, end := range []float64{10, 40} {
		r := summaryOf(end, 100, 1, 2, 9)
		r.IntervalSeconds = series.Some(map[float64]float64{10: 10, 40: 30}[end])
		s.apply(r, time.Time{})
	}
	if got := s.final().ElapsedSeconds.Value; got != 40 {
		t.Errorf("elapsed %v, want 40", got)
	}
}

func TestRepeatedMessageCounts(t *testing.T) {
	s := newState()
	s.apply(&tool.Report{Kind: tool.Error, Message: "gone", Counts: []tool.Count{{Operation: "error", N: 5}}}, time.Time{})
	if s.messageCount != 5 {
		t.Errorf("%d messages, want 5", s.messageCount)
	}
}

// A killed tool prints no summary: only its intervals remain, and no latency of the whole run.
func TestSummaryOfKilledTool(t *testing.T) {
	s := newState()
	s.apply(interval(10, 10, 5), time.Time{})
	s.apply(interval(20, 10, 7), time.Time{})
	got := s.final()
	if !got.FromIntervals || len(got.Latencies) != 0 {
		t.Errorf("got %+v", got)
	}
	if n := got.Report().Count("transaction"); n.Value != 120 {
		t.Errorf("count %v", n)
	}
	if v := got.Report().Rate("transaction"); v.Value != 6 {
		t.Errorf("rate %v", v)
	}
}

func TestErrorFloodIsBounded(t *testing.T) {
	s := newState()
	for range 100_000 {
		s.apply(&tool.Report{Kind: tool.Error, Message: "first ones"}, time.Time{})
	}
	s.apply(&tool.Report{Kind: tool.Error, Message: "last"}, time.Time{})
	snap := s.snapshot(rundir.Meta{}, time.Time{})
	if len(snap.Messages) != keptErrors || snap.LastMessage != "last" || snap.MessageCount != 100_001 {
		t.Errorf("kept %d, last %q of %d", len(snap.Messages), snap.LastMessage, snap.MessageCount)
	}
}

func TestSnapshotPhases(t *testing.T) {
	start := time.Unix(1000, 0)
	end := start.Add(time.Minute)
	warm := interval(1, 1, 5)
	warm.Phase = tool.Warmup
	tests := map[string]struct {
		meta         rundir.Meta
		reports      []*tool.Report
		now          time.Time
		phase        Phase
		hasInterval  bool
		hasSummary   bool
		wantsElapsed float64
	}{
		"nothing said yet": {rundir.Meta{Timing: rundir.Timing{StartedAt: start}}, nil, start.Add(time.Second), Starting, false, false, 1},
		"silent warm-up":   {rundir.Meta{Timing: rundir.Timing{StartedAt: start}}, []*tool.Report{{Kind: tool.Start, Phase: tool.Warmup}}, start.Add(time.Second), Warmup, false, false, 1},
		"warm-up":          {rundir.Meta{Timing: rundir.Timing{StartedAt: start}}, []*tool.Report{warm}, start.Add(time.Second), Warmup, true, false, 1},
		"measuring":        {rundir.Meta{Timing: rundir.Timing{StartedAt: start}}, []*tool.Report{interval(1, 1, 5)}, start.Add(time.Second), Measuring, true, false, 1},
		"stalled":          {rundir.Meta{Timing: rundir.Timing{StartedAt: start}}, []*tool.Report{interval(1, 1, 5)}, start.Add(6 * time.Second), Measuring, false, false, 6},
		"long intervals": {rundir.Meta{
			Timing:    rundir.Timing{StartedAt: start},
			Benchmark: rundir.Benchmark{ReportIntervalSeconds: 10},
		}, []*tool.Report{interval(10, 10, 5)}, start.Add(29 * time.Second), Measuring, true, false, 29},
		"draining": {rundir.Meta{
			Timing: rundir.Timing{StartedAt: start},
			End:    rundir.End{EndedAt: &end},
		}, []*tool.Report{interval(1, 1, 5), summaryOf(1, 5, 0, 0, 0)}, end.Add(time.Second), Draining, false, true, 60},
		"over": {rundir.Meta{
			Timing:  rundir.Timing{StartedAt: start},
			End:     rundir.End{EndedAt: &end},
			Closing: rundir.Closing{ClosedAt: &end},
		}, []*tool.Report{summaryOf(1, 5, 0, 0, 0)}, end.Add(time.Hour), Over, false, true, 60},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newState()
			for _, r := range tt.reports {
				s.apply(r, start)
			}
			snap := s.snapshot(tt.meta, tt.now)
			if snap.Phase != tt.phase || (snap.Interval != nil) != tt.hasInterval || (snap.Summary != nil) != tt.hasSummary {
				t.Errorf("got phase %s, interval %v, summary %v", snap.Phase, snap.Interval, snap.Summary)
			}
			if got := snap.ElapsedSeconds(tt.now); got != tt.wantsElapsed {
				t.Errorf("elapsed %v, want %v", got, tt.wantsElapsed)
			}
		})
	}
}

// TestMessagesOfTwoStreams: the messages are the same in whatever order the two streams were
// read.
func TestMessagesOfTwoStreams(t *testing.T) {
	read := func(streams ...tool.Stream) Snapshot {
		s := newState()
		for i, stream := range streams {
			s.stream = stream
			s.apply(&tool.Report{Kind: tool.Error, Message: fmt.Sprint(stream, slices.Index(streams, stream) == i)}, time.Time{})
		}
		return s.snapshot(rundir.Meta{}, time.Time{})
	}
	first, second := read(tool.Stdout, tool.Stdout, tool.Stderr, tool.Stderr), read(tool.Stderr, tool.Stderr, tool.Stdout, tool.Stdout)
	if d := cmp.Diff(first.Messages, second.Messages); d != "" || first.LastMessage != second.LastMessage || first.LastMessage == "" {
		t.Errorf("%q or %q\n%s", first.LastMessage, second.LastMessage, d)
	}
}

// TestComplaint guards that a failed run has the cause, which tools often print only after the call that failed.
func TestComplaint(t *testing.T) {
	for want, messages := range map[string][]string{
		"":  nil,
		"a": {"a", "a", "a"},
		"FATAL: mysql_stmt_prepare() failed; FATAL: MySQL error: 1146": {"FATAL: mysql_stmt_prepare() failed", "FATAL: MySQL error: 1146", "FATAL: `thread_init' function failed"},
	} {
		s := Snapshot{Messages: messages}
		if got := s.Complaint(); got != want {
			t.Errorf("of %q: %q, want %q", messages, got, want)
		}
	}
}

func TestIntervalLineIsNotAllocated(t *testing.T) {
	f := NewFeed(sysbench.Tool, &rundir.Meta{})
	line := tool.Line{Text: []byte("[ 10s ] thds: 16 tps: 100.00 qps: 2000.00 (r/w/o: 1400.00/400.00/200.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00")}
	if n := testing.AllocsPerRun(100, func() { f.line(line, time.Time{}, false) }); n != 0 {
		t.Errorf("%v allocations per line", n)
	}
}

// The share of failed transactions: for a tool that counts failures beside its transactions, the attempts are the sum
// of both; for YCSB, they are its operations.
func TestFailedShare(t *testing.T) {
	for _, c := range []struct {
		name         string
		done, errors uint64
		included     bool
		want         series.Optional[float64]
	}{
		{"beside", 34, 66, false, series.Some(0.66)},
		{"included", 100, 66, true, series.Some(0.66)},
		{"none", 10, 0, false, series.Some(0.0)},
		{"all", 0, 5, false, series.Some(1.0)},
		{"nothing", 0, 0, false, series.Optional[float64]{}},
	} {
		s := newState()
		s.countsFailures = c.included
		r := &tool.Report{Kind: tool.Summary}
		r.AddCount(tool.Transaction, c.done)
		r.AddCount(tool.ErrorCount, c.errors)
		s.apply(r, time.Time{})
		if got := s.snapshot(rundir.Meta{}, time.Time{}).FailedShare; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A tool that counts no errors has an unknown number of them, not 0.
func TestErrorTotal(t *testing.T) {
	counting, summary := interval(1, 1, 5), summaryOf(1, 5, 1, 2, 3)
	counting.Set(tool.ErrorRate, 2)
	failures := summaryOf(1, 5, 1, 2, 3)
	failures.AddCount(tool.ErrorCount, 0)
	for name, c := range map[string]struct {
		reports []*tool.Report
		want    series.Optional[float64]
	}{
		"no report":                 {nil, series.Optional[float64]{}},
		"an interval without":       {[]*tool.Report{interval(1, 1, 5)}, series.Optional[float64]{}},
		"an interval with errors":   {[]*tool.Report{counting}, series.Some(2.0)},
		"a summary without":         {[]*tool.Report{interval(1, 1, 5), summary}, series.Optional[float64]{}},
		"a summary without errors":  {[]*tool.Report{failures}, series.Some(0.0)},
		"intervals alone know them": {[]*tool.Report{counting, summary}, series.Some(2.0)},
	} {
		s := newState()
		for _, r := range c.reports {
			s.apply(r, time.Time{})
		}
		meta := rundir.Meta{}
		if n := len(c.reports); n > 0 && c.reports[n-1].Kind == tool.Summary {
			end := time.Unix(10, 0)
			meta.EndedAt = &end
		}
		snap := s.snapshot(meta, time.Time{})
		if got := snap.ErrorTotal(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestWhatWasNotSeenIsNotCounted guards that the rate of a run is of the seconds that its log covers.
func TestWhatWasNotSeenIsNotCounted(t *testing.T) {
	line := func(second, threads int) string {
		return fmt.Sprintf("[ %ds ] thds: %d tps: 100.00 qps: 2000.00 (r/w/o: 1400.00/400.00/200.00) lat (ms,95%%): 5.00 err/s: 0.00 reconn/s: 0.00\n", second, threads)
	}
	for name, seconds := range map[string][]int{
		"without its beginning": {93, 94, 95, 96}, "with a hole": {1, 2, 3, 9, 10, 11}, "without the option of the interval": {1, 2, 3, 4}, "complete": {1, 2},
	} {
		var log strings.Builder
		for i, second := range seconds {
			log.WriteString(line(second, 8-i))
		}
		parts, err := SplitLog(t.Context(), section([]byte(log.String())), sysbench.Tool, 0, time.Time{})
		if err != nil || len(parts) != 1 {
			t.Fatal(name, len(parts), err)
		}
		snap := parts[0].Snapshot()
		if got := snap.Summary.Report().Rate(tool.Transaction); got.Value != 100 {
			t.Errorf("%s: %v transactions/s, want 100", name, got.Value)
		}
		if snap.Threads.Value != 8 {
			t.Errorf("%s: %d threads, want 8: others have ended", name, snap.Threads.Value)
		}
	}
}

// TestVerbRecordedBy01 guards that an imported load that 0.1.0 recorded as a lost run is a load that succeeded.
func TestVerbRecordedBy01(t *testing.T) {
	f := NewFeed(nil, new(rundir.Meta))
	f.state.apply(&tool.Report{Kind: tool.Start, Command: "load"}, time.Time{})
	now := time.Now()
	for _, test := range []struct {
		meta rundir.Meta
		verb string
		want rundir.Outcome
	}{
		{rundir.Meta{
			Benchmark: rundir.Benchmark{Verb: "run"},
			End:       rundir.End{Outcome: rundir.Lost},
			Origin:    rundir.Origin{Import: &rundir.ImportSource{}},
		}, "load", rundir.Succeeded},
		{rundir.Meta{
			Benchmark: rundir.Benchmark{Verb: "run"},
			End:       rundir.End{Outcome: rundir.Failed},
			Origin:    rundir.Origin{Log: &rundir.LogSource{}},
		}, "load", rundir.Failed},
		{rundir.Meta{Benchmark: rundir.Benchmark{Verb: "run"}, End: rundir.End{Outcome: rundir.Lost}}, "run", rundir.Lost},
	} {
		test.meta.EndedAt, test.meta.ClosedAt = &now, &now
		if got := f.Snapshot(test.meta, now).Meta; got.Verb != test.verb || got.Outcome != test.want {
			t.Errorf("%+v: verb %s, %s", test.meta, got.Verb, got.Outcome)
		}
	}
}
