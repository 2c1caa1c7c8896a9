// Package toollog follows the logs that tools write by themselves, through all rotations, and finds the runs in
// them. A run's output is copied into its directory; whoever tracks the run does the rest.
package toollog

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Log is a set of files that a tool writes by itself.
type Log struct {
	Glob   string
	Tool   string // empty: recognised by the content
	Labels map[string]string
	// Selection is the servers of the runs in the files; nil: unknown.
	Selection *rundir.Selection
	// Generator is the machine that generates the load; empty: unknown.
	Generator string
}

// Options of a Set. All are required, except for Notifier.
type Options struct {
	DataDir string
	// Logs returns the current files to follow, and Tools the tools that can be recognised.
	Logs    func() []Log
	Tools   func() tool.Set
	Tracker Tracker
	Logger  *slog.Logger
	// Notifier wakes followers; nil: they poll. Wake gets a value when Scan may find a new file.
	Notifier *follow.Notifier
	Wake     chan struct{}
	// Recent and Settled replace RecentLog and SettledLog unless they are 0.
	Recent, Settled time.Duration
}

// Tracker tracks the runs that a Set finds. Its methods are called from several goroutines.
type Tracker interface {
	// Track begins to track a run, perhaps again after a restart. The feed gets all of its reports, beginning with
	// its first one. run.json gets the end of the run.
	Track(rundir.Directory, rundir.Meta, *ingest.Feed) Run
	// Ended: a run that is not tracked was ended.
	Ended()
}

// Run is a tracked run, as far as following its log concerns it.
type Run interface {
	// ReportInterval is the time between two reports; 0 if unknown.
	ReportInterval() time.Duration
	// Mark adds a marker to the run, now.
	Mark(text string)
	// Fault reports a failure to record something.
	Fault(what string, err error)
}

// Set is all logs that are followed. One goroutine calls its methods.
type Set struct {
	opts    Options
	ctx     context.Context //nolint:containedctx // of all followers
	spawn   func(func())    // runs a function in a goroutine that the caller of New waits for
	usageOf func(*os.File) follow.Usage
	scanned bool
	globs   map[string]*follow.Glob
	refused map[string]fileState // files not to follow unless they change

	mu        sync.Mutex
	followers map[string]*follower // by path
	recorded  []runEntry           // the runs of logs, oldest first
	reported  map[string]time.Time // by path and error
}

// fileState is the state of a file at the time of the decision not to follow it.
type fileState struct {
	inode
	size    int64
	changed time.Time
}

// New returns a Set that follows nothing until Scan is called. Its followers end when ctx is done; spawn runs a
// function in a goroutine that the caller waits for.
func New(ctx context.Context, opts Options, spawn func(func())) *Set {
	opts.Recent, opts.Settled = cmp.Or(opts.Recent, RecentLog), cmp.Or(opts.Settled, SettledLog)
	return &Set{
		opts: opts, ctx: ctx, spawn: spawn, usageOf: follow.UsageOf,
		globs: map[string]*follow.Glob{}, refused: map[string]fileState{},
		followers: map[string]*follower{}, reported: map[string]time.Time{},
	}
}

// Scan starts to follow new files that match the globs. The first time it also follows logs whose runs an earlier
// agent followed and whose file was renamed; those runs must have been added.
func (s *Set) Scan() {
	logs := s.opts.Logs()
	for pattern, glob := range s.globs {
		if !slices.ContainsFunc(logs, func(l Log) bool { return l.Glob == pattern }) {
			glob.Close()
			delete(s.globs, pattern)
		}
	}
	if !s.scanned { // a log that got another name comes before the one that has its name now
		s.followAll(logs, s.isRecorded)
	}
	s.followAll(logs, func(string) bool { return true })
	if !s.scanned {
		s.scanned = true
		s.followMoved()
	}
}

// followAll starts to follow the files that match the globs and a condition.
func (s *Set) followAll(logs []Log, matches func(path string) bool) {
	for _, l := range logs {
		if s.globs[l.Glob] == nil {
			s.globs[l.Glob] = follow.NewGlob(l.Glob, s.opts.Notifier, s.opts.Wake)
		}
		for _, path := range s.globs[l.Glob].Paths() {
			if !matches(path) {
				continue
			}
			if err := s.follow(path, l); err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.report(path, "can't follow the log, will try again", err)
			}
		}
	}
}

