// Package live follows runs while they last: it finds them, reads their output as it grows, records
// the samples of their servers, waits for the replicas after the tool's end, and closes the run.
package live

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/toollog"
)

// Watcher follows all runs of a data directory: it finds new runs, follows each until it is closed,
// and keeps the summaries of the newest ended ones.
//
// Run's goroutine finds runs. Each live run has a tracker with its own goroutine. mu guards the maps.
type Watcher struct {
	opts     Options
	notifier *follow.Notifier

	mu      sync.Mutex
	live    map[string]*tracker
	kept    keptRuns
	damaged map[string]time.Time // modification time of a run.json that could not be read
	waiting int                  // live runs beyond MaxLive

	logs      *toollog.Set // set by Run
	listing   rundir.Listing
	isScanned bool // all runs were read once
	listFault time.Time
	wake      chan struct{}
	rescan    atomic.Bool // a run has changed, so the next scan must read it
	// recentLog and settledLog are options of logs.
	recentLog, settledLog time.Duration
}

// NewWatcher returns a Watcher. It watches nothing until Run is called.
func NewWatcher(opts Options) *Watcher {
	opts.defaults()
	return &Watcher{
		opts: opts, live: map[string]*tracker{}, kept: newKeptRuns(),
		damaged: map[string]time.Time{}, wake: make(chan struct{}, 1),
		listing: rundir.Listing{DataDir: opts.DataDir},
	}
}

// Run watches until ctx is done and all followers have stopped.
func (w *Watcher) Run(ctx context.Context) {
	var followers sync.WaitGroup
	defer followers.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	notifier, err := follow.NewNotifier(w.opts.Logger)
	if err != nil {
		w.opts.Logger.Warn("no file change events: files are looked at four times a second", "err", err)
	} else {
		w.notifier = notifier
		followers.Go(func() { notifier.Run(ctx) })
	}
	if w.notifier != nil && os.MkdirAll(rundir.Root(w.opts.DataDir), 0o755) == nil {
		cancel := w.notifier.Wake(w.wake, rundir.Root(w.opts.DataDir))
		defer cancel()
	}
	w.logs = toollog.New(ctx, toollog.Options{
		DataDir: w.opts.DataDir, Logs: w.opts.Logs, Tools: w.opts.Tools, Logger: w.opts.Logger,
		Tracker: logRuns{w, ctx, &followers}, Notifier: w.notifier, Wake: w.wake,
		Recent: w.recentLog, Settled: w.settledLog,
	}, followers.Go)
	tick := time.NewTimer(clock.Next(time.Second))
	defer tick.Stop()
	for {
		w.scan(ctx, &followers)
		w.logs.Scan()
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			select { // lines of the logs also wake it
			case <-ctx.Done():
				return
			case <-time.After(scanPause):
			}
		case <-tick.C:
			tick.Reset(clock.Next(time.Second))
		}
	}
}

// scanPause is the shortest time between two scans.
const scanPause = 20 * time.Millisecond

// Frame passes a tick's samples to the runs, for their records and drains.
func (w *Watcher) Frame(f engine.Frame) {
	for _, t := range w.trackers() {
		t.frame(f)
	}
}

// HostFrame passes a tick's samples of the machines to the runs, for their records.
func (w *Watcher) HostFrame(f engine.Frame) {
	for _, t := range w.trackers() {
		t.hostFrame(f)
	}
}

// Live reports whether a run is followed.
func (w *Watcher) Live() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.live) > 0
}

// Snapshots returns the live runs and the kept ended ones, oldest first.
func (w *Watcher) Snapshots() []ingest.Snapshot {
	w.mu.Lock()
	snaps := append(make([]ingest.Snapshot, 0, len(w.kept.runs)+len(w.live)), w.kept.oldestFirst()...)
	w.mu.Unlock()
	for _, t := range w.trackers() {
		snaps = append(snaps, t.snapshot())
	}
	slices.SortFunc(snaps, byBegin)
	return snaps
}

// Runs returns the directories of the live runs and the kept ended ones.
func (w *Watcher) Runs() []rundir.Directory {
	w.mu.Lock()
	defer w.mu.Unlock()
	dirs := make([]rundir.Directory, 0, len(w.live)+len(w.kept.runs))
	for id := range w.live {
		dirs = append(dirs, rundir.At(w.opts.DataDir, id))
	}
	for id := range w.kept.runs {
		dirs = append(dirs, rundir.At(w.opts.DataDir, id))
	}
	return dirs
}

// GiveUpDrain closes the runs that have ended without waiting any longer for their replicas.
func (w *Watcher) GiveUpDrain() {
	for _, t := range w.trackers() {
		t.giveUp()
	}
}

// Waiting is the number of live runs that are not followed because of MaxLive.
func (w *Watcher) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting
}

func (w *Watcher) trackers() []*tracker {
	w.mu.Lock()
	defer w.mu.Unlock()
	ts := make([]*tracker, 0, len(w.live))
	for _, t := range w.live {
		ts = append(ts, t)
	}
	return ts
}

