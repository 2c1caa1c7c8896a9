package limits

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// shares divides the clients' time among what may have limited them. newShares fills it, and only the conclusions about
// clients and rate change it afterwards. Each step takes a share of the time that the previous steps left in running and
// outside.
type shares struct {
	e *Evidence
	// running in a server, and outside, are the time that nothing explains yet. Without sessions, all time is outside.
	running, outside float64
	sampled          bool
	byClass          map[string]float64 // what sessions waited for
	byState          map[StateEvidence]float64
	servers          []*serverShares
	machines         []*machineShares
	proxies          []*proxyShares
	pooled           float64      // of running: reading pages
	waits            []cause.Wait // of the servers' engines
	waited           []float64    // by entry of waits
	// state is the wait of class other, without an entry in waits, that took most of the time.
	state   string
	inState float64
	// paused is the server that was paused longest by flow control, asksForPauses the one that asked for it.
	paused, asksForPauses *ServerEvidence
	flowControlled        float64 // writes held back
	networkShare          float64 // round trips
	foundShare            float64 // the sum of the shares that are large enough for a finding
}

// serverShares are the shares of the time that the state of one server explains.
type serverShares struct {
	*ServerEvidence
	stalled   []float64 // by entry of Stalls
	pool      float64
	ran       float64 // while nearly all cores of its machine were busy, as only the database reports
	estimated bool    // pool, since neither waits for pages nor disks were observed
	read      float64 // seconds of a read of the disk, unknown if no disk was observed
}

// machineShares are the shares of the time that one machine explains.
type machineShares struct {
	*MachineEvidence
	of          *shares
	tool, local program
	// byOthers and waited are the time in which clients waited for a core because of other programs, and for other
	// reasons. ran is the time in which they had a core while nearly all were busy.
	byOthers, waited, ran float64
	oneCore, disk         float64
}

// proxyShares are the shares of the time that one proxy explains.
type proxyShares struct {
	*ProxyEvidence
	of *shares
	// queued is the time in its queue, thread the time in which its busiest thread used all of a core.
	queued, thread float64
}

// program is what the tool, or the servers beside it, did on a machine.
type program struct {
	ThreadsEvidence
	name string
	// worked and waited are shares of the clients' time, unknown without statistics of the threads.
	worked, waited float64
	// confined is how much of waited is due to by.
	confined float64
	by       confinement
}

// confinement is why a program could not use cores that were free.
type confinement int

const (
	byNothing confinement = iota
	byQuota
	byPinning
	bySuspectedPinning // there is no record of the cores that the program may use
)

// isKnown reports whether there are statistics of the threads.
func (p *program) isKnown() bool { return series.IsKnown(p.waited) }

func (p *program) sum() float64 { return orZero(p.worked) + orZero(p.waited) }

const (
	// heldShare is the share of the time above which a quota is a reason to wait for a core.
	heldShare = 0.05
	// leastMisses is the share of misses above which the buffer pool can be a limit.
	leastMisses = 0.005
	// estimatedMisses is the weight of a miss whose time is unknown: a page from a disk takes some hundred times as
	// long as a page in memory, and a statement needs several.
	estimatedMisses = 10
	// localRoundTrip is the length in seconds above which a round trip within one machine shows a proxy: a shorter one
	// is only the time to wake up.
	localRoundTrip = 0.001
	// steadyPing is the least ratio of the shortest round trip to the mean one for a proxy that delays all of them: a
	// wait for a core varies more.
	steadyPing = 0.5
	// aboutSame is how much shares that are measured in different ways may differ.
	aboutSame = 0.1
	// spareCPU is the mean use of CPU below which there is enough for more clients.
	spareCPU = 0.75
	// other is the class of waits that no other class has.
	other = engine.Other
)

