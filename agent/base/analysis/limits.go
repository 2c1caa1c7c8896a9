package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// Evidence is what is known of a run's own servers and machines, and of its load, while
// the tool ran. What is unknown is as in package series; what has no name is empty.
type Evidence struct {
	// Tool is the name of the tool.
	Tool string
	// Seconds is how long the run took.
	Seconds float64
	// Threads is how many clients the tool had, each of which waits for an answer before it
	// asks again unless Rate is known: the transactions per second that the tool was to make.
	// Queue is how many of them waited for a thread of the tool at its end.
	Threads, Rate, Queue float64
	// Throughput is in transactions per second, Statements for each transaction.
	Throughput, Statements float64
	// MinLatency is the tool's own, of a transaction, in seconds.
	MinLatency float64
	// RoundTrip is the least time in seconds from the agent's machine to RoundTripTo, which
	// the tool connects to, and back; MeanRoundTrip is the mean of all RoundTrips.
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
	// NotRepresented describes servers and machines that were sampled too little to be evidence.
	NotRepresented []Missing
}

// Level is a value over the run: its mean, and the share of the time in which it was so
// high that it limits.
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
	Retransmits                    float64 // during the run
	ListenDrops, NetDrops          float64
}

// ProgramEvidence is what one program used.
type ProgramEvidence struct {
	Name string
	CPU  float64 // seconds
}

// foreign is the share of other programs in what programs used of the CPU. It is unknown if the
// processes of the tool, or of the servers on the machine, are.
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

