package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// FlushAfter is how long an output must be silent before lines that were written together count as
// complete.
const FlushAfter = 100 * time.Millisecond

// Feed is the parser and the state of one run. Both output streams feed it, each from its own
// goroutine, under mu. The result does not depend on how the two streams interleave.
type Feed struct {
	// Series, if not nil, gets every interval report.
	Series *Intervals
	// Growing: the tool still writes, so an incomplete last line is not read.
	Growing bool
	// OnReport, if not nil, is called with every report, in order, while mu is held. A placed
	// interval ends at elapsed seconds on the run's axis. A fresh report was read as it was
	// written.
	OnReport func(r *tool.Report, elapsed float64, placed, fresh bool)

	// Now is the clock for lines that are read as they are written; nil: time.Now.
	Now func() time.Time

	mu     sync.Mutex
	parser tool.Parser
	front  *tool.Front // of parser; nil for a group
	state  *state
	axis   axis
	clock  time.Time
	torn   bool
	kept   keptIntervals
	// unreadOutputs counts the outputs that an earlier process began to read and that are not yet read up
	// to where they ended at the start of this one.
	unreadOutputs int
	// The time and freshness of the line being parsed, for emit.
	at    time.Time
	fresh bool
	emit  func(*tool.Report)
}

// NewFeed returns a Feed for the output of the run that meta describes. If t is nil, no line is
// understood.
func NewFeed(t *tool.Tool, meta *rundir.Meta) *Feed {
	f := &Feed{state: newState(), fresh: true}
	f.emit = f.report
	switch {
	case t == nil:
	case meta.IsGroup():
		f.parser = newGroupParser(t, meta)
		f.state.setTool(t, meta.Verb)
	default:
		f.front = t.NewFront(meta.Description())
		f.parser = f.front.Parser()
		f.state.setTool(t, meta.Verb)
	}
	return f
}

func (f *Feed) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

// line parses one line, written at the instant at or, if it is not fresh, before it.
func (f *Feed) line(l tool.Line, at time.Time, fresh bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	timed := fresh
	if fresh && !f.fresh { // the first line of a report of several lines may not have been fresh
		_, groups := f.parser.(tool.Flusher)
		timed = !groups
	}
	f.at, f.fresh = at, fresh
	if f.parser == nil {
		f.state.lines.add(tool.Ignored)
		return
	}
	first := f.state.interval == nil
	f.state.stream = l.Stream
	f.state.lines.add(f.parser.Parse(l, f.emit))
	if first && timed {
		f.startClock()
	}
	f.Series.count(f.state)
}

// flush makes the parser emit a report that it holds back in case another line follows.
func (f *Feed) flush(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.parser.(tool.Flusher)
	if !ok {
		return
	}
	f.at, f.state.stream = at, tool.Stdout
	first := f.state.interval == nil
	p.Flush(f.emit)
	if first && f.fresh {
		f.startClock()
	}
}

// Close treats the output as complete: the parser emits what it holds back.
func (f *Feed) Close(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parser != nil {
		f.at, f.state.stream = at, tool.Stdout
		f.parser.Close(f.emit)
	}
	f.addKept()
}

// add accepts a report from a parser that splits a log.
func (f *Feed) add(r *tool.Report, at time.Time, fresh bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.fresh = at, fresh
	f.report(r)
}

// report accepts a report from the line being parsed. mu is held.
func (f *Feed) report(r *tool.Report) {
	f.state.apply(r, f.at)
	f.Series.add(r, f.state)
	if f.OnReport == nil {
		return
	}
	elapsed, placed := 0.0, false
	if r.Kind == tool.Interval {
		elapsed, placed = f.axis.place(r)
	}
	f.OnReport(r, elapsed, placed, f.fresh)
}

// startClock sets the start of the tool's clock from the first interval, if there is one yet. mu is
// held.
func (f *Feed) startClock() {
	if r := f.state.interval; r != nil && r.ElapsedSeconds.Known {
		f.clock = f.at.Add(-time.Duration(r.ElapsedSeconds.Value * float64(time.Second)))
	}
}