// newShares divides the clients' time. The order of the steps matters: a state that stops a server
// comes before the time that its sessions seem to run, and this before what is left outside.
func newShares(e *Evidence) *shares {
	s := &shares{e: e, outside: 1, paused: e.paused(), asksForPauses: e.askedForFlowControl()}
	for i := range e.Servers {
		s.servers = append(s.servers, &serverShares{ServerEvidence: &e.Servers[i]})
	}
	for i := range e.Machines {
		s.machines = append(s.machines, &machineShares{MachineEvidence: &e.Machines[i], of: s})
	}
	for i := range e.Proxies {
		s.proxies = append(s.proxies, &proxyShares{ProxyEvidence: &e.Proxies[i], of: s})
	}
	s.divideSessions()
	s.takeQueues()
	s.divideThreads()
	for _, failed := range []bool{e.isRefused(), e.NoPort != "", e.NoFile != ""} {
		if failed {
			s.find(1)
		}
	}
	s.takeStalls()
	s.takePool()
	s.takeWaits()
	s.takeFlowControl()
	for _, server := range s.servers {
		s.takeReportedCPU(server)
	}
	for _, m := range s.machines {
		if m.Generator || m.Server {
			s.takeCores(m)
			s.takeOneCore(m)
			s.find(m.stolen())
			s.takeDisk(m)
		}
	}
	s.takeProxyThreads()
	s.networkShare = s.onTheWay()
	take(s.networkShare, &s.outside, &s.running)
	return s
}

// find adds a share to the sum of the findings' shares, and reports whether it is large enough for a finding.
func (s *shares) find(share float64) bool {
	if !(share >= LeastShare) {
		return false
	}
	s.foundShare += rounded(share)
	return true
}

// unexplained is the share of the clients' time that no finding explains so far.
func (s *shares) unexplained() float64 { return 1 - min(1, s.foundShare) }

// rounded returns a share with the precision of findings.
func rounded(share float64) float64 { return math.Round(min(1, share)*1000) / 1000 }

// take takes a share of the clients' time from the remaining time in one place, then from the other.
func take(wanted float64, from, then *float64) float64 {
	wanted = orZero(wanted)
	first := max(0, min(wanted, *from))
	*from -= first
	second := max(0, min(wanted-first, *then))
	*then -= second
	return first + second
}

// divideSessions divides the clients' time by what their sessions did.
func (s *shares) divideSessions() {
	if !(s.e.Threads > 0) {
		return
	}
	sum, total := map[string]float64{}, 0.0
	for i := range s.e.Servers {
		for class, n := range s.e.Servers[i].Sessions {
			s.sampled = true
			if series.IsKnown(n) {
				sum[class] += n
				total += n
			}
		}
	}
	if !s.sampled {
		return
	}
	threads := max(s.e.Threads, total) // others' sessions are in it
	s.byClass = map[string]float64{}
	for class, n := range sum {
		s.byClass[class] = n / threads
	}
	s.byState = map[StateEvidence]float64{}
	for i := range s.e.Servers {
		for _, state := range s.e.Servers[i].States {
			s.byState[StateEvidence{Class: state.Class, Name: state.Name}] += state.Sessions / threads
		}
	}
	s.running, s.outside = s.byClass[engine.Running], max(0, 1-total/threads)
	if slices.ContainsFunc(s.e.Machines, func(m MachineEvidence) bool { return m.Server && (m.Generator || m.CPU.High >= busy) }) {
		// A session that sends to its client waits for a core as others do; there is no network.
		s.running += s.byClass[engine.Network]
		delete(s.byClass, engine.Network)
	}
}

// takeQueues takes the time in which clients waited in the queue of a proxy: no server has a session for them, and their
// threads neither run nor wait for a core.
func (s *shares) takeQueues() {
	for _, p := range s.proxies {
		if p.Queue > 0 && s.e.Threads > 0 {
			p.queued = take(p.Queue/s.e.Threads, &s.outside, &s.running)
			s.find(p.queued)
		}
	}
}

// takeProxyThreads takes the time that is left outside while a thread of a proxy used all of a core. On a full machine the
// thread waited for a core, too, which the machine's own finding shows.
func (s *shares) takeProxyThreads() {
	full := slices.ContainsFunc(s.e.Machines, func(m MachineEvidence) bool { return m.Local.Running > 0 && m.CPU.High >= busy })
	for _, p := range s.proxies {
		if !(p.Thread.High >= busy) || full {
			continue
		}
		p.thread = p.Thread.High * s.outside
		s.outside -= p.thread
		s.find(p.thread)
	}
}