// scan starts to follow new runs, reads ended ones and forgets removed ones.
func (w *Watcher) scan(ctx context.Context, followers *sync.WaitGroup) {
	bounds := w.opts.Bounds()
	ids, changed, err := w.listing.IDs()
	if err != nil {
		if time.Since(w.listFault) >= time.Minute {
			w.listFault = time.Now()
			w.opts.Logger.Error("can't look for runs", "err", err)
		}
		return
	}
	if !changed && !w.rescan.Swap(false) && !w.unsettled(bounds) {
		return
	}
	if len(w.opts.Only) > 0 {
		ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(w.opts.Only, id) })
	}
	w.forget(ids)
	w.applyBounds(bounds)
	waiting := 0
	ended := 0
	var logRuns []*rundir.Meta
	for _, id := range slices.Backward(ids) { // the newest ended runs are kept
		if ctx.Err() != nil {
			return
		}
		if w.known(id) {
			ended++
			continue
		}
		dir := rundir.At(w.opts.DataDir, id)
		meta, ok := w.load(dir)
		if ok && meta.Log != nil && !w.isScanned && len(w.opts.Only) == 0 {
			logRuns = append(logRuns, &meta)
		}
		switch {
		case !ok:
		case meta.Closed():
			ended++
			w.addEnded(ctx, dir, meta, ended <= bounds.MaxKept)
		case meta.Log != nil && !meta.Ended():
			// The follower of its log file handles it.
		default:
			if !w.start(ctx, dir, meta, followers) {
				waiting++
			}
		}
	}
	if ctx.Err() != nil {
		return
	}
	for _, m := range slices.Backward(logRuns) {
		w.logs.Add(m)
	}
	w.isScanned = true
	w.mu.Lock()
	w.waiting = waiting
	w.mu.Unlock()
}

// addEnded reads a closed run if it is one of those to keep.
func (w *Watcher) addEnded(ctx context.Context, dir rundir.Directory, meta rundir.Meta, kept bool) {
	if !kept {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.kept.leaveOut(dir.ID())
		return
	}
	if snap := w.readEnded(ctx, dir, meta); ctx.Err() == nil { // else it was read only in part
		w.keep(snap)
	}
}

// unsettled reports whether a scan may find something although no run was added or removed.
func (w *Watcher) unsettled(b Bounds) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting > 0 || len(w.damaged) > 0 || b.MaxKept != w.kept.limit
}

func (w *Watcher) known(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live[id] != nil || w.kept.has(id)
}

// forget drops runs that are no longer on disk.
func (w *Watcher) forget(ids []string) {
	isGone := func(id string) bool {
		_, found := slices.BinarySearch(ids, id)
		return !found
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept.forget(isGone)
	maps.DeleteFunc(w.damaged, func(id string, _ time.Time) bool { return isGone(id) })
}

// load reads run.json. It logs a damaged file only once.
func (w *Watcher) load(dir rundir.Directory) (rundir.Meta, bool) {
	info, err := os.Stat(dir.Path(rundir.MetaFile))
	if err != nil {
		return rundir.Meta{}, false // being removed, or not a run
	}
	w.mu.Lock()
	damaged, bad := w.damaged[dir.ID()]
	w.mu.Unlock()
	if bad && damaged.Equal(info.ModTime()) {
		return rundir.Meta{}, false
	}
	meta, err := dir.Load()
	if err != nil {
		w.opts.Logger.Error("run skipped", "err", err)
		w.mu.Lock()
		w.damaged[dir.ID()] = info.ModTime()
		w.mu.Unlock()
		return rundir.Meta{}, false
	}
	return meta, true
}

// full reports whether another run of an owner would be too many. A user other than the
// agent's gets at most three quarters of the places, so that no user keeps out all others.
// mu is held.
func (w *Watcher) full(owner uint32, maxLive int) bool {
	if len(w.live) >= maxLive || owner == uint32(os.Geteuid()) {
		return len(w.live) >= maxLive
	}
	same := 0
	for _, t := range w.live {
		if t.user == owner {
			same++
		}
	}
	return same >= maxLive-maxLive/4
}

// start follows a live run, unless there are too many.
func (w *Watcher) start(ctx context.Context, dir rundir.Directory, meta rundir.Meta, followers *sync.WaitGroup) bool {
	owner, err := dir.Owner()
	if err != nil {
		return true // being removed
	}
	maxLive := w.opts.Bounds().MaxLive
	w.mu.Lock()
	if w.full(owner, maxLive) {
		if w.waiting == 0 {
			w.opts.Logger.Warn("too many live runs: run waits", "run", meta.ID, "limit", maxLive)
		}
		w.mu.Unlock()
		return false
	}
	feed := ingest.NewFeed(w.tool(&meta), &meta)
	feed.SetCatchingUp(2)
	t := newTracker(dir, meta, feed, &w.opts)
	w.live[meta.ID] = t
	w.mu.Unlock()
	w.opts.Sink.Changed()
	followers.Go(func() {
		t.follow(ctx, w.notifier)
		w.finished(t)
	})
	return true
}

// tool is the run's tool; nil if unknown.
func (w *Watcher) tool(meta *rundir.Meta) *tool.Tool {
	return w.opts.Tools().ByName(meta.Tool)
}

// finished moves a run from the live to the kept runs.
func (w *Watcher) finished(t *tracker) {
	defer w.opts.Sink.Changed() // when mu is free again
	snap := t.snapshot()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.live, snap.Meta.ID)
	if snap.Meta.Closed() {
		w.kept.add(snap)
	}
}

// keep keeps a run that had ended before.
func (w *Watcher) keep(snap ingest.Snapshot) {
	defer w.opts.Sink.Changed()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept.add(snap)
}

// applyBounds applies changed bounds to the kept runs.
func (w *Watcher) applyBounds(b Bounds) {
	w.mu.Lock()
	dropped := w.kept.setLimit(b.MaxKept)
	w.mu.Unlock()
	if dropped {
		w.opts.Sink.Changed()
	}
}

// readEnded reads an ended run from its raw output.
func (w *Watcher) readEnded(ctx context.Context, dir rundir.Directory, meta rundir.Meta) ingest.Snapshot {
	snap, err := ingest.Read(ctx, dir, w.opts.Tools())
	if err != nil && ctx.Err() == nil {
		w.opts.Logger.Error("can't read an ended run", "run", meta.ID, "err", err)
	}
	if snap.Meta.ID == "" {
		snap.Meta = meta
	}
	return snap
}
