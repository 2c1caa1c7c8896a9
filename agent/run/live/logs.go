package live

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// logs are the followed log files and their runs. Several goroutines call its methods.
type logs struct {
	mu        sync.Mutex
	byPath    map[string]*logFile
	files     map[*logFile]rundir.LogSource // the file that each follower reads
	runs      []*logEntry                   // oldest first
	passed    map[string]leftFile
	patterns  map[string]*pattern
	lastFault map[string]time.Time // by path and cause
	scanned   bool                 // the globs were evaluated at least once
}

// inode identifies a file of this machine.
type inode struct{ device, inode uint64 }

// logEntry is a run of a log.
type logEntry struct {
	id, path string
	inodes   []inode
	follower *logFile // the follower that reads it, or nil
}

// leftFile is the state of a file at the time of the decision not to follow it.
type leftFile struct {
	inode
	size    int64
	changed time.Time
}

// pattern is a glob and its matches at the given modification times of its folders.
type pattern struct {
	folders []string
	times   []time.Time
	listed  time.Time
	paths   []string
	cancel  []func() // unsubscribe from wake-ups
}

func newLogs() logs {
	return logs{byPath: map[string]*logFile{}, files: map[*logFile]rundir.LogSource{},
		passed: map[string]leftFile{}, patterns: map[string]*pattern{}, lastFault: map[string]time.Time{}}
}

// scanLogs starts to follow new log files that match the globs. The first time it also follows logs
// whose runs an earlier agent followed and whose file was renamed.
func (w *Watcher) scanLogs(ctx context.Context, followers *sync.WaitGroup) {
	first := !w.logs.scanned
	w.logs.scanned = true
	specs := w.opts.Logs()
	maps.DeleteFunc(w.logs.patterns, func(glob string, p *pattern) bool {
		unused := !slices.ContainsFunc(specs, func(s Log) bool { return s.Glob == glob })
		if unused {
			p.unsubscribe()
		}
		return unused
	})
	for _, spec := range specs {
		for _, path := range w.matchLogs(spec.Glob) {
			w.followLog(ctx, followers, path, spec, first)
		}
	}
	if first && len(w.opts.Only) == 0 {
		w.followMoved(ctx, followers)
	}
}

// matchLogs returns the paths that match a glob. It lists folders only after they have changed.
func (w *Watcher) matchLogs(glob string) []string {
	p := w.logs.patterns[glob]
	if p == nil {
		p = &pattern{}
		w.logs.patterns[glob] = p
	}
	folders, err := filepath.Glob(filepath.Dir(glob))
	if err != nil {
		return nil // the configuration is checked when it is read
	}
	if !slices.Equal(folders, p.folders) {
		p.folders, p.times = folders, nil
		p.unsubscribe()
		for _, folder := range folders {
			if w.notifier != nil {
				p.cancel = append(p.cancel, w.notifier.Wake(w.wake, folder))
			}
		}
	}
	times, newest := make([]time.Time, len(folders)), time.Time{}
	for i, folder := range folders {
		if info, err := os.Stat(folder); err == nil {
			times[i] = info.ModTime()
		}
		if times[i].After(newest) {
			newest = times[i]
		}
	}
	if p.times != nil && slices.EqualFunc(p.times, times, time.Time.Equal) && p.listed.Sub(newest) > 2*time.Second {
		return p.paths
	}
	p.times, p.listed = times, time.Now()
	p.paths, _ = filepath.Glob(glob)
	return p.paths
}

func (p *pattern) unsubscribe() {
	for _, cancel := range p.cancel {
		cancel()
	}
	p.cancel = nil
}