// divideThreads takes the time in which threads of tool and servers had a core or waited for one.
// Sessions do not show it, and a request that a server has not read belongs to no session.
func (s *shares) divideThreads() {
	generator := slices.ContainsFunc(s.e.Machines, func(m MachineEvidence) bool { return m.Generator }) // else any machine may be it
	for _, m := range s.machines {
		tool, local := m.Tool, m.Local
		if all := (ThreadsEvidence{m.CPU.Mean * float64(m.Cores), m.Waiting, series.Unknown(), series.Unknown()}); generator && m.Generator != m.Server {
			switch { // the machine has one role: nearly all of its tasks belong to the program
			case m.Generator && !series.IsKnown(tool.Waiting):
				tool = all
			case m.Server && !series.IsKnown(local.Waiting):
				local = all
			}
		}
		m.tool = program{ThreadsEvidence: m.Tool, name: s.e.Tool, worked: series.Unknown(), waited: series.Unknown()}
		m.local = program{ThreadsEvidence: m.Local, name: m.servers(), worked: series.Unknown(), waited: series.Unknown()}
		spend := func(p *program, t ThreadsEvidence, from, then *float64) {
			if series.IsKnown(t.Waiting) && s.e.Threads > 0 {
				p.worked = take(t.Running/s.e.Threads, from, then)
				p.waited = take(t.Waiting/s.e.Threads, from, then)
			}
		}
		if m.Server {
			spend(&m.local, local, &s.running, &s.outside)
		}
		if m.Generator {
			spend(&m.tool, tool, &s.outside, &s.running)
		}
	}
}

// takeStalls takes the time of states of a server in which it does less. Its sessions seem to run, because the server
// reports no wait for them. While they wait for something else, that is the cause, not the state.
func (s *shares) takeStalls() {
	left := 1.0
	for _, class := range []string{engine.Lock, engine.Replication, engine.Network, other} {
		left -= s.byClass[class]
	}
	back := s.byClass[engine.FlowControlWait] // the sessions may not show all of it
	if s.paused != nil {
		back = max(back, s.paused.FlowControl.Mean)
	}
	left -= back
	stall := func(state *Slowdown, explained float64) float64 {
		if !(state.During < state.Otherwise) { // only the standstills show what it cost
			explained = max(explained, back)
			left = min(left, orZero(state.Stopped)-explained)
		}
		share := min(state.lost(), max(0, left))
		if s.find(share) {
			take(share, &s.running, &s.outside)
		}
		return share
	}
	for _, server := range s.servers {
		for i := range server.Stalls {
			server.stalled = append(server.stalled, stall(&server.Stalls[i].Slowdown, server.stoppedByWaits()/s.e.Seconds))
		}
	}
}

// stoppedByWaits returns the seconds of the standstills in which nearly all clients waited for one thing on the server.
func (s *serverShares) stoppedByWaits() (seconds float64) {
	for class, stop := range s.Stopped {
		if class != engine.Running {
			seconds = max(seconds, stop.Seconds)
		}
	}
	return seconds
}

// takePool takes the time in which clients read pages from disk. It is measured by the sessions that wait for a page
// and by the reads times their latency on the server's disks; either may miss a part, so the larger one counts. If both
// are unknown, the time is estimated.
func (s *shares) takePool() {
	for _, server := range s.servers {
		server.read = series.Unknown()
		if !(server.PoolReads > 0) || !(server.PoolMisses >= leastMisses) || !(s.e.Threads > 0) {
			continue
		}
		waiting, sampled := server.Sessions[engine.Disk]
		server.pool = orZero(waiting) / s.e.Threads
		for _, m := range s.machines {
			if !slices.Contains(m.Servers, server.Name) || !series.IsKnown(m.Disk.Mean) {
				continue
			}
			sampled = true
			if series.IsKnown(m.DiskReadWait) { // else the page cache had all of them
				server.pool = max(server.pool, min(1, server.PoolReads*m.DiskReadWait/s.e.Threads))
				server.read = m.DiskReadWait
			}
		}
		if server.estimated = !sampled; server.estimated {
			server.pool = min(0.9, estimatedMisses*server.PoolMisses)
		}
		take(server.pool-max(s.pooled, s.byClass[engine.Disk]), &s.running, &s.outside)
		s.pooled = max(s.pooled, server.pool)
		s.find(server.pool)
	}
}

