// Package limits finds what limited a run, from evidence that its caller collected. It does no I/O.
package limits

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// LimitFinding is a limit with its evidence.
type LimitFinding struct {
	Limit cause.Limit `json:"limit"`
	// Of is the server or program that was at the limit; empty for other limits.
	Of string `json:"of,omitempty"`
	// Evidence is a sentence with the numbers, Test an experiment that would confirm the finding.
	Evidence string `json:"evidence"`
	Test     string `json:"test"`
	// Seconds is how long no transaction ended because of the limit; 0 if unknown or never.
	Seconds float64 `json:"seconds,omitempty"`
	// Share is how much of the clients' time it explains, from 0 to 1.
	Share float64 `json:"share"`
	// Causes explain the finding, the largest share first. Without a known cause it is empty.
	Causes []CauseFinding `json:"causes,omitempty"`
	// Unexplained is set if causes of the limit are declared, but none of them was found.
	Unexplained bool `json:"-"`
}

// CauseFinding is a cause of a limit with its evidence.
type CauseFinding struct {
	Cause string `json:"cause"`
	// Of is the statement, table, setting or server that it concerns; empty for other causes.
	Of string `json:"of,omitempty"`
	// Evidence is a sentence with the numbers, Test what would confirm the cause.
	Evidence string `json:"evidence"`
	Test     string `json:"test"`
	// Share is how much of the clients' time it explains, from 0 to 1.
	Share float64 `json:"share"`
}

// Title names the limit, and whose it is.
func (f *LimitFinding) Title() string {
	switch {
	case f.Of != "" && f.Limit == cause.ProxyQueue:
		return "queue of " + f.Of
	case f.Of != "" && f.Limit == cause.ProxyThread:
		return "one thread of " + f.Of
	case f.Of != "" && (f.Limit == cause.ProcessCPU || f.Limit == cause.ToolCPU):
		return "CPU of " + f.Of
	case f.Of != "" && f.Limit == cause.SharedCPU:
		return "CPU, used mostly by " + f.Of
	}
	return string(f.Limit)
}

// Advice is the test of the finding: that of its first cause, since it says more. Where other programs cost the time,
// the machine comes first.
func (f *LimitFinding) Advice() string {
	if len(f.Causes) > 0 && f.Limit == cause.Neighbours {
		return f.Test + "; then " + f.Causes[0].Test
	}
	if len(f.Causes) > 0 {
		return f.Causes[0].Test
	}
	return f.Test
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

	// outside is the part without a statement in a server and without work of the tool.
	outside float64
}

// Verdict is the result of the search for what limited a run.
type Verdict struct {
	// Findings are ranked by how much they explain; empty if nothing is known to have limited the run.
	Findings []LimitFinding `json:"findings,omitempty"`
	// Unexplained is absent if it is less than what a finding must explain, or if it is unknown how the clients spent
	// their time.
	Unexplained *Unexplained `json:"unexplained,omitempty"`
	// Division is where the time of a transaction went; absent if the sessions of the servers are unknown.
	Division *Division `json:"division,omitempty"`
	// Unlimited is set if the run reached its configured rate.
	Unlimited string `json:"unlimited,omitempty"`
	// Behind are replicas that did not keep up. They do not slow the clients.
	Behind []string `json:"behind,omitempty"`
	// Missing is the evidence without which some limits can't be found.
	Missing []Missing `json:"missing,omitempty"`
}

// First returns the limit that explains most of the clients' time.
func (v *Verdict) First() cause.Limit {
	switch {
	case v == nil || v.MostlyUnknown():
		return cause.Unknown
	case len(v.Findings) > 0:
		return v.Findings[0].Limit
	case v.Unlimited != "":
		return cause.Unlimited
	}
	return cause.Unknown
}

// User is who used most of the CPU of the tool's machine, by the findings about it.
type User int

// The users of a CPU.
const (
	NoUser User = iota // no finding is about it
	ByTool
	ByServers
	ByOthers
)