// followLog starts to follow a log file unless it is followed already or there is a reason not to.
// The reason is checked again when the file has changed.
func (w *Watcher) followLog(ctx context.Context, followers *sync.WaitGroup, path string, spec Log, existing bool) {
	l := &w.logs
	l.mu.Lock()
	_, followed := l.byPath[path]
	l.mu.Unlock()
	if followed {
		return
	}
	state, err := stateOf(path)
	if err == nil && state == l.passed[path] {
		return
	}
	if err == nil && l.reads(state.inode, nil) {
		return // under another name
	}
	l.passed[path] = state
	f := w.newLogFile(path, spec)
	f.existing = existing
	if f.tool, err = w.logTool(path, spec); err == nil && f.tool == nil {
		return // its content does not identify the tool yet
	}
	if err == nil {
		err = w.locate(ctx, f)
	}
	if err != nil || f.reader == nil {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.refuse(f, err)
		}
		return
	}
	w.runLog(ctx, followers, f)
}

func (w *Watcher) newLogFile(path string, spec Log) *logFile {
	return &logFile{watcher: w, copy: &logCopy{}, path: path, spec: spec, log: w.opts.Logger.With("log", path), usageOf: follow.UsageOf}
}

func (w *Watcher) runLog(ctx context.Context, followers *sync.WaitGroup, f *logFile) {
	f.spawn = func(do func()) { followers.Go(do) }
	f.start = func(t *tracker) {
		followers.Go(func() {
			t.follow(ctx, w.notifier)
			w.finished(t)
		})
	}
	l := &w.logs
	l.mu.Lock()
	l.byPath[f.path] = f
	l.files[f] = f.source
	l.mu.Unlock()
	delete(l.passed, f.path)
	followers.Go(func() {
		err := f.follow(ctx)
		if f.splitter != nil {
			f.splitter.Close(time.Now()) // after ctx is done, this does not end a run
		}
		f.show(ctx)
		f.close()
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			l.complain(f, "stopped following the log file, will try again", err)
		}
		delete(l.files, f)
		if l.byPath[f.path] == f {
			delete(l.byPath, f.path)
		}
	})
}

// logTool returns the configured tool or the one that the content indicates; nil if unknown.
func (w *Watcher) logTool(path string, spec Log) (*tool.Tool, error) {
	shown, err := ingest.Recognise(path, w.opts.Tools())
	if err == nil && spec.Tool != "" {
		return w.opts.Tools().ByName(spec.Tool), nil
	}
	return shown, err
}

func stateOf(path string) (leftFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return leftFile{}, err
	}
	i, changed := rundir.InodeOf(info)
	return leftFile{inode{i.Device, i.Inode}, info.Size(), changed}, nil
}

// refuse logs why a file is not followed: once if the reason is permanent, else once a minute.
func (l *logs) refuse(f *logFile, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, follow.ErrNotRegular) || errors.Is(err, follow.ErrUTF16) {
		if l.lastFault[err.Error()].IsZero() {
			f.log.Warn("log not followed", "err", err)
		}
		l.lastFault[err.Error()] = time.Now()
		return
	}
	l.complain(f, "can't follow the log file, will try again", err)
	delete(l.passed, f.path)
}

// complain logs an error of a log once a minute. mu is held.
func (l *logs) complain(f *logFile, what string, err error) {
	key := f.path + "\n" + err.Error()
	if time.Since(l.lastFault[key]) < time.Minute {
		return
	}
	l.lastFault[key] = time.Now()
	f.log.Error(what, "err", err)
}

// reads reports whether a follower other than the given one reads the file.
func (l *logs) reads(i inode, except *logFile) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f, read := range l.files {
		if f != except && (inode{read.Device, read.Inode}) == i {
			return true
		}
	}
	return false
}

// detach frees the path of a log, because its name now belongs to another file.
func (w *Watcher) detach(f *logFile) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	if w.logs.byPath[f.path] == f {
		delete(w.logs.byPath, f.path)
	}
}

// moved records that a follower now reads another file.
func (w *Watcher) moved(f *logFile, now *rundir.LogSource) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	w.logs.files[f] = *now
}

