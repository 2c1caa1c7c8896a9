//go:build e2e || versions

package engines

import (
	"math"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/internal/servers"
)

const synced = 4

func TestGalera(t *testing.T) { onMariaDB(t, servers.Galera, 3, checkGalera) }

func checkGalera(t *testing.T, s group) {
	w := s.watch(t)
	w.until("three nodes synced", 30*time.Second, func(f engine.Frame) bool {
		for i := range f.Samples {
			if !is(&f.Samples[i], synced, "galera_local_state") || !is(&f.Samples[i], 3, "galera_cluster_size") {
				return false
			}
		}
		return true
	})
	t.Run("drain", func(t *testing.T) { drain(t, s, w.in(t)) })
	t.Run("stopped node", func(t *testing.T) { stopped(t, s, w.in(t)) })
	t.Run("killed node", func(t *testing.T) { killed(t, s, w.in(t)) })
}

// drain holds n3 with a read lock until after the load, and compares the reported catch-up time
// with a separate measurement.
func drain(t *testing.T, s group, w *watcher) {
	stop := s.load(t, 1)
	lock := s.admin(t, 3)
	w.next()
	lock.do("FLUSH TABLES WITH READ LOCK")
	var first *engine.Sample
	w.until("n3 desynced and behind", 15*time.Second, func(f engine.Frame) bool {
		n3 := &f.Samples[2]
		if !n3.LagTransactions.Known || n3.LagTransactions.Value < 50 || !n3.LagSeconds.Known {
			return false
		}
		first = n3
		return is(n3, 2, "galera_local_state") && is(n3, 1, "galera_desync_count")
	})
	var last *engine.Sample
	for range 3 {
		f := w.next()
		last = &f.Samples[2]
	}
	// The lag of a held node grows by a second each second.
	if grown := last.LagSeconds.Value - first.LagSeconds.Value; math.Abs(grown-last.Answered.Sub(first.Answered).Seconds()) > 0.3 {
		t.Errorf("lag grew by %.3f s in %v", grown, last.Answered.Sub(first.Answered))
	}
	if sent, ok := value(last, "galera_flow_control_sent_total"); !ok || sent != 0 {
		t.Errorf("a desynced node asked for %v pauses", sent)
	}

	stop()
	end := w.next()
	goal := end.Samples[0].Status.Position
	lock.do("UNLOCK TABLES")
	caughtUp := make(chan time.Time, 1)
	go func() { // another connection measures, every few ms
		db := s.open(t, 3, "monitor")
		for {
			var name string
			var seqno float64
			if err := db.QueryRow("SHOW GLOBAL STATUS LIKE 'wsrep_last_committed'").Scan(&name, &seqno); err == nil && seqno >= goal.Scalar() {
				caughtUp <- time.Now()
				return
			}
			time.Sleep(5 * time.Millisecond) // pace of the stopwatch
		}
	}()
	reached := w.until("n3 caught up", 60*time.Second, func(f engine.Frame) bool {
		return f.Samples[2].Up() && engine.Reached(f.Samples[2].Status.Position, goal)
	})
	truth := <-caughtUp
	if late := reached.Samples[2].Answered.Sub(truth); late < -50*time.Millisecond || late > 3*time.Second {
		t.Errorf("reported %v after it had caught up", late)
	}
}

// stopped: after SIGSTOP the node is down, and the others are sampled as before.
func stopped(t *testing.T, s group, w *watcher) {
	must(t, s.Pause(3))
	resume := true
	defer func() {
		if resume {
			must(t, s.Resume(3))
		}
	}()
	w.next() // under way when the node stopped
	for range 7 {
		f := w.next()
		if f.Samples[2].Up() {
			t.Errorf("stopped node is up at %v", f.Tick)
		}
		for i := range 2 {
			if n := &f.Samples[i]; !n.Up() {
				t.Errorf("n%d at %v: %v", i+1, f.Tick, n.Err)
			}
		}
	}
	resume = false
	must(t, s.Resume(3))
	f := w.until("n3 answers", 8*time.Second, func(f engine.Frame) bool { return f.Samples[2].Up() })
	if f.Samples[2].Restarts != 0 {
		t.Error("a stopped node was taken for a restarted one")
	}
	w.until("n3 synced again", 60*time.Second, func(f engine.Frame) bool {
		n1, n3 := &f.Samples[0], &f.Samples[2]
		a, ok1 := value(n1, "galera_cluster_configuration_id")
		b, ok2 := value(n3, "galera_cluster_configuration_id")
		return is(n3, synced, "galera_local_state") && is(n1, 3, "galera_cluster_size") && ok1 && ok2 && a == b
	})
}

// killed: after SIGKILL under load the node rejoins and gets the write sets that it missed.
func killed(t *testing.T, s group, w *watcher) {
	stop := s.load(t, 1)
	w.next()
	must(t, s.Kill(3))
	w.until("n3 down", 3*time.Second, func(f engine.Frame) bool { return !f.Samples[2].Up() })
	w.until("the others have noticed", 30*time.Second, func(f engine.Frame) bool {
		return is(&f.Samples[0], 2, "galera_cluster_size")
	})
	must(t, s.Rejoin(t.Context(), 3))
	w.until("n3 synced", 60*time.Second, func(f engine.Frame) bool {
		return is(&f.Samples[2], synced, "galera_local_state") && f.Samples[2].Restarts == 1
	})
	stop()
	w.until("all equal", 20*time.Second, func(f engine.Frame) bool {
		for i := range f.Samples {
			if l := f.Samples[i].LagTransactions; l != series.Some(0.) {
				return false
			}
		}
		return true
	})
}
