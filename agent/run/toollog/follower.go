package toollog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// RecentLog is how long after its last write the last run in a log still counts as live, and how long a file
	// that may still be written is read.
	RecentLog = time.Minute
	// SettledLog is how long a file that no process has open must be unchanged before an incomplete last line counts.
	SettledLog = 2 * time.Second
	// checkEvery is how often the name of a file that was read to its end is checked.
	checkEvery = 250 * time.Millisecond
)

// follower follows one log through all files that have its name, and passes their bytes to runs. One goroutine uses
// it. A file that was read is recognised by its content, so a name or an inode may move on at any time.
type follower struct {
	set     *Set
	path    string
	log     *slog.Logger
	runs    *runs
	state   state
	open    *source   // the file that is read; nil while searching
	earlier []passage // what was read of the files before the open one
	skipOld bool      // the file existed before the agent: only a run that is being written counts

	lastWrite time.Time // to the file that was read last
	lastRead  time.Time // when bytes came
	checked   time.Time // when the files were last checked
	usage     follow.Usage
	usageAt   time.Time // when usage was last determined
	reads     inode     // of the open file, or the last one; the Set's mu guards it
}

// run follows the log until ctx is done or no more can come.
func (f *follower) run(ctx context.Context) error {
	changed, cancel := f.set.changes(f.path)
	defer cancel()
	err := f.runs.open(ctx)
	for err == nil && f.state != ended {
		var more bool
		if more, err = f.step(ctx); err != nil || more {
			continue
		}
		patience := checkEvery
		if !f.runs.flushed {
			patience = ingest.FlushAfter
		}
		timer := time.NewTimer(patience)
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
	return err
}

// step reads a line or, if there is none, checks the files. It returns whether the next step may have more to do at
// once.
func (f *follower) step(ctx context.Context) (more bool, err error) {
	if f.open != nil {
		before := f.open.reader.End()
		l, err := f.open.reader.Poll(ctx)
		if f.open.reader.End() > before {
			f.lastRead = time.Now()
		}
		if err == nil {
			f.runs.line(ctx, l)
			return true, nil
		}
		if !errors.Is(err, follow.ErrQuiet) && !errors.Is(err, follow.ErrRewritten) {
			return false, err
		}
	}
	f.runs.flush()
	f.runs.sync()
	if f.open != nil && f.runs.hidden == nil && time.Since(f.checked) < checkEvery {
		return false, nil
	}
	f.checked = time.Now()
	return f.check(ctx)
}

// check finds out what happened to the files and does what follows from it.
func (f *follower) check(ctx context.Context) (more bool, err error) {
	on, next, err := f.observe(ctx)
	if err != nil {
		if !errors.Is(err, errChanged) {
			f.set.report(f.path, "can't check the log's files, will try again", err)
		}
		return false, ctx.Err()
	}
	t, ok := after(f.state, on)
	if !ok {
		return false, fmt.Errorf("unexpected event %q in state %q", on, f.state)
	}
	missing := t.gap
	if next != nil {
		missing = next.gap
	}
	if t.do != read && on != unchanged {
		f.log.Debug("the log's files changed", "state", t.from, "event", on, "next", t.to, "gap", missing)
	}
	switch t.do {
	case wait:
		if on == unchanged && f.runs.flushed {
			f.runs.show(ctx)
		}
	case leave:
		f.remember()
		f.open.reader.Close()
		f.open = nil
	case enter:
		if err := f.enter(ctx, next); err != nil {
			next.file.Close()
			return false, ignoreRewritten(err)
		}
	case endLine:
		err = f.endLine(ctx)
	case endRun:
		f.runs.mark(missing)
		f.runs.splitter.Close(f.lastRead) // the silence after it only shows that the run has ended
	}
	f.state = t.to
	return t.do != wait && t.do != read, err
}

// observe finds out what happened to the files since the last check. With an event whose action is to enter a file,
// it returns the file, which the caller closes.
func (f *follower) observe(ctx context.Context) (event, *entry, error) {
	var open os.FileInfo
	if s := f.open; s != nil {
		var err error
		if open, err = s.reader.File().Stat(); err != nil {
			return unchanged, nil, err
		}
		err = s.reader.Check()
		switch {
		case errors.Is(err, follow.ErrRewritten):
			return emptied, nil, nil
		case err != nil:
			return unchanged, nil, err
		case open.Size() > s.reader.End() || !s.reader.Idle():
			return appended, nil, nil
		}
		f.lastWrite = open.ModTime()
	}
	named, missing := os.Stat(f.path)
	hasName := missing == nil && open != nil && os.SameFile(named, open)
	if f.state == following && !hasName {
		return nameLost, nil, nil
	}
	if f.state == renamed && hasName {
		f.open.isFinished = false
		return nameBack, nil, nil
	}
	if f.state != following {
		next, err := f.searchUnlessWritten(ctx)
		switch {
		case err != nil:
			return unchanged, nil, err
		case next != nil && next.named:
			return nextFound, next, nil
		case next != nil:
			return rotatedFound, next, nil
		}
	}
	return f.observeSilence(hasName || f.state == searching && missing == nil), nil, nil
}

// searchUnlessWritten finds the next file once the open one is no longer written.
func (f *follower) searchUnlessWritten(ctx context.Context) (*entry, error) {
	if f.open == nil || f.open.isFinished {
		return f.search(ctx)
	}
	usage := f.usageNow()
	if usage == follow.Written {
		return nil, nil
	}
	next, err := f.search(ctx)
	isIdle := time.Since(f.lastRead) >= f.idleAfter()
	// If the writers of a file are not known, a later rotated file or a copy that grows shows that the tool has
	// moved on.
	movedOn := next != nil && (!next.named || next.relation == continues && next.size > next.at)
	if next == nil || usage == follow.Unused || isIdle || movedOn {
		return next, err
	}
	next.file.Close()
	return nil, err
}

// observeSilence decides whether more can come, if nothing has come for a while. isNamed means that the open file
// has the log's name or, without an open file, that another file has it.
func (f *follower) observeSilence(isNamed bool) event {
	silence := time.Since(f.lastRead)
	isIncomplete := f.open != nil && f.runs.isIncomplete()
	if silence < f.set.opts.Settled || isNamed && !isIncomplete && f.runs.current == nil {
		return unchanged
	}
	isIdle := silence >= f.idleAfter()
	if !isIncomplete && !isIdle {
		return unchanged
	}
	if f.open != nil {
		if usage := f.usageNow(); usage == follow.Written || usage == follow.Unknown && !isIdle {
			return unchanged
		}
	}
	switch {
	case isIncomplete:
		return incomplete
	case isNamed:
		return silent
	}
	return abandoned
}

// usageNow reports whether the open file is open for writing, as of at most a second ago.
func (f *follower) usageNow() follow.Usage {
	if time.Since(f.usageAt) >= time.Second {
		f.usage, f.usageAt = f.set.usageOf(f.open.reader.File()), time.Now()
	}
	return f.usage
}

// idleAfter is how long nothing must have come before a run is over.
func (f *follower) idleAfter() time.Duration {
	if f.runs.current == nil {
		return f.set.opts.Recent
	}
	return max(f.set.opts.Recent, 10*f.runs.current.ReportInterval())
}

// passage is what was read last.
func (f *follower) passage() passage {
	switch s := f.open; {
	case s != nil && s.isUsed():
		return passage{head: s.head, tail: s.reader.Last(), end: s.reader.End()}
	case len(f.earlier) > 0:
		return f.earlier[len(f.earlier)-1]
	}
	return passage{}
}

// remember keeps what was read of the open file, so that nothing of it is read again.
func (f *follower) remember() {
	if s := f.open; s != nil && s.isUsed() {
		p := passage{head: bytes.Clone(s.head), tail: bytes.Clone(s.reader.Last()), end: s.reader.End()}
		f.earlier = lastOf(append(f.earlier, p), maxEarlier)
	}
}

// enter continues the stream in another file. If the error is follow.ErrRewritten, that file changed meanwhile, and
// the next check decides again.
func (f *follower) enter(ctx context.Context, e *entry) (err error) {
	if f.skipOld && e.relation == different {
		if e.at, err = f.startInOld(ctx, e); err != nil {
			return err
		}
		e.first = nil
	}
	f.skipOld = false
	s := &source{head: readUpTo(e.file, 0, min(e.at, rundir.HeadSize)), relation: e.relation, isFinished: !e.named}
	s.id = rundir.LogSource{Path: f.path, Device: e.device, Inode: e.number}
	s.identify()
	s.reader, err = follow.NewReader(e.file, follow.Options{Offset: e.at, Copy: func(offset int64, p []byte) error {
		return f.record(ctx, s, offset, p)
	}})
	if err != nil {
		return err
	}
	if e.relation == continues {
		begun, read := f.runs.begun(), f.passage()
		err = s.reader.Resume(e.at-int64(len(begun)), begun)
		if err == nil && !read.isBefore(s.reader) {
			err = follow.ErrRewritten
		}
	} else if err = s.reader.Resume(e.at, e.first); err == nil { // from here on a rewrite is noticed
		err = f.runs.endLine(ctx)
	}
	if err != nil {
		return err
	}
	f.remember()
	if e.gap != "" && f.runs.current != nil {
		f.log.Warn("lines of the log may be missing", "cause", e.gap)
	}
	if err = f.runs.moveTo(ctx, s, e.at, e.gap); err == nil && len(e.first) > 0 {
		err = f.record(ctx, s, e.at, e.first)
	}
	if err != nil {
		return err
	}
	if f.open != nil {
		f.open.reader.Close()
	}
	f.open, f.lastRead, f.usageAt, f.checked = s, e.changed, time.Time{}, time.Time{}
	f.set.setRead(f, e.inode)
	return nil
}

// startInOld returns where to start in a file that existed before the agent: at its last run if that is still being
// written, else after its last line.
func (f *follower) startInOld(ctx context.Context, e *entry) (int64, error) {
	if time.Since(e.changed) <= f.set.opts.Recent {
		b, err := ingest.ReadBacklog(ctx, io.NewSectionReader(e.file, 0, e.size), f.runs.tool, e.at, e.changed)
		if at, ok := b.LastRun(); ok || err != nil {
			return at, err
		}
	}
	return lastLineStart(e.file, e.size)
}

// record copies bytes of a file before they are parsed.
func (f *follower) record(ctx context.Context, s *source, offset int64, p []byte) error {
	if offset == 0 && len(s.head) == 0 && follow.IsUTF16(p) {
		f.log.Warn("the log's lines can't be read: its text is UTF-16", "hint", "have the tool write UTF-8")
	}
	if known := int64(len(s.head)); offset <= known && offset < rundir.HeadSize {
		s.head = append(s.head[:offset], p[:min(int64(len(p)), rundir.HeadSize-offset)]...)
	}
	return f.set.retry(ctx, f.path, func() error { return f.runs.copy.append(s.base+offset, p) })
}

// endLine ends the incomplete last line of the open file. What comes later is another line.
func (f *follower) endLine(ctx context.Context) error {
	err := f.runs.endLine(ctx)
	if err == nil {
		f.remember()
		f.open.relation = different
		err = f.open.reader.Restart(f.open.reader.End())
	}
	if err == nil {
		err = f.runs.moveTo(ctx, f.open, f.open.reader.End(), "")
	}
	return ignoreRewritten(err)
}

func ignoreRewritten(err error) error {
	if errors.Is(err, follow.ErrRewritten) {
		return nil
	}
	return err
}

func (f *follower) close() {
	if f.open != nil {
		f.open.reader.Close()
	}
	f.runs.writing.Wait()
	if f.runs.copy.file != nil {
		f.runs.copy.file.Close()
	}
}
