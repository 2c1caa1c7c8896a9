package toollog

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// runs divides the stream of a log into runs: all that is read of its files, one after the other. Bytes are copied
// into the directory of their run before they are parsed, so the size of the copy is the position in the log.
// Offsets are in the stream unless a comment says that they are in a file.
type runs struct {
	set      *Set
	path     string
	tool     *tool.Tool
	config   Log
	copy     *logCopy
	splitter *ingest.Splitter

	file    *source      // of the newest bytes
	current *openRun     // nil between two runs
	resume  *recordedRun // the run that had not ended when an earlier agent stopped
	parsed  int64        // up to where lines were parsed
	lineAt  time.Time
	flushed bool // the parser holds nothing back

	backlog ingest.Backlog // of the file
	hidden  []*ingest.Feed // of runs that are not shown before the backlog is read; nil afterwards
	writing sync.WaitGroup // of what the log does not wait for: the disk may be slow
}

// openRun is a run that has begun and not ended.
type openRun struct {
	Run
	dir rundir.Directory
}

// open opens the copy of the run to resume, if there is one, and parses it again.
func (r *runs) open(ctx context.Context) error {
	r.splitter = ingest.NewSplitter(ctx, r.tool, r.copy, 0, 0)
	r.splitter.OnEnd = r.endRun
	r.splitter.OnBegin = func(p *ingest.Part, report *tool.Report, at time.Time, _ bool) { r.beginRun(ctx, p, report, at) }
	r.hidden, r.flushed = []*ingest.Feed{}, true
	if r.resume == nil {
		return nil
	}
	own, err := r.resume.dir.OpenCopy(0)
	if err != nil {
		return err
	}
	r.copy.attach(own, 0)
	r.copy.end = r.resume.size
	r.backlog.End, r.parsed = r.copy.end, r.copy.end
	for lines := follow.NewScanner(r.copy, 0, r.copy.end); ; {
		l, err := lines.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case l.Unterminated:
			r.parsed -= l.Size
		default:
			r.splitter.Line(l, time.Time{}, false)
		}
	}
}

// line parses a line of the file.
func (r *runs) line(ctx context.Context, l follow.Line) {
	r.lineAt = time.Now()
	at, fresh := r.lineAt, true
	if l.Offset < r.backlog.End {
		at, fresh = r.backlog.Written, false
	}
	l.Offset += r.file.base
	r.parsed = l.Offset + l.Size
	r.splitter.Line(l, at, fresh)
	r.flushed = !r.splitter.Flushes()
	r.copy.forget(r.splitter.Boundary())
	if r.parsed > r.file.base+r.backlog.End {
		r.show(ctx)
	}
}

// flush makes the parser emit what it holds back, if no line has come for a while.
func (r *runs) flush() {
	if !r.flushed && time.Since(r.lineAt) >= ingest.FlushAfter {
		r.splitter.Flush(time.Now())
		r.flushed = true
	}
}

// show makes the runs visible, once all that existed before has been read.
func (r *runs) show(ctx context.Context) {
	for _, feed := range r.hidden {
		feed.CaughtUp(ctx)
	}
	r.hidden = nil
}

// isIncomplete reports whether the last line has no end.
func (r *runs) isIncomplete() bool { return r.copy.end > r.parsed }

// begun is the copied part of an incomplete last line; nil if its beginning was parsed, because it is too long.
func (r *runs) begun() []byte {
	text, err := r.copy.slice(max(r.parsed, r.copy.start), r.copy.end)
	if err != nil || len(text) > follow.DefaultMaxLine {
		return nil
	}
	return text
}

// endLine parses an incomplete last line: what follows is not part of it.
func (r *runs) endLine(ctx context.Context) error {
	if text := r.begun(); len(text) > 0 && r.file != nil {
		at := r.copy.end - int64(len(text)) - r.file.base
		r.line(ctx, follow.Line{Text: follow.Text(text), Offset: at, Size: int64(len(text)), Unterminated: true})
	}
	return r.set.retry(ctx, r.path, r.copy.endLine)
}

