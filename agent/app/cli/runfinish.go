package cli

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// skipWaits makes finish wait neither for replicas nor for readers of metrics.
func skipWaits(signals chan<- os.Signal) {
	for range 2 {
		select {
		case signals <- syscall.SIGTERM:
		default: // there are enough
		}
	}
}

// finishing is what finish must know of a run besides its directory.
type finishing struct {
	unsampled  string // as in serverAccess
	unrecorded bool   // as in toolEnd
}

// finish waits for the replicas, prints the table and lingers. A signal ends each of the waits. It returns the run, nil
// if it could not be read to its end.
func (r *runner) finish(own *observation, dir rundir.Directory, f finishing, signals <-chan os.Signal) *record.History {
	defer own.stop()
	ended := time.Now()
	if !f.unrecorded && !r.awaitClosed(own, dir, signals) {
		r.streams.notice("the rest of the piped output is not read yet: an agent or benchwatch report %s%s reads it",
			dir.ID(), r.same())
		return nil
	}
	h, err := record.Read(context.Background(), dir, r.config.ToolSet())
	if err != nil {
		r.streams.notice("%v", err)
		return nil
	}
	if !r.quiet {
		_ = report.WriteOutcome(r.streams.Err, h, f.unsampled, r.terminal) // no one reads it if stderr is gone
	}
	if r.format == jsonFormat {
		if err := writeJSON(r.streams.Out, h); err != nil {
			r.streams.notice("%v", err)
		}
	}
	r.note("run %s: %s", dir.ID(), dir)
	r.note("next: benchwatch report %s%s", lastRun, r.same())
	if own.observer == nil {
		return h
	}
	if wait := r.linger - time.Since(ended); wait > 0 {
		r.note("serving metrics for %s more (Ctrl-C to stop)", wait.Round(time.Second))
		select {
		case <-time.After(wait):
		case <-signals:
		}
	}
	if n := own.observer.PendingMarkers(); n > 0 {
		r.streams.notice("%d markers not delivered to Grafana: an agent on this data directory will send them", n)
	}
	return h
}

// agentGrace is how long an agent may be away, for a restart, before the wrapper stops waiting for its record of the
// end.
const agentGrace = 5 * time.Second

// unreadGrace is how long output that was piped in before SIGTERM may still be read. The sender of that signal waits;
// the recorded rest is read by whoever opens the run next.
const unreadGrace = 1500 * time.Millisecond

// awaitClosed waits until the run is closed, and returns false if it gave up before output was read to its end.
func (r *runner) awaitClosed(own *observation, dir rundir.Directory, signals <-chan os.Signal) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	began, agentSeen := time.Now(), time.Now()
	var terminated time.Time
	isAnnounced := false
	for {
		meta, err := dir.Load()
		if err == nil && meta.Closed() {
			return true
		}
		if !terminated.IsZero() && time.Since(terminated) > unreadGrace {
			return false
		}
		if own.observer == nil {
			if _, ok := rundir.Agent(r.config.DataDir); ok {
				agentSeen = time.Now()
			} else if time.Since(agentSeen) > agentGrace {
				r.streams.notice("the agent ended: not waiting for replicas")
				return true
			}
		}
		if !isAnnounced && time.Since(began) > 2*time.Second {
			isAnnounced = true
			r.streams.notice("waiting for replicas to catch up (Ctrl-C to stop waiting)")
		}
		select {
		case <-tick.C:
		case sig := <-signals:
			if own.observer == nil {
				return true
			}
			own.observer.GiveUpDrain()
			if sig == syscall.SIGTERM && r.isPiped() && terminated.IsZero() {
				terminated = time.Now()
			}
		}
	}
}
