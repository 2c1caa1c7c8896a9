package live

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// tracker follows one run from its directory until it is closed.
//
// Its goroutine runs follow, which starts a reader for each output file. What
// snapshots and frames need from other goroutines is guarded by mu.
type tracker struct {
	dir    rundir.Directory
	feed   *ingest.Feed
	opts   *Options
	log    *slog.Logger
	finish chan struct{} // closed when the tool has ended: readers run to the end
	// fromLog: the follower of a log file reads the output and ends the run.
	fromLog bool
	// metaFile is run.json as it was last read. Only follow uses it.
	metaFile os.FileInfo

	mu       sync.Mutex
	meta     rundir.Meta
	owner    *os.File // the observer lock; nil while another process holds it
	drain    *drain
	recorder *history.Recorder
	// skipDrain: close the run without waiting for replicas.
	skipDrain bool
	faults    uint64
	faultLog  time.Time
}

func newTracker(dir rundir.Directory, meta rundir.Meta, feed *ingest.Feed, opts *Options) *tracker {
	id := meta.ID // OnReport must not take the tracker's mu
	feed.OnReport = func(r *tool.Report, elapsed float64, placed, fresh bool) {
		if placed {
			opts.Sink.Interval(id, elapsed, r, fresh)
		}
		opts.Sink.Changed()
	}
	return &tracker{
		dir:    dir,
		feed:   feed,
		opts:   opts,
		log:    opts.Logger.With("run", meta.ID),
		finish: make(chan struct{}),
		meta:   meta,
	}
}

// follow reads the run's output until the run is closed or ctx is done.
func (t *tracker) follow(ctx context.Context, notifier *follow.Notifier) {
	var readers sync.WaitGroup
	readCtx, stop := context.WithCancel(ctx)
	defer readers.Wait()
	defer stop()
	t.read(readCtx, &readers, notifier)
	defer t.release()
	t.log.Info("following run", "title", t.meta.Title)

	wake, cancel := t.subscribe(notifier)
	defer cancel()
	tick := time.NewTicker(t.opts.Poll)
	defer tick.Stop()
	var asked time.Time
	for {
		t.claim()
		if !t.reload() {
			return
		}
		t.recordClock()
		if time.Since(asked) >= history.SettingsEvery {
			t.opts.ReadSettings()
			asked = time.Now()
		}
		if t.ended() {
			close(t.finish)
			readers.Wait()
			if ctx.Err() == nil {
				t.recordClock()
				t.feed.Close(time.Now())
				t.settle()
				t.awaitDrain(ctx)
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-tick.C:
		}
	}
}

func (t *tracker) read(ctx context.Context, readers *sync.WaitGroup, notifier *follow.Notifier) {
	if t.fromLog {
		return
	}
	if t.meta.Log != nil { // ended, not closed yet
		readers.Go(func() {
			if err := t.feed.ReadAll(ctx, t.dir, &t.meta); err != nil && ctx.Err() == nil {
				t.fault("read the log again", err)
			}
		})
		return
	}
	for name, stream := range map[string]tool.Stream{rundir.StdoutFile: tool.Stdout, rundir.StderrFile: tool.Stderr} {
		readers.Go(func() {
			err := t.feed.Follow(ctx, t.dir.Path(name), stream, notifier, t.finish)
			if err != nil && ctx.Err() == nil {
				t.fault("read the tool's output", err)
			}
		})
	}
}

func (t *tracker) subscribe(notifier *follow.Notifier) (<-chan struct{}, func()) {
	if notifier == nil {
		return nil, func() {}
	}
	return notifier.Subscribe(string(t.dir))
}

// claim tries to become the owner: the one process that records, marks and closes
// this run.
func (t *tracker) claim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owner != nil {
		return
	}
	lock, err := t.dir.Lock(rundir.ObserverLock, false)
	if err != nil {
		return // another observer owns it, or the directory can't be written
	}
	t.owner = lock
	t.recorder = history.NewRecorder(t.dir, t.meta.StartedAt)
	t.opts.Sink.Began(t.dir, t.meta)
}

func (t *tracker) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recorder.Close()
	if t.owner != nil {
		t.owner.Close()
		t.owner = nil
	}
}

// recordClock writes the start of the tool's clock into run.json, once: it can't
// be worked out from the output later.
func (t *tracker) recordClock() {
	clock := t.feed.Clock()
	t.mu.Lock()
	due := t.owner != nil && t.meta.ClockStartedAt == nil && !clock.IsZero()
	t.mu.Unlock()
	if !due {
		return
	}
	meta, err := t.dir.Update(func(m *rundir.Meta) {
		if clock.Before(m.StartedAt) {
			clock = m.StartedAt
		}
		if m.ClockStartedAt == nil {
			at := clock.UTC().Truncate(time.Millisecond)
			m.ClockStartedAt = &at
		}
	})
	if err != nil {
		t.fault("record the tool's clock", err)
		return
	}
	t.setMeta(meta)
}

