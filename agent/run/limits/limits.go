// Package limits finds what limited a run, from evidence that its caller collected. It does no I/O.
package limits

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Limit is what can limit a run.
type Limit string

// The limits that Find can find.
const (
	ServerCPU    Limit = "CPU of a server's machine"
	SharedCPU    Limit = "CPU of generator and servers on one machine"
	GeneratorCPU Limit = "CPU of the generator's machine"
	ToolCPU      Limit = "CPU of the tool"
	ProcessCPU   Limit = "CPU of a server"
	OneCore      Limit = "one core of the generator's machine"
	ServerCore   Limit = "one core of a server"
	Clients      Limit = "too few clients"
	RowLocks     Limit = "row locks"
	Locks        Limit = "table or metadata locks"
	UserLocks    Limit = "user-level locks"
	Sleep        Limit = "sleep in the server"
	ThreadPool   Limit = "thread pool"
	State        Limit = "another wait in the server"
	Latches      Limit = "latches within the server"
	FlowControl  Limit = "flow control"
	Replication  Limit = "synchronous replication"
	Commit       Limit = "commits"
	Disk         Limit = "disk"
	Pool         Limit = "buffer pool"
	Checkpoint   Limit = "checkpoints"
	Purge        Limit = "purge"
	Connections  Limit = "max_connections"
	Ports        Limit = "ports of the generator"
	Files        Limit = "open files of the generator"
	Network      Limit = "network"
	RoundTrip    Limit = "round trip"
	Outside      Limit = "network, proxy or pause of the tool"
	Steal        Limit = "other virtual machines"
	OtherLoad    Limit = "another load on the servers"
	Neighbours   Limit = "other programs on the machine"
	Rate         Limit = "queueing before the tool's rate"

	// Unlimited replaces a limit if the run reached its configured rate, Unknown if nothing is known to explain most of
	// the clients' time.
	Unlimited Limit = "no limit"
	Unknown   Limit = "not known"
)

// LimitFinding is a limit with its evidence.
type LimitFinding struct {
	Limit Limit `json:"limit"`
	// Of is the server or program that was at the limit; empty for other limits.
	Of string `json:"of,omitempty"`
	// Evidence is a sentence with the numbers, Test an experiment that would confirm the finding.
	Evidence string `json:"evidence"`
	Test     string `json:"test"`
	// Seconds is how long no transaction ended because of the limit; 0 if unknown or never.
	Seconds float64 `json:"seconds,omitempty"`
	// Share is how much of the clients' time it explains, from 0 to 1.
	Share float64 `json:"share"`
}

// Title names the limit, and whose it is.
func (f *LimitFinding) Title() string {
	if f.Of != "" && (f.Limit == ProcessCPU || f.Limit == ToolCPU) {
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
	// Findings are ranked by how much they explain; empty if nothing is known to have limited the run.
	Findings []LimitFinding `json:"findings,omitempty"`
	// Unexplained is absent if it is less than what a finding must explain, or if it is unknown how the clients spent
	// their time.
	Unexplained *Unexplained `json:"unexplained,omitempty"`
	// Unlimited is set if the run reached its configured rate.
	Unlimited string `json:"unlimited,omitempty"`
	// Behind are replicas that did not keep up. They do not slow the clients.
	Behind []string `json:"behind,omitempty"`
	// Missing is the evidence without which some limits can't be found.
	Missing []Missing `json:"missing,omitempty"`
}

// First returns the limit that explains most of the clients' time.
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
	// busy is the share of the time above which a machine without a free core is worth a mention.
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
	{"lock", "user lock", "waited for a user-level lock (GET_LOCK)", UserLocks,
		"find the session that holds it (IS_USED_LOCK(name), performance_schema.metadata_locks or MariaDB's METADATA_LOCK_INFO), and what it does while it holds it"},
	{"latch", "thread pool", "waited for a thread of the server's thread pool", ThreadPool, "repeat with a larger thread_pool_size and thread_pool_max_threads, or with thread_handling=one-thread-per-connection"},
	{"other", "user sleep", "slept in the server (SLEEP)", Sleep, "repeat with statements without SLEEP"},
	{"row_lock", "", "waited for a row lock", RowLocks, "spread the writes over more rows, or shorten the transactions: if the throughput rises, this was the cause"},
	{"lock", "", "waited for a lock of a table or its metadata", Locks, "find what holds it: DDL, LOCK TABLES or a backup in another session, or the clients' own statements if their engine locks whole tables (MyISAM)"},
	{"commit", "", "waited in commit, for the redo or binary log", Commit, "repeat with innodb_flush_log_at_trx_commit=2 and sync_binlog=0, for the test only: if the throughput rises, this was the cause"},
	{"replication", "", "waited in commit for a replica's acknowledgement", Replication, "repeat without semi-synchronous replication"},
	{"disk", "", "waited for a disk", Disk, "repeat with a larger buffer pool or a faster disk"},
	{"latch", "", "waited for a latch within the server", Latches, "repeat with fewer threads: if the throughput does not fall, this was the cause"},
	{"network", "", "sent or received data", Network, "repeat with the tool on the server's machine, or with smaller results"},
}

