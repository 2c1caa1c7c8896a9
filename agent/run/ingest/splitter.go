package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Part is one run in a log that may hold many, one after the other.
type Part struct {
	// Offset and End are positions in the log. End is set after the part has ended.
	Offset, End int64
	// Feed has the state from the part's reports.
	Feed *Feed
	// Seconds is the latest time on the tool's own clock.
	Seconds float64
	// Began is when the run began according to its reports or to times in the log's lines, such as
	// YCSB's status lines; zero without either. A time without a zone is local.
	Began time.Time

	timed bool    // Began comes from a report or from an interval's line
	ends  []int64 // of the lines up to the end of the last report

	place   string          // for the title, where the log has several runs that look the same
	carried float64         // length of intervals that an earlier run of the log has; 0: none
	members []rundir.Member // the generators whose logs were joined
	stderr  int64           // where standard error begins, in a log that has it after standard output; 0: no such place
}

// Snapshot is the state of the part as an ended run.
func (p *Part) Snapshot() Snapshot {
	at := time.Unix(0, 0)
	return p.Feed.Snapshot(rundir.Meta{End: rundir.End{EndedAt: &at}, Closing: rundir.Closing{ClosedAt: &at}}, at)
}

// Splitter finds the runs in a log, line by line. This one type follows a log, catches up after a
// restart and imports, so a run always has the same bytes.
//
// A part begins after the line that completed the previous report of any part, and ends with the
// line that completes its final summary or, without one, its last report. Some parsers hold the
// summary back until they see the next line, and may thus have read lines of the next run. The
// splitter finds those lines by parsing the part again without them: if the result is the same,
// they belong to the next run.
type Splitter struct {
	// OnBegin is called with a new part and its first report, before the part's Feed gets the
	// report. OnEnd is called when the part's End is known, with the time of the line that revealed
	// it. Either may be nil.
	OnBegin func(p *Part, first *tool.Report, at time.Time, fresh bool)
	OnEnd   func(p *Part, at time.Time)

	done    func() error // ctx.Err
	tool    *tool.Tool
	content io.ReaderAt
	first   int64
	front   *tool.Front
	parser  tool.Parser // the front

	part     *Part // nil between two parts
	run      int   // the parser's number of the newest part
	complete bool  // this line completed the part's final summary
	boundary int64 // where the part ends or the next one begins, as far as known
	lines    Lines // since boundary

	begin, end int64     // of the line that is being parsed
	recent     []lineEnd // the newest lines
	reported   bool      // the line completed a report of the part
	at         time.Time
	fresh      bool
	stamp      time.Time // in the line
	header     time.Time // the first stamp since boundary
	emit       func(*tool.Report)
}

// lineEnd is where a line ends and what the parser made of it.
type lineEnd struct {
	at    int64
	lines Lines // counts one line, or none while it is being parsed
}

// NewSplitter returns a Splitter for the lines of t's log from offset on; content reads the same
// log. Parts that begin before first are not passed to OnBegin and OnEnd: a parser needs the lines
// before a run to read its first ones the same way each time. After ctx is done, OnEnd is not
// called.
func NewSplitter(ctx context.Context, t *tool.Tool, content io.ReaderAt, offset, first int64) *Splitter {
	s := &Splitter{done: ctx.Err, tool: t, content: content, first: first,
		boundary: offset, begin: offset, end: offset}
	s.recent = append(s.recent, lineEnd{at: offset})
	s.emit = s.report
	s.renew(time.Time{})
	return s
}

// renew begins with a new parser.
func (s *Splitter) renew(written time.Time) {
	s.front = s.tool.NewFront(tool.Description{})
	s.front.Written = written
	s.front.Before = func(stamp time.Time) {
		s.stamp = stamp
		if s.header.IsZero() {
			s.header = stamp
		}
	}
	s.parser = s.front.Parser()
}

// Boundary is where the next part begins, as far as known.
func (s *Splitter) Boundary() int64 {
	if s.part != nil {
		return s.part.Offset
	}
	return s.boundary
}

// Flushes reports whether Flush may have an effect.
func (s *Splitter) Flushes() bool {
	_, ok := s.parser.(tool.Flusher)
	return ok
}

