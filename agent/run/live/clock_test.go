package live

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestClockIsSet guards all lengths of a run during which the wall clock is set, and
// of one that begins after it was set while the agent ran.
func TestClockIsSet(t *testing.T) {
	for _, c := range []struct {
		step   time.Duration
		moment string // before the run, during it, or when the tool has ended
		text   string // of the marker
	}{
		{time.Hour, "before", ""},
		{time.Hour, "during", "the clock was set forward by 1h0m0s"},
		{-time.Hour, "during", "the clock was set back by 1h0m0s"},
		{time.Second, "during", "the clock was set forward by 1s"},
		{-time.Second, "during", "the clock was set back by 1s"},
		{-240 * time.Hour, "during", "the clock was set back by 240h0m0s"},
		{-40 * time.Second, "ended", "the clock was set back by 40s"},
		{time.Hour, "ended", "the clock was set forward by 1h0m0s"},
	} {
		t.Run(c.moment+" "+c.step.String(), func(t *testing.T) {
			t.Parallel()
			var set atomic.Int64
			machine := &clock.Clock{
				Wall: func() time.Time { return time.Now().Add(time.Duration(set.Load())) },
				Boot: clock.System.Boot, ID: "this boot",
			}
			samples := machine.Axis() // the agent has run for long
			step := func(moment string) {
				if moment == c.moment {
					set.Add(int64(c.step))
				}
			}
			step("before")
			data := t.TempDir()
			meta := rundir.Meta{
				ID:        "one",
				Benchmark: rundir.Benchmark{Target: "127.0.0.1:3306"},
				Timing:    rundir.Timing{StartedAt: machine.Wall().UTC(), Clock: rundir.NewClock(machine)},
			}
			dir, claim, err := rundir.Create(data, meta)
			if err != nil {
				t.Fatal(err)
			}
			targets := []engine.Target{{Name: "p", Address: "127.0.0.1:3306", Cluster: "c"}, {Name: "r", Address: "127.0.0.1:3307", Cluster: "c"}}
			w := watch(t, Options{DataDir: data, Clock: machine, Samples: samples, Topology: serversOf(targets...)})
			frame := func(positions ...uint64) {
				f := engine.Frame{Tick: samples.Now(), Interval: time.Second}
				for i, p := range positions {
					f.Samples = append(f.Samples, engine.Sample{
						Target: &targets[i], Tick: f.Tick, Asked: f.Tick, Answered: f.Tick.Add(time.Millisecond),
						Status: &engine.Status{Position: position(p), Replicating: true}, Source: i == 0,
					})
				}
				w.Frame(f)
			}
			w.until("one", "owned", func(s ingest.Snapshot) bool { return w.owned("one") && s.Meta.Servers.Server("r") != nil })
			frame(10, 10)
			step("during")
			if c.moment == "during" {
				w.until("one", "the marker", func(ingest.Snapshot) bool { return len(marks(t, dir)) == 1 })
			}
			frame(20, 20)
			if _, err := dir.Update(func(m *rundir.Meta) {
				end := m.Axis(machine).Now().UTC()
				m.EndedAt, m.Outcome = &end, rundir.Succeeded
			}); err != nil {
				t.Fatal(err)
			}
			step("ended")
			claim.Release()
			w.until("one", "draining", func(s ingest.Snapshot) bool { return w.draining("one") })
			frame(30, 25)
			frame(30, 30)
			s := w.until("one", "over", over)

			m := s.Meta
			if took := m.EndedAt.Sub(m.StartedAt); took < 0 || took > 30*time.Second {
				t.Errorf("the run took %v", took)
			}
			if took := m.ClosedAt.Sub(*m.EndedAt); took < 0 || took > 30*time.Second {
				t.Errorf("it was closed %v after its end", took)
			}
			if d := m.Drain["r"]; d.Seconds == nil || *d.Seconds <= 0 || *d.Seconds > 30 || len(m.Drain) != 1 {
				t.Errorf("drain %+v", m.Drain)
			}
			if e := s.ElapsedSeconds(machine.Wall()); e < 0 || e > 30 {
				t.Errorf("elapsed %v s", e)
			}
			h, err := record.Read(context.Background(), dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r := h.Samples.Elapsed; len(r) != 4 || r[0] < 0 || r[3] > 30 || h.Damage.MisplacedStatus != 0 {
				t.Errorf("%+v, damage %+v", r, h.Damage)
			}
			if status, err := os.ReadFile(dir.Path(rundir.StatusFile)); err != nil || !strings.Contains(string(status), `"interval":1,`) {
				t.Errorf("no distance of ticks in %s (%v)", status, err)
			}
			got := marks(t, dir)
			if c.text == "" {
				if len(got) != 0 || m.Clock.Steps != nil {
					t.Errorf("marked %v, steps %v", got, m.Clock.Steps)
				}
				return
			}
			if len(got) != 1 || got[0].Text != c.text || got[0].Start.Before(m.StartedAt) || got[0].Start.After(*m.ClosedAt) {
				t.Errorf("marked %v in a run from %v to %v", got, m.StartedAt, m.ClosedAt)
			}
			if len(m.Clock.Steps) != 1 || (time.Duration(m.Clock.Steps[0].Seconds*float64(time.Second))-c.step).Abs() > 10*time.Millisecond {
				t.Errorf("steps %v", m.Clock.Steps)
			}
		})
	}
}

// marks are the markers of steps of the clock.
func marks(t *testing.T, dir rundir.Directory) []marker.Marker {
	t.Helper()
	all, err := marker.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []marker.Marker
	for _, m := range all {
		if strings.HasPrefix(m.Text, "the clock was set") {
			found = append(found, m)
		}
	}
	return found
}

func (w *watching) owned(id string) bool {
	for _, t := range w.trackers() {
		t.mu.Lock()
		ok := t.meta.ID == id && t.owner != nil
		t.mu.Unlock()
		if ok {
			return true
		}
	}
	return false
}
