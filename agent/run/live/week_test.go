package live

import (
	"math"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestWeek follows a run of a week in simulated time, an interval a second and a tick of
// a server every ten. It guards that the agent needs no more memory at its end than after a day, that its
// lengths are right, and that its history is whole.
func TestWeek(t *testing.T) {
	if testing.Short() {
		t.Skip("604,800 intervals")
	}
	const days, hour, every = 7, 3600, 10
	var passed atomic.Int64
	begin := time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)
	machine := &clock.Clock{
		Wall: func() time.Time { return begin.Add(time.Duration(passed.Load())) },
		Boot: func() time.Duration { return time.Hour + time.Duration(passed.Load()) }, ID: "this boot",
	}
	data := t.TempDir()
	dir, claim, err := rundir.Create(data, rundir.Meta{
		ID:        "one",
		Benchmark: rundir.Benchmark{Tool: "sysbench", Target: "127.0.0.1:3306"},
		Timing:    rundir.Timing{StartedAt: begin, Clock: rundir.NewClock(machine)},
	})
	if err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(dir.Path(rundir.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	say := func(text string) {
		if _, err := output.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	say(banner)
	samples := machine.Axis()
	target := engine.Target{Name: "db1", Engine: "mysql", Address: "127.0.0.1:3306", Cluster: "c"}
	w := watch(t, Options{
		DataDir: data, Clock: machine, Samples: samples, Topology: serversOf(target),
	})
	w.until("one", "followed", func(s ingest.Snapshot) bool {
		// The content of the file when it is opened may be old, and does not set the clock.
		return w.owned("one") && s.Meta.Servers.Server("db1") != nil && s.Meta.ToolVersion != ""
	})

	afterDay, peak, want := uint64(0), uint64(0), 0.0
	for h := range days * 24 {
		var lines strings.Builder
		for second := h*hour + 1; second <= (h+1)*hour; second++ {
			tps := float64(10 + second%7)
			want += tps
			lines.WriteString(intervalLine(second, tps))
			passed.Add(int64(time.Second))
			if second == 1 { // reading it sets the start of the tool's clock
				say(lines.String())
				lines.Reset()
				w.until("one", "the first interval", func(s ingest.Snapshot) bool { return s.Meta.ClockStartedAt != nil })
			}
			if second%every != 0 {
				continue
			}
			tick := samples.Now()
			status := &engine.Status{Version: "8.4.3", Flavour: "mysql", Role: "primary", Uptime: time.Duration(second) * time.Second}
			status.Set(engine.QueriesTotal, float64(1000*second))
			w.Frame(engine.Frame{Tick: tick, Interval: every * time.Second, Samples: []engine.Sample{{Target: &target, Tick: tick, Asked: tick, Answered: tick.Add(time.Millisecond), Status: status}}})
		}
		say(lines.String())
		w.until("one", "an hour", func(s ingest.Snapshot) bool { return s.Totals["transaction"] >= want })
		if h < 23 {
			continue
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if h == 23 {
			afterDay = m.HeapAlloc
		}
		peak = max(peak, m.HeapAlloc)
	}
	t.Logf("%d KiB after a day, %d KiB at most", afterDay>>10, peak>>10)
	if peak > afterDay+1<<20 {
		t.Error("the agent's memory grows with the run")
	}

	const seconds = days * 24 * hour
	say(summaryText(int(want), seconds))
	if _, err := dir.Update(func(m *rundir.Meta) {
		end := machine.Wall()
		m.EndedAt, m.Outcome = &end, rundir.Succeeded
	}); err != nil {
		t.Fatal(err)
	}
	claim.Release()
	w.GiveUpDrain()
	s := w.until("one", "over", over)
	w.stop()
	if took := s.Meta.EndedAt.Sub(s.Meta.StartedAt); took != seconds*time.Second || s.Totals["transaction"] != want || s.Lines.Malformed > 0 {
		t.Errorf("took %v, %v transactions of %v, %+v", took, s.Totals["transaction"], want, s.Lines)
	}
	h := readHistory(t, dir)
	if h.Intervals.N != seconds || h.Intervals.Last != seconds || h.Intervals.Misplaced > 0 || len(h.DamageLines()) > 0 {
		t.Errorf("%d intervals up to %v, %d misplaced, damage %q", h.Intervals.N, h.Intervals.Last, h.Intervals.Misplaced, h.DamageLines())
	}
	if len(h.Servers) != 1 {
		t.Fatalf("%d servers", len(h.Servers))
	}
	rates := h.Samples.Tally(record.ServerMeasure{Target: "db1", Measure: engine.QueryRate})
	if db := h.Servers[0]; db.Ticks != seconds/every || db.Unanswered > 0 || db.Missed > 1 || math.Abs(rates.Mean()-1000) > 1e-6 { // the first one
		t.Errorf("%d ticks, %d unanswered, %d missed, %v queries a second", db.Ticks, db.Unanswered, db.Missed, rates.Mean())
	}
}