// Line parses the next line, written at the instant at or, if it is not fresh, before it.
func (s *Splitter) Line(l follow.Line, at time.Time, fresh bool) {
	s.advance(l)
	s.at, s.fresh, s.reported = at, fresh, false
	s.stamp = time.Time{}
	verdict := s.parser.Parse(tool.Line{Text: l.Text, Cut: l.Cut}, s.emit)
	s.lines.add(verdict)
	s.recent[len(s.recent)-1].lines.add(verdict)
	s.settle()
}

// heldBack is how many lines before the line that completes a report may belong to the next run.
const heldBack = 24

// maxLead is how many bytes a part may have before its first report.
const maxLead = 1 << 20

func (s *Splitter) advance(l follow.Line) {
	if last := &s.recent[len(s.recent)-1]; last.at != l.Offset { // the previous line was too long to read
		if s.boundary == last.at {
			s.boundary = l.Offset
		}
		last.at = l.Offset
	}
	s.begin, s.end = l.Offset, l.Offset+l.Size
	s.recent = append(s.recent, lineEnd{at: s.end})
	if n := len(s.recent) - heldBack; n > 0 {
		s.recent = append(s.recent[:0], s.recent[n:]...)
	}
	if s.part == nil && s.end-s.boundary > maxLead && s.recent[0].at > s.boundary {
		s.boundary, s.lines, s.header = s.recent[0].at, Lines{}, time.Time{}
		for _, l := range s.recent[1:] {
			s.lines = s.lines.plus(l.lines)
		}
	}
}

// Flush makes the parser emit what it holds back, when no line has come for FlushAfter.
func (s *Splitter) Flush(at time.Time) {
	if p, ok := s.parser.(tool.Flusher); ok {
		s.at, s.reported, s.stamp = at, false, time.Time{}
		p.Flush(s.emit)
		s.settle()
	}
}

// Close ends the current part: the log, or the current run, is complete. The next line begins
// another part.
func (s *Splitter) Close(at time.Time) {
	s.at, s.reported, s.stamp = at, false, time.Time{}
	s.parser.Close(s.emit)
	s.settle()
	s.endPart(Lines{})
	s.renew(s.front.Written)
	s.run = 0
}

// report accepts a report from the line being parsed.
func (s *Splitter) report(r *tool.Report) {
	if r.Run != s.run {
		last := Lines{}
		if s.reported { // reports that were held back until this line, the first of the next run
			s.boundary = s.begin
			last, s.lines = s.lines, Lines{}
		}
		s.endPart(last)
		s.reported = false
		s.run = r.Run
		s.part = &Part{Offset: s.boundary, Began: s.header, Feed: NewFeed(nil, nil)}
		s.part.Feed.state.setTool(s.tool, "")
		if s.OnBegin != nil && s.part.Offset >= s.first {
			s.OnBegin(s.part, r, s.at, s.fresh)
		}
	}
	p := s.part
	first := !s.reported
	s.reported = true
	if p == nil {
		return // after the final summary: belongs to no run
	}
	if first {
		p.ends = p.ends[:0]
		for _, l := range s.recent {
			p.ends = append(p.ends, l.at)
		}
	}
	p.Feed.add(r, s.at, s.fresh)
	if !p.timed && !r.Began.IsZero() {
		p.Began, p.timed = r.Began, true
	}
	if r.ElapsedSeconds.Known {
		p.Seconds = max(p.Seconds, r.ElapsedSeconds.Value)
		if r.Kind == tool.Interval && !p.timed && !s.stamp.IsZero() {
			p.timed = true
			p.Began = s.stamp.Add(-time.Duration(r.ElapsedSeconds.Value * float64(time.Second)))
		}
	}
	s.complete = s.complete || r.Kind == tool.Summary && !r.Checkpoint
}

// settle moves the boundary after the line if the line completed a report, and ends a part that is
// complete.
func (s *Splitter) settle() {
	if !s.reported {
		return
	}
	s.reported = false
	s.boundary, s.header = s.end, time.Time{}
	if s.complete {
		last := s.lines
		s.lines = Lines{}
		s.endPart(last)
		return
	}
	s.count()
}

// endPart ends the current part at the boundary or, if the result is the same without its last
// lines, before them. The last lines up to the boundary are not counted yet: lines that move to the
// next part must not be counted in this one.
func (s *Splitter) endPart(last Lines) {
	p := s.part
	if p == nil {
		return
	}
	s.part, s.complete = nil, false
	p.End = s.shortest(p, s.boundary)
	moved := Lines{}
	for _, l := range s.recent {
		if l.at > p.End && l.at <= s.boundary {
			moved = moved.plus(l.lines)
		}
	}
	p.Feed.setLines(p.Feed.lines().plus(last).minus(moved))
	s.boundary, s.lines = p.End, s.lines.plus(moved)
	if s.OnEnd != nil && p.Offset >= s.first && s.done() == nil {
		s.OnEnd(p, s.at)
	}
}

