package live

import (
	"log/slog"
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Options of a Watcher.
type Options struct {
	DataDir string
	// Only these ids are followed, if any are given.
	Only []string
	// Tools returns those that can be recognised now.
	Tools func() tool.Set
	// Targets returns the servers that are sampled now.
	Targets func() []engine.Target
	// ReadSettings has the targets' settings read at the next tick.
	ReadSettings func()
	// Logs returns the files that tools write by themselves.
	Logs func() []Log
	// Sink receives what happens to the runs; nil: nothing does.
	Sink Sink

	// Limits returns the current limits. It is called each time that one is
	// needed.
	Limits func() Limits
	Poll   time.Duration // of run.json and locks; default 500 ms
	Logger *slog.Logger
}

// Sink receives what happens to the runs that a Watcher follows. Its methods are
// called from several goroutines and must not call the Watcher; Interval and
// Changed must not block either.
type Sink interface {
	// Began: this process became the run's owner, perhaps again after a restart,
	// perhaps of a run that has ended.
	Began(rundir.Directory, rundir.Meta)
	// Interval: the tool has reported an interval, which ends at elapsed seconds
	// on the run's axis. A run's intervals come in order and from the first one,
	// also after a restart; fresh is false for those that were written before
	// they were looked for. The report is valid during the call.
	Interval(id string, elapsed float64, r *tool.Report, fresh bool)
	// Settled: the tool has ended and its output was read to the end. Called for
	// the run's owner, once or, if a restart intervenes, twice.
	Settled(rundir.Directory, ingest.Snapshot)
	// Changed: something about any run may have changed.
	Changed()
}

// Discard is a Sink that ignores everything.
type Discard struct{}

// Began implements Sink.
func (Discard) Began(rundir.Directory, rundir.Meta) {}

// Interval implements Sink.
func (Discard) Interval(string, float64, *tool.Report, bool) {}

// Settled implements Sink.
func (Discard) Settled(rundir.Directory, ingest.Snapshot) {}

// Changed implements Sink.
func (Discard) Changed() {}

// Limits bound what a Watcher does at a time.
type Limits struct {
	DrainTimeout time.Duration // of runs that have none of their own
	MaxLive      int           // runs that are followed
	MaxKept      int           // summaries of ended runs
}

// Log is a set of files that a tool writes by itself.
type Log struct {
	Glob   string
	Tool   string // empty: recognised by the content
	Labels map[string]string
}

func (o *Options) defaults() {
	if o.Poll <= 0 {
		o.Poll = 500 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Targets == nil {
		o.Targets = func() []engine.Target { return nil }
	}
	if o.ReadSettings == nil {
		o.ReadSettings = func() {}
	}
	if o.Logs == nil {
		o.Logs = func() []Log { return nil }
	}
	if o.Sink == nil {
		o.Sink = Discard{}
	}
	if o.Tools == nil {
		o.Tools = func() tool.Set { return nil }
	}
}
