package live

import (
	"context"
	"log/slog"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// Options of a Watcher.
type Options struct {
	DataDir string
	// Only these ids are followed, if any are given.
	Only []string
	// Tools returns those that can be recognised now.
	Tools func() tool.Set
	// Topology returns the servers that are sampled now, and another one when the
	// configuration has changed.
	Topology func() *topology.Topology
	// Machine is this one; default: as the system reports it.
	Machine *topology.Machine
	// ReadSettings has the targets' settings read at the next tick.
	ReadSettings func()
	// ReadStatements returns what targets count by statement, see
	// [engine.Sampler.ReadStatements].
	ReadStatements func(context.Context, map[string]*engine.StatementReading) map[string]engine.StatementsAnswer
	// Clock is that of this machine; nil: clock.System. Samples is the axis of the
	// frames, the wall clock if it is zero.
	Clock   *clock.Clock
	Samples clock.Axis
	// SampleNow has the servers sampled between two ticks.
	SampleNow func()
	// SamplerLate is for how long samples were due and not begun, see [engine.Sampler.Late].
	SamplerLate func() time.Duration
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
// called from several goroutines and must not call the Watcher; Interval, Sampled
// and Changed must not block either.
type Sink interface {
	// Began: this process became the run's owner, perhaps again after a restart,
	// perhaps of a run that has ended.
	Began(rundir.Directory, rundir.Meta)
	// Identified: servers or hosts of a run that this process owns were recorded.
	Identified(rundir.Directory, rundir.Meta)
	// Interval: the tool has reported an interval, which ends at elapsed seconds
	// on the run's axis. A run's intervals come in order and from the first one,
	// also after a restart; fresh is false for those that were written before
	// they were looked for. The report is valid during the call.
	Interval(id string, elapsed float64, r *tool.Report, fresh bool)
	// Sampled: what the run's own servers answered at a tick.
	Sampled(id string, f engine.Frame)
	// Hosts: what the run's own machines did at a tick.
	Hosts(id string, f engine.Frame)
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

// Identified implements Sink.
func (Discard) Identified(rundir.Directory, rundir.Meta) {}

// Interval implements Sink.
func (Discard) Interval(string, float64, *tool.Report, bool) {}

// Sampled implements Sink.
func (Discard) Sampled(string, engine.Frame) {}

// Hosts implements Sink.
func (Discard) Hosts(string, engine.Frame) {}

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
	// Selection is the servers of the runs in the files; nil: unknown.
	Selection *rundir.Selection
	// Generator is the machine that makes the load; empty: unknown.
	Generator string
}

func (o *Options) defaults() {
	if o.Poll <= 0 {
		o.Poll = 500 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Topology == nil {
		none := &topology.Topology{}
		o.Topology = func() *topology.Topology { return none }
	}
	if o.Machine == nil {
		here := topology.LocalMachine()
		o.Machine = &here
	}
	if o.ReadSettings == nil {
		o.ReadSettings = func() {}
	}
	if o.ReadStatements == nil {
		o.ReadStatements = func(context.Context, map[string]*engine.StatementReading) map[string]engine.StatementsAnswer {
			return nil
		}
	}
	if o.SampleNow == nil {
		o.SampleNow = func() {}
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
