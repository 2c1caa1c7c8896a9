package live

import (
	"context"
	"log/slog"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/toollog"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// Options of a Watcher.
type Options struct {
	DataDir string
	// Only restricts the watcher to these ids, if there are any.
	Only []string

	// The configuration as it is now; each is called whenever its value is needed. Only Limits is required.
	Tools    func() tool.Set           // that can be recognised
	Topology func() *topology.Topology // of the sampled servers: a new value after a change
	Logs     func() []toollog.Log      // that tools write by themselves
	Bounds   func() Bounds

	// Sampler samples the servers; nil: nothing does.
	Sampler Sampler
	// Logins are those that runs lend; nil: none are borrowed.
	Logins Logins
	// Witnesses are asked during stalls; nil: nothing is.
	Witnesses Witnesses
	// Sink receives the events of the runs; may be nil.
	Sink Sink

	// Machine is this machine; default: as reported by the system.
	Machine *topology.Machine
	// AwaitCondition waits until a condition of --capture-when holds, and returns it with its value; empty when the context
	// is done. nil: the conditions are ignored.
	AwaitCondition func(context.Context, rundir.Directory, *rundir.Meta) string
	// Clock of this machine; nil: clock.System. Samples is the axis of the frames; zero: the wall
	// clock.
	Clock   *clock.Clock
	Samples clock.Axis
	Poll    time.Duration // of run.json and locks; default 1 s: changes wake it
	Logger  *slog.Logger
}

// Sampler is what a Watcher needs of [engine.Sampler], which samples the servers of all runs.
type Sampler interface {
	// ReadSettings requests that the targets' settings are read at the next tick.
	ReadSettings()
	// ReadStatements returns the targets' counters by statement.
	ReadStatements(context.Context, map[string]*engine.StatementReading) map[string]engine.StatementsAnswer
	// SampleNow requests a sample between two ticks.
	SampleNow()
	// Late is for how long samples were due but not started.
	Late() time.Duration
}

// Logins are the logins that wrappers of runs lend.
type Logins interface {
	// Borrow adds to the topology the servers whose login the wrapper of a run lends, until GiveBack is called with the
	// same directory. It may take 2 s.
	Borrow(rundir.Directory)
	GiveBack(rundir.Directory)
}

// Witnesses are connections to the targets of a run, on which they are asked during a stall.
type Witnesses interface {
	// Arm opens the connections, until Disarm.
	Arm(run string, targets []engine.Target)
	Disarm(run string)
	// Testify asks the targets.
	Testify(ctx context.Context, run string) []evidence.Answer
}

// unsampled is the Sampler, the Logins and the Witnesses of a Watcher without them.
type unsampled struct{}

func (unsampled) ReadSettings()             {}
func (unsampled) SampleNow()                {}
func (unsampled) Late() time.Duration       { return 0 }
func (unsampled) Borrow(rundir.Directory)   {}
func (unsampled) GiveBack(rundir.Directory) {}

func (unsampled) Arm(string, []engine.Target)                       {}
func (unsampled) Disarm(string)                                     {}
func (unsampled) Testify(context.Context, string) []evidence.Answer { return nil }
func (unsampled) ReadStatements(
	context.Context, map[string]*engine.StatementReading,
) map[string]engine.StatementsAnswer {
	return nil
}

// isSampled reports whether anything samples the servers.
func (o *Options) isSampled() bool { return o.Sampler != unsampled{} }

// Bounds are what a Watcher keeps and follows at a time.
type Bounds struct {
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
	if o.Sampler == nil {
		o.Sampler = unsampled{}
	}
	if o.Logins == nil {
		o.Logins = unsampled{}
	}
	if o.Witnesses == nil {
		o.Witnesses = unsampled{}
	}
	if o.Machine == nil {
		here := topology.LocalMachine()
		o.Machine = &here
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
