package live

import (
	"context"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// closing is what a tracker does from the tool's end until the run is closed. Fields without another comment are
// guarded by the tracker's mu.
type closing struct {
	settled bool // used by follow's goroutine: see settle
	drain   *drain
	// drainBegan bounds the drain of a run whose end, by another machine's clock, is in the future.
	drainBegan time.Time
	// lateBefore is Sampler.Late from when the run was found.
	lateBefore time.Duration
	// patience is done when the ended run should be closed without waiting for its servers.
	patience context.Context //nolint:containedctx // of what happens after the end
	giveUp   context.CancelFunc
}

// ended reports whether the tool has ended. If no process remains that could have its exit status,
// the owner records the end.
func (t *tracker) ended() bool {
	t.mu.Lock()
	meta, owner := t.meta, t.owner != nil
	t.mu.Unlock()
	if meta.Ended() || meta.Log != nil || meta.IsGroup() { // the process that combines a group ends it
		return meta.Ended()
	}
	if !owner || t.dir.Running(&meta) {
		return false
	}
	// It may have ended properly after we read run.json and before we checked the locks.
	meta, err := t.dir.Update(func(m *rundir.Meta) {
		if m.Ended() {
			return
		}
		end := t.dir.LastWrite(m.StartedAt, t.axis.Ahead())
		m.EndedAt = &end
		m.Conclude(rundir.Output{}) // until the output has been read to its end
	})
	if err != nil {
		t.fault("end the run", err)
		return false
	}
	t.setMeta(meta)
	t.log.Warn("the tool ended without a known exit status")
	return true
}

// settle adds to run.json the facts that only the tool's output shows, once. The owner does not
// close the run without them; false if they could not be written.
func (t *tracker) settle() bool {
	if t.settled {
		return true
	}
	snap, output := t.snapshot(), t.feed.Output()
	meta, err := t.dir.Update(func(m *rundir.Meta) {
		m.ToolVersion, m.Workload, m.RatePerSecond = snap.Meta.ToolVersion, snap.Meta.Workload, snap.Meta.RatePerSecond
		if t.opts.isSampled() && m.Mirror == nil && !m.SamplerLateSeconds.Known {
			m.SamplerLateSeconds = series.Some((t.opts.Sampler.Late() - t.lateBefore).Round(time.Millisecond).Seconds())
		}
		if m.Threads == 0 && snap.Threads.Known {
			m.Threads = snap.Threads.Value
		}
		m.Conclude(output)
	})
	if err != nil {
		t.fault("record the run's outcome", err)
		return false
	}
	t.settled = true
	t.setMeta(meta)
	t.opts.Sink.Settled(t.dir, t.snapshot())
	return true
}

// beginDrain has the servers sampled at once: the drain is measured from their positions at the
// tool's end.
func (t *tracker) beginDrain() {
	t.mu.Lock()
	t.drainBegan = time.Now()
	targets := t.targets()
	begin := !t.meta.Closed() && replicates(targets) && !t.drainTimedOut()
	if begin {
		t.drain = newDrain(*t.meta.EndedAt, targets, t.meta.Servers)
		t.drain.frame(&t.last)
	}
	t.mu.Unlock()
	if begin {
		t.opts.Sampler.SampleNow()
	}
}

// awaitDrain waits until the replicas have caught up and closes the run, or
// until another owner has done so.
func (t *tracker) awaitDrain(ctx context.Context) {
	t.opts.Sampler.ReadSettings() // settings may have changed during the run

	tick := time.NewTicker(t.opts.Poll / 2) // the benchmark is over, and its command waits for the end of the run
	defer tick.Stop()
	for {
		t.claim()
		if !t.reload() {
			return
		}
		t.watchClock()
		t.identify(ctx)
		t.endStatements(ctx)
		t.mu.Lock()
		closed, owner := t.meta.Closed(), t.owner != nil
		finished := t.drain == nil || t.patience.Err() != nil || t.drain.finished() || t.drainTimedOut()
		t.mu.Unlock()
		if closed {
			return
		}
		if owner && t.settle() && finished && t.statementsRecorded() && t.close() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// drainTimedOut reports whether the drain timeout is over. mu is held.
func (t *tracker) drainTimedOut() bool {
	timeout := t.drainTimeout()
	return t.now().Sub(*t.meta.EndedAt) > timeout || !t.drainBegan.IsZero() && time.Since(t.drainBegan) > timeout
}

// drainTimeout is the run's own timeout or else the configured one, which may change while the run
// drains.
func (t *tracker) drainTimeout() time.Duration {
	if s := t.meta.DrainTimeoutSeconds; s.Known {
		return time.Duration(s.Value * float64(time.Second))
	}
	return t.opts.Bounds().DrainTimeout
}

// close writes the drain times and closes the run.
func (t *tracker) close() bool {
	t.mu.Lock()
	var drained map[string]rundir.Drain
	if t.drain != nil {
		drained = t.drain.results()
	}
	t.mu.Unlock()
	meta, err := t.dir.Update(func(m *rundir.Meta) {
		now := t.now().UTC()
		m.ClosedAt = &now
		if m.Drain == nil {
			m.Drain = drained
		}
	})
	if err != nil {
		t.fault("close the run", err)
		return false
	}
	t.setMeta(meta)
	_ = t.dir.EndLogin() // the wrapper may have been killed
	t.log.Info("run over", "outcome", meta.Outcome, "reason", meta.Reason)
	return true
}