// Torn reports whether one of the outputs ends within a line.
func (f *Feed) Torn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.torn
}

// Clock is when the tool's clock started, according to the first interval report; zero if that
// report was not read as it was written.
func (f *Feed) Clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock
}

// unsized reports whether there are intervals without a length.
func (f *Feed) unsized() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.interval != nil && !f.state.interval.IntervalSeconds.Known
}

// elapsed is the end of the last interval on the tool's own clock; 0 if it is unknown.
func (f *Feed) elapsed() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.interval == nil {
		return 0
	}
	return f.state.interval.ElapsedSeconds.Value
}

// Output is what the output so far shows about how the run ended.
func (f *Feed) Output() rundir.Output {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.output()
}

// Snapshot returns the current state of the run.
func (f *Feed) Snapshot(meta rundir.Meta, now time.Time) Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	snap := f.state.snapshot(meta, now)
	snap.CatchingUp = f.unreadOutputs > 0
	if f.front != nil {
		snap.LeftOut = f.front.LeftOut()
	}
	if g, ok := f.parser.(*groupParser); ok {
		snap.Generators = g.states()
	}
	return snap
}

// SetCatchingUp is called before reading n outputs that another process may have read before. Until
// each is read up to its length at that time, a Snapshot is CatchingUp.
func (f *Feed) SetCatchingUp(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unreadOutputs = n
}

// CaughtUp is called once for each of these outputs. If ctx is done, reading may have stopped
// before that point.
func (f *Feed) CaughtUp(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unreadOutputs--
}

// lines returns the number of lines so far; setLines replaces it.
func (f *Feed) lines() Lines {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.lines
}

func (f *Feed) setLines(n Lines) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.lines = n
}

// finishOn calls finish once a channel is closed. The returned function ends the waiting.
func finishOn(closed <-chan struct{}, finish func()) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-closed:
			finish()
		case <-done:
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// Follow reads one stream's file until ctx is done or, after finish is closed, to
// the file's end. A file that does not exist has no lines. After an error that
// follow.TooManyOpen recognises nothing has been read, and Follow can be called again.
func (f *Feed) Follow(ctx context.Context, path string, stream tool.Stream, notifier *follow.Notifier, finish <-chan struct{}) error {
	r, err := follow.Open(path, follow.Options{Notifier: notifier, Direct: true})
	if follow.TooManyOpen(err) {
		return err
	}
	caughtUp := sync.OnceFunc(func() { f.CaughtUp(ctx) })
	defer caughtUp()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	before, err := r.File().Stat()
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	stop := context.AfterFunc(ctx, r.Finish) // ctx ends Next anyway; this frees the goroutine below
	defer stop()
	defer finishOn(finish, r.Finish)()
	_, flushes := f.parser.(tool.Flusher)
	patience, backlogEnd := time.Duration(0), before.Size()
	for {
		if r.End() >= backlogEnd && r.Idle() && (patience == 0 || r.Offset() > backlogEnd) {
			caughtUp()
		}
		l, err := r.NextWithin(ctx, patience)
		switch {
		case errors.Is(err, follow.ErrQuiet):
			f.flush(f.now())
			patience = 0
			continue
		case errors.Is(err, follow.ErrRewritten):
			if err := r.Restart(0); err != nil {
				return err
			}
			backlogEnd = 0
			continue
		case errors.Is(err, io.EOF):
			return ctx.Err()
		case err != nil:
			return err
		case l.Unterminated && f.Growing:
			continue
		}
		if flushes {
			patience = FlushAfter
		}
		if l.Unterminated {
			f.tear()
		}
		line := tool.Line{Stream: stream, Text: l.Text, Cut: l.Cut}
		if l.Offset < backlogEnd {
			f.line(line, before.ModTime(), false) // written then or earlier
		} else {
			f.line(line, f.now(), true)
		}
	}
}

// tear records that the last line has no end.
func (f *Feed) tear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.torn = true
}