// rotatesTo reports whether path may be an earlier file of a followed log, which that log's
// follower reads as far as needed. A copy may still be growing. A name such as a-1.log may belong
// to a.log or to another log.
func (l *logs) rotatesTo(path string, file *os.File) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	for f, s := range l.files {
		if follow.RotatedName(f.path, path) && (strings.HasPrefix(path, f.path) || info.Size() < s.HeadSize || s.SameHead(file)) {
			return true
		}
	}
	return false
}

// addLogRun records a run that was found in a log, and its follower.
func (w *Watcher) addLogRun(m *rundir.Meta, f *logFile) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	e := &logEntry{id: m.ID, follower: f, path: m.Log.Path, inodes: []inode{{m.Log.Device, m.Log.Inode}}}
	for i := range m.Log.Earlier {
		e.inodes = append(e.inodes, inode{m.Log.Earlier[i].Device, m.Log.Earlier[i].Inode})
	}
	w.logs.runs = append(w.logs.runs, e)
}

// logRun is a run from a log, read from its directory.
type logRun struct {
	dir  rundir.Directory
	meta rundir.Meta
	live bool  // a follower reads it
	size int64 // of the copy of its output
	// older are the previous runs of the log, newest first.
	older []*logRun
}

func (w *Watcher) loadLogRun(id string) (*logRun, error) {
	r := &logRun{dir: rundir.At(w.opts.DataDir, id)}
	var err error
	if r.meta, err = r.dir.Load(); err != nil {
		return nil, err
	}
	if r.meta.Log == nil || !r.dir.MayFollowLog() {
		return nil, fs.ErrNotExist
	}
	info, err := os.Lstat(r.dir.Path(rundir.StdoutFile))
	if err != nil {
		return nil, err
	}
	r.size = info.Size()
	return r, nil
}

// spec is the log's configuration at the time of the run.
func (r *logRun) spec() Log {
	m := &r.meta
	return Log{Glob: m.Log.Path, Tool: m.Tool, Labels: m.Labels, Selection: m.Selection, Generator: m.Generator}
}

// passages returns what was read for the run, the newest file last.
func (r *logRun) passages() (all []passage) {
	own, err := rundir.Open(r.dir.Path(rundir.StdoutFile))
	if err != nil {
		return nil
	}
	defer own.Close()
	last := *r.meta.Log
	last.End = last.Position(r.size)
	for _, s := range append(slices.Clone(last.Earlier), last) {
		if s.End <= s.Offset {
			continue
		}
		p := passage{source: s, from: s.Offset, end: s.End, content: offsetReader{own, s.Copied - s.Offset}}
		if s.Offset == 0 {
			p.head = readUpTo(p.content, 0, min(s.End, rundir.HeadSize))
		} else if s.HeadSize < rundir.HeadSize { // a short file needs all bytes, since it may be cut
			p.head = r.shortHead(&p, all)
		}
		all = append(all, p.keep())
	}
	return all
}

// shortHead returns the first bytes of a short file that only partly belongs to the run: the others
// were read before, for this run or for older ones. It is nil without them.
func (r *logRun) shortHead(p *passage, before []passage) []byte {
	matches := func(q *passage) []byte {
		head := bytes.Clone(q.head[:min(int64(len(q.head)), p.from)])
		if int64(len(head)) == p.from {
			head = append(head, readUpTo(p.content, p.from, min(p.end, rundir.HeadSize)-p.from)...)
		}
		proven := p.source.HeadSize >= p.from // by the digest, also if the file is a copy
		if !proven && !q.source.SameFile(&p.source) || !p.source.SameHead(bytes.NewReader(head)) {
			return nil
		}
		return head
	}
	for _, q := range slices.Backward(before) {
		if head := matches(&q); head != nil {
			return head
		}
	}
	for _, o := range r.older {
		for _, q := range slices.Backward(o.passages()) {
			if head := matches(&q); head != nil {
				return head
			}
		}
	}
	return nil
}

