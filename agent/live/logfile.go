package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/procfs"

	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// recentLog is how long after the last write the last run in a log counts as live.
const recentLog = time.Minute

// scanLogs starts to follow log files that are new under the globs.
func (w *Watcher) scanLogs(ctx context.Context, followers *sync.WaitGroup) {
	for _, spec := range w.opts.Logs() {
		paths, err := filepath.Glob(spec.Glob)
		if err != nil {
			continue // the configuration is checked when it is read
		}
		for _, path := range paths {
			w.followLog(ctx, followers, path, spec)
		}
	}
	w.mu.Lock()
	w.scans++
	w.mu.Unlock()
}

func (w *Watcher) followLog(ctx context.Context, followers *sync.WaitGroup, path string, spec Log) {
	w.mu.Lock()
	followed, first := w.logs[path], w.scans == 0
	w.mu.Unlock()
	if followed {
		return
	}
	t := w.logTool(path, spec)
	if t == nil {
		return // its content does not show the tool yet: tried again at the next scan
	}
	f := &logFile{watcher: w, path: path, labels: spec.Labels, tool: t, log: w.opts.Logger.With("log", path), existing: first}
	f.start = func(t *tracker) {
		followers.Go(func() {
			t.follow(ctx, w.notifier)
			w.finished(t)
		})
	}
	w.mu.Lock()
	w.logs[path] = true
	w.mu.Unlock()
	followers.Go(func() {
		if err := f.follow(ctx); err != nil && ctx.Err() == nil {
			f.log.Error("stopped following the log file, will try again", "err", err)
		}
		w.mu.Lock()
		delete(w.logs, path)
		w.mu.Unlock()
	})
}

// logTool returns the configured tool, or the one that the content shows; nil if
// it shows none.
func (w *Watcher) logTool(path string, spec Log) *tool.Tool {
	if spec.Tool != "" {
		return w.opts.Tools().ByName(spec.Tool)
	}
	t, err := ingest.Recognise(path, w.opts.Tools())
	if err != nil {
		return nil
	}
	return t
}

// logFile is a file that a tool writes by itself, with many runs one after the
// other. One goroutine follows it and splits it into runs; each run has a tracker,
// which drains and closes it when its part of the log has ended.
type logFile struct {
	watcher  *Watcher
	path     string
	tool     *tool.Tool
	labels   map[string]string
	log      *slog.Logger
	start    func(*tracker) // starts a tracker's goroutine
	existing bool           // the file existed before the Watcher

	source   rundir.LogSource
	content  *os.File
	splitter *ingest.Splitter
	current  *tracker // of the splitter's current part

	// Of the content that existed when following began:
	past     int64 // its size
	written  time.Time
	starts   []ingest.Start // of its runs, oldest first
	resuming *rundir.Meta   // a run that had not ended when an earlier agent stopped
}

func (f *logFile) follow(ctx context.Context) error {
	defer func() { f.content.Close() }() // a nil file is no problem
	offset, first, err := f.findBegin(ctx)
	if err != nil {
		return err
	}
	r, err := follow.Open(f.path, follow.Options{Offset: offset, Notifier: f.watcher.notifier})
	if err != nil {
		return err
	}
	defer r.Close()
	f.split(offset, first)
	generation, flushed := 0, true
	for {
		l, err := r.NextWithin(ctx, f.patience(flushed))
		switch {
		case errors.Is(err, follow.ErrQuiet) && !flushed:
			f.splitter.Flush(time.Now())
			flushed = true
			continue
		case errors.Is(err, follow.ErrQuiet):
			f.endIdle()
			continue
		case err != nil:
			return err
		case l.Generation != generation: // replaced or truncated: what follows is new
			generation = l.Generation
			f.splitter.Close(time.Now())
			if err := f.open(); err != nil {
				return err
			}
			f.past, f.starts = 0, nil
			f.split(0, 0)
		}
		at, fresh := time.Now(), true
		if l.Offset < f.past {
			at, fresh = f.written, false
		}
		f.splitter.Line(l, at, fresh)
		flushed = !f.splitter.Flushes()
	}
}

// patience is how long to wait for a line until the parser is flushed or, if that
// is done, the current run is taken to be over.
func (f *logFile) patience(flushed bool) time.Duration {
	switch {
	case !flushed:
		return ingest.FlushAfter
	case f.current == nil:
		return 0 // as long as it takes
	}
	interval := f.current.snapshot(time.Now()).IntervalSeconds
	return max(recentLog, time.Duration(10*interval.Value*float64(time.Second)))
}

// open opens the file that has the path now.
func (f *logFile) open() (err error) {
	f.content.Close()
	if f.content, err = os.Open(f.path); err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	f.source, err = rundir.Identify(f.path)
	return err
}

func (f *logFile) split(offset, first int64) {
	f.splitter = ingest.NewSplitter(f.tool, f.content, offset, first)
	f.splitter.OnBegin, f.splitter.OnEnd = f.beginRun, f.endRun
}

