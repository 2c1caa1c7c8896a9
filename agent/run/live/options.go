package live

import (
	"context"
	"log/slog"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/toollog"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// Options of a Watcher.
type Options struct {
	DataDir string
	// Only restricts the watcher to these ids, if there are any.
	Only []string
	// Tools returns the tools that can currently be recognised.
	Tools func() tool.Set
	// Topology returns the currently sampled servers: a new value after the configuration has
	// changed.
	Topology func() *topology.Topology
	// Borrow adds to the topology the servers whose login the wrapper of a run lends, until GiveBack
	// is called with the same directory. It may take 2 s.
	Borrow, GiveBack func(rundir.Directory)
	// Machine is this machine; default: as reported by the system.
	Machine *topology.Machine
	// ReadSettings requests that the targets' settings are read at the next tick.
	ReadSettings func()
	// ReadStatements returns the targets' counters by statement, see
	// [engine.Sampler.ReadStatements].
	ReadStatements func(context.Context, map[string]*engine.StatementReading) map[string]engine.StatementsAnswer
	// Arm opens connections to the targets of a run, with which Testify asks them during a stall, until Disarm.
	Arm     func(run string, targets []engine.Target)
	Disarm  func(run string)
	Testify func(ctx context.Context, run string) []evidence.Answer
	// Clock of this machine; nil: clock.System. Samples is the axis of the frames; zero: the wall
	// clock.
	Clock   *clock.Clock
	Samples clock.Axis
	// SampleNow requests a sample of the servers between two ticks.
	SampleNow func()
	// SamplerLate is for how long samples were due but not started, see [engine.Sampler.Late].
	SamplerLate func() time.Duration
	// Logs returns the files that tools write by themselves.
	Logs func() []toollog.Log
	// Sink receives the events of the runs; may be nil.
	Sink Sink

	// Limits returns the current limits. It is called whenever a limit is needed.
	Limits func() Limits
	Poll   time.Duration // of run.json and locks; default 1 s: changes wake it
	Logger *slog.Logger
}

// Sink receives the events of the runs that a Watcher follows. Its methods are called from several
// goroutines and must not call the Watcher. Interval, Sampled and Changed must not block either.
type Sink interface {
	// Began: this process became the run's owner, perhaps again after a restart, perhaps after the
	// run's end.
	Began(rundir.Directory, rundir.Meta)
	// Identified: this process, the run's owner, recorded servers or hosts of the run.
	Identified(rundir.Directory, rundir.Meta)
	// Interval: the tool has reported an interval that ends at elapsed seconds on the run's axis.
	// The intervals of a run come in order, from the first one, also after a restart. fresh is
	// false for intervals written before the agent looked. The report is valid only during the
	// call.
	Interval(id string, elapsed float64, r *tool.Report, fresh bool)
	// Sampled: a tick's samples of the run's servers.
	Sampled(id string, f engine.Frame)
	// Hosts: a tick's samples of the run's machines.
	Hosts(id string, f engine.Frame)
	// Settled: the tool has ended and its output was read to the end. Called for the run's owner,
	// once or, with a restart in between, twice.
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

// Limits bound what a Watcher keeps and follows at a time.
type Limits struct {
	DrainTimeout time.Duration // for runs without their own
	MaxLive      int           // runs that are followed
	MaxKept      int           // summaries of ended runs
}

func (o *Options) defaults() {
	if o.Poll <= 0 {
		o.Poll = time.Second
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
	if o.Borrow == nil {
		o.Borrow, o.GiveBack = func(rundir.Directory) {}, func(rundir.Directory) {}
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
	if o.Arm == nil {
		o.Arm, o.Disarm = func(string, []engine.Target) {}, func(string) {}
	}
	if o.Testify == nil {
		o.Testify = func(context.Context, string) []evidence.Answer { return nil }
	}
	if o.SampleNow == nil {
		o.SampleNow = func() {}
	}
	if o.Logs == nil {
		o.Logs = func() []toollog.Log { return nil }
	}
	if o.Sink == nil {
		o.Sink = Discard{}
	}
	if o.Tools == nil {
		o.Tools = func() tool.Set { return nil }
	}
}