// CPUUser returns who used most of the CPU of the tool's machine if a finding is about it. Whatever else judges how busy
// that machine was, such as the trust in a run's numbers, asks here.
func (v *Verdict) CPUUser(tool string) User {
	if v == nil {
		return NoUser
	}
	for i := range v.Findings {
		switch f := &v.Findings[i]; f.Limit {
		case cause.ToolCPU, cause.GeneratorCPU, cause.OneCore:
			return ByTool
		case cause.SharedCPU:
			if f.Of == tool {
				return ByTool
			}
			if f.Of != "" {
				return ByServers
			}
		case cause.Neighbours:
			return ByOthers
		}
	}
	return NoUser
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

// rule is a limit with the function that finds it. Everything that a rule reads was computed before.
type rule[T any] struct {
	limit cause.Limit
	// find returns the finding without its limit; its share is unknown or 0 if there is no finding.
	find func(*T) LimitFinding
}

// The rules, by what they are applied to. A wait, a state that slows a server, or advice is declared by the engine, see
// package cause. A new limit is an entry here and, if its share is not part of the evidence, a step of newShares.
var (
	failures = []rule[Evidence]{
		{cause.Connections, (*Evidence).refusal},
		{cause.Ports, func(e *Evidence) LimitFinding {
			return finding(certainly(e.NoPort != ""), cause.Advice("", cause.Ports),
				"%s", "the generator had no port left for a connection: "+e.NoPort)
		}},
		{cause.Files, func(e *Evidence) LimitFinding {
			return finding(certainly(e.NoFile != ""), "raise the limit of open files of "+e.Tool+" (ulimit -n)",
				"%s could open no more files, and each connection needs one: %s", e.Tool, e.NoFile)
		}},
	}
	pools = []rule[serverShares]{
		{cause.Pool, func(s *serverShares) LimitFinding {
			read, time := "", fmt.Sprintf("clients waited for pages for %s of their time", table.Share(s.pool))
			if series.IsKnown(s.read) {
				read = fmt.Sprintf(", a read of the disk takes %.2g ms", s.read*1000)
			}
			if s.estimated {
				time = fmt.Sprintf("an estimate of %s of the clients' time, since neither waits for pages nor disks were observed", table.Share(s.pool))
			}
			return finding(s.pool, cause.Advice(s.Engine, cause.Pool),
				"%s read %s pages/s from disk, %s of those that were asked for%s: %s", s.Name, table.Rounded(s.PoolReads), table.Share(s.PoolMisses), read, time)
		}},
	}
	instances = []rule[serverShares]{
		{cause.ServerCPU, func(s *serverShares) LimitFinding {
			return finding(s.ran, cause.Advice(s.Engine, cause.ServerCPU),
				"clients ran statements on %s for %s of their time while nearly all of its cores were busy. They were %s busy on average, as the database reports it", s.Name, table.Share(s.ran), table.Share(s.CPU.Mean))
		}},
	}
	sessionRules = []rule[shares]{
		{cause.State, func(s *shares) LimitFinding {
			names, _ := s.where(other)
			return finding(s.inState, s.advice(cause.State),
				"clients were in the state %q on %s for %s", s.state, names, s.ofClients(s.inState))
		}},
		{cause.FlowControl, (*shares).flowControl},
	}
	machineRules = []rule[machineShares]{
		{cause.ToolCPU, func(m *machineShares) LimitFinding { return m.confinedBy(&m.tool) }},
		{cause.ProcessCPU, func(m *machineShares) LimitFinding { return m.confinedBy(&m.local) }},
		{cause.Neighbours, func(m *machineShares) LimitFinding {
			return finding(m.byOthers, "repeat while nothing else runs on "+m.Name,
				"because of other programs, clients waited for a core of %s for %s of their time%s", m.Name, table.Share(m.byOthers), m.use())
		}},
		{cause.ServerCPU, func(m *machineShares) LimitFinding {
			return m.cores(!m.Generator, m.of.advice(cause.ServerCPU))
		}},
		{cause.SharedCPU, (*machineShares).sharedCores},
		{cause.GeneratorCPU, func(m *machineShares) LimitFinding {
			return m.cores(m.Generator && !m.Server, m.of.advice(cause.GeneratorCPU))
		}},
		{cause.ServerCore, func(m *machineShares) LimitFinding {
			return m.fullCore(m.Server, m.of.advice(cause.ServerCore))
		}},
		{cause.OneCore, func(m *machineShares) LimitFinding {
			return m.fullCore(m.Generator, m.of.advice(cause.OneCore))
		}},
		{cause.Steal, func(m *machineShares) LimitFinding {
			return finding(m.stolen(), m.of.advice(cause.Steal),
				"other virtual machines took %s of the CPU of %s", table.Share(m.Steal.Mean), m.title())
		}},
		{cause.Disk, func(m *machineShares) LimitFinding {
			return finding(m.disk, "repeat with a faster disk, a larger cache or fewer fsyncs",
				"a disk of %s was busy for %s of the time on average%s", m.title(), table.Share(m.Disk.Mean), waitText(m.DiskWait))
		}},
	}
	proxyRules = []rule[proxyShares]{
		{cause.ProxyQueue, (*proxyShares).queue},
		{cause.ProxyThread, func(p *proxyShares) LimitFinding {
			f := finding(p.thread, cause.Advice(p.Engine, cause.ProxyThread),
				"the busiest thread of %s used %s of a core on average, and nearly all of it for %s of the time",
				p.Name, table.Share(p.Thread.Mean), table.Share(p.Thread.High))
			f.Of = p.Name
			return f
		}},
	}
	links = []rule[machineShares]{
		{cause.Network, func(m *machineShares) LimitFinding {
			return finding(m.Network.High*certainly(m.Network.High >= 0.3), "repeat with a faster link, or with smaller results",
				"the link of %s was used by %s on average, and by at least %s for %s of the time", m.Name, table.Share(m.Network.Mean), table.Share(BusyNetwork), table.Share(m.Network.High))
		}},
	}
	roundTrips = []rule[shares]{
		{cause.RoundTrip, func(s *shares) LimitFinding {
			e := s.e
			return finding(s.networkShare*certainly(e.RoundTrip >= localRoundTrip || !e.beside(e.RoundTripTo)), "repeat with the tool nearer to the servers, or with more threads",
				"each of %s statements of a transaction takes a round trip of at least %.2g ms to %s: %s of the clients' time", table.Rounded(e.Statements), e.RoundTrip*1000, e.RoundTripTo, table.Share(s.networkShare))
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
	f.addStalls()
	apply(f, pools, f.servers...)
	f.addWaits()
	apply(f, sessionRules, f.shares)
	apply(f, instances, f.servers...)
	apply(f, machineRules, f.machines...)
	apply(f, links, f.machines...)
	apply(f, proxyRules, f.proxies...)
	apply(f, roundTrips, f.shares)
	f.v.Division = f.divide()
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
func (f *finder) add(limit cause.Limit, finding LimitFinding) {
	if finding.Share >= LeastShare {
		finding.Limit, finding.Share = limit, rounded(finding.Share)
		f.v.Findings = append(f.v.Findings, finding)
	}
}

// certain: a finding that the tool's own output shows counts twice.
const certain = 2

// weight is the share of the finding, more if the tool's own output shows it.
func (f *LimitFinding) weight() float64 {
	if f.Seconds > 0 {
		return certain * f.Share
	}
	return f.Share
}

// rank orders the findings by their share, but a cause before its effect unless the effect is much
// larger: commits that wait for a cluster while flow control holds it back.
func (f *finder) rank() {
	all := f.v.Findings
	slices.SortStableFunc(all, func(a, b LimitFinding) int { return cmp.Compare(b.weight(), a.weight()) })
	of := func(limit cause.Limit) int {
		return slices.IndexFunc(all, func(one LimitFinding) bool { return one.Limit == limit })
	}
	effect, origin := of(cause.Replication), of(cause.FlowControl)
	if effect < 0 || origin < effect || all[origin].Share < all[effect].Share/2 {
		return
	}
	moved := all[origin]
	f.v.Findings = slices.Insert(slices.Delete(all, origin, origin+1), effect, moved)
}

// isRefused reports whether a server refused connections.
func (e *Evidence) isRefused() bool {
	return e.RefusedByServer != "" || slices.ContainsFunc(e.Servers, func(s ServerEvidence) bool { return s.Refused > 0 })
}

func (e *Evidence) refusal() LimitFinding {
	out := finding(certainly(e.isRefused()), cause.Advice(e.engine(), cause.Connections),
		"%s", "a server refused connections: "+e.RefusedByServer)
	for i := range e.Servers {
		s := &e.Servers[i]
		name := cmp.Or(cause.Setting(s.Engine, cause.Connections), "limit of connections")
		limit := "its " + name
		if s.ConnectionLimit > 0 {
			limit += " of " + table.Rounded(s.ConnectionLimit)
		}
		switch {
		case s.Refused > 0:
			out.Evidence = fmt.Sprintf("%s refused %s since %s was reached", s.Name, plural(s.Refused, "connection"), limit)
			return out
		case e.RefusedByServer != "" && s.ConnectionLimit > 0:
			out.Evidence = fmt.Sprintf("a server refused connections (%s); the %s of %s is %s",
				e.RefusedByServer, name, s.Name, table.Rounded(s.ConnectionLimit))
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
	for i, c := range f.waits {
		share, also := f.waited[i], ""
		names, stop := f.where(c.Class)
		finding := LimitFinding{Share: share, Test: cmp.Or(f.meaning(&c), c.Test), Seconds: stop.Seconds}
		if c.Class == engine.Replication && f.paused != nil {
			also = f.heldBackToo()
		}
		stopped := stop.text(f.e.Seconds)
		if stop.Seconds >= mostStopped*share*f.e.Seconds {
			finding.Test = cmp.Or(c.Stopped, finding.Test)
			finding.Evidence = fmt.Sprintf("%s: the clients %s on %s%s", stopped, c.Waits, names, also)
		} else {
			if stop.Seconds > 0 {
				also += "; " + stopped
			}
			finding.Evidence = fmt.Sprintf("clients %s on %s for %s%s", c.Waits, names, f.ofClients(share), also)
		}
		f.add(c.Limit, finding)
	}
}

// meaning returns what the settings of all servers on which sessions waited mean for the limit; empty if there is a
// server for which they mean nothing.
func (s *shares) meaning(w *cause.Wait) (test string) {
	for i := range s.e.Servers {
		if one := &s.e.Servers[i]; one.Sessions[w.Class] > 0 {
			if test = one.Meanings[w.Limit]; test == "" {
				return ""
			}
		}
	}
	return test
}

// addStalls adds the states in which servers did less.
func (f *finder) addStalls() {
	for _, server := range f.servers {
		for i, share := range server.stalled {
			stall := &server.Stalls[i]
			f.add(stall.Limit, finding(share, cause.Advice(server.Engine, stall.Limit),
				stall.Text+"%s", server.Name, stall.From, stall.text()))
		}
	}
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
	case mean < LeastShare && s.asksForPauses != nil:
		return fmt.Sprintf("; %s asked for flow control %s, which held writes back for %s of the time",
			s.asksForPauses.Name, times(s.asksForPauses.FlowControlSent), table.Share(mean))
	}
	return ""
}

func (s *shares) flowControl() LimitFinding {
	out := LimitFinding{Share: s.flowControlled, Test: s.advice(cause.FlowControl)}
	out.Evidence = "clients waited for flow control for " + s.ofClients(s.flowControlled)
	if s.paused != nil && s.paused.FlowControl.Mean >= s.flowControlled {
		out.Evidence = fmt.Sprintf("writes were held back for %s of the time", table.Share(s.flowControlled))
	}
	if s.asksForPauses != nil {
		out.Evidence += fmt.Sprintf(", and %s asked for it %s", s.asksForPauses.Name, times(s.asksForPauses.FlowControlSent))
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
		why = fmt.Sprintf("may use only %s of the %s of %s", table.Rounded(p.Cores), plural(float64(m.Cores), "core"), m.Name)
		if used := p.Running / p.Cores; series.IsKnown(used) {
			why += fmt.Sprintf(", and used %s of that", table.Share(min(1, used)))
		}
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

// mostOfCores is the share of what tool and servers used together from which on one of them used nearly all.
const mostOfCores = 0.8

// sharedCores returns the finding about too few cores for the tool and the servers beside it. It is named after the one
// that used most, and the advice follows from what each of them used.
func (m *machineShares) sharedCores() LimitFinding {
	tool := m.of.e.Tool
	out := m.cores(m.Generator && m.Server, "move "+tool+" to a machine of its own")
	use := m.Use()
	out.Of = m.LargestUser(tool)
	if out.Of == "" {
		return out
	}
	moved := fmt.Sprintf("a machine of its own for %s would free %s of what was used", tool, table.Share(use.Tool))
	switch own := use.Tool / (use.Tool + use.Servers); {
	case own >= mostOfCores:
		out.Test = fmt.Sprintf("make the script of %s cheaper, or spread it over more cores: %s used only %s", tool, m.servers(), table.Share(use.Servers))
	case own >= 0.5:
		out.Test = "move " + tool + " to a machine of its own: it used more than " + m.servers()
	case own >= 1-mostOfCores:
		out.Test = "repeat with cheaper statements, or with more cores; " + moved
	default:
		out.Test = "repeat with cheaper statements, or on more or faster cores; " + moved
	}
	return out
}

// use describes how busy the cores were, and with what.
func (m *machineShares) use() string {
	if m.Cores == 0 || !series.IsKnown(m.CPU.Mean) {
		return ""
	}
	return fmt.Sprintf(". Its %s were %s busy%s", plural(float64(m.Cores), "core"), table.Share(m.CPU.Mean), m.programs(m.of.e.Tool))
}

// fullCore returns the finding about one core that was full, if the machine has the role that it is about.
func (m *machineShares) fullCore(hasRole bool, test string) LimitFinding {
	text := fmt.Sprintf("one core of %s was full for %s of the time", m.title(), table.Share(m.BusiestCore.High))
	if series.IsKnown(m.CPU.Mean) {
		text += fmt.Sprintf(", while all were %s busy", table.Share(m.CPU.Mean))
	}
	return finding(m.oneCore*certainly(hasRole), test, "%s", text)
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
var ofServers = []cause.Limit{
	cause.ServerCPU, cause.SharedCPU, cause.ProcessCPU, cause.ServerCore, cause.RowLocks, cause.Locks, cause.UserLocks, cause.ThreadPool, cause.Latches, cause.FlowControl, cause.Replication,
	cause.Commit, cause.Disk, cause.Pool, cause.Network,
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
	f.add(cause.OtherLoad, finding(share, "repeat while nothing else uses the servers",
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
		f.add(cause.Outside, finding(fixed, "repeat with the tool on the server's machine, without a proxy and without think time, or with more threads",
			"clients spent %s of their time outside the servers, and the threads of %s neither used nor waited for a CPU; "+
				"even the fastest transaction took %.3g ms of %.3g ms on average", table.Share(f.outside), f.e.Tool, f.e.MinLatency*1000, f.e.Threads/f.e.Throughput*1000))
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
	f.add(cause.Clients, finding(1-explained, "repeat with twice the threads: if the throughput rises, this was the cause",
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
		reason := fmt.Sprintf("the threads of %s neither used nor waited for a CPU: the network, %s, a pause of the tool, or requests that a server had not read",
			f.e.Tool, f.e.proxyNames("a proxy"))
		if !f.toolKnown() {
			reason = "whether " + f.e.Tool + " ran or waited for a core is not known"
		}
		add(f.outside, "without a statement in a server (%s)", reason)
		reason = "their threads neither used nor waited for a CPU: the server does not say what they waited for"
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
	if f.sampled && f.toolKnown() {
		f.v.Unexplained.outside = min(f.outside, f.v.Unexplained.Share)
	}
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
		f.add(cause.Rate, finding(max(LeastShare, 1-f.explained()), "repeat with more threads, or a lower rate",
			"%s made %s: the others queued in it, as all of its threads were busy", f.e.Tool, of))
		return
	case !sure:
		f.v.Missing = append(f.v.Missing, Missing{What: fmt.Sprintf("why the run made %s: in %s s, random intervals between transactions can make as large a difference, and %s printed no queue", of, table.Rounded(f.e.Seconds), f.e.Tool)})
		f.running, f.outside, f.byClass = 0, 0, nil // the clients may have had nothing to do
		return
	}
	f.v.Findings = slices.DeleteFunc(f.v.Findings, func(l LimitFinding) bool {
		return !slices.Contains([]cause.Limit{cause.Connections, cause.Ports, cause.Files}, l.Limit)
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