// programs describes who used the CPU, after a colon; empty if that is not known.
func (m *MachineEvidence) programs(tool string) string {
	foreign := m.foreign()
	if !series.IsKnown(foreign) {
		return ""
	}
	all := m.ToolCPU + orZero(m.ServersCPU) + m.OthersCPU
	var names []string
	for _, p := range m.OtherPrograms {
		if share := p.CPU / all; share >= namedProgram && len(names) < mostPrograms {
			names = append(names, p.Name+" "+Percent(share))
		}
	}
	others := Percent(foreign)
	if len(names) > 0 {
		others += " (" + strings.Join(names, ", ") + ")"
	}
	text := tool + " " + Percent(m.ToolCPU/all)
	if m.ServersCPU > 0 {
		text += ", " + m.servers() + " " + Percent(m.ServersCPU/all)
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
	// namedProgram is the share of the CPU from which on a program is named; at most mostPrograms are.
	namedProgram = 0.05
	mostPrograms = 3
)

// From where on a level is high.
const (
	BusyCPU     = 0.9
	BusyCore    = 0.95
	HighSteal   = 0.1
	BusyDisk    = 0.9
	BusyNetwork = 0.8
	Paused      = 0.2 // of flow control
	lowSteal    = 0.05
	// HighCheckpoint is a share of the limit of the checkpoint age.
	HighCheckpoint = 0.8
)

// Slowdown compares the throughput while a server was in a state with that of the rest of
// the run.
type Slowdown struct {
	// Held is the share of the run's intervals in that state.
	Held float64
	// During and Otherwise are transactions per second, unknown if there are too few
	// intervals of one of them.
	During, Otherwise float64
	// Stopped is the share of the run's intervals in that state in which no transaction ended.
	Stopped float64
}

// lost returns the share of the clients' time that the state cost, unknown if that is.
func (s *Slowdown) lost() float64 {
	slower := s.Held * max(0, 1-s.During/s.Otherwise)
	if !series.IsKnown(slower) {
		return s.Stopped
	}
	return max(slower, orZero(s.Stopped))
}

// text is what the transactions show of the state.
func (s *Slowdown) text() string {
	text := fmt.Sprintf(" for %s of the time", Percent(s.Held))
	if s.During < s.Otherwise { // neither is unknown
		return text + fmt.Sprintf(": %s transactions/s then, %s otherwise", Number(s.During), Number(s.Otherwise))
	}
	return text + fmt.Sprintf(": in %s of the time no transaction ended", Percent(s.Stopped))
}

// Standstill is a time in which the tool's output shows that no transaction ended: Seconds in Times
// stretches, the longest one of which is from second From to second To of the run.
type Standstill struct {
	Seconds, From, To float64
	Times             int
}

// text is a clause about the standstill in a run of some seconds.
func (s Standstill) text(of float64) string {
	text := fmt.Sprintf("no transaction ended for %s of %s s", Number(s.Seconds), Number(of))
	if s.Times == 1 {
		return text + fmt.Sprintf(", from second %.0f to second %.0f", s.From, s.To)
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
	Name    string
	Samples int
	// Sessions are the active ones on average, by class, nil if they are unknown: those that wait
	// because writes are held back are in class flow_control, whatever they wait for; HeldBack has
	// how many these are by their own class.
	Sessions, HeldBack map[string]float64
	// Stopped is, by class, when nearly all clients were in it and no transaction ended.
	Stopped map[string]Standstill
	// States are the names of what sessions of a class wait for, if they are known.
	States []StateEvidence
	// FlowControl is the share of time in which writes were held back, FlowControlSent how
	// often the server asked for that, which only Galera reports.
	FlowControl     Level
	FlowControlSent float64
	LagSeconds      float64 // the highest
	Connections     float64 // the most
	ConnectionLimit float64 // unknown if it was not read during the run
	Refused         float64 // connections
	PoolReads       float64 // pages read from disk per second
	PoolMisses      float64 // share of the pages that were asked for
	// Checkpoint: the checkpoint age was HighCheckpoint of its limit or more. Purge: the
	// history list was longer than PurgeLimit, from which on writes are delayed.
	Checkpoint, Purge Slowdown
	PurgeLimit        float64
}

// Limit is what can limit a run.
type Limit string

// The limits that are looked for.
const (
	LimitServerCPU    Limit = "CPU of a server's machine"
	LimitSharedCPU    Limit = "CPU of generator and servers on one machine"
	LimitGeneratorCPU Limit = "CPU of the generator's machine"
	LimitToolCPU      Limit = "CPU of the tool"
	LimitProcessCPU   Limit = "CPU of a server"
	LimitOneCore      Limit = "one core of the generator's machine"
	LimitServerCore   Limit = "one core of a server"
	LimitClients      Limit = "too few clients"
	LimitRowLocks     Limit = "row locks"
	LimitLocks        Limit = "table or metadata locks"
	LimitUserLocks    Limit = "user-level locks"
	LimitSleep        Limit = "sleep in the server"
	LimitThreadPool   Limit = "thread pool"
	LimitState        Limit = "another wait in the server"
	LimitLatches      Limit = "latches within the server"
	LimitFlowControl  Limit = "flow control"
	LimitReplication  Limit = "synchronous replication"
	LimitCommit       Limit = "commits"
	LimitDisk         Limit = "disk"
	LimitPool         Limit = "buffer pool"
	LimitCheckpoint   Limit = "checkpoints"
	LimitPurge        Limit = "purge"
	LimitConnections  Limit = "max_connections"
	LimitPorts        Limit = "ports of the generator"
	LimitFiles        Limit = "open files of the generator"
	LimitNetwork      Limit = "network"
	LimitRoundTrip    Limit = "round trip"
	LimitOutside      Limit = "network, proxy or pause of the tool"
	LimitSteal        Limit = "other virtual machines"
	LimitOtherLoad    Limit = "another load on the servers"
	LimitNeighbours   Limit = "other programs on the machine"
	LimitRate         Limit = "queueing before the tool's rate"

	// Unlimited is in place of a limit if the run did all that it was asked to, Unknown if nothing
	// is known to explain most of the clients' time.
	Unlimited Limit = "no limit"
	Unknown   Limit = "not known"
)

// LimitFinding is a limit with its evidence.
type LimitFinding struct {
	Limit Limit `json:"limit"`
	// Of is the server or program that was at the limit, if it is one.
	Of string `json:"of,omitempty"`
	// Evidence has the numbers, in a sentence; Test is what would show whether it is right.
	Evidence string `json:"evidence"`
	Test     string `json:"test"`
	// Seconds is for how long no transaction ended because of it; 0: never, or unknown.
	Seconds float64 `json:"seconds,omitempty"`
	// Share is how much of the clients' time it explains, from 0 to 1.
	Share float64 `json:"share"`
}

// Title names the limit, and whose it is.
func (f *LimitFinding) Title() string {
	if f.Of != "" && (f.Limit == LimitProcessCPU || f.Limit == LimitToolCPU) {
		return "CPU of " + f.Of
	}
	return string(f.Limit)
}

// Missing is evidence that is missing, and how to get it the next time; empty if that is not known.
type Missing struct {
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"`
}

// Unexplained is the clients' time that no evidence explains.
type Unexplained struct {
	// Share is of the clients' time, from 0 to 1.
	Share float64 `json:"share"`
	// Evidence is where the clients were then, and what may be the reason.
	Evidence string `json:"evidence"`
}

// Verdict is the result of the search for what limited a run.
type Verdict struct {
	// Findings are ranked, the one that explains most first; none if nothing is known to
	// have limited the run.
	Findings []LimitFinding `json:"findings,omitempty"`
	// Unexplained is absent if it is less than what a finding must explain, or if nothing is known
	// of how the clients spent their time.
	Unexplained *Unexplained `json:"unexplained,omitempty"`
	// Unlimited is set if the run did all that it was asked to.
	Unlimited string `json:"unlimited,omitempty"`
	// Behind are replicas that did not keep up, which does not slow the clients.
	Behind []string `json:"behind,omitempty"`
	// Missing is the evidence without which some limits can't be found.
	Missing []Missing `json:"missing,omitempty"`
}

// First returns what explains most of the clients' time.
func (v *Verdict) First() Limit {
	switch {
	case v == nil || v.MostlyUnknown():
		return Unknown
	case len(v.Findings) > 0:
		return v.Findings[0].Limit
	case v.Unlimited != "":
		return Unlimited
	}
	return Unknown
}

// MostlyUnknown reports whether more of the clients' time is unexplained than any finding explains.
func (v *Verdict) MostlyUnknown() bool {
	return v.Unexplained != nil && (len(v.Findings) == 0 || v.Unexplained.Share > v.Findings[0].Share)
}

const (
	// LeastShare is what a finding must explain of the clients' time.
	LeastShare = 0.15
	// sameRate is the share of the configured rate that counts as all of it.
	sameRate = 0.98
	// whole is a share that leaves nothing to explain.
	whole = 0.9
	// busy is the share of the time from which on a machine without a free core is worth a mention.
	busy = 0.5
	// mostFindings bounds the list.
	mostFindings = 5
)

// wait is what sessions wait for, and what limits then.
type wait struct {
	class, state, waits string
	limit               Limit
	test                string
}

// waits are what sessions wait for, as engines name it, with what limits then. A state is the
// beginning of a name; rules with a state come before the rule for their class.
var waits = []wait{
	{"lock", "user lock", "waited for a user-level lock (GET_LOCK)", LimitUserLocks,
		"find the session that holds it (IS_USED_LOCK(name), performance_schema.metadata_locks or MariaDB's METADATA_LOCK_INFO), and what it does while it holds it"},
	{"latch", "thread pool", "waited for a thread of the server's thread pool", LimitThreadPool, "repeat with a larger thread_pool_size and thread_pool_max_threads, or with thread_handling=one-thread-per-connection"},
	{"other", "user sleep", "slept in the server (SLEEP)", LimitSleep, "repeat with statements without SLEEP"},
	{"row_lock", "", "waited for a row lock", LimitRowLocks, "spread the writes over more rows, or shorten the transactions: the throughput rises if it is right"},
	{"lock", "", "waited for a lock of a table or its metadata", LimitLocks, "find the statement that holds it (DDL, LOCK TABLES, backup), and run without it"},
	{"commit", "", "waited in commit, for the redo or binary log", LimitCommit, "repeat with innodb_flush_log_at_trx_commit=2 and sync_binlog=0, for the test only: the throughput rises if it is right"},
	{"replication", "", "waited for the acknowledgement of a replica", LimitReplication, "repeat without semi-synchronous replication"},
	{"disk", "", "waited for a disk", LimitDisk, "repeat with a larger buffer pool or a faster disk"},
	{"latch", "", "waited for a latch within the server", LimitLatches, "repeat with fewer threads: the throughput does not fall if it is right"},
	{"network", "", "sent or received data", LimitNetwork, "repeat with the tool on the server's machine, or with smaller results"},
}

// FindLimits ranks what limited a run by how much of the clients' time it explains. A
// client is either in a server, running or waiting for something there, or outside, in the
// tool or on the network.
func FindLimits(e *Evidence) Verdict {
	f := &finder{e: e.enough()}
	f.divide()
	for _, rule := range rules {
		rule(f)
	}
	f.rank()
	if len(f.v.Findings) > 0 && f.v.Findings[0].Share >= whole {
		f.v.Missing = nil
	}
	if len(f.v.Findings) > mostFindings {
		f.v.Findings = f.v.Findings[:mostFindings]
	}
	return f.v
}

// rules are in an order: each one divides the clients' time that the previous rules left.
var rules = []func(*finder){
	(*finder).connections, (*finder).generator, (*finder).stalls, (*finder).pool, (*finder).waits, (*finder).flowControl, (*finder).cpu,
	(*finder).network, (*finder).lag, (*finder).others, (*finder).missing, (*finder).clients, (*finder).rate, (*finder).unexplained,
}

// certain is how much more the share of a finding counts if the tool's own output shows it.
const certain = 2

// rank orders the findings by their share, but a cause before its effect unless the effect is much
// larger: commits that wait for a cluster while flow control holds it back.
func (f *finder) rank() {
	all := f.v.Findings
	weight := func(f LimitFinding) float64 {
		if f.Seconds > 0 {
			return certain * f.Share
		}
		return f.Share
	}
	slices.SortStableFunc(all, func(a, b LimitFinding) int { return cmp.Compare(weight(b), weight(a)) })
	of := func(limit Limit) int {
		return slices.IndexFunc(all, func(one LimitFinding) bool { return one.Limit == limit })
	}
	effect, cause := of(LimitReplication), of(LimitFlowControl)
	if effect < 0 || cause < effect || all[cause].Share < all[effect].Share/2 {
		return
	}
	moved := all[cause]
	f.v.Findings = slices.Insert(slices.Delete(all, cause, cause+1), effect, moved)
}

// enough returns the evidence without what has too few samples.
func (e *Evidence) enough() *Evidence {
	out, unknown := *e, series.Unknown()
	out.Machines, out.Servers = slices.Clone(e.Machines), slices.Clone(e.Servers)
	for i := range out.Machines {
		if m := &out.Machines[i]; m.Samples < LeastSamples {
			none, level := ThreadsEvidence{unknown, unknown, unknown, unknown}, Level{unknown, unknown}
			m.CPU, m.BusiestCore, m.Steal, m.Disk, m.Network, m.Tool, m.Local, m.Waiting = level, level, level, level, level, none, none, unknown
		}
	}
	for i := range out.Servers {
		if s := &out.Servers[i]; s.Samples < LeastSamples {
			s.Sessions, s.Stopped, s.PoolReads, s.FlowControl = nil, nil, unknown, Level{unknown, unknown}
		}
	}
	if e.RoundTrips < LeastSamples {
		out.RoundTrip = unknown
	}
	return &out
}

type finder struct {
	e *Evidence
	v Verdict
	// Shares of the clients' time that nothing explains yet: running in a server, and outside. Without
	// sessions all of it is outside. byClass has what sessions waited for.
	running, outside float64
	sampled          bool
	byClass          map[string]float64
	byState          map[StateEvidence]float64 // by class and name
	pooled           float64                   // of running: reading pages
	tool, local      []share                   // of the CPU, by machine
}

// share is what the threads of a machine's tool or servers did, in shares of the clients' time. Both
// are unknown without statistics of the threads.
type share struct{ worked, waited float64 }

// known reports whether there are statistics of the threads.
func (s share) known() bool { return series.IsKnown(s.waited) }

func (s share) sum() float64 { return orZero(s.worked) + orZero(s.waited) }

// orZero returns v, 0 if it is unknown.
func orZero(v float64) float64 {
	if series.IsKnown(v) {
		return v
	}
	return 0
}

func (f *finder) add(limit Limit, share float64, test, format string, args ...any) {
	f.addOf("", limit, share, test, format, args...)
}

// addOf is add for a limit of one server or program.
func (f *finder) addOf(of string, limit Limit, share float64, test, format string, args ...any) {
	if !series.IsKnown(share) || share < LeastShare {
		return
	}
	f.v.Findings = append(f.v.Findings, LimitFinding{
		Limit: limit, Of: of, Evidence: fmt.Sprintf(format, args...), Test: test, Share: math.Round(min(1, share)*1000) / 1000,
	})
}

// take takes a share of the clients' time from what is left in one place, then from the other.
func take(wanted float64, from, then *float64) float64 {
	wanted = orZero(wanted)
	first := max(0, min(wanted, *from))
	*from -= first
	second := max(0, min(wanted-first, *then))
	*then -= second
	return first + second
}

// divide divides the clients' time. The threads of tool and servers show when clients had a core or
// waited for one. Sessions do not, and a request that a server has not read belongs to no session.
func (f *finder) divide() {
	f.sessions()
	n := len(f.e.Machines)
	generator := slices.ContainsFunc(f.e.Machines, func(m MachineEvidence) bool { return m.Generator }) // else any machine may be it
	f.tool, f.local = make([]share, n), make([]share, n)
	for i := range f.e.Machines {
		m := &f.e.Machines[i]
		tool, local := m.Tool, m.Local
		if all := (ThreadsEvidence{m.CPU.Mean * float64(m.Cores), m.Waiting, series.Unknown(), series.Unknown()}); generator && m.Generator != m.Server {
			switch { // the machine has one role: nearly all of its tasks belong to the program
			case m.Generator && !series.IsKnown(tool.Waiting):
				tool = all
			case m.Server && !series.IsKnown(local.Waiting):
				local = all
			}
		}
		spend := func(t ThreadsEvidence, of bool, from, then *float64) share {
			if !of || !series.IsKnown(t.Waiting) || !(f.e.Threads > 0) {
				return share{series.Unknown(), series.Unknown()}
			}
			worked := take(t.Running/f.e.Threads, from, then)
			return share{worked, take(t.Waiting/f.e.Threads, from, then)}
		}
		f.local[i] = spend(local, m.Server, &f.running, &f.outside)
		f.tool[i] = spend(tool, m.Generator, &f.outside, &f.running)
	}
}

// sessions divides the clients' time by what their sessions did.
func (f *finder) sessions() {
	f.outside = 1
	if !(f.e.Threads > 0) {
		return
	}
	sum, sampled := map[string]float64{}, false
	total := 0.0
	for i := range f.e.Servers {
		for class, n := range f.e.Servers[i].Sessions {
			sampled = true
			if series.IsKnown(n) {
				sum[class] += n
				total += n
			}
		}
	}
	if !sampled {
		return
	}
	threads := max(f.e.Threads, total) // others' sessions are in it
	f.byClass = map[string]float64{}
	for class, n := range sum {
		f.byClass[class] = n / threads
	}
	f.byState = map[StateEvidence]float64{}
	for i := range f.e.Servers {
		for _, s := range f.e.Servers[i].States {
			f.byState[StateEvidence{Class: s.Class, Name: s.Name}] += s.Sessions / threads
		}
	}
	f.sampled, f.running, f.outside = true, f.byClass["running"], max(0, 1-total/threads)
	if slices.ContainsFunc(f.e.Machines, func(m MachineEvidence) bool { return m.Server && (m.Generator || m.CPU.High >= busy) }) {
		// Who sends to its client waits for a core as others do; there is no network.
		f.running += f.byClass["network"]
		delete(f.byClass, "network")
	}
}

// Percent prints a share in a sentence.
func Percent(share float64) string { return Number(share*100) + " %" }

// Number prints a number in a sentence: two digits, and all of those before the point.
func Number(v float64) string {
	if math.Abs(v) < 10 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

func plural(n float64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + one + "s"
}

// waits are those that the sessions themselves report.
func (f *finder) waits() {
	if !f.sampled {
		return
	}
	left := maps.Clone(f.byClass) // by class, without the states that have a rule
	for _, c := range waits {
		share, also := left[c.class], ""
		if c.state != "" {
			share = min(share, f.inState(c.class, c.state))
			left[c.class] -= share
		}
		waiting, test := c.waits, c.test
		switch held := f.paused(); {
		case c.class == "disk":
			share -= f.pooled
		case c.class == "replication" && held != nil:
			waiting, test = "waited for the other nodes of the cluster (certification)", "repeat with one node"
			also = f.heldBackToo(held)
		}
		if share < LeastShare {
			continue
		}
		names, stop := f.where(c.class)
		before := len(f.v.Findings)
		switch stopped := stop.text(f.e.Seconds); {
		case stop.Seconds >= mostStopped*share*f.e.Seconds:
			f.add(c.limit, share, test, "%s: the clients %s on %s%s", stopped, waiting, names, also)
		default:
			if stop.Seconds > 0 {
				also += "; " + stopped
			}
			f.add(c.limit, share, test, "clients %s on %s for %s of their time, %s of %s on average%s",
				waiting, names, Percent(share), Number(share*f.e.Threads), Number(f.e.Threads), also)
		}
		for i := range f.v.Findings[before:] {
			f.v.Findings[before+i].Seconds = stop.Seconds
		}
		if c.class == other {
			f.byClass[other] -= share
		}
	}
	if name, share := f.largest(left[other], true); share >= LeastShare {
		names, _ := f.where(other)
		f.add(LimitState, share, "find in the server's documentation what sessions in this state wait for",
			"clients were in the state %q on %s for %s of their time, %s of %s on average", name, names, Percent(share), Number(share*f.e.Threads), Number(f.e.Threads))
		f.byClass[other] -= share
	}
}

// heldBackToo explains why fewer clients are said to wait for a cluster than its sessions show, or
// names the flow control that is no finding of its own.
func (f *finder) heldBackToo(paused *ServerEvidence) string {
	back := 0.0
	for i := range f.e.Servers {
		back += orZero(f.e.Servers[i].HeldBack["replication"])
	}
	asked := f.askedForFlowControl()
	switch {
	case paused.FlowControl.Mean >= LeastShare && back >= leastBack*f.e.Threads:
		return fmt.Sprintf(", without another %s that flow control held back", Number(back))
	case paused.FlowControl.Mean < LeastShare && asked != nil:
		return fmt.Sprintf("; %s asked for flow control %s, which held writes back for %s of the time", asked.Name, times(asked.FlowControlSent), Percent(paused.FlowControl.Mean))
	}
	return ""
}

// mostStopped is the share of a finding's time from which on it is told by its standstill alone.
const mostStopped = 0.8

// leastBack is the share of the clients from which on those that flow control held back are named.
const leastBack = 0.02

// other is the class of waits that no other class has.
const other = "other"

// inState is the share of the clients' time in the states of a class whose names begin so.
func (f *finder) inState(class, prefix string) (share float64) {
	for state, of := range f.byState {
		if state.Class == class && strings.HasPrefix(state.Name, prefix) {
			share += of
		}
	}
	return share
}

// largest returns the state of the class other that took most of the clients' time, at most as much
// as is left. With unruled it skips states that a rule names.
func (f *finder) largest(left float64, unruled bool) (name string, share float64) {
	for state, of := range f.byState {
		ruled := slices.ContainsFunc(waits, func(w wait) bool { return w.class == other && strings.HasPrefix(state.Name, w.state) })
		if state.Class == other && !(ruled && unruled) && (of > share || of == share && state.Name < name) {
			name, share = state.Name, of
		}
	}
	return name, min(share, left)
}

// where returns the servers with most sessions of a class, and when these stopped all clients.
func (f *finder) where(class string) (names string, stop Standstill) {
	most := 0.0
	for i := range f.e.Servers {
		most = max(most, orZero(f.e.Servers[i].Sessions[class]))
	}
	var all []string
	for i := range f.e.Servers {
		s := &f.e.Servers[i]
		if n := orZero(s.Sessions[class]); n > 0 && n >= most/4 {
			all = append(all, s.Name)
			if s.Stopped[class].Seconds > stop.Seconds {
				stop = s.Stopped[class]
			}
		}
	}
	return strings.Join(all, ", "), stop
}

func (f *finder) connections() {
	const test = "raise max_connections above the threads and what else connects, or lower the threads"
	for i := range f.e.Servers {
		s := &f.e.Servers[i]
		limit := "its max_connections"
		if s.ConnectionLimit > 0 {
			limit += " of " + Number(s.ConnectionLimit)
		}
		switch {
		case s.Refused > 0:
			f.add(LimitConnections, 1, test, "%s refused %s since %s was reached", s.Name, plural(s.Refused, "connection"), limit)
			return
		case f.e.RefusedByServer != "" && s.ConnectionLimit > 0:
			f.add(LimitConnections, 1, test, "a server refused connections (%s); the max_connections of %s is %s", f.e.RefusedByServer, s.Name, Number(s.ConnectionLimit))
			return
		}
	}
	if f.e.RefusedByServer != "" {
		f.add(LimitConnections, 1, test, "a server refused connections: %s", f.e.RefusedByServer)
	}
}

// generator finds what the tool could not get from its machine.
func (f *finder) generator() {
	if f.e.NoPort != "" {
		f.add(LimitPorts, 1, "widen net.ipv4.ip_local_port_range, or use connections again instead of opening new ones", "the generator had no port left for a connection: %s", f.e.NoPort)
	}
	if f.e.NoFile != "" {
		f.add(LimitFiles, 1, "raise the limit of open files of "+f.e.Tool+" (ulimit -n)", "%s could open no more files, and each connection needs one: %s", f.e.Tool, f.e.NoFile)
	}
}

// stalls finds states of a server in which it does less. Its sessions look as if they ran: the server
// reports no wait for them. While they wait for something else, that stops them, not the state.
func (f *finder) stalls() {
	left := 1.0
	for _, class := range []string{"lock", "flow_control", "replication", "network", other} {
		left -= f.byClass[class]
	}
	stall := func(limit Limit, s *Slowdown, test, state string) {
		share := min(s.lost(), max(0, left))
		f.add(limit, share, test, "%s%s", state, s.text())
		if share >= LeastShare {
			take(share, &f.running, &f.outside)
		}
	}
	for i := range f.e.Servers {
		s := &f.e.Servers[i]
		stall(LimitCheckpoint, &s.Checkpoint, "repeat with a larger redo log (innodb_log_file_size, innodb_redo_log_capacity), or with more I/O capacity to flush pages",
			fmt.Sprintf("the redo log of %s that no checkpoint covers was at %s of its limit or more", s.Name, Percent(HighCheckpoint)))
		stall(LimitPurge, &s.Purge, "repeat with more innodb_purge_threads, or without innodb_max_purge_lag",
			fmt.Sprintf("the history list of %s was longer than its innodb_max_purge_lag of %s", s.Name, Number(s.PurgeLimit)))
	}
}

// paused returns the server whose writes were held back for longest, nil if that is not
// known of any.
func (f *finder) paused() *ServerEvidence {
	var most *ServerEvidence
	for i := range f.e.Servers {
		s := &f.e.Servers[i]
		if series.IsKnown(s.FlowControl.Mean) && (most == nil || s.FlowControl.Mean > most.FlowControl.Mean) {
			most = s
		}
	}
	return most
}

// askedForFlowControl returns the server that asked most often, nil if none did.
func (f *finder) askedForFlowControl() *ServerEvidence {
	var asked *ServerEvidence
	for i := range f.e.Servers {
		s := &f.e.Servers[i]
		if s.FlowControlSent > 0 && (asked == nil || s.FlowControlSent > asked.FlowControlSent) {
			asked = s
		}
	}
	return asked
}

func (f *finder) flowControl() {
	paused, asked := f.paused(), f.askedForFlowControl()
	share := f.byClass["flow_control"]
	who := ""
	if asked != nil {
		who = fmt.Sprintf(", and %s asked for it %s", asked.Name, times(asked.FlowControlSent))
	}
	test := "raise the applier threads of the server that is behind, or run without it"
	if asked != nil {
		test = "raise wsrep_slave_threads and gcs.fc_limit of " + asked.Name + ", or run without that node"
	}
	if paused != nil { // beyond what the sessions show
		take(paused.FlowControl.Mean-share, &f.running, &f.outside)
	}
	if paused != nil && paused.FlowControl.Mean >= share {
		f.add(LimitFlowControl, paused.FlowControl.Mean, test, "writes were held back for %s of the time%s", Percent(paused.FlowControl.Mean), who)
		return
	}
	f.add(LimitFlowControl, share, test, "clients waited for flow control for %s of their time, %s of %s on average%s", Percent(share), Number(share*f.e.Threads), Number(f.e.Threads), who)
}

func times(n float64) string {
	if n == 1 {
		return "once"
	}
	return Number(n) + " times"
}

// pool finds how much of their time clients read pages from disk. It is measured by the
// sessions that wait for a page and by the reads times their latency on the server's disks;
// either may miss a part, so that the larger one counts. Without both, it is estimated.
func (f *finder) pool() {
	for i := range f.e.Servers {
		s := &f.e.Servers[i]
		if !(s.PoolReads > 0) || !(s.PoolMisses >= leastMisses) || !(f.e.Threads > 0) {
			continue
		}
		waiting, sampled := s.Sessions["disk"]
		share, reads := orZero(waiting)/f.e.Threads, ""
		for j := range f.e.Machines {
			m := &f.e.Machines[j]
			if !slices.Contains(m.Servers, s.Name) || !series.IsKnown(m.Disk.Mean) {
				continue
			}
			sampled = true
			if series.IsKnown(m.DiskReadWait) { // else the page cache had all of them
				share = max(share, min(1, s.PoolReads*m.DiskReadWait/f.e.Threads))
				reads = fmt.Sprintf(", a read of the disk takes %.2g ms", m.DiskReadWait*1000)
			}
		}
		text := fmt.Sprintf(": clients waited for pages for %s of their time", Percent(share))
		if !sampled {
			share = min(0.9, estimatedMisses*s.PoolMisses)
			text = fmt.Sprintf(": an estimate of %s of the clients' time, since neither waits for pages nor disks were observed", Percent(share))
		}
		take(share-max(f.pooled, f.byClass["disk"]), &f.running, &f.outside)
		f.pooled = max(f.pooled, share)
		f.add(LimitPool, share, "repeat with a larger innodb_buffer_pool_size, or with less data: the throughput rises if it is right",
			"%s read %s pages/s from disk, %s of those that were asked for%s%s", s.Name, Number(s.PoolReads), Percent(s.PoolMisses), reads, text)
	}
}

const (
	// leastMisses is the share of misses from which on the buffer pool is looked at.
	leastMisses = 0.005
	// estimatedMisses is what a miss counts where its time is not known: a page from a disk
	// takes some hundred times one in memory, and a statement asks for several.
	estimatedMisses = 10
)

// within returns the share of the clients' time that a machine's cores or disks may explain: what is
// left of the time in a server, outside of it, or both, and the time in which threads had a core or
// waited for one.
func (f *finder) within(i int) float64 {
	m, sum := &f.e.Machines[i], 0.0
	if m.Server {
		sum += f.running + f.local[i].sum()
	}
	if m.Generator {
		sum += f.outside + f.tool[i].sum()
	}
	return sum
}

func (f *finder) cpu() {
	for i := range f.e.Machines {
		m := &f.e.Machines[i]
		if !m.Generator && !m.Server {
			continue
		}
		what := m.Name
		if len(m.Servers) > 0 && !(len(m.Servers) == 1 && m.Servers[0] == m.Name) {
			what += " (" + strings.Join(m.Servers, ", ") + ")"
		}
		f.cores(i)
		if one := m.BusiestCore; m.Cores > 1 && orZero(m.CPU.High) < busy && one.High >= busy && m.Generator != m.Server {
			limit, test := LimitServerCore, "look for a single thread: replication, interrupts of one queue, a purge"
			if m.Generator {
				limit, test = LimitOneCore, "start a second process of the tool, or spread the interrupts of the network over the cores"
			}
			explained := one.High * f.within(i)
			take(explained-f.tool[i].sum()-f.local[i].sum(), &f.outside, &f.running)
			f.add(limit, explained, test, "one core of %s was full for %s of the time, while all were %s busy", what, Percent(one.High), Percent(m.CPU.Mean))
		}
		if m.Steal.Mean >= lowSteal {
			f.add(LimitSteal, max(m.Steal.Mean, LeastShare), "repeat on a machine of its own, or at another time", "other virtual machines took %s of the CPU of %s", Percent(m.Steal.Mean), what)
		}
		if m.Server && m.Disk.High >= busy && f.byClass["disk"] < LeastShare {
			f.add(LimitDisk, m.Disk.High*(take(f.running, &f.running, &f.outside)+f.byClass["commit"]), "repeat with a faster disk, a larger buffer pool or fewer fsyncs",
				"a disk of %s was busy for %s of the time on average%s", what, Percent(m.Disk.Mean), waitText(m.DiskWait))
		}
	}
}

// heldShare is the share of the time from which on a quota is a reason to wait for a core.
const heldShare = 0.05

// program is what the tool, or the servers beside it, did on a machine.
type program struct {
	share
	ThreadsEvidence
	limit Limit
	name  string
}

// cores finds why threads of clients, or threads that served them, waited for a core: a quota, cores
// that they may not use, cores that other programs used, or too few cores.
func (f *finder) cores(i int) {
	m := &f.e.Machines[i]
	rest, worked := 0.0, 0.0
	for _, p := range []program{{f.tool[i], m.Tool, LimitToolCPU, f.e.Tool}, {f.local[i], m.Local, LimitProcessCPU, m.servers()}} {
		if p.known() {
			worked += p.worked
			rest += p.waited - f.confined(m, &p)
		}
	}
	if rest+worked == 0 {
		return
	}
	rest = min(rest, 1-f.explained()) // threads that serve no client wait, too
	limit, test := LimitServerCPU, "repeat on more or faster cores, or with cheaper statements"
	switch {
	case m.Generator && m.Server:
		limit, test = LimitSharedCPU, "move "+f.e.Tool+" to a machine of its own"
	case m.Generator:
		limit, test = LimitGeneratorCPU, "add a generator, or take a faster one: the throughput rises if it is right"
	}
	use := ""
	if m.Cores > 0 {
		use = fmt.Sprintf(". Its %s were %s busy%s", plural(float64(m.Cores), "core"), Percent(m.CPU.Mean), m.programs(f.e.Tool))
	}
	byOthers, alone := m.withoutOthers(rest)
	also := ""
	if byOthers >= LeastShare {
		f.add(LimitNeighbours, byOthers, "repeat while nothing else runs on "+m.Name,
			"because of other programs, clients waited for a core of %s for %s of their time%s", m.Name, Percent(byOthers), use)
		rest -= byOthers
		use, also = "", "without other programs, too, "
	}
	text := fmt.Sprintf("%sclients waited for a core of %s for %s of their time", also, m.Name, Percent(rest))
	if ran := min(worked*m.CPU.High, 1-f.explained()-rest); ran > 0 && m.CPU.High >= busy && alone >= BusyCPU {
		if text += fmt.Sprintf(", and had one for another %s while nearly all were busy", Percent(ran)); rest < 0.005 {
			text = fmt.Sprintf("%sclients used the cores of %s for %s of their time while nearly all were busy", also, m.Name, Percent(ran))
		}
		rest += ran
	}
	f.add(limit, rest, test, "%s%s", text, use)
}

// confined finds how much of the time in which a program waited for a core a quota explains, or cores
// that it may not use, and returns that share of the clients' time.
func (f *finder) confined(m *MachineEvidence, p *program) float64 {
	full := m.CPU.High >= busy
	share, test := 0.0, "look for pinned cores of "+p.name+" (taskset, cpuset of a container), or repeat with more of them"
	why := ""
	switch {
	case p.Held >= heldShare:
		if share = p.waited; full {
			share *= p.Held
		}
		test = "raise the CPU quota of " + p.name + " (cgroup cpu.max, limits of a container)"
		if p.Held >= mostlyHeld && p.Running > 0 {
			why = "used all of its CPU quota of " + coresOf(p.Running)
		} else {
			why = fmt.Sprintf("its CPU quota held it for %s of the time", Percent(p.Held))
		}
	case p.Cores < float64(m.Cores):
		if share = p.waited; full {
			// Of the other cores, only what the run's own programs don't use is lost, and on its own
			// ones the program waits for others as everywhere.
			elsewhere := (orZero(m.Tool.Running) + orZero(m.Local.Running) - p.Running) / (float64(m.Cores) - p.Cores)
			share *= min(1, p.Running/p.Cores) * (1 - min(1, elsewhere))
		}
		why = fmt.Sprintf("may use only %s of the %s of %s, and used %s of that", Number(p.Cores), plural(float64(m.Cores), "core"), m.Name, Percent(min(1, p.Running/p.Cores)))
	case !series.IsKnown(p.Cores) && !full && m.CPU.Mean < spareCPU:
		share = p.waited
		why = fmt.Sprintf("waited for a core though those of %s were only %s busy, so that it may use some of them only", m.Name, Percent(m.CPU.Mean))
	}
	f.addOf(p.name, p.limit, share, test, "%s; clients waited for that for %s of their time", why, Percent(share))
	return share
}

// mostlyHeld is the share of the time from which on a program that its quota held used all of it.
const mostlyHeld = 0.5

// coresOf prints how many cores were in use.
func coresOf(n float64) string {
	if n < 1 {
		return Percent(n) + " of a core"
	}
	return plural(n, "core")
}

// withoutOthers returns how much of the share for which clients waited for a core they would not wait
// without other programs, and how busy the cores would be then. The rest of their time remains, and
// what the run's programs used of their cores takes as long as before.
func (m *MachineEvidence) withoutOthers(waited float64) (byOthers, busy float64) {
	foreign := m.foreign()
	if !(foreign > 0) {
		return 0, m.CPU.Mean
	}
	used := m.CPU.Mean * (1 - foreign)
	least := used
	for _, p := range []ThreadsEvidence{m.Tool, m.Local} {
		if p.Cores > 0 && p.Running > 0 {
			least = max(least, p.Running/p.Cores)
		}
	}
	byOthers = max(0, min(waited, 1-least))
	return byOthers, min(1, used/(1-byOthers))
}

func waitText(seconds float64) string {
	if !series.IsKnown(seconds) {
		return ""
	}
	return fmt.Sprintf("; an operation took %.2g ms", seconds*1000)
}

func (f *finder) network() {
	for i := range f.e.Machines {
		m := &f.e.Machines[i]
		if m.Network.High >= 0.3 {
			f.add(LimitNetwork, m.Network.High, "repeat with a faster link, or with smaller results", "the link of %s was used by %s on average, and by at least %s for %s of the time",
				m.Name, Percent(m.Network.Mean), Percent(BusyNetwork), Percent(m.Network.High))
		}
	}
	share := f.travelled()
	if f.e.RoundTrip >= localRoundTrip || !f.beside(f.e.RoundTripTo) {
		f.add(LimitRoundTrip, share, "repeat with the tool nearer to the servers, or with more threads",
			"each of %s statements of a transaction takes a round trip of at least %.2g ms to %s: %s of the clients' time", Number(f.e.Statements), f.e.RoundTrip*1000, f.e.RoundTripTo, Percent(share))
	}
	take(share, &f.outside, &f.running)
}

// travelled is the share of the clients' time that their statements were on their way to the
// server and back, 0 if that is not known. It is spent outside. More than is left there refutes it, as
// does a transaction that took less: then the pings waited for a core, not the statements.
func (f *finder) travelled() float64 {
	share := f.e.RoundTrip * f.e.Statements * f.e.Throughput / f.e.Threads
	switch {
	case !(share > 0) || share > 1 || f.sampled && share > f.outside+aboutSame || f.e.MinLatency < f.e.RoundTrip*(1-aboutSame):
		return 0
	case f.beside(f.e.RoundTripTo) && f.e.RoundTrip < steadyPing*f.e.MeanRoundTrip && f.e.RoundTrip >= localRoundTrip:
		return 0
	}
	return min(share, f.outside)
}

const (
	// localRoundTrip is the length in seconds from which on a round trip within one machine shows a
	// proxy: a shorter one is the time to be woken.
	localRoundTrip = 0.001
	// steadyPing is the least ratio of the shortest round trip to the mean one if a proxy delays all: a
	// wait for a core varies more.
	steadyPing = 0.5
	// aboutSame is by how much shares may differ that are measured in different ways.
	aboutSame = 0.1
)

// beside reports whether the tool runs on a server's machine.
func (f *finder) beside(server string) bool {
	return slices.ContainsFunc(f.e.Machines, func(m MachineEvidence) bool { return m.Generator && slices.Contains(m.Servers, server) })
}

// longLag is the lag in seconds from which on the run's rate can't be kept up.
const longLag = 5

func (f *finder) lag() {
	for i := range f.e.Servers {
		if s := &f.e.Servers[i]; s.LagSeconds >= longLag {
			f.v.Behind = append(f.v.Behind, fmt.Sprintf("%s was up to %s s behind: it can't keep up with this throughput, though it does not slow the clients. To test it: raise its applier threads, or lower the rate until the lag stays",
				s.Name, Number(s.LagSeconds)))
		}
	}
}

// ofServers are limits that another load on the servers reaches, too: it has a share of them.
var ofServers = []Limit{
	LimitServerCPU, LimitSharedCPU, LimitProcessCPU, LimitServerCore, LimitRowLocks, LimitLocks, LimitUserLocks, LimitThreadPool, LimitLatches, LimitFlowControl, LimitReplication,
	LimitCommit, LimitDisk, LimitPool, LimitNetwork,
}

func (f *finder) others() {
	if f.e.OtherLoad == "" {
		return
	}
	share, foreign := 0.0, orZero(f.e.ForeignShare)
	for i := range f.v.Findings {
		if one := &f.v.Findings[i]; slices.Contains(ofServers, one.Limit) {
			share += foreign * one.Share
			one.Share = math.Round(one.Share*(1-foreign)*1000) / 1000
			one.Evidence += fmt.Sprintf("; %s of that is due to the other load", Percent(foreign))
		}
	}
	share = max(share, LeastShare)
	f.add(LimitOtherLoad, share, "repeat while nothing else uses the servers", "%s", f.e.OtherLoad)
}

// clients finds that clients were outside for a time that even the fastest transaction took, or
// that there were too few of them, if everything is known and nothing was at its limit.
func (f *finder) clients() {
	if series.IsKnown(f.e.Rate) || !(f.e.Threads > 0) || !(f.e.Throughput > 0) || len(f.v.Missing) > 0 || !f.sampled {
		return
	}
	if fixed := min(f.outside, f.e.MinLatency*f.e.Throughput/f.e.Threads); fixed >= LeastShare && f.e.Threads*f.e.Seconds >= leastClientSeconds && f.toolKnown() {
		f.add(LimitOutside, fixed, "repeat with the tool on the server's machine, without a proxy and without think time, or with more threads",
			"for %s of their time the clients had no statement in a server, and the threads of %s neither ran nor waited for a core; even the fastest transaction took %.3g ms of %.3g ms on average", Percent(f.outside), f.e.Tool,
			f.e.MinLatency*1000, f.e.Threads/f.e.Throughput*1000)
		f.outside -= fixed
	}
	busiest, name := 0.0, ""
	for i := range f.e.Machines {
		if m := &f.e.Machines[i]; (m.Generator || m.Server) && orZero(m.CPU.Mean) >= busiest {
			busiest, name = orZero(m.CPU.Mean), m.Name
		}
	}
	explained := f.explained()
	if busiest >= spareCPU || explained >= 0.5 || name == "" || f.running+f.byClass[other] >= 0.5 || f.outside >= 0.5 {
		return
	}
	f.add(LimitClients, 1-explained, "repeat with twice the threads: the throughput rises if it is right",
		"%s, each of which waits for its answer, make %s transactions/s of %.3g ms; nothing was at its limit, the busiest CPU (%s) at %s",
		plural(f.e.Threads, "client"), Number(f.e.Throughput), f.e.Threads/f.e.Throughput*1000, name, Percent(busiest))
	f.running, f.outside = 0, 0
}

// toolKnown reports whether it is known how long the threads of the tool had a core or waited.
func (f *finder) toolKnown() bool {
	return slices.ContainsFunc(f.tool, share.known)
}

// unexplained adds the time that is left, with what is known of it.
func (f *finder) unexplained() {
	left := f.running + f.outside + f.byClass[other]
	if !(f.e.Threads > 0) || f.v.Unlimited != "" || !f.sampled && len(f.v.Findings) == 0 || f.explained() >= whole || left < LeastShare {
		return
	}
	if !f.sampled {
		left = min(left, 1-f.explained())
	}
	var parts []string
	add := func(share float64, format string, args ...any) {
		if share >= aboutSame/2 {
			parts = append(parts, fmt.Sprintf("%s of it ", Percent(share))+fmt.Sprintf(format, args...))
		}
	}
	if f.sampled {
		reason := "the threads of " + f.e.Tool + " neither ran nor waited for a core: the network, a proxy, a pause of the tool, or requests that a server had not read"
		if !f.toolKnown() {
			reason = "whether " + f.e.Tool + " ran or waited for a core is not known"
		}
		add(f.outside, "without a statement in a server (%s)", reason)
		reason = "their threads neither ran nor waited for a core: a wait that these sessions do not show. Sessions of performance_schema show more"
		if !slices.ContainsFunc(f.local, share.known) {
			reason = "whether they ran or waited for a core is not known"
		}
		add(f.running, "in sessions that execute a statement (%s)", reason)
		reason = "in sessions in other states"
		if name, share := f.largest(f.byClass[other], false); share > 0 {
			reason += fmt.Sprintf(", most of it in %q", name)
		}
		add(f.byClass[other], "%s", reason)
	}
	for i := range f.e.Machines {
		if m := &f.e.Machines[i]; m.CPU.High >= busy && (m.Server && !f.local[i].known() || m.Generator && !f.tool[i].known()) {
			parts = append(parts, fmt.Sprintf("the cores of %s are suspected: they were %s busy, but there are no statistics of who waited for them", m.Name, Percent(m.CPU.Mean)))
		}
	}
	f.v.Unexplained = &Unexplained{Share: math.Round(min(1, left)*1000) / 1000, Evidence: strings.Join(parts, "; ")}
}

// explained is the share of the clients' time that the findings explain together.
func (f *finder) explained() float64 {
	sum := 0.0
	for _, one := range f.v.Findings {
		sum += one.Share
	}
	return min(1, sum)
}

// leastClientSeconds is how many samples of a client it takes to say where clients were.
const leastClientSeconds = 30

// spareCPU is the mean use of CPU below which there is enough for more clients.
const spareCPU = 0.75

// MadeRate reports whether a run of some seconds made the transactions per second that it was asked
// for: nearly all, or as many as can be with intervals that the tool chose at random, whose number has
// the spread of Poisson's distribution. Whether that is the reason, the queue at the end shows: it is
// not sure if that is unknown.
func MadeRate(throughput, rate, seconds, queue float64) (made, sure bool) {
	n := rate * seconds
	switch {
	case throughput >= sameRate*rate:
		return true, true
	case !(n > 0) || throughput < rate*(1-3/math.Sqrt(n)):
		return false, true
	case series.IsKnown(queue):
		return queue <= (1-sameRate)*n, true
	}
	return true, false
}

// rate compares the throughput with the one that was asked for.
func (f *finder) rate() {
	if !(f.e.Rate > 0) || !series.IsKnown(f.e.Throughput) {
		return
	}
	of := fmt.Sprintf("%s of the %s transactions/s that it was asked for", Number(f.e.Throughput), Number(f.e.Rate))
	made, sure := MadeRate(f.e.Throughput, f.e.Rate, f.e.Seconds, f.e.Queue)
	switch {
	case !made:
		f.add(LimitRate, max(LeastShare, 1-f.explained()), "repeat with more threads, or a lower rate",
			"%s made %s: the others queued in it, as all of its threads were busy", f.e.Tool, of)
		return
	case !sure:
		f.v.Missing = append(f.v.Missing, Missing{What: fmt.Sprintf("why the run made %s: in %s s, random intervals between transactions can make as large a difference, and %s printed no queue", of, Number(f.e.Seconds), f.e.Tool)})
		f.running, f.outside, f.byClass = 0, 0, nil // the clients may have had nothing to do
		return
	}
	f.v.Findings = slices.DeleteFunc(f.v.Findings, func(l LimitFinding) bool {
		return !slices.Contains([]Limit{LimitConnections, LimitPorts, LimitFiles}, l.Limit)
	})
	f.v.Unlimited = "the run made " + of
	if f.e.Throughput < sameRate*f.e.Rate {
		f.v.Unlimited += fmt.Sprintf(", all but %s of those that %s began at random intervals", Number(f.e.Queue), f.e.Tool)
	}
}

// missing lists the evidence that is missing.
func (f *finder) missing() {
	add := func(remedy, format string, args ...any) {
		f.v.Missing = append(f.v.Missing, Missing{fmt.Sprintf(format, args...), remedy})
	}
	f.v.Missing = append(f.v.Missing, f.e.NotRepresented...)
	isNamed := len(f.e.NotRepresented) > 0
	if !(f.e.Threads > 0) {
		add("", "the output and the command of %s do not show how many clients there were", f.e.Tool)
	}
	generator := false
	var hosted []string
	for i := range f.e.Machines {
		m := &f.e.Machines[i]
		if !series.IsKnown(m.CPU.Mean) {
			continue
		}
		generator = generator || m.Generator
		hosted = append(hosted, m.Servers...)
	}
	const few = "there is only %s of %s, and at least %d are needed"
	for i := range f.e.Machines {
		if m := &f.e.Machines[i]; m.Samples > 0 && m.Samples < LeastSamples {
			generator, hosted = generator || m.Generator, append(hosted, m.Servers...)
			add("", few, plural(float64(m.Samples), "sample"), m.Name, LeastSamples)
		}
	}
	if len(f.e.Servers) == 0 && !isNamed {
		add("name the servers as targets in the configuration, and run the agent during the run", "no server was sampled")
	}
	if !generator && !isNamed {
		add("start the tool with benchwatch run where the agent is, or name its node_exporter in hosts with the role generator", "the CPU of the generator was not recorded")
	}
	var machines, sessions []string
	for i := range f.e.Servers {
		s := &f.e.Servers[i]
		if !slices.Contains(hosted, s.Name) {
			machines = append(machines, s.Name)
		}
		switch {
		case s.Samples > 0 && s.Samples < LeastSamples:
			add("", few, plural(float64(s.Samples), "sample"), s.Name, LeastSamples)
		case s.Sessions == nil:
			sessions = append(sessions, s.Name)
		}
	}
	if len(machines) > 0 {
		add("set node_exporter of the targets", "CPU and disks of %s were not recorded", listed(machines))
	}
	if len(sessions) > 0 {
		add("see the rights for active sessions in docs/databases.md", "what the sessions of %s waited for was not recorded", listed(sessions))
	}
}