// rule is a limit with the function that finds it. Everything that a rule reads was computed before.
type rule[T any] struct {
	limit Limit
	// find returns the finding without its limit; its share is unknown or 0 if there is no finding.
	find func(*T) LimitFinding
}

// The rules, by what they are applied to. A new limit is an entry here or in waits and, if its share is
// not part of the evidence, a step of newShares.
var (
	failures = []rule[Evidence]{
		{Connections, (*Evidence).refusal},
		{Ports, func(e *Evidence) LimitFinding {
			return finding(certainly(e.NoPort != ""), "widen net.ipv4.ip_local_port_range, or use connections again instead of opening new ones",
				"%s", "the generator had no port left for a connection: "+e.NoPort)
		}},
		{Files, func(e *Evidence) LimitFinding {
			return finding(certainly(e.NoFile != ""), "raise the limit of open files of "+e.Tool+" (ulimit -n)",
				"%s could open no more files, and each connection needs one: %s", e.Tool, e.NoFile)
		}},
	}
	stalls = []rule[serverShares]{
		{Checkpoint, func(s *serverShares) LimitFinding {
			return finding(s.checkpoint, "repeat with a larger redo log (innodb_log_file_size, innodb_redo_log_capacity), or with more I/O capacity to flush pages",
				"the redo log of %s that no checkpoint covers was at %s of its limit or more%s", s.Name, table.Share(HighCheckpoint), s.Checkpoint.text())
		}},
		{Purge, func(s *serverShares) LimitFinding {
			return finding(s.purge, "repeat with more innodb_purge_threads, or without innodb_max_purge_lag",
				"the history list of %s was longer than its innodb_max_purge_lag of %s%s", s.Name, table.Rounded(s.PurgeLimit), s.Purge.text())
		}},
	}
	pools = []rule[serverShares]{
		{Pool, func(s *serverShares) LimitFinding {
			read, time := "", fmt.Sprintf("clients waited for pages for %s of their time", table.Share(s.pool))
			if series.IsKnown(s.read) {
				read = fmt.Sprintf(", a read of the disk takes %.2g ms", s.read*1000)
			}
			if s.estimated {
				time = fmt.Sprintf("an estimate of %s of the clients' time, since neither waits for pages nor disks were observed", table.Share(s.pool))
			}
			return finding(s.pool, "repeat with a larger innodb_buffer_pool_size, or with less data: if the throughput rises, this was the cause",
				"%s read %s pages/s from disk, %s of those that were asked for%s: %s", s.Name, table.Rounded(s.PoolReads), table.Share(s.PoolMisses), read, time)
		}},
	}
	instances = []rule[serverShares]{
		{ServerCPU, func(s *serverShares) LimitFinding {
			return finding(s.ran, "repeat on an instance with more or faster cores, or with cheaper statements",
				"clients ran statements on %s for %s of their time while nearly all of its cores were busy. They were %s busy on average, as the database reports it", s.Name, table.Share(s.ran), table.Share(s.CPU.Mean))
		}},
	}
	sessionRules = []rule[shares]{
		{State, func(s *shares) LimitFinding {
			names, _ := s.where(other)
			return finding(s.inState, "find in the server's documentation what sessions in this state wait for",
				"clients were in the state %q on %s for %s", s.state, names, s.ofClients(s.inState))
		}},
		{FlowControl, (*shares).flowControl},
	}
	machineRules = []rule[machineShares]{
		{ToolCPU, func(m *machineShares) LimitFinding { return m.confinedBy(&m.tool) }},
		{ProcessCPU, func(m *machineShares) LimitFinding { return m.confinedBy(&m.local) }},
		{Neighbours, func(m *machineShares) LimitFinding {
			return finding(m.byOthers, "repeat while nothing else runs on "+m.Name,
				"because of other programs, clients waited for a core of %s for %s of their time%s", m.Name, table.Share(m.byOthers), m.use())
		}},
		{ServerCPU, func(m *machineShares) LimitFinding {
			return m.cores(!m.Generator, "repeat on more or faster cores, or with cheaper statements")
		}},
		{SharedCPU, func(m *machineShares) LimitFinding {
			return m.cores(m.Generator && m.Server, "move "+m.of.e.Tool+" to a machine of its own")
		}},
		{GeneratorCPU, func(m *machineShares) LimitFinding {
			return m.cores(m.Generator && !m.Server, "add a generator, or take a faster one: if the throughput rises, this was the cause")
		}},
		{ServerCore, func(m *machineShares) LimitFinding {
			return m.fullCore(m.Server, "look for a single thread: replication, interrupts of one queue, a purge")
		}},
		{OneCore, func(m *machineShares) LimitFinding {
			return m.fullCore(m.Generator, "start a second process of the tool, or spread the interrupts of the network over the cores")
		}},
		{Steal, func(m *machineShares) LimitFinding {
			return finding(m.stolen(), "repeat on a machine of its own, or at another time",
				"other virtual machines took %s of the CPU of %s", table.Share(m.Steal.Mean), m.title())
		}},
		{Disk, func(m *machineShares) LimitFinding {
			return finding(m.disk, "repeat with a faster disk, a larger buffer pool or fewer fsyncs",
				"a disk of %s was busy for %s of the time on average%s", m.title(), table.Share(m.Disk.Mean), waitText(m.DiskWait))
		}},
	}
	links = []rule[machineShares]{
		{Network, func(m *machineShares) LimitFinding {
			return finding(m.Network.High*certainly(m.Network.High >= 0.3), "repeat with a faster link, or with smaller results",
				"the link of %s was used by %s on average, and by at least %s for %s of the time", m.Name, table.Share(m.Network.Mean), table.Share(BusyNetwork), table.Share(m.Network.High))
		}},
	}
	roundTrips = []rule[shares]{
		{RoundTrip, func(s *shares) LimitFinding {
			e := s.e
			return finding(s.travelled*certainly(e.RoundTrip >= localRoundTrip || !e.beside(e.RoundTripTo)), "repeat with the tool nearer to the servers, or with more threads",
				"each of %s statements of a transaction takes a round trip of at least %.2g ms to %s: %s of the clients' time", table.Rounded(e.Statements), e.RoundTrip*1000, e.RoundTripTo, table.Share(s.travelled))
		}},
	}
)

