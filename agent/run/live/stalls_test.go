package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/launch"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// stalling is a tool that waits for the gate, prints ten intervals, one without a transaction, and goes on after two
// seconds.
func stalling(t *testing.T, gate string) string {
	t.Helper()
	var before, after strings.Builder
	for i := 1; i <= 10; i++ {
		before.WriteString(intervalLine(i, 100))
	}
	before.WriteString(intervalLine(11, 0))
	for i := 12; i <= 14; i++ {
		after.WriteString(intervalLine(i, 100))
	}
	return script(t, banner) + "; cat " + gate + "; " + script(t, before.String()) + "; sleep 2; " + script(t, after.String())
}

// TestStallIsCaptured: the servers of a run are asked at once when it stalls, and again each second. What they said is
// recorded, explained, counted and marked.
func TestStallIsCaptured(t *testing.T) {
	data := t.TempDir()
	dir, claim, err := rundir.Create(data, rundir.Meta{
		ID:        "one",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: time.Now()},
		Placement: rundir.Placement{Selection: &rundir.Selection{Clusters: []string{"blue"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Release)
	start, begin := fifo(t)
	gate, open := fifo(t)
	p, err := launch.Start(dir, []string{"sh", "-c", stalling(t, start) + "; cat " + gate})
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t, Options{
		DataDir: data, Topology: serversOf(twoClusters...), Bounds: func() Bounds { return Bounds{DrainTimeout: time.Millisecond, MaxLive: 1, MaxKept: 1} },
		Witnesses: testimony(func(_ context.Context, run string) []evidence.Answer {
			a := evidence.Answer{Target: "b1", Engine: "mysql", Active: 4}
			for i := range 4 {
				a.Block(fmt.Sprint(i), "9", evidence.MetadataLock, "t")
			}
			a.Wait(evidence.MetadataLock, 4)
			return []evidence.Answer{a}
		}),
	})
	// What was printed before the run is followed is history: nothing of it can be captured.
	w.until("one", "followed", func(s ingest.Snapshot) bool { return s.Meta.ToolVersion != "" })
	begin()
	s := w.until("one", "stall", func(s ingest.Snapshot) bool { return len(s.Stalls) > 0 })
	if s.Stalls[0].Reason != "metadata lock" || s.Stalls[0].Count != 1 || s.Stalls[0].Seconds != 1 ||
		s.Stalls[0].Text != "1.0 s from 0:10: 4 of 4 clients waited for the metadata lock that session 9 held" {
		t.Errorf("%+v", s.Stalls)
	}
	open()
	if _, err := p.Wait(nil); err != nil {
		t.Fatal(err)
	}
	w.until("one", "over", func(s ingest.Snapshot) bool { return s.Phase == ingest.Over })
	w.stop()
	all, err := record.ReadCaptures(dir)
	if err != nil || len(all) != 1 || len(all[0].Moments) < 2 || all[0].Trigger != "throughput 0/s, usually 100/s" || all[0].Clients != 4 {
		t.Errorf("%+v, %v", all, err)
	}
	h := readHistory(t, dir)
	if len(h.Markers) != 1 || h.Markers[0].Text != "stalled for 1.0 s: 4 of 4 clients waited for the metadata lock that session 9 held" {
		t.Errorf("%+v", h.Markers)
	}
}

// testimony is what Witnesses without connections testify.
type testimony func(ctx context.Context, run string) []evidence.Answer

func (testimony) Arm(string, []engine.Target) {}
func (testimony) Disarm(string)               {}
func (t testimony) Testify(ctx context.Context, run string) []evidence.Answer {
	return t(ctx, run)
}

// report is an interval of a tool.
func report(tps, p95, errorsPerSecond float64, phase tool.Phase) *tool.Report {
	r := &tool.Report{
		Kind: tool.Interval, Phase: phase, IntervalSeconds: series.Some(1.0), Rates: []tool.Rate{{Operation: tool.Transaction, PerSecond: tps}},
		Latencies: []tool.Latency{{Operation: tool.Transaction, Stat: "p95", Seconds: p95}},
	}
	r.Values.Set(tool.ErrorRate, series.Some(errorsPerSecond))
	return r
}

var (
	testQueue = measure.NewGauge("test_stall_queue", "A queue.")
	_         = engine.DeclareOnset(engine.Onset{Metric: testQueue, High: 1, Text: "a queue began in %s"})
)

// frame is a sample of one server with a queue; -1: it does not answer.
func frame(second int, queue float64) *engine.Frame {
	x := engine.Sample{Target: &engine.Target{Name: "n1"}, Answered: time.Unix(int64(second), 0)}
	if queue < 0 {
		x.Err = errors.New("no connection")
		return &engine.Frame{Samples: []engine.Sample{x}}
	}
	x.Status = &engine.Status{}
	x.Status.Set(testQueue, queue)
	return &engine.Frame{Samples: []engine.Sample{x}}
}

// TestTriggers: what starts a capture, and that warm-up does not.
func TestTriggers(t *testing.T) {
	type second struct {
		tps, p95, errors, queue float64
	}
	usual := second{tps: 1000, p95: 0.01}
	for name, c := range map[string]struct {
		last second
		all  tool.Phase
		want string
	}{
		"nothing":             {last: usual},
		"a third":             {last: second{tps: 300, p95: 0.01}, want: "throughput 300/s, usually 1000/s"},
		"four times the p95":  {last: second{tps: 1000, p95: 0.04}, want: "latency 0.04 s, usually 0.01 s"},
		"twice the p95":       {last: second{tps: 1000, p95: 0.02}},
		"errors":              {last: second{tps: 1000, p95: 0.01, errors: 200}, want: "errors began"},
		"a queue":             {last: second{tps: 1000, p95: 0.01, queue: 5}, want: "a queue began in n1"},
		"no answer":           {last: second{tps: 1000, p95: 0.01, queue: -1}, want: "n1 stopped answering"},
		"warm-up":             {last: second{tps: 100, p95: 1, errors: 500}, all: tool.Warmup},
		"a queue during it":   {last: second{tps: 1000, p95: 0.01, queue: 5}, all: tool.Warmup},
		"no answer during it": {last: second{tps: 1000, p95: 0.01, queue: -1}, all: tool.Warmup},
	} {
		t.Run(name, func(t *testing.T) {
			s := stallsOf()
			phase := cmp.Or(c.all, tool.Measure)
			for i := range 10 {
				x := usual
				if i == 9 {
					x = c.last
				}
				s.noteInterval(float64(i+1), report(x.tps, x.p95, x.errors, phase), true, time.Unix(int64(i), 0))
				s.noteFrame(frame(i, x.queue))
			}
			got := ""
			select {
			case got = <-s.triggers:
			default:
			}
			if got != c.want {
				t.Errorf("%q, expected %q", got, c.want)
			}
		})
	}
}

// TestDipIsExplainedOnce: a second trigger right after a dip does not count it again.
func TestDipIsExplainedOnce(t *testing.T) {
	s := stallsOf()
	for i := range 14 {
		tps := 1000.0
		if i == 10 {
			tps = 0
		}
		s.noteInterval(float64(i+1), report(tps, 0.01, 0, tool.Measure), true, time.Unix(int64(i), 0))
	}
	for n, want := range []int{1, 0} {
		if all, first := s.unexplained(9); len(all)-first != want {
			t.Errorf("call %d: %d dips, expected %d", n+1, len(all)-first, want)
		}
	}
}

// TestCapturesAreBounded: of many captures, the 20 of the worst stalls are kept.
func TestCapturesAreBounded(t *testing.T) {
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{ID: "one", Timing: rundir.Timing{StartedAt: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	tr := &tracker{dir: dir, stalls: stallsOf()}
	for i := range 35 {
		at := time.Unix(int64(100*i), 0).UTC()
		tr.keep(&record.Capture{Trigger: "x", Begin: at, End: at, Moments: []evidence.Moment{{At: at, Answers: []evidence.Answer{{Target: "n", At: at}}}}}, float64(i*8%35))
	}
	all, err := record.ReadCaptures(dir)
	if err != nil || len(all) != mostCaptures {
		t.Fatalf("%d captures, %v", len(all), err)
	}
	for _, c := range all {
		if !slices.ContainsFunc(tr.stalls.kept, func(k keptCapture) bool { return k.number == c.Number }) {
			t.Errorf("capture %d is in the file", c.Number)
		}
	}
	least := slices.MinFunc(tr.stalls.kept, func(a, b keptCapture) int { return cmp.Compare(a.lost, b.lost) })
	if least.lost < 14 {
		t.Errorf("kept a stall of %v transactions", least.lost)
	}
}
