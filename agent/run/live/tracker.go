package live

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
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
	user    uint32 // who owns the run directory
	// metaFile is the version of run.json that was read last. Only follow uses it.
	metaFile os.FileInfo

	statements statements // used by follow's goroutine
	stalls     stalls

	mu    sync.Mutex
	meta  rundir.Meta
	owner *os.File // the observer lock; nil while another process holds it
	servers
	timing
	serverRecord
	toolMachine
	closing
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
		meta:   meta,
		timing: timing{axis: meta.Axis(opts.Clock), ahead: meta.Clock.Ahead()},
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
	var settingsRead time.Time
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
		if time.Since(settingsRead) >= record.SettingsEvery {
			t.opts.Sampler.ReadSettings()
			settingsRead = time.Now()
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
