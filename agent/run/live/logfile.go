package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// recentLog is how long after its last write the last run in a log still counts as live, and
	// how long a file that may still be written is read.
	recentLog = time.Minute
	// settledLog is how long a file that no process has open must be unchanged before an incomplete
	// last line counts.
	settledLog = 2 * time.Second
	// lookEvery is how often a followed file's name is checked.
	lookEvery = 250 * time.Millisecond
)

// logFile is a file that a tool writes by itself, with many runs in sequence. One goroutine follows
// it and splits it into runs. Each run has a tracker, which drains and closes it when its part of
// the log has ended.
//
// Bytes are copied into the directory of their run before they are parsed, so the size of the copy
// is the position in the log. Offsets are in the stream of everything that was read, unless a
// comment says that they are in a file. Byte 0 of the current file is at base.
type logFile struct {
	watcher  *Watcher
	path     string
	tool     *tool.Tool
	spec     Log
	log      *slog.Logger
	spawn    func(func())   // runs a function in a goroutine that the Watcher waits for
	start    func(*tracker) // starts a tracker's goroutine
	existing bool           // the file existed before the Watcher

	reader   *follow.Reader
	source   rundir.LogSource // the current file
	base     int64
	copy     *logCopy
	splitter *ingest.Splitter
	current  *tracker // tracks the splitter's current part
	flushed  bool     // the parser holds nothing back

	resume   *logRun  // the run that had not ended when an earlier agent stopped
	previous *logRun  // the run before resume, or the newest if all have ended
	held     passage  // what was read of the file when an earlier agent stopped
	lost     *passage // what was read when an earlier agent stopped, until a file with this content is found
	position int64    // in the file: where the stream's first byte is

	// Where it is; see logState.
	state     logState
	named     bool      // the open file has the log's name
	head      []byte    // the file's first bytes, as far as they were read
	earlier   []passage // what was read of earlier files
	lastWrite time.Time // to the file

	past    int64     // end of the content that existed when the file was opened
	written time.Time // when the last of it was written
	parts   []*ingest.Part
	starts  []ingest.Start
	behind  []*ingest.Feed // runs that are not shown until past is reached
	caught  atomic.Bool

	passed   int64 // to the splitter
	seen     int64 // size of the file when it was last checked
	grew     time.Time
	looked   time.Time
	usage    follow.Usage
	asked    time.Time // when usage was last determined
	usageOf  func(*os.File) follow.Usage
	failures failureLog
}

// follow reads the log until ctx is done or no more can come.
func (f *logFile) follow(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	for {
		f.showIfCaughtUp(ctx)
		var l follow.Line
		var err error
		switch f.state {
		case missing:
			err = follow.ErrRewritten
		case superseded: // its writer has moved to another file
			l, err = f.reader.Poll(ctx)
		default:
			l, err = f.reader.NextWithin(ctx, f.patience())
		}
		reader, waits := f.reader, err != nil && (f.state == missing || f.state == superseded)
		if over, err := f.take(ctx, l, err); over || err != nil {
			return err
		}
		if waits && f.reader == reader {
			if err := f.reader.Wait(ctx); err != nil {
				return err
			}
		}
	}
}

// take processes what the reader returned, and checks the files when due. over means that no more
// can come.
func (f *logFile) take(ctx context.Context, l follow.Line, err error) (over bool, _ error) {
	switch {
	case err == nil:
		f.line(l)
	case errors.Is(err, follow.ErrQuiet), errors.Is(err, follow.ErrRewritten):
		if !f.flushed && f.state != superseded {
			f.splitter.Flush(time.Now())
			f.flushed = true
		}
		if f.state == superseded || !errors.Is(err, follow.ErrQuiet) {
			f.looked = time.Time{}
		}
	case errors.Is(err, errHole):
		if err := f.skipHole(ctx); err != nil {
			return false, err
		}
	case errors.Is(err, errCopy):
		f.failures.report(f.log, "waiting to copy the log", err)
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return false, err
		}
	default:
		return false, err
	}
	if time.Since(f.looked) < lookEvery {
		return false, nil
	}
	f.looked = time.Now()
	return f.look(ctx)
}

