package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// tracker follows one run from its directory until it is closed.
//
// Its goroutine runs follow, which starts a reader for each output file. mu guards the state that
// snapshots and frames need from other goroutines.
type tracker struct {
	dir    rundir.Directory
	feed   *ingest.Feed
	opts   *Options
	log    *slog.Logger
	finish chan struct{} // closed when the tool has ended: readers stop at the end of the file
	// fromLog: the follower of a log file reads the output and ends the run.
	fromLog bool
	// metaFile is the version of run.json that was read last. Only follow uses it.
	metaFile os.FileInfo

	statements statements // used by follow's goroutine
	stalls     stalls
	settled    bool // used by follow's goroutine: see settle
	diskLow    bool // used by the recording goroutine: the servers are not recorded

	mu    sync.Mutex
	axis  clock.Axis    // the run's time axis
	ahead time.Duration // how far the wall clock is ahead of it
	meta  rundir.Meta
	owner *os.File // the observer lock; nil while another process holds it
	drain *drain
	// drainBegan bounds the drain of a run whose end, by another machine's clock, is in the future.
	drainBegan time.Time
	last       engine.Frame // the newest frame, possibly from before the tool's end
	recorder   *record.Recorder
	servers
	// toolLimits are the limits of the tool's process; nil until known. limited caches its
	// machine's latest settings, without and with these limits.
	toolLimits engine.Settings
	limited    struct{ read, with *engine.SettingsReading }
	programs   host.Programs // on the tool's machine
	// lateBefore is Sampler.Late from when the run was found.
	lateBefore time.Duration
	faults     uint64
	faultLog   time.Time
	user       uint32 // who owns the run directory

	// patience is done when the ended run should be closed without waiting for its servers.
	patience context.Context
	giveUp   context.CancelFunc
}

func newTracker(dir rundir.Directory, meta rundir.Meta, feed *ingest.Feed, opts *Options) *tracker {
	id := meta.ID // OnReport must not take the tracker's mu
	t := &tracker{
		dir:    dir,
		feed:   feed,
		opts:   opts,
		log:    opts.Logger.With("run", meta.ID),
		finish: make(chan struct{}),
		stalls: stallsOf(),
		axis:   meta.Axis(opts.Clock),
		meta:   meta,
		ahead:  meta.Clock.Ahead(),
	}
	feed.OnReport = func(r *tool.Report, elapsed float64, placed, fresh bool) {
		if placed {
			t.stalls.noteInterval(elapsed, r, fresh, t.now())
			opts.Sink.Interval(id, elapsed, r, fresh)
		}
		opts.Sink.Changed()
	}
	t.user, _ = dir.Owner()
	t.patience, t.giveUp = context.WithCancel(context.Background())
	feed.Now = t.now
	t.lateBefore = opts.Sampler.Late()
	return t
}