// finding returns a finding without its limit.
func finding(share float64, test, format string, args ...any) LimitFinding {
	return LimitFinding{Share: share, Test: test, Evidence: fmt.Sprintf(format, args...)}
}

// certainly is the share of a limit that the tool's own output proves.
func certainly(proven bool) float64 {
	if proven {
		return 1
	}
	return 0
}

// Find ranks what limited a run by how much of the clients' time it explains. A
// client is either in a server, running or waiting for something there, or outside, in the
// tool or on the network.
func Find(e *Evidence) Verdict {
	e = e.enough()
	f := &finder{shares: newShares(e)}
	apply(f, failures, e)
	apply(f, stalls, f.servers...)
	apply(f, pools, f.servers...)
	f.addWaits()
	apply(f, sessionRules, f.shares)
	apply(f, instances, f.servers...)
	apply(f, machineRules, f.machines...)
	apply(f, links, f.machines...)
	apply(f, roundTrips, f.shares)
	for _, conclude := range []func(){f.lag, f.others, f.missing, f.clients, f.rate, f.unexplained, f.rank} {
		conclude()
	}
	if len(f.v.Findings) > 0 && f.v.Findings[0].Share >= whole {
		f.v.Missing = nil
	}
	if len(f.v.Findings) > mostFindings {
		f.v.Findings = f.v.Findings[:mostFindings]
	}
	return f.v
}