func (f *logFile) patience() time.Duration {
	if !f.flushed {
		return ingest.FlushAfter
	}
	return lookEvery
}

func (f *logFile) close() {
	if f.reader != nil {
		f.reader.Close()
	}
	if f.copy != nil {
		f.copy.close()
	}
}

// line forwards a line of the current file.
func (f *logFile) line(l follow.Line) {
	l.Offset += f.base
	f.passed = l.Offset + l.Size
	at, fresh := time.Now(), true
	if l.Offset < f.past {
		at, fresh = f.written, false
	}
	f.splitter.Line(l, at, fresh)
	f.flushed = !f.splitter.Flushes()
	f.copy.forget(f.splitter.Boundary())
}

// errHole is returned instead of copying bytes that are all NUL.
var errHole = errors.New("the log has a hole")

// record copies bytes of the current file.
func (f *logFile) record(offset int64, p []byte) error {
	if len(p) >= 4<<10 && p[0] == 0 && len(bytes.TrimLeft(p, "\x00")) == 0 && f.reader.Offset() == offset {
		return errHole
	}
	if offset == 0 && len(f.head) == 0 && follow.IsUTF16(p) {
		f.log.Warn("the log's lines can't be read: its text is UTF-16", "hint", "have the tool write UTF-8")
	}
	if known := int64(len(f.head)); offset <= known && offset < rundir.HeadSize {
		f.head = append(f.head[:offset], p[:min(int64(len(p)), rundir.HeadSize-offset)]...)
	}
	return f.copy.append(f.base+offset, p)
}

// begin opens the file that locate found and reads again what belongs to known runs.
func (f *logFile) begin(ctx context.Context) error {
	file := f.reader.File()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	f.flushed, f.looked, f.grew = true, time.Now(), info.ModTime()
	first, err := f.open()
	if err != nil {
		return err
	}
	f.base = f.copy.end - f.position
	f.head = readUpTo(file, 0, min(f.position, rundir.HeadSize))
	f.past, f.written = f.base+info.Size(), info.ModTime()
	copied := f.lastWrite
	if f.lost == nil {
		f.lastWrite = info.ModTime()
	}
	f.splitter = ingest.NewSplitter(ctx, f.tool, f.copy, 0, first)
	f.splitter.OnEnd = f.endRun
	f.splitter.OnBegin = func(p *ingest.Part, r *tool.Report, at time.Time, _ bool) { f.beginRun(ctx, p, r, at) }
	known := f.previous != nil || f.resume != nil
	switch err := f.readAgain(ctx); {
	case err != nil:
		return err
	case f.lost != nil: // search for it as if it had just disappeared
		f.state = missing
		_, err := f.look(ctx)
		return err
	case !known:
		return f.beginUnknown(ctx)
	}
	if err := f.plan(ctx, info.Size()); err != nil {
		return err
	}
	if err := f.resumeLine(f.reader, f.position); err != nil || follows(f.reader, f.held.tail) {
		return err
	}
	f.lost, f.lastWrite, f.state = &f.held, copied, missing // truncated and written again since it was located
	_, err = f.look(ctx)
	return err
}

// open opens the copies of the known runs and returns where the first run that has not ended
// begins.
func (f *logFile) open() (first int64, err error) {
	if p := f.previous; p != nil {
		own, err := rundir.Open(p.dir.Path(rundir.StdoutFile))
		if err != nil {
			return 0, err
		}
		f.copy.previous = own
		f.copy.start, f.copy.end = p.size, p.size
	}
	first = f.copy.start
	if r := f.resume; r != nil {
		own, err := r.dir.OpenCopy(0)
		if err != nil {
			return 0, err
		}
		f.copy.attach(own, first)
		f.copy.end = first + r.size
	}
	return first, nil
}

// readAgain parses the copies of the known runs, up to the last complete line.
func (f *logFile) readAgain(ctx context.Context) error {
	f.past, f.passed = max(f.past, f.copy.end), f.copy.end
	r := follow.NewScanner(f.copy, 0, f.copy.end)
	for {
		l, err := r.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case l.Unterminated:
			f.passed -= l.Size
		default:
			f.splitter.Line(l, f.written, false)
		}
	}
}

