package live

import (
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

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