// finder collects the findings and concludes from them.
type finder struct {
	*shares
	v Verdict
}

// apply applies the rules to one thing after the other.
func apply[T any](f *finder, rules []rule[T], to ...*T) {
	for _, one := range to {
		for _, r := range rules {
			f.add(r.limit, r.find(one))
		}
	}
}

// add adds a finding if its share is large enough.
func (f *finder) add(limit Limit, finding LimitFinding) {
	if finding.Share >= LeastShare {
		finding.Limit, finding.Share = limit, rounded(finding.Share)
		f.v.Findings = append(f.v.Findings, finding)
	}
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
	effect, cause := of(Replication), of(FlowControl)
	if effect < 0 || cause < effect || all[cause].Share < all[effect].Share/2 {
		return
	}
	moved := all[cause]
	f.v.Findings = slices.Insert(slices.Delete(all, cause, cause+1), effect, moved)
}

// isRefused reports whether a server refused connections.
func (e *Evidence) isRefused() bool {
	return e.RefusedByServer != "" || slices.ContainsFunc(e.Servers, func(s ServerEvidence) bool { return s.Refused > 0 })
}

func (e *Evidence) refusal() LimitFinding {
	out := finding(certainly(e.isRefused()), "raise max_connections above the threads and what else connects, or lower the threads",
		"%s", "a server refused connections: "+e.RefusedByServer)
	for i := range e.Servers {
		s := &e.Servers[i]
		limit := "its max_connections"
		if s.ConnectionLimit > 0 {
			limit += " of " + table.Rounded(s.ConnectionLimit)
		}
		switch {
		case s.Refused > 0:
			out.Evidence = fmt.Sprintf("%s refused %s since %s was reached", s.Name, plural(s.Refused, "connection"), limit)
			return out
		case e.RefusedByServer != "" && s.ConnectionLimit > 0:
			out.Evidence = fmt.Sprintf("a server refused connections (%s); the max_connections of %s is %s",
				e.RefusedByServer, s.Name, table.Rounded(s.ConnectionLimit))
			return out
		}
	}
	return out
}

// ofClients describes a share of the clients' time.
func (s *shares) ofClients(share float64) string {
	return fmt.Sprintf("%s of their time, %s of %s on average", table.Share(share),
		table.Rounded(share*s.e.Threads), table.Rounded(s.e.Threads))
}

// mostStopped is the share of a finding's time above which its evidence is only the standstill.
const mostStopped = 0.8

// leastBack is the share of the clients above which clients that flow control held back are named.
const leastBack = 0.02

// addWaits adds the waits that the sessions themselves report.
func (f *finder) addWaits() {
	for i, c := range waits {
		share, waiting, also := f.waits[i], c.waits, ""
		names, stop := f.where(c.class)
		finding := LimitFinding{Share: share, Test: c.test, Seconds: stop.Seconds}
		if c.limit == Commit && f.isUnflushed() {
			finding.Test = "find what else holds commits, such as a backup or a slow write of the logs: by their settings no commit waits for a flush (innodb_flush_log_at_trx_commit, sync_binlog)"
		}
		if c.class == "replication" && f.paused != nil {
			waiting, finding.Test = "waited for the other nodes of the cluster (certification)", "repeat with one node"
			also = f.heldBackToo()
		}
		stopped := stop.text(f.e.Seconds)
		if stop.Seconds >= mostStopped*share*f.e.Seconds {
			if c.limit == RowLocks {
				finding.Test = "find the session that held the rows (INNODB_TRX, sys.innodb_lock_waits), and what it did meanwhile"
			}
			finding.Evidence = fmt.Sprintf("%s: the clients %s on %s%s", stopped, waiting, names, also)
		} else {
			if stop.Seconds > 0 {
				also += "; " + stopped
			}
			finding.Evidence = fmt.Sprintf("clients %s on %s for %s%s", waiting, names, f.ofClients(share), also)
		}
		f.add(c.limit, finding)
	}
}

// isUnflushed reports whether no server in which sessions waited in commit flushes a log at each commit.
func (s *shares) isUnflushed() bool {
	for i := range s.e.Servers {
		if one := &s.e.Servers[i]; one.Sessions["commit"] > 0 && !one.Unflushed {
			return false
		}
	}
	return true
}