// resumePosition returns where to resume in a file that contains the run's last passage.
func (r *logRun) resumePosition(file *os.File) (position int64, ok bool) {
	info, err := file.Stat()
	if err != nil {
		return 0, false
	}
	read := r.passages()
	if len(read) == 0 {
		return 0, false
	}
	is, at := read[len(read)-1].relate(file, info.Size(), func(int64) bool { return false })
	return at, is == continues
}

// maxLocate bounds how many runs of a log are compared with a file.
const maxLocate = 20

// locate finds out which run of a log file continues and where to read. The file may have another
// name by now. If it sets neither an error nor a reader, there is nothing to follow.
func (w *Watcher) locate(ctx context.Context, f *logFile) (err error) {
	file, missing := follow.OpenFile(f.path)
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		return missing
	}
	defer func() {
		if file != nil && f.reader == nil {
			file.Close()
		}
	}()
	var known *logRun
	runs := w.runsOf(f.path, file)
	if file != nil {
		if w.logs.rotatesTo(f.path, file) {
			return nil
		}
		for _, r := range runs {
			if at, ok := r.resumePosition(file); ok {
				known, f.position = r, at
				break
			}
		}
		if known != nil && known.meta.Log.Path != f.path && follow.RotatedName(known.meta.Log.Path, f.path) {
			return nil // it belongs to the log with that name
		}
	}
	runs = slices.DeleteFunc(runs, func(r *logRun) bool { return r != known && (r.live || r.meta.Log.Path != f.path) })
	if known == nil && len(runs) > 0 {
		if rotated, at := w.locateRotated(runs[0]); rotated != nil {
			if file != nil {
				file.Close()
			}
			file, known, f.position = rotated, runs[0], at
		}
	}
	if file != nil {
		if f.source, err = rundir.Identify(file); err != nil {
			return err
		}
		f.source.Path = f.path
	}
	if err := w.endKnown(ctx, f, runs, known); err != nil {
		return err
	}
	if file == nil {
		return missing
	}
	switch {
	case known != nil:
		f.held = *f.keepRead(known)
	case len(runs) > 0:
		f.existing, f.lost = false, f.keepRead(runs[0])
	default:
		if f.position, err = follow.FirstData(ctx, file, 0); err != nil {
			return err
		}
	}
	f.reader, err = f.newReader(file, 0)
	return err
}

// keepRead keeps what was read for a run when an earlier agent stopped, and returns its newest
// passage.
func (f *logFile) keepRead(r *logRun) *passage {
	read := r.passages()
	if len(read) == 0 {
		return &passage{}
	}
	f.earlier = read[:len(read)-1]
	if info, err := os.Stat(r.dir.Path(rundir.StdoutFile)); err == nil {
		f.lastWrite = info.ModTime()
	}
	return &read[len(read)-1]
}