// resumeLine makes a reader continue at an offset within a line that was read in part.
func (f *logFile) resumeLine(r *follow.Reader, offset int64) error {
	begun, err := f.copy.slice(f.passed, f.copy.end)
	if err != nil || len(begun) > follow.DefaultMaxLine { // its beginning was forwarded
		begun = nil
	}
	return ignoreRewritten(r.Resume(offset-int64(len(begun)), begun)) // if it was, the next check notices
}

// beginUnknown starts at the beginning of a new file. In a file that existed before the Watcher, it
// starts at the last run, if that is still being written.
func (f *logFile) beginUnknown(ctx context.Context) error {
	size := f.past - f.base
	if err := f.plan(ctx, size); err != nil {
		return err
	}
	if !f.existing {
		return f.restart(f.position)
	}
	if n := len(f.parts); n > 0 && time.Since(f.written) <= recentLog {
		f.position = f.parts[n-1].Offset
		f.parts, f.starts = f.parts[n-1:], f.starts[n-1:]
	} else {
		end, err := lastLineStart(f.reader.File(), size)
		if err != nil {
			return err
		}
		f.position, f.parts, f.starts = end, nil, nil
	}
	f.base = -f.position
	f.past = f.base + size
	return f.restart(f.position)
}

// plan determines the start times of the runs between the position and size in the file, all of
// which were written before the agent looked.
func (f *logFile) plan(ctx context.Context, size int64) error {
	f.parts, f.starts = nil, nil
	if f.position >= size {
		return nil
	}
	parts, err := ingest.SplitLog(ctx, io.NewSectionReader(f.reader.File(), 0, size), f.tool, f.position, time.Time{})
	f.parts, f.starts = parts, ingest.Starts(parts, time.Time{}, time.Time{}, f.written)
	return err
}

// restart reads the current file from the beginning of a line.
func (f *logFile) restart(offset int64) error {
	err := f.reader.Restart(offset)
	if errors.Is(err, follow.ErrRewritten) { // rewritten since it was located
		return f.reader.Restart(0)
	}
	return err
}

// lastLineStart is the offset after the last complete line before size.
func lastLineStart(file *os.File, size int64) (int64, error) {
	tail := make([]byte, min(size, 64<<10))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, fmt.Errorf("log file: %w", err)
	}
	return size - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')+1), nil
}

// showIfCaughtUp shows the runs once everything that existed before has been read.
func (f *logFile) showIfCaughtUp(ctx context.Context) {
	read := f.flushed && f.reader.Idle() && f.base+f.reader.End() >= f.past
	if f.caught.Load() || !read && f.passed <= f.past {
		return
	}
	f.caught.Store(true)
	f.show(ctx)
}

// show makes the runs visible that were read again.
func (f *logFile) show(ctx context.Context) {
	for _, feed := range f.behind {
		feed.CaughtUp(ctx)
	}
	f.behind = nil
}

// look checks whether the file still has its name and is still written, and continues in another
// file if decide says so. It returns true when no more can come.
func (f *logFile) look(ctx context.Context) (over bool, err error) {
	now := time.Now()
	if end := f.reader.End(); end != f.seen {
		f.seen, f.grew = end, now
		if before := f.source.HeadSize; f.source.IdentifyHead(f.reader.File()) == nil && f.source.HeadSize > before {
			f.watcher.moved(f, &f.source)
		}
	}
	o, err := f.observe(ctx)
	if err != nil {
		return errors.Is(err, follow.ErrRewritten), ignoreRewritten(err)
	}
	m := decide(&o)
	if m.to != nil {
		o.close(m.to.file)
		return false, f.enter(ctx, &m)
	}
	o.close(nil)
	if m.detach {
		f.state = detached
		f.log.Info("the log's name belongs to another file: the old one is read on while it is written")
		f.watcher.detach(f)
	}
	return f.lookIdle(ctx, o.read, now.Sub(f.grew))
}