// heldBackToo explains why fewer clients are reported to wait for a cluster than its sessions show, or names flow
// control that is too small for its own finding.
func (s *shares) heldBackToo() string {
	back, mean := 0.0, s.paused.FlowControl.Mean
	for i := range s.e.Servers {
		back += orZero(s.e.Servers[i].HeldBack["replication"])
	}
	switch {
	case mean >= LeastShare && back >= leastBack*s.e.Threads:
		return fmt.Sprintf(", without another %s that flow control held back", table.Rounded(back))
	case mean < LeastShare && s.asked != nil:
		return fmt.Sprintf("; %s asked for flow control %s, which held writes back for %s of the time",
			s.asked.Name, times(s.asked.FlowControlSent), table.Share(mean))
	}
	return ""
}

func (s *shares) flowControl() LimitFinding {
	out := LimitFinding{Share: s.heldBack, Test: "make the server that is behind faster, start it if it is down, or run without it"}
	out.Evidence = "clients waited for flow control for " + s.ofClients(s.heldBack)
	if s.paused != nil && s.paused.FlowControl.Mean >= s.heldBack {
		out.Evidence = fmt.Sprintf("writes were held back for %s of the time", table.Share(s.heldBack))
	}
	if s.asked != nil {
		out.Evidence += fmt.Sprintf(", and %s asked for it %s", s.asked.Name, times(s.asked.FlowControlSent))
		out.Test = "raise wsrep_slave_threads and gcs.fc_limit of " + s.asked.Name + ", or run without that node"
		if useful := math.Round(s.asked.UsefulAppliers); useful > s.asked.Appliers {
			out.Test += fmt.Sprintf("; more appliers than its %s help up to %s (wsrep_cert_deps_distance)",
				table.Rounded(s.asked.Appliers), table.Rounded(useful))
		} else if useful <= s.asked.Appliers {
			out.Test = fmt.Sprintf("raise gcs.fc_limit of %s, or run without that node; more appliers than its %s do not help, as wsrep_cert_deps_distance is %s", s.asked.Name, table.Rounded(s.asked.Appliers), table.Rounded(useful))
		}
	}
	return out
}

// mostlyHeld is the share of the time above which a program that its quota held used all of the quota.
const mostlyHeld = 0.5

// confinedBy returns the finding about a program that could not use cores that were free.
func (m *machineShares) confinedBy(p *program) LimitFinding {
	test, why := "look for pinned cores of "+p.name+" (taskset, cpuset of a container), or repeat with more of them", ""
	switch p.by {
	case byQuota:
		test = "raise the CPU quota of " + p.name + " (cgroup cpu.max, limits of a container)"
		why = fmt.Sprintf("its CPU quota held it for %s of the time", table.Share(p.Held))
		if p.Held >= mostlyHeld && p.Running > 0 {
			why = "used all of its CPU quota of " + coresOf(p.Running)
		}
	case byPinning:
		why = fmt.Sprintf("may use only %s of the %s of %s, and used %s of that", table.Rounded(p.Cores),
			plural(float64(m.Cores), "core"), m.Name, table.Share(min(1, p.Running/p.Cores)))
	case bySuspectedPinning:
		why = fmt.Sprintf("waited for a core although the cores of %s were only %s busy: it may be bound to a few of them", m.Name, table.Share(m.CPU.Mean))
	}
	return LimitFinding{Of: p.name, Share: p.confined, Test: test,
		Evidence: fmt.Sprintf("%s; clients waited because of that for %s of their time", why, table.Share(p.confined))}
}

// cores returns the finding about too few cores, if the machine has the role that it is about.
func (m *machineShares) cores(hasRole bool, test string) LimitFinding {
	use, also := m.use(), ""
	if m.byOthers > 0 {
		use, also = "", "apart from what other programs cost, "
	}
	text := fmt.Sprintf("%sclients waited for a core of %s for %s of their time", also, m.Name, table.Share(m.waited))
	switch {
	case m.ran > 0 && m.waited < 0.005:
		text = fmt.Sprintf("%sclients used the cores of %s for %s of their time while nearly all were busy",
			also, m.Name, table.Share(m.ran))
	case m.ran > 0:
		text += fmt.Sprintf(", and ran on one for another %s while nearly all were busy", table.Share(m.ran))
	}
	return finding((m.waited+m.ran)*certainly(hasRole), test,
		"%s", text+use)
}

