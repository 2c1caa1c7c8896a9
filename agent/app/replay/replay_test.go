package replay_test

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/app/observer"
	"github.com/benchwatch/benchwatch/agent/app/replay"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read reads a run with the tool that wrote it.
func read(t *testing.T, dir rundir.Directory) *record.History {
	t.Helper()
	h, err := record.Read(t.Context(), dir, registry.Tools)
	if err != nil || len(h.Damage.Problems) > 0 {
		t.Fatal(err, h.Damage.Problems)
	}
	return h
}

// TestReplay guards that a replayed run is processed like a live run and has the recorded results: intervals, servers,
// machine, settings, markers, outcome and drain; and that it is marked everywhere as a replay.
func TestReplay(t *testing.T) {
	data := t.TempDir()
	dir, err := replay.Example(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, dir)
	player, err := replay.New(context.Background(), dir, want, registry.Tools.ByName("sysbench"), data, 20)
	if err != nil {
		t.Fatal(err)
	}
	conf := player.Config(*config.Default(), data)
	o, err := observer.New(observer.Options{Config: conf, Logger: slog.New(slog.DiscardHandler), Servers: player.Servers(), Machines: player.Machines(), Clock: player.Clock()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := o.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()

	server := httptest.NewServer(o.Handler())
	defer server.Close()
	scrape := func() string {
		response, err := server.Client().Get(server.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	// Live: the series of a running run, its servers and its label.
	live := []string{
		`benchwatch_run_active{run="` + player.Directory.ID() + `"} 1`, `replay_of="galera-slow-node"`,
		"benchwatch_run_operations_per_second{", "benchwatch_galera_flow_control_paused_seconds_total{", `benchwatch_db_up{cluster="galera",engine="mysql",role="member",target="n3"} 1`,
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for seen := ""; len(live) > 0; <-tick.C {
		select {
		case <-player.Played():
			t.Fatalf("never seen while it was played: %q in\n%s", live, seen)
		default:
		}
		seen = scrape()
		for len(live) > 0 && strings.Contains(seen, live[0]) {
			live = live[1:]
		}
	}
	<-player.Played()
	o.GiveUpDrain()
	for closed := false; !closed; <-tick.C {
		m, err := player.Directory.Load()
		closed = err == nil && m.Closed()
	}
	stop()
	running.Wait()

	got := read(t, player.Directory)
	m := got.Snapshot.Meta
	if m.Replay == nil || m.Replay.Run != replay.ExampleID || m.Replay.Speed != 20 || m.Labels[replay.Label] != replay.ExampleID || !strings.HasPrefix(m.Title, "replay: ") {
		t.Errorf("not marked as a replay: %+v", m)
	}
	if m.Outcome != rundir.Succeeded || *m.ExitCode != 0 || len(m.Drain) != len(want.Snapshot.Meta.Drain) || m.EndedAt.After(time.Now()) {
		t.Errorf("%+v", m)
	}
	for name, d := range want.Snapshot.Meta.Drain {
		// The observer may be late on a busy machine, a second for each 50 ms: then more samples may be needed.
		g, upper := m.Drain[name], func(d rundir.Drain) float64 { return max(*d.Seconds, d.ResolutionSeconds) }
		if g.Seconds == nil || upper(g) < upper(d)-0.01 || upper(g) > upper(d)+5.01 {
			t.Errorf("drain of %s: %v, recorded %v", name, g, d)
		}
	}
	for _, l := range []ingest.Column{ingest.RateOf("transaction")} {
		if a, b := want.Intervals.Values(l), got.Intervals.Values(l); !equal(a, b, 0) {
			t.Errorf("%v: %v, recorded %v", l, b, a)
		}
	}
	wanted, _, err := want.AllSamples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	played, _, err := got.AllSamples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range wanted {
		if i >= len(played) || played[i].Target != s.Target {
			t.Fatalf("no server %s", s.Target)
		}
		g := played[i]
		lost := len(s.Elapsed) - len(g.Elapsed) // those after the drain was given up
		if lost < 0 || lost > 3 {
			t.Errorf("%s: %d ticks, recorded %d", s.Target, len(g.Elapsed), len(s.Elapsed))
		}
		for _, name := range append(s.Names(), "db_up", "replication_lag_transactions") {
			if a, b := s.Values(name)[:len(g.Elapsed)], g.Values(name); !equal(a, b, 0) {
				t.Errorf("%s of %s differs", name, s.Target)
			}
		}
		if !equal(s.Elapsed[:len(g.Elapsed)], g.Elapsed, 0.002) {
			t.Errorf("ticks of %s: %v, recorded %v", s.Target, g.Elapsed, s.Elapsed)
		}
		if s.Versions[0] != g.Versions[0] || s.Role != g.Role {
			t.Errorf("%s: %v %s", s.Target, g.Versions, g.Role)
		}
	}
	if len(got.Settings) != 4 {
		t.Errorf("settings %+v", got.Settings)
	}
	for _, w := range want.Settings { // the machine's facts may be read before those of servers, or after them
		i := slices.IndexFunc(got.Settings, func(g record.TargetSettings) bool { return g.Target == w.Target })
		if i < 0 || len(got.Settings[i].Settings) < min(50, len(w.Settings)) || len(got.Settings[i].Changes) != len(w.Changes) {
			t.Errorf("settings of %s: %+v", w.Target, got.Settings)
		}
	}
	if got.Host.Cores != 2 || len(got.HostSamples.Elapsed) < 75 {
		t.Errorf("host: %d cores, %d rows", got.Host.Cores, len(got.HostSamples.Elapsed))
	}
	// Besides those that were recorded, the run has the markers of its own stalls.
	got.Markers = slices.DeleteFunc(got.Markers, func(m marker.Marker) bool { return strings.HasPrefix(m.Text, "stalled for ") })
	if len(got.Markers) != len(want.Markers) || got.Markers[0].Text != want.Markers[0].Text || !strings.Contains(strings.Join(got.Markers[0].Tags, " "), "replay_of:") {
		t.Errorf("markers %+v", got.Markers)
	}
}

// equal reports whether two columns differ by at most as much, unknown values alike.
func equal(a, b []float64, by float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.IsNaN(a[i]) != math.IsNaN(b[i]) || math.Abs(a[i]-b[i]) > by {
			return false
		}
	}
	return true
}

// TestUnfinished guards that a run in progress is refused.
func TestUnfinished(t *testing.T) {
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{ID: "one", Timing: rundir.Timing{StartedAt: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	if _, err := replay.New(context.Background(), dir, read(t, dir), nil, t.TempDir(), 1); err == nil || !strings.Contains(err.Error(), "has not ended") {
		t.Error(err)
	}
}
