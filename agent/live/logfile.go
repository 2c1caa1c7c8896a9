package live

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// recentLog is how old the last write to a file that was never seen before may
// be for its last run to be taken as live.
const recentLog = time.Minute

// scanLogs starts to follow log files that are new under the globs.
func (w *Watcher) scanLogs(ctx context.Context, followers *sync.WaitGroup) {
	for _, spec := range w.opts.Logs() {
		paths, err := filepath.Glob(spec.Glob)
		if err != nil {
			continue // the configuration is checked when it is read
		}
		for _, path := range paths {
			w.followLog(ctx, followers, path, spec)
		}
	}
	w.mu.Lock()
	w.scans++
	w.mu.Unlock()
}

func (w *Watcher) followLog(ctx context.Context, followers *sync.WaitGroup, path string, spec Log) {
	w.mu.Lock()
	followed, first := w.logs[path], w.scans == 0
	w.mu.Unlock()
	if followed {
		return
	}
	t := w.logTool(path, spec)
	if t == nil {
		return // nothing in it yet that tells the tool: looked at again
	}
	f := &logFile{watcher: w, path: path, spec: spec, tool: t, log: w.opts.Logger.With("log", path), old: first}
	w.mu.Lock()
	w.logs[path] = true
	w.mu.Unlock()
	followers.Go(func() {
		if err := f.follow(ctx, followers); err != nil && ctx.Err() == nil {
			f.log.Error("stopped following the log file, will try again", "err", err)
		}
		w.mu.Lock()
		delete(w.logs, path)
		w.mu.Unlock()
	})
}