// use describes how busy the cores were, and with what.
func (m *machineShares) use() string {
	if m.Cores == 0 {
		return ""
	}
	return fmt.Sprintf(". Its %s were %s busy%s", plural(float64(m.Cores), "core"), table.Share(m.CPU.Mean), m.programs(m.of.e.Tool))
}

// fullCore returns the finding about one core that was full, if the machine has the role that it is about.
func (m *machineShares) fullCore(hasRole bool, test string) LimitFinding {
	return finding(m.oneCore*certainly(hasRole), test,
		"one core of %s was full for %s of the time, while all were %s busy", m.title(), table.Share(m.BusiestCore.High), table.Share(m.CPU.Mean))
}

// title names the machine and the servers on it.
func (m *machineShares) title() string {
	if len(m.Servers) == 0 || len(m.Servers) == 1 && m.Servers[0] == m.Name {
		return m.Name
	}
	return m.Name + " (" + strings.Join(m.Servers, ", ") + ")"
}

// longLag is the lag in seconds above which a replica can't keep up with the run's rate.
const longLag = 5

func (f *finder) lag() {
	for i := range f.e.Servers {
		if s := &f.e.Servers[i]; s.LagSeconds >= longLag {
			f.v.Behind = append(f.v.Behind, fmt.Sprintf("%s was up to %s s behind: it can't keep up with this throughput, though it does not slow the clients. To test it: raise its applier threads, or lower the rate until the lag stops growing",
				s.Name, table.Rounded(s.LagSeconds)))
		}
	}
}

// ofServers are limits to which another load on the servers contributes, so it gets a share of their findings.
var ofServers = []Limit{
	ServerCPU, SharedCPU, ProcessCPU, ServerCore, RowLocks, Locks, UserLocks, ThreadPool, Latches, FlowControl, Replication,
	Commit, Disk, Pool, Network,
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
			one.Evidence += fmt.Sprintf("; %s of that is due to the other load", table.Share(foreign))
		}
	}
	share = max(share, LeastShare)
	f.add(OtherLoad, finding(share, "repeat while nothing else uses the servers",
		"%s", f.e.OtherLoad))
}

