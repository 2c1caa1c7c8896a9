package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// quietBeforeFlush is how long an output must be silent before a group of lines
// that was written together is taken to be complete.
const quietBeforeFlush = 100 * time.Millisecond

// feed is one run's parser and state. The goroutines that read the two streams
// share it under mu; what a parser makes of a stream does not depend on how
// the two interleave.
type Feed struct {
	Mu     sync.Mutex
	parser tool.Parser
	State  *state

	// series, if not nil, gets every interval.
	Series *Intervals
	// growing: the tool still writes; half a line is not read.
	Growing bool
	// torn: the output ends within a line.
	Torn bool
	// clock is when the tool's clock began to run, from the first interval
	// report if that was read while it was new; else zero.
	Clock time.Time
	late  bool // the newest line was not fresh

	// seen, if not nil, is called with every report and its place on axis.
	Seen func(r *tool.Report, elapsed float64, placed, fresh bool)
	axis axis
}

// newFeed makes a feed for the output of a run that meta tells of. t may be nil:
// then nothing is understood.
func NewFeed(t *tool.Tool, meta *rundir.Meta) *Feed {
	f := &Feed{State: newState()}
	if t != nil {
		f.parser = t.NewParser(meta.Description())
	}
	return f
}

// line parses one line that was written at the instant at or, if it is not
// fresh, before it.
func (f *Feed) line(l tool.Line, at time.Time, fresh bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	// A report of several lines may have begun with one that was not fresh.
	_, groups := f.parser.(tool.Flusher)
	if f.State.interval == nil && fresh && !(groups && f.late) {
		defer f.setClock(at)
	}
	f.late = !fresh
	if f.parser == nil {
		f.State.verdict(tool.Ignored)
		return
	}
	v := f.parser.Parse(l, func(r *tool.Report) { f.take(r, at) })
	f.State.verdict(v)
	f.Series.count(f.State)
}

// setClock takes the start of the tool's clock from the first interval, if that
// has come. mu is held.
func (f *Feed) setClock(at time.Time) {
	if r := f.State.interval; r != nil && r.ElapsedSeconds.Known {
		f.Clock = at.Add(-time.Duration(r.ElapsedSeconds.Value * float64(time.Second)))
	}
}

// take adds a report. mu is held.
func (f *Feed) take(r *tool.Report, at time.Time) {
	f.State.apply(r, at)
	f.Series.add(r, f.State)
	if f.Seen == nil {
		return
	}
	elapsed, placed := 0.0, false
	if r.Kind == tool.Interval {
		elapsed, placed = f.axis.place(r)
	}
	f.Seen(r, elapsed, placed, !f.late)
}

// apply takes a report, and verdict a line's verdict, from a parser elsewhere.
func (f *Feed) Apply(r *tool.Report, at time.Time) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.take(r, at)
}

func (f *Feed) Verdict(v tool.Verdict) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.State.verdict(v)
}

// flush makes a parser that knows how to report what it holds back when no more
// lines are at hand do so.
func (f *Feed) flush(at time.Time) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if p, ok := f.parser.(tool.Flusher); ok {
		if f.State.interval == nil && !f.late {
			defer f.setClock(at)
		}
		p.Flush(func(r *tool.Report) { f.take(r, at) })
	}
}

// close tells the parser that the output is complete.
func (f *Feed) Close(at time.Time) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.parser != nil {
		f.parser.Close(func(r *tool.Report) { f.take(r, at) })
	}
}

// Output is what the output read so far shows of how the run ended.
func (f *Feed) Output() rundir.Output {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.State.output()
}

func (f *Feed) Snapshot(meta rundir.Meta, now time.Time) Snapshot {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.State.snapshot(meta, now)
}

// read follows one stream's file into the feed until ctx is done or, after
// finish is closed, to the file's end. A file that is not there has no lines.
func (f *Feed) Read(ctx context.Context, path string, stream tool.Stream, opts follow.Options, finish <-chan struct{}) error {
	r, err := follow.Open(path, opts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	before, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	stop := context.AfterFunc(ctx, r.Finish) // ctx ends Next anyway; this frees the goroutine below
	defer stop()
	done := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(done)
	wg.Go(func() {
		select {
		case <-finish:
			r.Finish()
		case <-done:
		}
	})
	flushed := true
	for {
		l, err := f.next(ctx, r, &flushed)
		if errors.Is(err, io.EOF) {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		at, fresh := time.Now(), true
		if l.Generation == 0 && l.Offset < before.Size() {
			at, fresh = before.ModTime(), false // read late: it was written then or earlier
		}
		if l.Unterminated {
			if f.Growing {
				continue
			}
			f.Torn = true
		}
		f.line(tool.Line{Stream: stream, Text: l.Text, Cut: l.Cut}, at, fresh)
	}
}

// next waits for a line; when none comes for a moment it flushes the parser,
// once between two lines.
func (f *Feed) next(ctx context.Context, r *follow.Reader, flushed *bool) (follow.Line, error) {
	if !*flushed {
		quiet, cancel := context.WithTimeout(ctx, quietBeforeFlush)
		l, err := r.Next(quiet)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return l, err
		}
		f.flush(time.Now())
	}
	*flushed = true
	l, err := r.Next(ctx)
	_, canFlush := f.parser.(tool.Flusher)
	*flushed = !canFlush
	return l, err
}
