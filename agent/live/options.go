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
	// Tools are those that can be recognised now.
	Tools func() tool.Set
	// Targets are the servers sampled now.
	Targets func() []engine.Target
	// ReadSettings has the targets' settings read soon; see engine.Sampler.
	ReadSettings func()
	// Logs are the files that tools write by themselves.
	Logs func() []Log
	// Settled is called by the run's owner once, when the tool has ended and its output has
	// been read to the end. A restart in that moment may call it again.
	Settled func(rundir.Directory, ingest.Snapshot)
	// Began is called when this process becomes the run's owner, perhaps again
	// after a restart and perhaps for a run that has ended already.
	Began func(rundir.Directory, rundir.Meta)

	// Interval is called with each interval report as it is read, in order and
	// from the run's first one also after a restart. elapsed is where it ends on
	// the run's axis, as in Intervals; fresh is false for what was written
	// before it was looked for. Changed is called when anything about any run may
	// have changed. Both must neither block nor call the Watcher, and the report
	// is the parser's.
	Interval func(id string, elapsed float64, r *tool.Report, fresh bool)
	Changed  func()

	// Limits are asked for each time that one is needed, so they can change
	// while the Watcher runs.
	Limits func() Limits
	Poll   time.Duration // of run.json and locks; default 500 ms
	Logger *slog.Logger
}

// Limits bound what a Watcher does at a time.
type Limits struct {
	DrainTimeout time.Duration // default 5 minutes
	MaxLive      int           // runs that are followed; default 64
	MaxKept      int           // summaries of ended runs; default 256
}

// limits are the present ones, with the defaults filled in.
func (o *Options) limits() Limits {
	l := o.Limits()
	if l.DrainTimeout <= 0 {
		l.DrainTimeout = 5 * time.Minute
	}
	if l.MaxLive <= 0 {
		l.MaxLive = 64
	}
	if l.MaxKept <= 0 {
		l.MaxKept = 256
	}
	return l
}

// Log is a set of files that a tool writes by itself.
type Log struct {
	Glob   string
	Tool   string // empty: found out from the content
	Labels map[string]string
}

func (o *Options) defaults() {
	if o.Poll <= 0 {
		o.Poll = 500 * time.Millisecond
	}
	if o.Limits == nil {
		o.Limits = func() Limits { return Limits{} }
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
	if o.Interval == nil {
		o.Interval = func(string, float64, *tool.Report, bool) {}
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	if o.Tools == nil {
		o.Tools = func() tool.Set { return nil }
	}
}