// endKnown sets the known run as the one to resume or, if it has ended, as the previous one. It
// ends the other open runs with what was read of them.
func (w *Watcher) endKnown(ctx context.Context, f *logFile, runs []*logRun, known *logRun) error {
	for i, r := range runs {
		switch {
		case r == known && r.meta.Ended():
			f.previous = r
		case r == known && !r.live, i == 0 && known == nil && !r.live && !r.meta.Ended() && f.source.Inode != 0:
			f.resume = r
			w.claim(r, f)
			if i+1 < len(runs) {
				f.previous = runs[i+1]
			}
		case !r.live && !r.meta.Ended():
			if err := w.endLost(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// claim records that a follower reads a run.
func (w *Watcher) claim(r *logRun, f *logFile) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	for _, e := range w.logs.runs {
		if e.id == r.meta.ID {
			e.follower = f
		}
	}
}

// runsOf returns the newest runs of a log, newest first: runs with its path, with the same file,
// and with a path that it may have had before a rotation.
func (w *Watcher) runsOf(path string, file *os.File) []*logRun {
	var now inode
	if file != nil {
		if s, err := rundir.Identify(file); err == nil {
			now = inode{s.Device, s.Inode}
		}
	}
	w.logs.mu.Lock()
	var found []*logEntry
	for _, e := range slices.Backward(w.logs.runs) {
		related := e.path == path || file != nil && slices.Contains(e.inodes, now) || follow.RotatedName(e.path, path)
		if related && len(found) < maxLocate {
			found = append(found, e)
		}
	}
	w.logs.mu.Unlock()
	var runs []*logRun
	for _, e := range found {
		if r, err := w.loadLogRun(e.id); err == nil { // otherwise it was removed
			r.live = e.follower != nil && !r.meta.Ended()
			runs = append(runs, r)
		}
	}
	for i, r := range runs {
		r.older = runs[i+1:]
	}
	return runs
}

// locateRotated finds the file that a run was read from under another name. Among files with the
// same content it prefers the same inode.
func (w *Watcher) locateRotated(r *logRun) (file *os.File, position int64) {
	names, _ := follow.Rotated(r.meta.Log.Path)
	for _, name := range names {
		other, err := follow.OpenFile(name)
		if err != nil {
			continue
		}
		now, err := rundir.Identify(other)
		at, ok := int64(0), false
		if err == nil && !w.logs.reads(inode{now.Device, now.Inode}, nil) {
			at, ok = r.resumePosition(other)
		}
		same := now.SameFile(r.meta.Log)
		if !ok || file != nil && !same {
			other.Close()
			continue
		}
		if file != nil {
			file.Close()
		}
		if file, position = other, at; same {
			break
		}
	}
	return file, position
}

// endLost ends a run whose log is gone.
func (w *Watcher) endLost(ctx context.Context, r *logRun) error {
	feed := ingest.NewFeed(w.tool(&r.meta), &r.meta)
	if err := feed.ReadAll(ctx, r.dir); err != nil && ctx.Err() != nil {
		return err
	}
	feed.Close(r.meta.Axis(clock.System).Now())
	_, err := r.dir.Update(func(m *rundir.Meta) {
		if m.Ended() {
			return
		}
		end := lastWrite(r.dir, m.StartedAt, m.Axis(clock.System).Ahead())
		m.EndedAt = &end
		m.Log.End = m.Log.Position(r.size)
		m.Conclude(feed.Output())
	})
	w.rescan.Store(true)
	return err
}

// followMoved follows the logs of runs that had not ended when an earlier agent stopped and that no
// other follower reads: their files were renamed or are gone.
func (w *Watcher) followMoved(ctx context.Context, followers *sync.WaitGroup) {
	w.logs.mu.Lock()
	open := map[string]bool{}
	for _, e := range w.logs.runs {
		if w.logs.byPath[e.path] == nil {
			open[e.path] = true
		}
	}
	w.logs.mu.Unlock()
	for path := range open {
		var unfinished *logRun
		for _, r := range w.runsOf(path, nil) {
			if r.meta.Log.Path == path && !r.live && !r.meta.Ended() {
				unfinished = r
				break
			}
		}
		if unfinished == nil {
			continue
		}
		f := w.newLogFile(path, unfinished.spec())
		if f.tool = w.tool(&unfinished.meta); f.tool == nil {
			continue
		}
		if err := w.locate(ctx, f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.logs.refuse(f, err)
		}
		if f.reader != nil {
			w.runLog(ctx, followers, f)
		}
	}
}

// syncLogs writes the copies of the logs to disk, many at once: a follower never waits for it.
func (w *Watcher) syncLogs(ctx context.Context) {
	tick := time.NewTimer(clock.Next(time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Reset(clock.Next(time.Second))
		}
		w.logs.mu.Lock()
		copies := make([]*logCopy, 0, len(w.logs.files))
		for f := range w.logs.files {
			copies = append(copies, f.copy)
		}
		w.logs.mu.Unlock()
		for _, c := range copies {
			c.sync()
		}
	}
}