// usageNow reports whether the file is open for writing, as of at most a second ago.
func (f *logFile) usageNow() follow.Usage {
	if time.Since(f.asked) >= time.Second {
		f.usage, f.asked = f.usageOf(f.reader.File()), time.Now()
	}
	return f.usage
}

// lookIdle handles a file that is no longer written: it accepts an incomplete last line, and ends
// the run of a tool that stopped writing without a summary. It returns true for an idle file
// without a name.
func (f *logFile) lookIdle(ctx context.Context, read bool, quiet time.Duration) (over bool, err error) {
	partial := f.copy.end > f.passed && f.state != missing
	if !read || quiet < f.watcher.settled || f.named && !partial && f.current == nil {
		return false, nil
	}
	idle := quiet >= f.idleAfter()
	if !partial && !idle && f.state != detached {
		return false, nil
	}
	if usage := f.usageNow(); usage == follow.Written || usage == follow.Unknown && !idle {
		return false, nil
	}
	grew := f.grew
	if partial {
		if err := f.skipTo(ctx, f.reader.End()); err != nil {
			return false, err
		}
		f.grew = grew
	}
	if f.state == detached || idle {
		f.splitter.Close(time.Now())
	}
	return f.state == detached || idle && !f.named, nil
}

// idleAfter is how long the file must be unchanged before its run is over.
func (f *logFile) idleAfter() time.Duration {
	if f.current == nil {
		return f.watcher.recent
	}
	interval := f.current.snapshot().IntervalSeconds
	return max(f.watcher.recent, time.Duration(10*interval.Value*float64(time.Second)))
}

// skipHole continues after the hole.
func (f *logFile) skipHole(ctx context.Context) error {
	offset, err := follow.FirstData(ctx, f.reader.File(), f.reader.End())
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	return f.skipTo(ctx, offset)
}

// enter continues the stream in another file. If that file changed meanwhile, the next check
// decides again.
func (f *logFile) enter(ctx context.Context, m *move) error {
	r, err := f.newReader(m.to.file, m.to.at)
	if err != nil {
		return ignoreRewritten(err)
	}
	if m.to.relation == continues {
		if err = f.resumeLine(r, m.to.at); err == nil && !follows(r, m.to.tail) {
			err = follow.ErrRewritten
		}
	} else {
		err = f.endLine(ctx)
	}
	read := f.passage()
	kept := read.keep()
	if err == nil {
		err = f.rebase(ctx, r, m.to.at, m.gap)
	}
	if err != nil {
		r.Close()
		return ignoreRewritten(err)
	}
	f.remember(kept)
	f.lost, f.state = nil, m.state
	return nil
}

// remember keeps what was read of an earlier file, so that it is not read again.
func (f *logFile) remember(p passage) {
	f.earlier = append(f.earlier, p)
	if n := len(f.earlier) - maxEarlier; n > 0 {
		f.earlier = slices.Delete(f.earlier, 0, n)
	}
}

func ignoreRewritten(err error) error {
	if errors.Is(err, follow.ErrRewritten) {
		return nil
	}
	return err
}

// skipTo continues the stream at an offset of the same file.
func (f *logFile) skipTo(ctx context.Context, offset int64) error {
	err := f.endLine(ctx)
	if err == nil {
		err = ignoreRewritten(f.reader.Restart(offset))
	}
	if err == nil {
		err = f.rebase(ctx, f.reader, offset, "")
	}
	return err
}

// endLine forwards an incomplete last line.
func (f *logFile) endLine(ctx context.Context) error {
	f.forwardRest()
	return f.retry(ctx, f.copy.endLine)
}