// ended reports whether the tool has ended. If no process is left that could have
// seen its exit status, the owner records that.
func (t *tracker) ended() bool {
	t.mu.Lock()
	meta, owner := t.meta, t.owner != nil
	t.mu.Unlock()
	if meta.Ended() || meta.Log != nil {
		return meta.Ended()
	}
	if !owner || t.dir.Running(&meta) {
		return false
	}
	// It may have ended in order between our read of run.json and the look at
	// the locks.
	meta, err := t.dir.Update(func(m *rundir.Meta) {
		if m.Ended() {
			return
		}
		end := lastWrite(t.dir, m.StartedAt)
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

// lastWrite is when the tool last wrote, which is taken as the end of a run whose
// end was not seen.
func lastWrite(d rundir.Directory, start time.Time) time.Time {
	last := start
	for _, name := range []string{rundir.StdoutFile, rundir.StderrFile} {
		if info, err := os.Stat(d.Path(name)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last.UTC()
}

// settle completes run.json with what only the tool's output shows.
func (t *tracker) settle() {
	snap := t.snapshot(time.Now())
	t.mu.Lock()
	owner := t.owner != nil
	t.mu.Unlock()
	if !owner {
		return
	}
	output := t.feed.Output()
	meta, err := t.dir.Update(func(m *rundir.Meta) {
		m.ToolVersion, m.Workload = snap.Meta.ToolVersion, snap.Meta.Workload
		if m.Threads == 0 && snap.Threads.Known {
			m.Threads = snap.Threads.Value
		}
		m.Conclude(output)
	})
	if err != nil {
		t.fault("record the run's outcome", err)
		return
	}
	t.setMeta(meta)
	t.opts.Sink.Settled(t.dir, t.snapshot(time.Now()))
}

// awaitDrain waits until the replicas have caught up and closes the run, or
// until another owner has done so.
func (t *tracker) awaitDrain(ctx context.Context) {
	t.mu.Lock()
	end := *t.meta.EndedAt
	targets := relevantTargets(t.opts.Targets(), t.meta.Target)
	timedOut := func() bool { return time.Since(end) > t.drainTimeout() }
	if !t.meta.Closed() && replicates(targets) && !timedOut() {
		t.drain = newDrain(end, targets, t.meta.Target)
	}
	t.mu.Unlock()

	t.opts.ReadSettings() // they may have changed during the run

	tick := time.NewTicker(t.opts.Poll)
	defer tick.Stop()
	for {
		t.claim()
		if !t.reload() {
			return
		}
		t.mu.Lock()
		closed, owner := t.meta.Closed(), t.owner != nil
		finished := t.drain == nil || t.skipDrain || t.drain.finished() || timedOut()
		t.mu.Unlock()
		if closed {
			return
		}
		if owner && finished && t.close() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// drainTimeout is the run's own or, if it has none, that of the configuration,
// which may change while the run drains.
func (t *tracker) drainTimeout() time.Duration {
	if s := t.meta.DrainTimeoutSeconds; s.Known {
		return time.Duration(s.Value * float64(time.Second))
	}
	return t.opts.Limits().DrainTimeout
}

// close writes the drain times and ends the run for good.
func (t *tracker) close() bool {
	t.mu.Lock()
	var drained map[string]rundir.Drain
	if t.drain != nil {
		drained = t.drain.results()
	}
	t.mu.Unlock()
	meta, err := t.dir.Update(func(m *rundir.Meta) {
		now := time.Now().UTC()
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
	t.log.Info("run over", "outcome", meta.Outcome, "reason", meta.Reason)
	return true
}

// frame records a tick's samples and updates the drain.
func (t *tracker) frame(f engine.Frame, host *host.Sample) {
	t.mu.Lock()
	if t.meta.Closed() || f.Tick.Before(t.meta.StartedAt) {
		t.mu.Unlock()
		return
	}
	if t.drain != nil {
		t.drain.frame(f)
	}
	recorder := t.recorder
	if t.meta.Log != nil { // another machine may have written the log
		host = nil
	}
	t.mu.Unlock()
	if err := recorder.Record(f, host); err != nil {
		t.fault("record the servers' status", err)
	}
}

func (t *tracker) snapshot(now time.Time) ingest.Snapshot {
	t.mu.Lock()
	meta, faults := t.meta, t.faults
	if t.drain != nil && meta.Drain == nil {
		meta.Drain = t.drain.reached()
	}
	t.mu.Unlock()
	snap := t.feed.Snapshot(meta, now)
	snap.Faults = faults
	return snap
}

// fault counts a failure to record something and logs it once a minute.
func (t *tracker) fault(what string, err error) {
	t.mu.Lock()
	t.faults++
	speak := time.Since(t.faultLog) >= time.Minute
	if speak {
		t.faultLog = time.Now()
	}
	count := t.faults
	t.mu.Unlock()
	if speak && !errors.Is(err, context.Canceled) {
		t.log.Error("can't "+what, "err", err, "failures", count)
	}
}

// setMeta replaces what is known of run.json.
func (t *tracker) setMeta(meta rundir.Meta) {
	t.mu.Lock()
	t.meta = meta
	t.mu.Unlock()
	t.opts.Sink.Changed()
}

// reload reads run.json if it has changed; false if the run was removed. It is
// called after each line of the tool, and run.json seldom changes.
func (t *tracker) reload() bool {
	file, err := os.Stat(t.dir.Path(rundir.MetaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil && t.metaFile != nil && os.SameFile(file, t.metaFile) &&
		file.ModTime().Equal(t.metaFile.ModTime()) && file.Size() == t.metaFile.Size() {
		return true
	}
	meta, err := t.dir.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		t.fault("read run.json", err)
		return true
	}
	t.metaFile = file
	t.setMeta(meta)
	return true
}