// moveTo continues the stream at an offset of a file. A run that continues records this before it gets
// bytes of the file.
func (r *runs) moveTo(ctx context.Context, s *source, offset int64, missing gap) error {
	if r.current != nil {
		if err := r.set.retry(ctx, r.path, func() error { return r.recordMove(s, offset, missing) }); err != nil {
			return err
		}
	}
	r.mark(missing)
	s.start, s.base = offset, r.copy.end-offset
	r.file, r.parsed = s, r.copy.end-(offset-s.reader.Offset())
	r.backlog = ingest.Backlog{End: offset}
	if r.hidden == nil {
		return nil
	}
	file := s.reader.File()
	info, err := file.Stat()
	if err == nil {
		r.backlog, err = ingest.ReadBacklog(ctx, io.NewSectionReader(file, 0, info.Size()), r.tool, offset, info.ModTime())
	}
	return err
}

// recordMove records in the current run that its next bytes come from another place, unless an agent that was stopped
// had read up to there.
func (r *runs) recordMove(s *source, offset int64, missing gap) error {
	copied, head := r.copy.end-r.copy.start, r.head()
	_, err := r.current.dir.Update(func(m *rundir.Meta) {
		if s.relation == continues && m.Log.SameFile(&s.id) && m.Log.Position(copied) == offset {
			return
		}
		before := *m.Log
		before.End, before.Earlier = before.Position(copied-r.copy.added), nil
		if head.HeadSize > before.HeadSize {
			before.Head, before.HeadSize = head.Head, head.HeadSize
		}
		now := s.id
		now.Path, now.Offset, now.Copied, now.Gap = m.Log.Path, offset, copied, string(missing)
		now.Earlier = lastOf(append(m.Log.Earlier, before), maxEarlier)
		m.Log = &now
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the run was removed
	}
	return err
}

// maxEarlier bounds how many files a run and a follower remember.
const maxEarlier = 16

// lastOf returns the last n elements, or fewer.
func lastOf[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }

// head identifies the file of the newest bytes; it is empty if no file was read yet.
func (r *runs) head() rundir.LogSource {
	if r.file == nil {
		return rundir.LogSource{}
	}
	r.file.identify()
	return r.file.id
}

// beginRun creates the directory of a run that begins in the log, or resumes the run that had not ended when an
// earlier agent stopped.
func (r *runs) beginRun(ctx context.Context, p *ingest.Part, first *tool.Report, at time.Time) {
	var meta rundir.Meta
	var dir rundir.Directory
	if r.resume != nil {
		meta, dir, r.resume = r.resume.meta, r.resume.dir, nil
	} else {
		meta = r.describe(p, first, at)
		err := r.set.retry(ctx, r.path, func() (err error) {
			dir, err = r.create(meta, max(p.Offset, r.copy.start))
			return err
		})
		if err != nil {
			return // ctx is done
		}
		meta.ID = dir.ID()
		r.set.Add(&meta)
	}
	if r.hidden != nil {
		p.Feed.SetCatchingUp(1)
		r.hidden = append(r.hidden, p.Feed)
	}
	r.current = &openRun{r.set.opts.Tracker.Track(dir, meta, p.Feed), dir}
}

// describe returns what is known of a run as it begins, with its first report.
func (r *runs) describe(p *ingest.Part, first *tool.Report, at time.Time) rundir.Meta {
	from := r.head()
	from.Offset = max(p.Offset, r.copy.start) - r.file.base
	if from.Offset < r.file.start {
		from.Copied, from.Offset = r.file.start-from.Offset, r.file.start
	}
	line := r.file.reader.Offset() - 1 // in the file: the reader is after the line of the report
	start, estimated, ok := r.backlog.Start(line)
	if !ok || line >= r.backlog.End {
		start, estimated = at, false
		if first.ElapsedSeconds.Known {
			start, estimated = at.Add(-time.Duration(first.ElapsedSeconds.Value*float64(time.Second))), true
		}
	}
	meta := ingest.Describe(r.path, r.tool, first.Version, first.Command, first.Workload, first.Threads)
	meta.Labels, meta.Log, meta.Selection = maps.Clone(r.config.Labels), &from, r.config.Selection
	meta.Generator, meta.ReportIntervalSeconds = r.config.Generator, first.IntervalSeconds.Value
	meta.StartedAt, meta.StartEstimated = start.UTC().Truncate(time.Millisecond), estimated
	return meta
}

// create creates a run's directory with what was read of its output so far.
func (r *runs) create(meta rundir.Meta, begin int64) (rundir.Directory, error) {
	var own *os.File
	dir, claim, err := rundir.CreateWith(r.set.opts.DataDir, meta, func(d rundir.Directory) (err error) {
		mode := os.FileMode(0)
		if info, err := r.file.reader.File().Stat(); err == nil {
			mode = info.Mode()
		}
		if own, err = d.OpenCopy(mode); err != nil {
			return err
		}
		text, err := r.copy.slice(begin, r.copy.end)
		if err == nil {
			_, err = own.Write(text)
		}
		return err
	})
	if err != nil {
		if own != nil {
			own.Close()
		}
		return "", err
	}
	claim.Release() // the log shows how the run ends
	r.copy.attach(own, begin)
	return dir, nil
}

// mark records in the current run that lines may be missing, if there is a gap and a run.
func (r *runs) mark(missing gap) {
	if r.current != nil && missing != "" {
		r.current.Mark("lines of the log may be missing: " + string(missing))
	}
}

// endRun records the end of the current run. Its tracker does the rest.
func (r *runs) endRun(p *ingest.Part, at time.Time) {
	run := r.current
	if run == nil {
		r.copy.forget(p.End)
		return
	}
	r.current = nil
	output := p.Feed.Output()
	if last := r.lastWrite(run.dir); !output.Complete && last.Before(at) {
		at = last
	}
	end, size, head := p.End, p.End-r.copy.start, r.head()
	if r.file != nil {
		end -= r.file.base // in the file
	}
	inBacklog := end <= r.backlog.End
	own, err := r.copy.cut(p.End)
	if err != nil {
		run.Fault("end the copy of the log", err)
	}
	r.writing.Go(func() {
		if own != nil {
			if err := errors.Join(own.Sync(), own.Close()); err != nil {
				run.Fault("write the copy of the log", err)
			}
		}
		_, err := run.dir.Update(func(m *rundir.Meta) {
			if m.Ended() {
				return
			}
			ended := at.UTC()
			if inBacklog { // written earlier at an unknown time: as an import does
				ended = m.StartedAt.Add(time.Duration(p.Seconds * float64(time.Second)))
				if now := time.Now().UTC(); ended.After(now) { // the tool's clock is fast
					ended = now
				}
			}
			if ended.Before(m.StartedAt) {
				ended = m.StartedAt
			}
			m.EndedAt = &ended
			m.Log.End = max(0, m.Log.Position(size))
			m.Log.Copied = min(m.Log.Copied, size)
			if head.HeadSize > m.Log.HeadSize {
				m.Log.Head, m.Log.HeadSize = head.Head, head.HeadSize
			}
			m.Conclude(output)
		})
		if err != nil {
			run.Fault("end a run of the log", err)
		}
	})
}

// lastWrite is when the open file or, without one, a run's copy was written.
func (r *runs) lastWrite(dir rundir.Directory) time.Time {
	if r.file != nil {
		if info, err := r.file.reader.File().Stat(); err == nil { // else it is closed
			return info.ModTime()
		}
	}
	info, err := os.Stat(dir.Path(rundir.StdoutFile))
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}

// sync writes the copy to the disk if necessary.
func (r *runs) sync() {
	if file := r.copy.file; r.copy.dirty && file != nil {
		r.copy.dirty = false
		r.writing.Go(func() { _ = file.Sync() }) // after an error the log is read again; if closed, it was synced before
	}
}