// rebase continues the stream at an offset of a reader's file. A run that continues records this
// before it gets bytes of the file.
func (f *logFile) rebase(ctx context.Context, r *follow.Reader, offset int64, gap string) error {
	source, err := rundir.Identify(r.File())
	if err == nil && f.current != nil {
		source.Gap = gap
		err = f.retry(ctx, func() error { return f.recordMove(source, offset) })
	}
	if err != nil {
		return err
	}
	if gap != "" {
		f.log.Warn("lines of the log may be missing", "cause", gap)
		if f.current != nil {
			f.current.mark("lines of the log may be missing: "+gap, f.current.now())
		}
	}
	if r != f.reader {
		f.reader.Close()
		f.reader, f.head = r, readUpTo(r.File(), 0, min(offset, rundir.HeadSize))
	}
	source.Path = f.path
	f.source, f.base, f.position = source, f.copy.end-offset, offset
	f.watcher.moved(f, &source)
	f.passed = f.copy.end - (r.End() - r.Offset())
	f.seen, f.grew, f.asked = offset, time.Now(), time.Time{}
	f.parts, f.starts = nil, nil
	if f.caught.Load() {
		f.past = f.copy.end
		return nil
	}
	info, err := r.File().Stat()
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	f.past, f.written = f.base+info.Size(), info.ModTime()
	return f.plan(ctx, info.Size())
}

// forwardRest forwards the copied part of an incomplete last line.
func (f *logFile) forwardRest() {
	begin := max(f.passed, f.copy.start)
	if n := f.copy.end - begin; n <= 0 || n > follow.DefaultMaxLine { // the beginning of an overlong line was forwarded
		return
	}
	if text, err := f.copy.slice(begin, f.copy.end); err == nil {
		f.line(follow.Line{Text: follow.Text(text), Offset: begin - f.base, Size: int64(len(text)), Unterminated: true})
	}
}

func (f *logFile) newReader(file *os.File, offset int64) (*follow.Reader, error) {
	return follow.NewReader(file, follow.Options{Offset: offset, Notifier: f.watcher.notifier, Copy: f.record})
}

