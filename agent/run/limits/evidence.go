package limits

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Evidence is what is known about a run's own servers and machines, and about its load, while the tool ran. Unknown
// values are as in package series; texts that do not apply are empty.
type Evidence struct {
	// Tool is the name of the tool.
	Tool string
	// Seconds is how long the run took.
	Seconds float64
	// Threads is the number of the tool's clients. Each waits for an answer before it sends the next request, unless
	// Rate is known: the configured transactions per second. Queue is how many transactions waited for a thread of the
	// tool at its end.
	Threads, Rate, Queue float64
	// Throughput is in transactions per second, Statements for each transaction.
	Throughput, Statements float64
	// MinLatency is the least latency of a transaction that the tool printed, in seconds.
	MinLatency float64
	// RoundTrip is the least time in seconds from the agent's machine to RoundTripTo, to which the tool connects, and
	// back; MeanRoundTrip is the mean of all RoundTrips.
	RoundTrip, MeanRoundTrip float64
	RoundTrips               int
	RoundTripTo              string
	// RefusedByServer is a message of the tool about connections that a server refused.
	RefusedByServer string
	// NoPort and NoFile are messages of the tool about connections for which its machine had
	// no port, or its process no file.
	NoPort, NoFile string
	// OtherLoad names other runs on the same servers, or describes what else used them;
	// ForeignShare is the share of statements that the tool did not send.
	OtherLoad    string
	ForeignShare float64
	Machines     []MachineEvidence
	Servers      []ServerEvidence
	// Proxies are between the tool and the servers.
	Proxies []ProxyEvidence
	// NotRepresented describes servers and machines that were sampled too little to be evidence.
	NotRepresented []Missing
}

// Level is a value over the run: its mean, and the share of the time in which it was high enough to be a limit.
type Level struct{ Mean, High float64 }

// LeastSamples is how many samples are needed to know what a server or a machine did.
const LeastSamples = 4

// The values above which a level is high.
const (
	BusyCPU     = 0.9
	BusyCore    = 0.95
	HighSteal   = 0.1
	BusyDisk    = 0.9
	BusyNetwork = 0.8
	Paused      = 0.2 // of flow control
)

// ServerEvidence is what one server reported.
type ServerEvidence struct {
	Name string
	// Engine is the name of its engine. Reports is whether there are values of a measure; nil: of all.
	Engine  string
	Reports func(*measure.Measure) bool
	Samples int
	// Sessions is the mean number of active sessions by class, nil if unknown. Sessions that wait because writes are
	// held back are in class flow_control, whatever they wait for; HeldBack has their number by their own class.
	Sessions, HeldBack map[string]float64
	// Stopped is, by class, when nearly all clients were in it and no transaction ended.
	Stopped map[string]Standstill
	// States are the names of what sessions of a class wait for, if they are known.
	States []StateEvidence
	// FlowControl is the share of time in which writes were held back, FlowControlSent how often the server requested
	// that, which only Galera reports.
	FlowControl     Level
	FlowControlSent float64
	LagSeconds      float64 // the highest
	// CPU is the use of the server's machine as the database reports it, unknown for most databases.
	CPU             Level
	ConnectionLimit float64 // unknown if it was not read during the run
	Refused         float64 // connections
	PoolReads       float64 // pages read from disk per second
	PoolMisses      float64 // share of the pages that were asked for
	// Stalls are the states that its engine declares.
	Stalls []StallEvidence
	// Meanings are the tests that its settings give for a limit, see [cause.Meaning].
	Meanings map[cause.Limit]string
}

// withEnoughSamples returns the evidence without the values that have too few samples.
func (e *Evidence) withEnoughSamples() *Evidence {
	out, unknown := *e, series.Unknown()
	out.Machines, out.Servers = slices.Clone(e.Machines), slices.Clone(e.Servers)
	for i := range out.Machines {
		if m := &out.Machines[i]; m.Samples < LeastSamples {
			none, level := ThreadsEvidence{unknown, unknown, unknown, unknown}, Level{unknown, unknown}
			m.CPU, m.BusiestCore, m.Steal, m.Disk, m.Network, m.Tool, m.Local, m.Waiting = level,
				level, level, level, level, none, none, unknown
		}
	}
	for i := range out.Servers {
		if s := &out.Servers[i]; s.Samples < LeastSamples {
			s.Sessions, s.Stopped, s.PoolReads, s.FlowControl, s.CPU = nil, nil, unknown, Level{unknown, unknown}, Level{unknown, unknown}
		}
	}
	out.Proxies = slices.DeleteFunc(slices.Clone(e.Proxies), func(p ProxyEvidence) bool { return p.Samples < LeastSamples })
	if e.RoundTrips < LeastSamples {
		out.RoundTrip = unknown
	}
	return &out
}

// engine returns the engine of the run's servers: of the first one if there are several.
func (e *Evidence) engine() string {
	if len(e.Servers) == 0 {
		return ""
	}
	return e.Servers[0].Engine
}