// logTool is the configured tool, or the one that the file looks like.
func (w *Watcher) logTool(path string, spec Log) *tool.Tool {
	if spec.Tool != "" {
		return w.opts.Tools().ByName(spec.Tool)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	head := make([]byte, 64<<10)
	n, _ := io.ReadFull(file, head) // a short file is the normal case
	return w.opts.Tools().Sniff(head[:n])
}

// logFile is a file that a tool writes by itself, in which many runs may stand
// one after the other. A run begins behind the line with which the last report
// of the one before it was complete.
//
// One goroutine follows the file, parses it and hands the reports to the
// tracker of the present run, which then drains and closes on its own.
type logFile struct {
	watcher *Watcher
	path    string
	spec    Log
	tool    *tool.Tool
	log     *slog.Logger
	old     bool // was there before we first looked

	source   rundir.LogSource
	parser   tool.Parser
	number   int // the parser's number of the present run, 0 before the first
	current  *tracker
	boundary int64 // behind the line that completed the last report
	lineAt   int64 // where the line that is being parsed begins
	recent   ingest.LineEnds
	held     bool // it has given a report of the present run
	finished bool // the present run's summary has come with it
	idle     time.Duration

	// of the content that was there when following began
	past     int64 // its size
	written  time.Time
	starts   []time.Time  // estimated start of each run in it, oldest first
	resuming *rundir.Meta // a run that was live when we last stopped
}

func (f *logFile) follow(ctx context.Context, followers *sync.WaitGroup) error {
	begin, err := f.begin(ctx)
	if err != nil {
		return err
	}
	r, err := follow.Open(f.path, follow.Options{Offset: begin, Notifier: f.watcher.notifier})
	if err != nil {
		return err
	}
	defer r.Close()
	f.parser, f.boundary = f.tool.NewParser(tool.Description{}), begin
	generation := 0
	for {
		l, err := f.next(ctx, r)
		if errors.Is(err, errIdle) {
			f.endIdle(ctx, followers)
			continue
		}
		if err != nil {
			return err
		}
		if l.Generation != generation { // replaced or truncated: what follows is new
			generation = l.Generation
			f.closeParser(ctx, followers, time.Now())
			f.boundary, f.past, f.starts, f.recent = 0, 0, nil, nil
			if f.source, err = rundir.Identify(f.path); err != nil {
				return err
			}
		}
		f.line(ctx, followers, l)
	}
}

var errIdle = errors.New("log file idle")

// next waits for a line, or for so long that the run must be over.
func (f *logFile) next(ctx context.Context, r *follow.Reader) (follow.Line, error) {
	if f.current == nil {
		return r.Next(ctx)
	}
	f.idle = recentLog
	if i := f.current.snapshot(time.Now()).IntervalSeconds; i.Known {
		f.idle = max(f.idle, time.Duration(10*i.Value*float64(time.Second)))
	}
	wait, cancel := context.WithTimeout(ctx, f.idle)
	defer cancel()
	l, err := r.Next(wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return l, errIdle
	}
	return l, err
}

func (f *logFile) line(ctx context.Context, followers *sync.WaitGroup, l follow.Line) {
	at := time.Now()
	if l.Generation == 0 && l.Offset < f.past {
		at = f.written
	}
	reported, end := false, l.Offset+int64(len(l.Text))+1
	f.lineAt, f.held = l.Offset, false
	f.recent.Add(l)
	verdict := f.parser.Parse(tool.Line{Text: l.Text, Cut: l.Cut}, func(r *tool.Report) {
		reported = true
		f.report(ctx, followers, r, at)
	})
	if f.current != nil {
		f.current.feed.Verdict(verdict)
	}
	if reported {
		f.boundary = end
	}
	f.endFinished(at)
}

// report hands a report to its run, which it may begin or end.
func (f *logFile) report(ctx context.Context, followers *sync.WaitGroup, r *tool.Report, at time.Time) {
	if r.Run != f.number {
		if f.held { // reports held back until this line, with which the next run begins
			f.boundary = f.lineAt
		}
		f.endFinished(at)
		f.end(at, f.boundary, false)
		f.number = r.Run
		f.beginRun(ctx, followers, r, at)
	}
	if f.current == nil {
		return
	}
	f.held = true
	f.current.feed.Apply(r, at)
	f.finished = f.finished || r.Kind == tool.Summary && !r.Checkpoint
}

// endFinished ends the present run if its summary has come. Its last lines are
// the next run's if it says the same without them: a summary may be held back
// until it is seen what follows.
func (f *logFile) endFinished(at time.Time) {
	if !f.finished {
		return
	}
	f.finished = false
	if f.current != nil {
		f.boundary = f.shortest()
	}
	f.end(at, f.boundary, true)
}

func (f *logFile) shortest() int64 {
	file, err := os.Open(f.path)
	if err != nil {
		return f.boundary
	}
	defer file.Close()
	now := time.Now()
	f.current.mu.Lock()
	part := ingest.LogPart{Offset: f.current.meta.Log.Offset, End: f.boundary}
	f.current.mu.Unlock()
	for _, at := range f.recent {
		if at <= f.boundary {
			part.Ends = append(part.Ends, at)
		}
	}
	part.Snapshot = f.current.feed.Snapshot(rundir.Meta{EndedAt: &now, ClosedAt: &now}, now)
	end, err := part.Shortest(file, f.tool)
	if err != nil {
		return f.boundary
	}
	return end
}

// endIdle ends a run whose tool has stopped writing without a summary.
func (f *logFile) endIdle(ctx context.Context, followers *sync.WaitGroup) {
	if writtenBy(f.source) {
		return // the tool is alive and silent
	}
	f.closeParser(ctx, followers, time.Now())
}

func (f *logFile) closeParser(ctx context.Context, followers *sync.WaitGroup, at time.Time) {
	f.parser.Close(func(r *tool.Report) { f.report(ctx, followers, r, at) })
	f.endFinished(at)
	f.end(at, f.boundary, false)
	f.parser, f.number = f.tool.NewParser(tool.Description{}), 0
}

// end writes the present run's end; its tracker does the rest.
func (f *logFile) end(at time.Time, offset int64, whole bool) {
	t := f.current
	if t == nil {
		return
	}
	f.current = nil
	if info, err := os.Stat(f.path); err == nil && !whole && info.ModTime().Before(at) {
		at = info.ModTime()
	}
	output := t.feed.Output()
	_, err := t.dir.Update(func(m *rundir.Meta) {
		if m.Ended() {
			return
		}
		end := at.UTC()
		if end.Before(m.StartedAt) {
			end = m.StartedAt
		}
		m.EndedAt = &end
		m.Log.End = max(offset, m.Log.Offset)
		m.Conclude(output)
	})
	if err != nil {
		t.fault("end a run of the log file", err)
	}
}
