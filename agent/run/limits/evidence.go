package limits

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
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

// ThreadsEvidence is what the threads of some processes did: how many ran and how many waited for
// a core on average, the share of the time in which a CPU quota held them, and how many Cores they
// may use.
type ThreadsEvidence struct{ Running, Waiting, Held, Cores float64 }

// MachineEvidence is what one machine did. Shares are from 0 to 1.
type MachineEvidence struct {
	Name              string
	Samples           int
	Generator, Server bool
	Cores             int
	// Servers are the run's servers on it.
	Servers              []string
	CPU, BusiestCore     Level   // high: from BusyCPU, BusyCore
	Kernel               float64 // share of all cores for interrupts, mostly for the network
	Steal, Disk, Network Level   // high: from HighSteal, BusyDisk, BusyNetwork
	DiskWait             float64 // seconds of a read or write
	DiskReadWait         float64 // seconds of a read
	// Tool and Local are the threads of the tool, and of servers and proxies beside it. Waiting is how
	// many tasks of the machine waited for a core, on average.
	Tool, Local ThreadsEvidence
	Waiting     float64
	// ToolCPU, ServersCPU and OthersCPU are the seconds of CPU that the tool, servers with their
	// proxies, and other programs used; OtherPrograms has those that used most.
	ToolCPU, ServersCPU, OthersCPU float64
	OtherPrograms                  []ProgramEvidence
}

// ProgramEvidence is what one program used.
type ProgramEvidence struct {
	Name string
	CPU  float64 // seconds
}

// foreign is the share of other programs in the CPU time of all programs. It is unknown if the processes of the tool,
// or of the servers on the machine, are unknown.
func (m *MachineEvidence) foreign() float64 {
	own := m.ToolCPU + m.ServersCPU
	if !m.Server {
		own = m.ToolCPU + orZero(m.ServersCPU)
	}
	if !(own+m.OthersCPU > 0) {
		return series.Unknown()
	}
	return m.OthersCPU / (own + m.OthersCPU)
}

// Use returns who used the cores, as shares of what was used, without what other virtual machines took. It is unknown
// if the processes of the tool, or of the servers on the machine, are unknown.
func (m *MachineEvidence) Use() cause.CPUUse {
	own := m.ToolCPU + m.ServersCPU
	if !m.Server {
		own = m.ToolCPU + orZero(m.ServersCPU)
	}
	all := own + m.OthersCPU
	if !(all > 0) {
		unknown := series.Unknown()
		return cause.CPUUse{Tool: unknown, Servers: unknown, Other: unknown, Kernel: unknown}
	}
	kernel := 0.0
	if used := m.CPU.Mean - orZero(m.Steal.Mean); used > 0 {
		kernel = min(1, orZero(m.Kernel)/used)
	}
	programs := (1 - kernel) / all
	return cause.CPUUse{Tool: m.ToolCPU * programs, Servers: orZero(m.ServersCPU) * programs, Other: m.OthersCPU * programs, Kernel: kernel}
}

// ServerCores is how many cores the servers on the machine used on average, in a run of some seconds.
func (m *MachineEvidence) ServerCores(seconds float64) float64 {
	if m.ServersCPU > 0 {
		return m.ServersCPU / seconds
	}
	if m.Generator {
		return series.Unknown()
	}
	return m.CPU.Mean * float64(m.Cores)
}

// LargestUser names the tool or the servers beside it, whichever used more of the CPU; empty if that is not known. Trust
// and limits both depend on it.
func (m *MachineEvidence) LargestUser(tool string) string {
	use := m.Use()
	switch {
	case use.Tool > use.Servers:
		return tool
	case use.Servers >= use.Tool && use.Servers > 0:
		return m.servers()
	}
	return ""
}

// programs describes who used the CPU, after a colon; empty if that is not known.
func (m *MachineEvidence) programs(tool string) string {
	use := m.Use()
	if !series.IsKnown(use.Tool) {
		return ""
	}
	var names []string
	for _, p := range m.OtherPrograms {
		if share := use.Other * p.CPU / m.OthersCPU; share >= namedProgram && len(names) < mostPrograms {
			names = append(names, p.Name+" "+table.Share(share))
		}
	}
	others := table.Share(use.Other)
	if len(names) > 0 {
		others += " (" + strings.Join(names, ", ") + ")"
	}
	text := tool + " " + table.Share(use.Tool)
	if m.ServersCPU > 0 {
		text += ", " + m.servers() + " " + table.Share(use.Servers)
	}
	if use.Kernel >= namedProgram {
		others += ", interrupts (network) " + table.Share(use.Kernel)
	}
	return ": of what was used, " + text + ", other programs " + others
}

// servers names the run's servers on the machine.
func (m *MachineEvidence) servers() string {
	if len(m.Servers) == 0 {
		return "the servers"
	}
	return listed(m.Servers)
}

// listed returns words as a list in a sentence.
func listed(words []string) string {
	n := len(words)
	if n < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
}

const (
	// namedProgram is the share of the CPU above which a program is named; at most mostPrograms are.
	namedProgram = 0.05
	mostPrograms = 3
)

