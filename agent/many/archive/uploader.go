package archive

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// UploaderOptions of an Uploader.
type UploaderOptions struct {
	DataDir string
	// Open returns the archive in the current configuration, nil if there is none.
	Open func() (*Archive, error)
	// Busy reports whether a run is in progress, which uploads would disturb.
	Busy func() bool
	Log  *slog.Logger
}

// Stats is what an Uploader has done since its creation.
type Stats struct {
	// Enabled: an archive is configured. Otherwise all other fields are 0.
	Enabled bool
	// Pending is the number of closed runs that are not in the archive.
	Pending int
	// Uploaded counts runs, Failures failed attempts.
	Uploaded, Failures uint64
	// Failing: the last attempt failed.
	Failing bool
	// LastSuccess is when a run was last uploaded; zero: never.
	LastSuccess time.Time
}

// Uploader uploads the closed runs of a data directory, one after the other and only while no run
// is in progress. It retries failures at growing intervals.
type Uploader struct {
	UploaderOptions
	poll, longest time.Duration
	kick          chan struct{}

	mu    sync.Mutex
	stats Stats

	// The fields below belong to Run.
	key      string               // key of the archive to which done refers
	done     map[string]time.Time // finished runs, with the time of their last check
	reported map[string]string    // the last error of each run; "": of the archive
}

const (
	// pollInterval is the interval for looking for closed runs and, while a run is in progress, for
	// its end.
	pollInterval = 10 * time.Second
	// longestPause is the longest time between failing attempts.
	longestPause = 10 * time.Minute
	// lookAgain is the interval for checking archived runs for later markers.
	lookAgain = time.Hour
)

// NewUploader returns an uploader that does nothing before Run.
func NewUploader(opts UploaderOptions) *Uploader {
	return &Uploader{UploaderOptions: opts, poll: pollInterval, longest: longestPause, kick: make(chan struct{}, 1)}
}

// Kick ends a pause between attempts, because the configuration has changed.
func (u *Uploader) Kick() {
	select {
	case u.kick <- struct{}{}:
	default:
	}
}

// Stats returns the current state without waiting.
func (u *Uploader) Stats() Stats {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stats
}

func (u *Uploader) update(change func(*Stats)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(&u.stats)
}

// Run uploads until ctx is done.
func (u *Uploader) Run(ctx context.Context) {
	u.reported = map[string]string{}
	pause := u.poll
	for {
		if u.pass(ctx) {
			pause = u.poll
		} else {
			pause = min(2*pause, u.longest)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-u.kick:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// pass uploads the pending runs and reports whether nothing failed.
func (u *Uploader) pass(ctx context.Context) bool {
	a, err := u.Open()
	if a == nil && err == nil {
		u.update(func(s *Stats) { s.Enabled, s.Pending, s.Failing = false, 0, false })
		return true
	}
	u.update(func(s *Stats) { s.Enabled = true })
	if err != nil {
		return u.failed(ctx, "", err)
	}
	a.Pause = u.idle
	if a.key != u.key {
		u.key, u.done = a.key, map[string]time.Time{}
	}
	pending, err := u.pending(a)
	if err != nil {
		return u.failed(ctx, "", err)
	}
	u.update(func(s *Stats) { s.Pending = len(pending) })
	good := true
	for _, dir := range pending {
		if u.idle(ctx) != nil {
			return true
		}
		if err := u.upload(ctx, a, dir); err != nil {
			if dir.Removed() {
				u.Log.Info("run was removed before it was archived", "run", dir.ID())
				u.update(func(s *Stats) { s.Pending-- })
				continue
			}
			good = false
			name := dir.ID()
			if errors.Is(err, ErrUnavailable) {
				name = ""
			}
			u.failed(ctx, name, err)
			if name == "" || ctx.Err() != nil {
				return false
			}
		}
	}
	if good {
		u.update(func(s *Stats) { s.Failing = false })
		if u.reported[""] != "" {
			u.Log.Info("archive is available again", "archive", a.Name())
		}
		clear(u.reported)
	}
	return good
}

// failed counts an error and logs it unless it equals the last one.
func (u *Uploader) failed(ctx context.Context, name string, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	u.update(func(s *Stats) { s.Failures++; s.Failing = true })
	if text := err.Error(); u.reported[name] != text {
		u.reported[name] = text
		u.Log.Error("upload to archive failed", "err", err)
	}
	return false
}

// pending returns the closed runs that are not in the archive, oldest first.
func (u *Uploader) pending(a *Archive) ([]rundir.Directory, error) {
	ids, err := rundir.List(u.DataDir)
	if err != nil {
		return nil, err
	}
	var dirs []rundir.Directory
	now := time.Now()
	present := make(map[string]time.Time, len(u.done))
	for _, id := range ids {
		if at, ok := u.done[id]; ok && now.Sub(at) < lookAgain {
			present[id] = at
			continue
		}
		dir := rundir.At(u.DataDir, id)
		meta, err := dir.Load()
		switch {
		case err != nil, !meta.Closed():
			continue // the watcher reports damaged runs
		case meta.Replay != nil:
			present[id] = now
			continue
		}
		if _, ok := a.noted(dir); ok {
			present[id] = now
			continue
		}
		dirs = append(dirs, dir)
	}
	u.done = present
	return dirs, nil
}

func (u *Uploader) upload(ctx context.Context, a *Archive, dir rundir.Directory) error {
	pushed, err := a.Push(ctx, dir, nil)
	if err != nil {
		return err
	}
	u.done[dir.ID()] = time.Now()
	delete(u.reported, dir.ID())
	u.update(func(s *Stats) {
		s.Pending--
		s.LastSuccess = time.Now()
		if !pushed.Existed {
			s.Uploaded++
		}
	})
	if !pushed.Existed {
		u.Log.Info("run archived", "run", dir.ID(), "archive", a.Name(), "objects", pushed.Objects, "bytes", pushed.Bytes)
	}
	return nil
}

// idle waits until no run is in progress, or returns the error of ctx.
func (u *Uploader) idle(ctx context.Context) error {
	for u.Busy() {
		if err := clock.Sleep(ctx, u.poll); err != nil {
			return err
		}
	}
	return ctx.Err()
}