// follow reads the run's output until the run is closed or ctx is done.
func (t *tracker) follow(ctx context.Context, notifier *follow.Notifier) {
	var readers sync.WaitGroup
	readCtx, stop := context.WithCancel(ctx)
	defer readers.Wait()
	defer t.statements.running.Wait()
	defer stop()
	t.read(readCtx, &readers, notifier)
	defer t.release()
	t.log.Info("following run", "title", t.meta.Title)
	t.opts.Logins.Borrow(t.dir)
	defer t.opts.Logins.GiveBack(t.dir)
	endWatch := t.startWatch(ctx)
	defer endWatch()

	wake, cancel := t.subscribe(notifier)
	defer cancel()
	tick := time.NewTimer(clock.Next(t.opts.Poll))
	defer tick.Stop()
	var asked time.Time
	for {
		t.claim()
		if !t.reload() {
			return
		}
		t.watchClock()
		t.identify(ctx)
		t.armStalls()
		t.beginStatements(readCtx)
		t.recordClock()
		if time.Since(asked) >= record.SettingsEvery {
			t.opts.Sampler.ReadSettings()
			asked = time.Now()
		}
		if t.ended() {
			endWatch()
			t.beginDrain()
			t.endStatements(readCtx)
			close(t.finish)
			readers.Wait()
			if ctx.Err() == nil {
				t.recordClock()
				t.whenPossible(ctx, "read the tool's latencies", func() error { return t.feed.ReadLatencies(ctx, t.dir) })
				t.feed.Close(t.now())
				t.awaitDrain(ctx)
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-tick.C:
			tick.Reset(clock.Next(t.opts.Poll))
		}
	}
}

func (t *tracker) read(ctx context.Context, readers *sync.WaitGroup, notifier *follow.Notifier) {
	if t.fromLog {
		return
	}
	for name, stream := range map[string]tool.Stream{rundir.StdoutFile: tool.Stdout, rundir.StderrFile: tool.Stderr} {
		readers.Go(func() {
			t.whenPossible(ctx, "read the tool's output",
				func() error { return t.feed.Follow(ctx, t.dir.Path(name), stream, notifier, t.finish) })
		})
	}
}

// whenPossible reads a file of the run, and waits while this process has too many files open: the results of the run
// need this file.
func (t *tracker) whenPossible(ctx context.Context, what string, read func() error) {
	tick := time.NewTicker(t.opts.Poll)
	defer tick.Stop()
	for {
		err := read()
		if err == nil || ctx.Err() != nil {
			return
		}
		t.fault(what, err)
		if !follow.TooManyOpen(err) {
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (t *tracker) subscribe(notifier *follow.Notifier) (<-chan struct{}, func()) {
	if notifier == nil {
		return nil, func() {}
	}
	return notifier.Subscribe(string(t.dir), rundir.MetaFile)
}

// claim tries to become the owner, the one process that records, marks and closes this run.
func (t *tracker) claim() {
	t.mu.Lock()
	meta, owner := t.meta, t.owner != nil
	t.mu.Unlock()
	if owner || meta.Mirror != nil {
		return
	}
	lock, err := t.dir.Lock(rundir.ObserverLock, false)
	if err != nil {
		return // another observer owns it, or the directory can't be written
	}
	recorder := record.NewRecorder(t.dir, meta.StartedAt)
	t.mu.Lock()
	t.owner, t.recorder = lock, recorder
	t.mu.Unlock()
	t.opts.Sink.Began(t.dir, meta) // waits for the disk, which a snapshot must not
}

func (t *tracker) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recorder.Close()
	t.programs.Close()
	if t.owner != nil {
		t.owner.Close()
		t.owner = nil
	}
}

// recordClock writes the start of the tool's clock into run.json, once: the output does not show it
// later.
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
	return t.opts.Limits().DrainTimeout
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

// frame records a tick's samples of the run's servers and updates the drain.
func (t *tracker) frame(f engine.Frame) {
	t.mu.Lock()
	if t.meta.Mirror != nil { // its servers are in another machine's configuration
		t.mu.Unlock()
		return
	}
	f, ok := t.onAxis(f)
	if !ok {
		t.mu.Unlock()
		return
	}
	f = t.own(f)
	if t.last = f; t.drain != nil {
		t.drain.frame(&f)
	}
	id, recorder := t.meta.ID, t.recorder
	t.mu.Unlock()
	if len(f.Samples) > 0 {
		t.stalls.noteFrame(&f)
		t.opts.Sink.Sampled(id, f)
	}
	err := recorder.Record(f)
	if err != nil {
		t.fault("record the servers' status", err)
	}
	t.watchDisk(errors.Is(err, record.ErrDiskLow))
}

// watchDisk marks where lack of space interrupts the record of the servers, and where recording
// resumes. Only the recording goroutine calls it.
func (t *tracker) watchDisk(low bool) {
	if low == t.diskLow {
		return
	}
	t.diskLow = low
	text := "the disk is nearly full: servers are not recorded from here on"
	if !low {
		text = "the disk has space again: servers are recorded from here on"
	}
	t.log.Warn(text)
	t.mark(text, t.now())
}

// mark adds a marker to the run.
func (t *tracker) mark(text string, at time.Time) {
	if err := marker.Append(t.dir, marker.Marker{Kind: marker.Point, Run: t.dir.ID(), Text: text, Start: at}); err != nil {
		t.fault("mark the run", err)
	}
}

// onAxis returns the frame with its times on the run's axis; false if the run had not begun or is
// closed. The caller holds mu.
func (t *tracker) onAxis(f engine.Frame) (engine.Frame, bool) {
	if by := t.axis.AheadOf(t.opts.Samples); by != 0 {
		f.Tick, f.Samples = f.Tick.Add(by), slices.Clone(f.Samples)
		for i := range f.Samples {
			s := &f.Samples[i]
			s.Tick, s.Asked, s.Answered = s.Tick.Add(by), s.Asked.Add(by), s.Answered.Add(by)
		}
	}
	return f, !t.meta.Closed() && !f.Tick.Before(t.meta.StartedAt)
}

// now is the current time on the run's axis.
func (t *tracker) now() time.Time { return t.axis.Now() }

// watchClock records and marks changes of the wall clock during the run.
func (t *tracker) watchClock() {
	ahead := t.axis.Ahead()
	t.mu.Lock()
	step, owner := ahead-t.ahead, t.owner != nil && !t.meta.Closed()
	if step.Abs() < smallestStep || !owner {
		t.mu.Unlock()
		return
	}
	t.ahead = ahead
	t.mu.Unlock()
	at := t.now().UTC().Truncate(time.Millisecond)
	meta, err := t.dir.Update(func(m *rundir.Meta) {
		if m.Clock != nil {
			m.Clock.Steps = append(m.Clock.Steps, rundir.ClockStep{At: at, Seconds: step.Seconds()})
		}
	})
	if err != nil {
		t.fault("record that the clock was set", err)
	} else {
		t.setMeta(meta)
	}
	direction := "forward"
	if step < 0 {
		direction = "back"
	}
	text := fmt.Sprintf("the clock was set %s by %v", direction, step.Abs().Round(10*time.Millisecond))
	t.log.Warn(text)
	t.mark(text, at)
}

// smallestStep is the smallest change of the wall clock that counts as a step.
const smallestStep = 50 * time.Millisecond

func (t *tracker) snapshot() ingest.Snapshot {
	now := t.now()
	t.mu.Lock()
	meta, faults, ahead := t.meta, t.faults, t.ahead
	if t.drain != nil && meta.Drain == nil {
		meta.Drain = maps.Clone(t.drain.reached)
	}
	t.mu.Unlock()
	snap := t.feed.Snapshot(meta, now)
	snap.Stalls = t.stalls.snapshot()
	if snap.Faults = faults; snap.Active() {
		snap.ClockAhead = ahead
	}
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

// setMeta updates the tracker's state from run.json.
func (t *tracker) setMeta(meta rundir.Meta) {
	t.mu.Lock()
	t.meta = meta
	t.mu.Unlock()
	t.opts.Sink.Changed()
}

// reload reads run.json if it has changed; false if the run was removed. It is called after each
// line of the tool, and run.json seldom changes.
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
