package web

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// hostOf is a run's CPU of this machine as page shows it.
func (s *site) hostOf(page *Page, id string) *table {
	s.t.Helper()
	for _, snap := range s.watcher.Snapshots() {
		if snap.Meta.ID == id {
			h, err := page.read(context.Background(), &snap)
			if err != nil {
				s.t.Fatal(err)
			}
			return h.host
		}
	}
	s.t.Fatalf("no run %s", id)
	return nil
}

// sameHost compares the drawn values of the CPU: the record has times in microseconds.
func sameHost(t *testing.T, what string, want, got *table) {
	t.Helper()
	if d := cmp.Diff(want.Elapsed, got.Elapsed, cmpopts.EquateApprox(0, 1e-6)); d != "" {
		t.Errorf("%s: times: %s", what, d)
	}
	for _, n := range want.Keys() {
		if d := cmp.Diff(want.Values(n), got.Values(n), cmpopts.EquateNaNs(), cmpopts.EquateApprox(0.01, 0)); d != "" {
			t.Errorf("%s: %v: %s", what, n, d)
		}
	}
}

// TestHost guards that the CPU of this machine looks the same during a run, after a restart of the agent and after the
// run.
func TestHost(t *testing.T) {
	s := newSite(t)
	dir, claim := s.create(rundir.Meta{
		ID:        "one",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: time.Now().Add(-time.Second)},
	})
	s.until("the run", s.began.Load) // a row before this is shown, and not recorded
	if got := s.hostOf(s.page, "one"); len(got.Elapsed) != 0 {
		t.Fatalf("%d rows before there is any", len(got.Elapsed))
	}
	machine := &engine.Target{Name: "here", Engine: host.Procfs}
	prober, err := host.Open(*machine, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	s.until("the CPU", func() bool {
		tick := time.Now()
		status, err := prober.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f := engine.Frame{Tick: tick, Interval: time.Second, Samples: []engine.Sample{{Target: machine, Tick: tick, Asked: tick, Answered: time.Now(), Status: status}}}
		s.watcher.HostFrame(f)
		s.page.HostFrame(f)
		ticks++
		return ticks >= 5
	})
	live := s.hostOf(s.page, "one")
	if len(live.Elapsed) < 4 || live.Values(name{host.Busy.ID, "here", ""}) == nil {
		t.Fatalf("%d rows, %d series", len(live.Elapsed), len(live.Keys()))
	}
	restarted := New(Options{DataDir: s.dataDir, Tools: func() tool.Set { return tool.Set{sysbench.Tool} }, Runs: s.watcher.Snapshots})
	sameHost(t, "after a restart", live, s.hostOf(restarted, "one"))

	claim.Release()
	if _, err := dir.Update(func(m *rundir.Meta) {
		now := time.Now()
		m.EndedAt, m.ClosedAt, m.Outcome = &now, &now, rundir.Succeeded
	}); err != nil {
		t.Fatal(err)
	}
	s.until("the end", func() bool { return s.watcher.Snapshots()[0].Phase == ingest.Over })
	sameHost(t, "when it is over", live, s.hostOf(restarted, "one"))
}
