package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"

	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// begin finds where to start reading: behind what is known already; in a file
// that was there before us, at its last run if that is still being written.
func (f *logFile) begin(ctx context.Context) (int64, error) {
	var err error
	if f.source, err = rundir.Identify(f.path); err != nil {
		return 0, err
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return 0, fmt.Errorf("log file: %w", err)
	}
	f.past, f.written = info.Size(), info.ModTime()
	offset, known, err := f.resume()
	if err != nil {
		return 0, err
	}
	runs, err := f.scanPast(ctx, offset)
	if err != nil {
		return 0, err
	}
	if f.old && !known {
		if len(runs) == 0 || time.Since(f.written) > recentLog {
			f.starts = nil
			return lastLineStart(f.path, f.past)
		}
		runs = runs[len(runs)-1:]
		offset = runs[0].offset
	}
	f.starts = startTimes(runs, f.written)
	return offset, nil
}

// resume looks for this file's runs among those on disk.
func (f *logFile) resume() (offset int64, known bool, err error) {
	ids, err := rundir.List(f.watcher.opts.DataDir)
	if err != nil {
		return 0, false, err
	}
	for _, id := range ids {
		meta, err := rundir.At(f.watcher.opts.DataDir, id).Load()
		if err != nil || meta.Log == nil || meta.Log.Device != f.source.Device || meta.Log.Inode != f.source.Inode || meta.Log.Offset > f.past {
			continue
		}
		known = true
		if !meta.Ended() {
			f.resuming = &meta
			offset = max(offset, meta.Log.Offset)
		} else {
			offset = max(offset, meta.Log.End)
		}
	}
	return offset, known, nil
}

// pastRun is a run in the content that was there before us.
type pastRun struct {
	offset  int64
	seconds float64 // as far as its reports tell
}

// scanPast finds the runs between offset and the file's present end.
func (f *logFile) scanPast(ctx context.Context, offset int64) ([]pastRun, error) {
	r, err := follow.Open(f.path, follow.Options{Offset: offset})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.Finish()
	var runs []pastRun
	number, boundary, lineAt := 0, offset, offset
	reported, held := false, false // by this line; of the run before
	parser := f.tool.NewParser(tool.Description{})
	see := func(report *tool.Report) {
		reported = true
		if report.Run != number {
			if held { // until this line, with which the next run begins
				boundary = lineAt
			}
			number = report.Run
			runs = append(runs, pastRun{offset: boundary})
		}
		held = true
		last := &runs[len(runs)-1]
		if report.ElapsedSeconds.Known {
			last.seconds = max(last.seconds, report.ElapsedSeconds.Value)
		}
	}
	for {
		l, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			parser.Close(see)
			return runs, nil
		}
		if err != nil {
			return nil, err
		}
		reported, held, lineAt = false, false, l.Offset
		if parser.Parse(tool.Line{Text: l.Text, Cut: l.Cut}, see); reported {
			boundary = l.Offset + int64(len(l.Text)) + 1
		}
	}
}

// startTimes works back from the file's last write: each run ended, at the
// latest, when the next one began.
func startTimes(runs []pastRun, written time.Time) []time.Time {
	starts := make([]time.Time, len(runs))
	for i := len(runs) - 1; i >= 0; i-- {
		written = written.Add(-time.Duration(runs[i].seconds * float64(time.Second)))
		starts[i] = written
	}
	return starts
}

// lastLineStart is the offset behind the last complete line before size.
func lastLineStart(path string, size int64) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("log file: %w", err)
	}
	defer file.Close()
	tail := make([]byte, min(size, 64<<10))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, fmt.Errorf("log file: %w", err)
	}
	return size - int64(len(tail)) + int64(strings.LastIndexByte(string(tail), '\n')+1), nil
}

// beginRun makes the directory of a run that the log has begun, or goes on
// with the one that was live when we last stopped.
func (f *logFile) beginRun(ctx context.Context, followers *sync.WaitGroup, r *tool.Report, at time.Time) {
	meta, dir, err := f.newRun(r, at)
	if err != nil {
		f.log.Error("can't make a run of what the log has begun", "err", err)
		return
	}
	w := f.watcher
	t := newTracker(dir, meta, nil, &w.opts)
	t.fed = true
	w.mu.Lock()
	w.live[meta.ID] = t
	w.mu.Unlock()
	f.current = t
	t.own()
	followers.Go(func() {
		t.follow(ctx, w.notifier)
		w.finished(t)
	})
}

func (f *logFile) newRun(r *tool.Report, at time.Time) (rundir.Meta, rundir.Directory, error) {
	start, estimated := at, false
	if r.ElapsedSeconds.Known {
		start, estimated = at.Add(-time.Duration(r.ElapsedSeconds.Value*float64(time.Second))), true
	}
	if len(f.starts) > 0 {
		start, estimated, f.starts = f.starts[0], true, f.starts[1:]
	}
	if m := f.resuming; m != nil {
		f.resuming = nil
		return *m, rundir.At(f.watcher.opts.DataDir, m.ID), nil
	}
	source := f.source
	source.Offset = f.boundary
	host, _ := os.Hostname() // an empty name is better than no run
	meta := rundir.Meta{
		Tool: f.tool.Name, ToolVersion: r.Version, Workload: r.Workload, Verb: "run",
		Labels: maps.Clone(f.spec.Labels), Generator: host, Log: &source,
		StartedAt: start.UTC().Truncate(time.Millisecond), StartEstimated: estimated,
	}
	if r.Threads.Known {
		meta.Threads = r.Threads.Value
	}
	meta.Title = filepath.Base(f.path)
	if meta.Threads > 0 {
		meta.Title += " " + strconv.Itoa(meta.Threads) + " threads"
	}
	name := meta.Workload
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(f.path), filepath.Ext(f.path))
	}
	for n := 1; ; n++ {
		meta.ID = rundir.NewID(meta.StartedAt, name, meta.Threads, n)
		dir, claim, err := rundir.Create(f.watcher.opts.DataDir, meta)
		if err == nil {
			claim.Release() // the log file tells how the run ends
		}
		if !errors.Is(err, rundir.ErrExists) {
			return meta, dir, err
		}
	}
}

// writtenBy reports whether a process that we may look at has the file open
// for writing.
func writtenBy(src rundir.LogSource) bool {
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