// The values above which a level is high.
const (
	BusyCPU     = 0.9
	BusyCore    = 0.95
	HighSteal   = 0.1
	BusyDisk    = 0.9
	BusyNetwork = 0.8
	Paused      = 0.2 // of flow control
	lowSteal    = 0.05
)

// Slowdown compares the throughput while a server was in a state with the throughput in the rest of the run.
type Slowdown struct {
	// Held is the share of the run's intervals in that state.
	Held float64
	// During and Otherwise are transactions per second, unknown if there are too few
	// intervals of one of them.
	During, Otherwise float64
	// Stopped is the share of the run's intervals in that state in which no transaction ended.
	Stopped float64
}

// lost returns the share of the clients' time that the state cost, which may be unknown.
func (s *Slowdown) lost() float64 {
	slower := s.Held * max(0, 1-s.During/s.Otherwise)
	if !series.IsKnown(slower) {
		return s.Stopped
	}
	return max(slower, orZero(s.Stopped))
}

// text describes the transactions during the state.
func (s *Slowdown) text() string {
	text := fmt.Sprintf(" for %s of the time", table.Share(s.Held))
	if s.During < s.Otherwise { // neither is unknown
		return text + fmt.Sprintf(": %s transactions/s then, %s otherwise", table.Rounded(s.During), table.Rounded(s.Otherwise))
	}
	return text + fmt.Sprintf(": in %s of the time no transaction ended", table.Share(s.Stopped))
}

// Standstill is a time in which the tool's output shows that no transaction ended: Seconds in Times stretches. The
// longest stretch is from second From to second To of the run.
type Standstill struct {
	Seconds, From, To float64
	Times             int
}

// text is a clause about the standstill in a run of some seconds.
func (s Standstill) text(of float64) string {
	text := fmt.Sprintf("no transaction ended for %s of %s s", table.Rounded(s.Seconds), table.Rounded(of))
	if s.Times == 1 {
		return text + fmt.Sprintf(" in one stretch, from second %.0f on", s.From)
	}
	return text + fmt.Sprintf(" in %d stretches, the longest one from second %.0f to second %.0f", s.Times, s.From, s.To)
}

// StateEvidence is how many sessions were in a state, on average.
type StateEvidence struct {
	Class, Name string
	Sessions    float64
}

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

// ProxyEvidence is what one proxy reported.
type ProxyEvidence struct {
	Name, Engine string
	Samples      int
	// Queue is how many clients waited for a connection to a server, on average.
	Queue float64
	// Limit is how many connections to servers it allows, unknown if that is not limited.
	Limit float64
	// Thread is the use of its busiest thread. High: from BusyCore.
	Thread Level
	// Cores is how many cores it used.
	Cores float64
}

// StallEvidence is how long a server was in a state in which it does less, and what that cost. From is the value from
// which on it is in that state.
type StallEvidence struct {
	*cause.Stall
	Slowdown
	From string
}

// enough returns the evidence without the values that have too few samples.
func (e *Evidence) enough() *Evidence {
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

// waits returns what sessions of the run's servers wait for, states first.
func (e *Evidence) waits() (all []cause.Wait) {
	for i := range e.Servers {
		for _, w := range cause.WaitsOf(e.Servers[i].Engine, e.Servers[i].Reports) {
			if !slices.ContainsFunc(all, func(o cause.Wait) bool { return o.Class == w.Class && o.State == w.State }) {
				all = append(all, w)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b cause.Wait) int { return cmp.Compare(min(1, len(b.State)), min(1, len(a.State))) })
	return all
}

// orZero returns v, 0 if it is unknown.
func orZero(v float64) float64 {
	if series.IsKnown(v) {
		return v
	}
	return 0
}

// paused returns the server whose writes were held back for longest, nil if this is unknown for all servers.
func (e *Evidence) paused() *ServerEvidence {
	var most *ServerEvidence
	for i := range e.Servers {
		s := &e.Servers[i]
		if series.IsKnown(s.FlowControl.Mean) && (most == nil || s.FlowControl.Mean > most.FlowControl.Mean) {
			most = s
		}
	}
	return most
}

// askedForFlowControl returns the server that requested flow control most often, nil if none did.
func (e *Evidence) askedForFlowControl() *ServerEvidence {
	var asked *ServerEvidence
	for i := range e.Servers {
		s := &e.Servers[i]
		if s.FlowControlSent > 0 && (asked == nil || s.FlowControlSent > asked.FlowControlSent) {
			asked = s
		}
	}
	return asked
}

// beside reports whether the tool runs on a server's machine.
func (e *Evidence) beside(server string) bool {
	return slices.ContainsFunc(e.Machines, func(m MachineEvidence) bool { return m.Generator && slices.Contains(m.Servers, server) })
}

func plural(n float64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return table.Rounded(n) + " " + one + "s"
}

func times(n float64) string {
	if n == 1 {
		return "once"
	}
	return table.Rounded(n) + " times"
}

// coresOf prints how many cores were in use.
func coresOf(n float64) string {
	if n < 1 {
		return table.Share(n) + " of a core"
	}
	return plural(n, "core")
}

func waitText(seconds float64) string {
	if !series.IsKnown(seconds) {
		return ""
	}
	return fmt.Sprintf("; an operation took %.2g ms", seconds*1000)
}