// takeWaits divides what sessions waited for among the waits that the servers' engines declare.
func (s *shares) takeWaits() {
	s.waits = s.e.waits()
	s.waited = make([]float64, len(s.waits))
	left := maps.Clone(s.byClass) // by class, without the states that have an entry
	for i, c := range s.waits {
		share := left[c.Class]
		if c.State != "" {
			share = 0
			for state, of := range s.byState {
				if state.Class == c.Class && strings.HasPrefix(state.Name, c.State) {
					share += of
				}
			}
			share = min(left[c.Class], share)
			if left != nil {
				left[c.Class] -= share
			}
		}
		if c.Class == engine.Disk {
			share -= s.pooled
		}
		if s.waited[i] = share; s.find(share) && c.Class == other {
			s.byClass[other] -= share
		}
	}
	if s.state, s.inState = s.largest(left[other], true); s.find(s.inState) {
		s.byClass[other] -= s.inState
	}
}

// largest returns the state of the class other that took most of the clients' time, at most the remaining time. With
// unruled it skips states that have an entry in waits.
func (s *shares) largest(left float64, unruled bool) (name string, share float64) {
	for state, of := range s.byState {
		ruled := slices.ContainsFunc(s.waits, func(w cause.Wait) bool {
			return w.Class == other && w.State != "" && strings.HasPrefix(state.Name, w.State)
		})
		if state.Class == other && !(ruled && unruled) && (of > share || of == share && state.Name < name) {
			name, share = state.Name, of
		}
	}
	return name, min(share, left)
}

// advice returns the test of a limit that belongs to no single server.
func (s *shares) advice(limit cause.Limit) string { return cause.Advice(s.e.engine(), limit) }

// takeFlowControl takes the time in which writes were held back, beyond what the sessions show.
func (s *shares) takeFlowControl() {
	s.flowControlled = s.byClass[engine.FlowControlWait]
	if s.paused != nil {
		take(s.paused.FlowControl.Mean-s.flowControlled, &s.running, &s.outside)
		s.flowControlled = max(s.flowControlled, s.paused.FlowControl.Mean)
	}
	s.find(s.flowControlled)
}

// takeReportedCPU takes the time of sessions that run while nearly all cores of the server's machine are busy, if no
// other source has the machine.
func (s *shares) takeReportedCPU(server *serverShares) {
	hosted := slices.ContainsFunc(s.machines, func(m *machineShares) bool {
		return slices.Contains(m.Servers, server.Name) && series.IsKnown(m.CPU.Mean)
	})
	if hosted || !(server.CPU.High >= busy) || !(s.e.Threads > 0) {
		return
	}
	server.ran = min(s.running, server.CPU.High*orZero(server.Sessions[engine.Running])/s.e.Threads)
	s.running -= server.ran
	s.find(server.ran)
}

// takeCores divides the time in which threads of clients, or threads that served them, waited for a
// core: because of a quota, of cores that they may not use, of other programs, or of too few cores.
func (s *shares) takeCores(m *machineShares) {
	rest, worked := 0.0, 0.0
	for _, p := range []*program{&m.tool, &m.local} {
		if p.isKnown() {
			m.confine(p)
			s.find(p.confined)
			worked += p.worked
			rest += p.waited - p.confined
		}
	}
	if rest+worked == 0 {
		return
	}
	m.waited = min(rest, s.unexplained()) // threads that serve no client wait, too
	byOthers, alone := m.withoutOthers(m.waited)
	if s.find(byOthers) {
		m.byOthers = byOthers
		m.waited -= byOthers
	}
	if ran := min(worked*m.CPU.High, s.unexplained()-m.waited); ran > 0 && m.CPU.High >= busy && alone >= BusyCPU {
		m.ran = ran
	}
	s.find(m.waited + m.ran)
}