// findBegin returns where to start reading, and where the first run begins that
// is not known to have ended. In a file that existed before the Watcher that is
// its last run, if that is still being written.
func (f *logFile) findBegin(ctx context.Context) (offset, first int64, err error) {
	if err := f.open(); err != nil {
		return 0, 0, err
	}
	info, err := f.content.Stat()
	if err != nil {
		return 0, 0, fmt.Errorf("log file: %w", err)
	}
	f.past, f.written = info.Size(), info.ModTime()
	known, err := f.findKnown()
	if err != nil {
		return 0, 0, err
	}
	offset, first = ingest.Resume(known)
	parts, err := ingest.SplitLog(ctx, f.path, f.tool, offset, first)
	if err != nil {
		return 0, 0, err
	}
	if f.existing && len(known) == 0 {
		if len(parts) == 0 || time.Since(f.written) > recentLog {
			end, err := lastLineStart(f.content, f.past)
			return end, end, err
		}
		parts = parts[len(parts)-1:]
		offset, first = parts[0].Offset, parts[0].Offset
	}
	f.starts = ingest.Starts(parts, time.Time{}, f.written)
	return offset, first, nil
}

// findKnown returns this file's runs on disk.
func (f *logFile) findKnown() ([]rundir.LogSource, error) {
	ids, err := rundir.List(f.watcher.opts.DataDir)
	if err != nil {
		return nil, err
	}
	var known []rundir.LogSource
	for _, id := range ids {
		dir := rundir.At(f.watcher.opts.DataDir, id)
		meta, err := dir.Load()
		if err != nil || meta.Log == nil || !dir.MayFollowLog() || meta.Log.Device != f.source.Device || meta.Log.Inode != f.source.Inode || meta.Log.Offset > f.past {
			continue
		}
		known = append(known, *meta.Log)
		if !meta.Ended() {
			f.resuming = &meta
		}
	}
	return known, nil
}

// lastLineStart is the offset after the last complete line before size.
func lastLineStart(file *os.File, size int64) (int64, error) {
	tail := make([]byte, min(size, 64<<10))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, fmt.Errorf("log file: %w", err)
	}
	return size - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')+1), nil
}

// beginRun makes the directory of a run that has begun in the log, or resumes the
// one that had not ended when an earlier agent stopped.
func (f *logFile) beginRun(p *ingest.Part, first *tool.Report, at time.Time, _ bool) {
	meta, dir, err := f.runOf(p, first, at)
	if err != nil {
		f.log.Error("can't create the directory of a run in the log", "err", err)
		return
	}
	w := f.watcher
	t := newTracker(dir, meta, p.Feed, &w.opts)
	t.fromLog = true
	w.mu.Lock()
	w.live[meta.ID] = t
	w.mu.Unlock()
	f.current = t
	t.claim()
	f.start(t)
}

func (f *logFile) runOf(p *ingest.Part, first *tool.Report, at time.Time) (rundir.Meta, rundir.Directory, error) {
	start, estimated := at, false
	if first.ElapsedSeconds.Known {
		start, estimated = at.Add(-time.Duration(first.ElapsedSeconds.Value*float64(time.Second))), true
	}
	if len(f.starts) > 0 {
		start, estimated = f.starts[0].At, f.starts[0].Source == rundir.StartFromFile
		f.starts = f.starts[1:]
	}
	if m := f.resuming; m != nil {
		f.resuming = nil
		return *m, rundir.At(f.watcher.opts.DataDir, m.ID), nil
	}
	source := f.source
	source.Offset = p.Offset
	meta := ingest.Describe(f.path, f.tool, first.Version, first.Workload, first.Threads)
	meta.Labels, meta.Log = maps.Clone(f.labels), &source
	meta.Generator, _ = os.Hostname() // an empty name is better than no run
	meta.StartedAt, meta.StartEstimated = start.UTC().Truncate(time.Millisecond), estimated
	dir, claim, err := rundir.Create(f.watcher.opts.DataDir, meta)
	if err != nil {
		return meta, dir, err
	}
	claim.Release() // how the run ends is in the log
	meta.ID = dir.ID()
	return meta, dir, nil
}

// endRun records the end of the current run; its tracker does the rest.
func (f *logFile) endRun(p *ingest.Part, at time.Time) {
	t := f.current
	if t == nil {
		return
	}
	f.current = nil
	output := p.Feed.Output()
	if info, err := f.content.Stat(); err == nil && !output.Complete && info.ModTime().Before(at) {
		at = info.ModTime()
	}
	_, err := t.dir.Update(func(m *rundir.Meta) {
		if m.Ended() {
			return
		}
		end := at.UTC()
		if p.End <= f.past { // written at an unknown time before: as an import does
			end = m.StartedAt.Add(time.Duration(p.Seconds * float64(time.Second)))
		}
		if end.Before(m.StartedAt) {
			end = m.StartedAt
		}
		m.EndedAt = &end
		m.Log.End = p.End
		m.Conclude(output)
	})
	if err != nil {
		t.fault("end a run of the log file", err)
	}
}

// endIdle ends a run whose tool has stopped writing without a summary.
func (f *logFile) endIdle() {
	if !isWritten(f.source) {
		f.splitter.Close(time.Now())
	}
}

// isWritten reports whether a process that this one may inspect has the file open.
func isWritten(src rundir.LogSource) bool {
	procs, err := procfs.AllProcs()
	if err != nil {
		return false
	}
	for _, p := range procs {
		targets, err := p.FileDescriptorTargets()
		if err != nil || p.PID == os.Getpid() {
			continue
		}
		for _, target := range targets {
			if target != src.Path {
				continue
			}
			if now, err := rundir.Identify(target); err == nil && now.Device == src.Device && now.Inode == src.Inode {
				return true
			}
		}
	}
	return false
}