// count adds the lines up to the boundary to the part's lines.
func (s *Splitter) count() {
	if s.part != nil {
		s.part.Feed.setLines(s.part.Feed.lines().plus(s.lines))
	}
	s.lines = Lines{}
}

// shortest returns the earliest end, at most most, with which p has the same result.
func (s *Splitter) shortest(p *Part, most int64) int64 {
	want := p.Snapshot()
	end, found := most, false
	for _, at := range slices.Backward(p.ends) {
		if at > most {
			continue
		}
		if at <= p.Offset {
			break
		}
		same := s.shows(&want, p.Offset, at)
		if found && !same {
			break
		}
		if same {
			end, found = at, true
		}
	}
	return end
}

// shows reports whether the bytes of the log from offset to end result in want.
func (s *Splitter) shows(want *Snapshot, offset, end int64) bool {
	alone := Part{Feed: NewFeed(s.tool, &rundir.Meta{})}
	if alone.Feed.readSection(s.done, tool.Stdout, io.NewSectionReader(s.content, offset, end-offset)) != nil {
		return false
	}
	alone.Feed.Close(time.Time{})
	got := alone.Snapshot()
	return sameContent(want, &got)
}

// sameContent reports whether the outputs of two ended runs have the same result.
func sameContent(a, b *Snapshot) bool {
	return a.Meta.ToolVersion == b.Meta.ToolVersion && a.Meta.Verb == b.Meta.Verb && a.Meta.Workload == b.Meta.Workload && a.Threads == b.Threads &&
		maps.Equal(a.Totals, b.Totals) && a.Errors == b.Errors && a.Reconnects == b.Reconnects &&
		a.MessageCount == b.MessageCount && slices.Equal(a.Messages, b.Messages) && sameSummary(a.Summary, b.Summary)
}

func sameSummary(a, b *Summary) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ElapsedSeconds == b.ElapsedSeconds && a.Threads == b.Threads && slices.Equal(a.Values, b.Values) && a.Parts == b.Parts &&
		slices.Equal(a.Rates, b.Rates) && slices.Equal(a.Counts, b.Counts) && slices.Equal(a.Latencies, b.Latencies) &&
		slices.EqualFunc(a.Histograms, b.Histograms, func(x, y Distribution) bool {
			return x.Operation == y.Operation && x.Equal(y.Histogram)
		})
}

// SplitLog reads a log from offset to its end and returns its runs. The last run extends to the end
// of the log unless that changes its result. written is about when the log was written, for dates without a year; zero:
// now.
func SplitLog(ctx context.Context, log *io.SectionReader, t *tool.Tool, offset int64, written time.Time) ([]*Part, error) {
	r := follow.NewScanner(log, offset, log.Size())
	var parts []*Part
	s := NewSplitter(ctx, t, log, offset, offset)
	s.front.Written = written
	s.OnBegin = func(p *Part, _ *tool.Report, _ time.Time, _ bool) { parts = append(parts, p) }
	for {
		line, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		s.Line(line, time.Time{}, false)
	}
	s.Close(time.Time{})
	if n := len(parts); n > 0 {
		last := parts[n-1]
		snap := last.Snapshot()
		if end := log.Size(); s.shows(&snap, last.Offset, end) {
			last.End = end
			last.Feed.setLines(last.Feed.lines().plus(s.lines))
		}
	}
	return parts, ctx.Err()
}

// splitFile splits a whole file.
func splitFile(ctx context.Context, path string, t *tool.Tool) ([]*Part, error) {
	file, info, err := openLog(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return SplitLog(ctx, io.NewSectionReader(file, 0, info.Size()), t, 0, info.ModTime())
}

// openLog opens a regular file.
func openLog(path string) (*os.File, fs.FileInfo, error) {
	file, err := follow.OpenFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read log: %w", err)
	}
	info, err := file.Stat()
	var head [4]byte
	if n, _ := file.ReadAt(head[:], 0); err == nil && follow.IsUTF16(head[:n]) { // an error counts as the end
		err = follow.ErrUTF16
	}
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("read log %s: %w", path, err)
	}
	return file, info, nil
}