// clients finds that clients were outside for a time that even the fastest transaction took, or
// that there were too few of them, if everything is known and nothing was at its limit.
func (f *finder) clients() {
	if series.IsKnown(f.e.Rate) || !(f.e.Threads > 0) || !(f.e.Throughput > 0) || len(f.v.Missing) > 0 || !f.sampled {
		return
	}
	if fixed := min(f.outside, f.e.MinLatency*f.e.Throughput/f.e.Threads); fixed >= LeastShare &&
		f.e.Threads*f.e.Seconds >= leastClientSeconds && f.toolKnown() {
		f.add(Outside, finding(fixed, "repeat with the tool on the server's machine, without a proxy and without think time, or with more threads",
			"for %s of their time the clients had no statement in a server, and the threads of %s neither ran nor waited for a core; even the fastest transaction took %.3g ms of %.3g ms on average", table.Share(f.outside), f.e.Tool, f.e.MinLatency*1000, f.e.Threads/f.e.Throughput*1000))
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
	f.add(Clients, finding(1-explained, "repeat with twice the threads: if the throughput rises, this was the cause",
		"%s, each of which waits for its answer, make %s transactions/s of %.3g ms; nothing was at its limit, the busiest CPU (%s) at %s", plural(f.e.Threads, "client"), table.Rounded(f.e.Throughput), f.e.Threads/f.e.Throughput*1000, name, table.Share(busiest)))
	f.running, f.outside = 0, 0
}

// unexplained adds the remaining time, with what is known about it.
func (f *finder) unexplained() {
	left := f.running + f.outside + f.byClass[other]
	if !(f.e.Threads > 0) || f.v.Unlimited != "" || !f.sampled && len(f.v.Findings) == 0 || f.explained() >= whole || left < LeastShare {
		return
	}
	if !f.sampled {
		left = min(left, 1-f.explained())
	}
	var parts []string
	if !f.sampled {
		parts = append(parts, "no server was sampled")
	}
	add := func(share float64, format string, args ...any) {
		if share >= aboutSame/2 {
			parts = append(parts, table.Share(share)+" "+fmt.Sprintf(format, args...))
		}
	}
	if f.sampled {
		reason := "the threads of " + f.e.Tool + " neither ran nor waited for a core: the network, a proxy, a pause of the tool, or requests that a server had not read"
		if !f.toolKnown() {
			reason = "whether " + f.e.Tool + " ran or waited for a core is not known"
		}
		add(f.outside, "without a statement in a server (%s)", reason)
		reason = "their threads neither ran nor waited for a core: a wait that these sessions do not show. Sessions of performance_schema show more"
		if !f.localKnown() {
			reason = "whether they ran or waited for a core is not known"
		}
		add(f.running, "in sessions that execute a statement (%s)", reason)
		reason = "in sessions in other states"
		if name, share := f.largest(f.byClass[other], false); share > 0 {
			reason += fmt.Sprintf(", most of it in %q", name)
		}
		add(f.byClass[other], "%s", reason)
	}
	for _, m := range f.machines {
		if m.CPU.High >= busy && (m.Server && !m.local.isKnown() || m.Generator && !m.tool.isKnown()) {
			parts = append(parts, fmt.Sprintf("the cores of %s are suspected: they were %s busy, but there are no statistics of who waited for them", m.Name, table.Share(m.CPU.Mean)))
		}
	}
	for _, s := range f.servers {
		if s.CPU.High >= busy && s.Sessions == nil {
			parts = append(parts, fmt.Sprintf("the cores of %s are suspected: they were %s busy, but what its sessions did is not known", s.Name, table.Share(s.CPU.Mean)))
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

// leastClientSeconds is how many samples of a client are needed to know where clients were.
const leastClientSeconds = 30

// MadeRate reports whether a run of some seconds reached the configured transactions per second: nearly all, or as many
// as random intervals between transactions allow, whose number has a Poisson distribution. The queue at the end shows
// whether chance is the reason; without it, the result is not sure.
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

// rate compares the throughput with the configured rate.
func (f *finder) rate() {
	if !(f.e.Rate > 0) || !series.IsKnown(f.e.Throughput) {
		return
	}
	of := fmt.Sprintf("%s of the %s transactions/s that it was asked for", table.Rounded(f.e.Throughput), table.Rounded(f.e.Rate))
	made, sure := MadeRate(f.e.Throughput, f.e.Rate, f.e.Seconds, f.e.Queue)
	switch {
	case !made:
		f.add(Rate, finding(max(LeastShare, 1-f.explained()), "repeat with more threads, or a lower rate",
			"%s made %s: the others queued in it, as all of its threads were busy", f.e.Tool, of))
		return
	case !sure:
		f.v.Missing = append(f.v.Missing, Missing{What: fmt.Sprintf("why the run made %s: in %s s, random intervals between transactions can make as large a difference, and %s printed no queue", of, table.Rounded(f.e.Seconds), f.e.Tool)})
		f.running, f.outside, f.byClass = 0, 0, nil // the clients may have had nothing to do
		return
	}
	f.v.Findings = slices.DeleteFunc(f.v.Findings, func(l LimitFinding) bool {
		return !slices.Contains([]Limit{Connections, Ports, Files}, l.Limit)
	})
	f.v.Unlimited = "the run made " + of
	if f.e.Throughput < sameRate*f.e.Rate {
		f.v.Unlimited += fmt.Sprintf(", all but %s of those that %s began at random intervals", table.Rounded(f.e.Queue), f.e.Tool)
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
		add("name them as targets in the configuration, and with --targets if the tool's command does not show where it connects to", "no server was sampled")
	}
	if !generator && !isNamed {
		add("start the tool with benchwatch run where the agent is, or name its node_exporter in hosts with the role generator", "the CPU of the generator was not recorded")
	}
	var machines, sessions []string
	for i := range f.e.Servers {
		s := &f.e.Servers[i]
		if !slices.Contains(hosted, s.Name) && !series.IsKnown(s.CPU.Mean) {
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
		add("see the rights for active sessions in docs/databases.md",
			"what the sessions of %s waited for was not recorded", listed(sessions))
	}
}