// follow starts to follow a file, unless it is followed already or there is a reason not to. The reason is checked
// again when the file has changed.
func (s *Set) follow(path string, l Log) error {
	if s.follower(path) != nil {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	_, changed := rundir.InodeOf(info)
	state := fileState{inodeOf(info), info.Size(), changed}
	if state == s.refused[path] || s.isRead(state.inode, nil) || s.isRotated(path) {
		return nil // perhaps the log's follower reads it
	}
	found, err := ingest.Recognise(path, s.opts.Tools())
	if err == nil && l.Tool != "" {
		found = slices.DeleteFunc([]*tool.Tool{s.opts.Tools().ByName(l.Tool)}, func(t *tool.Tool) bool { return t == nil })
	}
	if len(found) == 0 && (err == nil || isFinal(err)) {
		s.refused[path] = state // its content does not identify the tool yet
	}
	if len(found) == 0 || err != nil {
		return err
	}
	f := s.newFollower(path, l, found[0])
	f.skipOld = !s.scanned && info.Size() > 0
	s.add(f, state.inode)
	s.start(f)
	return nil
}

func (s *Set) newFollower(path string, l Log, t *tool.Tool) *follower {
	return &follower{
		set: s, path: path, log: s.opts.Logger.With("log", path),
		runs: &runs{set: s, path: path, tool: t, config: l, copy: &logCopy{}},
	}
}

// add adds a follower after it has learned what was read of the log. i is the inode of the file that has its name.
func (s *Set) add(f *follower, i inode) {
	s.restore(f, i)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.reads = i
	s.followers[f.path] = f
}

// start starts a follower that was added.
func (s *Set) start(f *follower) {
	s.spawn(func() {
		err := f.run(s.ctx)
		f.runs.splitter.Close(time.Now()) // after ctx is done, this does not end a run
		f.runs.show(s.ctx)
		f.close()
		s.mu.Lock()
		delete(s.followers, f.path)
		s.mu.Unlock()
		if err != nil && s.ctx.Err() == nil {
			s.report(f.path, "stopped following the log, will try again", err)
		}
	})
}

// follower returns the follower of a path; nil without one.
func (s *Set) follower(path string) *follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followers[path]
}

// setRead records which file a follower reads.
func (s *Set) setRead(f *follower, i inode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.reads = i
}

// isRead reports whether a follower other than the given one reads a file.
func (s *Set) isRead(i inode, except *follower) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.followers {
		if f != except && f.reads == i {
			return true
		}
	}
	return false
}

// isRotated reports whether a file is named like an earlier one of a log that is or was followed.
func (s *Set) isRotated(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.followers {
		if follow.RotatedName(other, path) {
			return true
		}
	}
	return slices.ContainsFunc(s.recorded, func(e runEntry) bool { return follow.RotatedName(e.path, path) })
}

// changes returns a channel that receives when something in the log's folder has changed.
func (s *Set) changes(path string) (<-chan struct{}, func()) {
	if s.opts.Notifier == nil {
		return nil, func() {}
	}
	return s.opts.Notifier.Subscribe(filepath.Dir(path))
}

// isFinal reports whether only another file at the path can be followed.
func isFinal(err error) bool {
	return errors.Is(err, follow.ErrNotRegular) || errors.Is(err, follow.ErrUTF16)
}

// report logs a lasting failure of a log once a minute, and one that needs no other attempt once.
func (s *Set) report(path, what string, err error) {
	key := path + "\n" + err.Error()
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.reported[key]
	switch {
	case time.Since(last) < time.Minute || isFinal(err) && !last.IsZero():
		return
	case isFinal(err):
		s.opts.Logger.Warn("log not followed", "log", path, "err", err)
	default:
		s.opts.Logger.Error(what, "log", path, "err", err)
	}
	s.reported[key] = time.Now()
}

// retry repeats do while the disk is full, until ctx is done.
func (s *Set) retry(ctx context.Context, path string, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		s.report(path, "waiting to record a run of the log", err)
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}