// confine finds how much of the time in which a program waited for a core a quota explains, or cores
// that it may not use.
func (m *machineShares) confine(p *program) {
	full := m.CPU.High >= busy
	switch {
	case p.Held >= heldShare:
		p.by, p.confined = byQuota, p.waited
		if full {
			p.confined *= p.Held
		}
	case p.Cores < float64(m.Cores):
		p.by, p.confined = byPinning, p.waited
		if full {
			// Only the time that the run's own programs don't use on the other cores is lost. On its own cores, the
			// program waits for others as anywhere.
			elsewhere := (orZero(m.Tool.Running) + orZero(m.Local.Running) - p.Running) / (float64(m.Cores) - p.Cores)
			p.confined *= min(1, p.Running/p.Cores) * (1 - min(1, elsewhere))
		}
	case !series.IsKnown(p.Cores) && !full && m.CPU.Mean < spareCPU:
		p.by, p.confined = bySuspectedPinning, p.waited
	}
}

// withoutOthers returns how much less clients would wait for a core without other programs, as a share of their time,
// and how busy the cores would be then. The rest of their time remains, and the run's programs need as much CPU as
// before.
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
	byOthers = max(0, min(waited, m.CPU.Mean-least)) // what is idle is not theirs
	return byOthers, min(1, used/(1-byOthers))
}

// takeOneCore takes the time in which one core was full: at most the remaining time in a server, outside of it, or
// both, and the time in which threads had a core or waited for one.
func (s *shares) takeOneCore(m *machineShares) {
	if m.Cores <= 1 || orZero(m.CPU.High) >= busy || !(m.BusiestCore.High >= busy) || m.Generator == m.Server {
		return
	}
	within := s.outside + m.tool.sum()
	if m.Server {
		within = s.running + m.local.sum()
	}
	m.oneCore = m.BusiestCore.High * within
	take(m.oneCore-m.tool.sum()-m.local.sum(), &s.outside, &s.running)
	s.find(m.oneCore)
}

// stolen is the share that other virtual machines explain: at least enough for a finding.
func (m *machineShares) stolen() float64 {
	if !(m.Steal.Mean >= lowSteal) || !m.Generator && !m.Server {
		return 0
	}
	return max(m.Steal.Mean, LeastShare)
}

// takeDisk takes the time in which a disk was busy, unless sessions that wait for it show that time.
func (s *shares) takeDisk(m *machineShares) {
	if m.Server && m.Disk.High >= busy && s.byClass[engine.Disk] < LeastShare {
		m.disk = m.Disk.High * (take(s.running, &s.running, &s.outside) + s.byClass[engine.Commit])
		s.find(m.disk)
	}
}

// onTheWay is the share of the clients' time in which their statements were on their way to the server and back, 0 if
// unknown. It is spent outside. It is refuted if less time is left there, or if a transaction took less: then the pings
// waited for a core, not the statements.
func (s *shares) onTheWay() float64 {
	e := s.e
	share := e.RoundTrip * e.Statements * e.Throughput / e.Threads
	switch {
	case !(share > 0) || share > 1 || s.sampled && share > s.outside+aboutSame || e.MinLatency < e.RoundTrip*(1-aboutSame):
		return 0
	case e.beside(e.RoundTripTo) && e.RoundTrip < steadyPing*e.MeanRoundTrip && e.RoundTrip >= localRoundTrip:
		return 0
	}
	return min(share, s.outside)
}

// toolKnown reports whether it is known how long the threads of the tool had a core or waited.
func (s *shares) toolKnown() bool {
	return slices.ContainsFunc(s.machines, func(m *machineShares) bool { return m.tool.isKnown() })
}

// localKnown reports the same of the servers beside the tool.
func (s *shares) localKnown() bool {
	return slices.ContainsFunc(s.machines, func(m *machineShares) bool { return m.local.isKnown() })
}

// where returns the servers with most sessions of a class, and when these stopped all clients.
func (s *shares) where(class string) (names string, stop Standstill) {
	most := 0.0
	for _, server := range s.servers {
		most = max(most, orZero(server.Sessions[class]))
	}
	var all []string
	for _, server := range s.servers {
		if n := orZero(server.Sessions[class]); n > 0 && n >= most/4 {
			all = append(all, server.Name)
			if server.Stopped[class].Seconds > stop.Seconds {
				stop = server.Stopped[class]
			}
		}
	}
	return strings.Join(all, ", "), stop
}