// recordMove records in the current run that its next bytes come from another place.
func (f *logFile) recordMove(source rundir.LogSource, offset int64) error {
	copied, read := f.copy.end-f.copy.start, f.copy.end-f.copy.start-f.copy.joined
	head, headSize := f.source.Head, f.source.HeadSize
	_, err := f.current.dir.Update(func(m *rundir.Meta) {
		before := *m.Log
		before.End, before.Earlier = before.Position(read), nil
		if headSize > before.HeadSize {
			before.Head, before.HeadSize = head, headSize
		}
		now := source
		now.Path, now.Offset, now.Copied = m.Log.Path, offset, copied
		now.Earlier = append(m.Log.Earlier, before)
		if n := len(now.Earlier) - maxEarlier; n > 0 {
			now.Earlier = now.Earlier[n:]
		}
		m.Log = &now
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the run was removed
	}
	return err
}

// maxEarlier bounds how many source files a run remembers.
const maxEarlier = 16

// retry repeats do while the disk is full, until ctx is done.
func (f *logFile) retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		f.failures.report(f.log, "waiting to record a run of the log", err)
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// beginRun creates the directory of a run that begins in the log, or resumes the run that had not
// ended when an earlier agent stopped.
func (f *logFile) beginRun(ctx context.Context, p *ingest.Part, first *tool.Report, at time.Time) {
	meta, dir, err := f.runOf(ctx, p, first, at)
	if err != nil {
		return // ctx is done
	}
	if !f.caught.Load() {
		p.Feed.SetBehind(1)
		f.behind = append(f.behind, p.Feed)
	}
	w := f.watcher
	t := newTracker(dir, meta, p.Feed, &w.opts)
	t.fromLog = true
	w.mu.Lock()
	w.live[meta.ID] = t
	w.mu.Unlock()
	f.current = t
	f.start(t)
}

func (f *logFile) runOf(ctx context.Context, p *ingest.Part, first *tool.Report, at time.Time) (rundir.Meta, rundir.Directory, error) {
	if r := f.resume; r != nil {
		f.resume = nil
		return r.meta, r.dir, nil
	}
	begin := max(p.Offset, f.copy.start)
	start, estimated := f.startOf(at, first)
	source := f.source
	source.Offset = begin - f.base
	if source.Offset < f.position {
		source.Copied, source.Offset = f.position-source.Offset, f.position
	}
	meta := ingest.Describe(f.path, f.tool, first.Version, first.Command, first.Workload, first.Threads)
	meta.Labels, meta.Log, meta.Selection = maps.Clone(f.spec.Labels), &source, f.spec.Selection
	meta.Generator = f.spec.Generator
	meta.StartedAt, meta.StartEstimated = start.UTC().Truncate(time.Millisecond), estimated
	var dir rundir.Directory
	err := f.retry(ctx, func() error {
		var own *os.File
		made, claim, err := rundir.CreateWith(f.watcher.opts.DataDir, meta, func(d rundir.Directory) (err error) {
			own, err = f.copyTo(d, begin)
			return err
		})
		if err != nil {
			if own != nil {
				own.Close()
			}
			return err
		}
		claim.Release() // the log shows how the run ends
		f.copy.attach(own, begin)
		dir = made
		return nil
	})
	meta.ID = dir.ID()
	if err == nil {
		f.watcher.addLogRun(&meta, f)
	}
	return meta, dir, err
}

// copyTo creates the run's output file with what was read of it so far.
func (f *logFile) copyTo(d rundir.Directory, begin int64) (*os.File, error) {
	mode := os.FileMode(0)
	if info, err := f.reader.File().Stat(); err == nil {
		mode = info.Mode()
	}
	own, err := d.OpenCopy(mode)
	if err != nil {
		return nil, err
	}
	text, err := f.copy.slice(begin, f.copy.end)
	if err == nil {
		_, err = own.Write(text)
	}
	return own, err
}

// startOf returns when the run began whose first report has just come.
func (f *logFile) startOf(at time.Time, first *tool.Report) (start time.Time, estimated bool) {
	line := f.reader.Offset() - 1 // the offset is in the line of the report
	for i, p := range f.parts {
		if next := i + 1; line >= p.Offset && (next == len(f.parts) || line < f.parts[next].Offset) && f.base+line < f.past {
			return f.starts[i].At, f.starts[i].Source == rundir.StartFromFile
		}
	}
	if first.ElapsedSeconds.Known {
		return at.Add(-time.Duration(first.ElapsedSeconds.Value * float64(time.Second))), true
	}
	return at, false
}

// endRun records the end of the current run. Its tracker does the rest.
func (f *logFile) endRun(p *ingest.Part, at time.Time) {
	t := f.current
	if t == nil {
		f.copy.forget(p.End)
		return
	}
	f.current = nil
	output := p.Feed.Output()
	if info, err := f.reader.File().Stat(); err == nil && !output.Complete && info.ModTime().Before(at) {
		at = info.ModTime()
	}
	past := p.End <= f.past
	size, end := p.End-f.copy.start, max(0, p.End-f.base)
	head, headSize := f.source.Head, f.source.HeadSize
	own, err := f.copy.cut(p.End)
	if err != nil {
		t.fault("end the copy of the log", err)
	}
	f.spawn(func() { // in another goroutine: the disk may be slow, and the log continues
		if own != nil {
			if err := errors.Join(own.Sync(), own.Close()); err != nil {
				t.fault("write the copy of the log", err)
			}
		}
		_, err := t.dir.Update(func(m *rundir.Meta) {
			if m.Ended() {
				return
			}
			ended := at.UTC()
			if past { // written earlier at an unknown time: as an import does
				ended = m.StartedAt.Add(time.Duration(p.Seconds * float64(time.Second)))
				if now := time.Now().UTC(); ended.After(now) { // the tool's clock is fast
					ended = now
				}
			}
			if ended.Before(m.StartedAt) {
				ended = m.StartedAt
			}
			m.EndedAt = &ended
			m.Log.End = end
			m.Log.Copied = min(m.Log.Copied, size)
			if headSize > m.Log.HeadSize {
				m.Log.Head, m.Log.HeadSize = head, headSize
			}
			m.Conclude(output)
		})
		if err != nil {
			t.fault("end a run of the log file", err)
		}
	})
}

// failureLog logs a lasting failure once a minute.
type failureLog struct{ last time.Time }

func (l *failureLog) report(log *slog.Logger, what string, err error) {
	if time.Since(l.last) < time.Minute {
		return
	}
	l.last = time.Now()
	log.Error(what, "err", err)
}
