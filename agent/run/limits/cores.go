package limits

import (
	"fmt"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// takeReportedCPU takes the time of sessions that run while nearly all cores of the server's machine are busy, if no
// other source has the machine.
func (s *shares) takeReportedCPU(server *serverShares) {
	hosted := slices.ContainsFunc(s.machines, func(m *machineShares) bool {
		return slices.Contains(m.Servers, server.Name) && series.IsKnown(m.CPU.Mean)
	})
	if hosted || !(server.CPU.High >= mostlyBusy) || !(s.e.Threads > 0) {
		return
	}
	server.ran = min(s.running, server.CPU.High*cause.OrZero(server.Sessions[engine.Running])/s.e.Threads)
	s.running -= server.ran
	s.attribute(server.ran)
}

// reportedCores returns the finding about too few cores of a server whose use only the database reports.
func (s *serverShares) reportedCores() LimitFinding {
	return finding(s.ran, cause.Advice(s.Engine, cause.ServerCPU),
		"clients ran statements on %s for %s of their time while nearly all of its cores were busy. "+
			"They were %s busy on average, as the database reports it",
		s.Name, table.Share(s.ran), table.Share(s.CPU.Mean))
}

// takeCores divides the time in which threads of clients, or threads that served them, waited for a
// core: because of a quota, of cores that they may not use, of other programs, or of too few cores.
func (s *shares) takeCores(m *machineShares) {
	rest, worked := 0.0, 0.0
	for _, p := range []*program{&m.tool, &m.local} {
		if p.isKnown() {
			m.confine(p)
			s.attribute(p.confined)
			worked += p.worked
			rest += p.waited - p.confined
		}
	}
	if rest+worked == 0 {
		return
	}
	m.waited = min(rest, s.unattributed()) // threads that serve no client wait, too
	byOthers, alone := m.withoutOthers(m.waited)
	if s.attribute(byOthers) {
		m.byOthers = byOthers
		m.waited -= byOthers
	}
	if ran := min(worked*m.CPU.High, s.unattributed()-m.waited); ran > 0 && m.CPU.High >= mostlyBusy && alone >= BusyCPU {
		m.ran = ran
	}
	s.attribute(m.waited + m.ran)
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

func (m *machineShares) otherPrograms() LimitFinding {
	return finding(m.byOthers, "repeat while nothing else runs on "+m.Name,
		"because of other programs, clients waited for a core of %s for %s of their time%s",
		m.Name, table.Share(m.byOthers), m.use())
}

func (m *machineShares) serverCores() LimitFinding {
	return m.cores(!m.Generator, m.of.advice(cause.ServerCPU))
}

func (m *machineShares) generatorCores() LimitFinding {
	return m.cores(m.Generator && !m.Server, m.of.advice(cause.GeneratorCPU))
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
		out.Test = fmt.Sprintf("make the script of %s cheaper, or spread it over more cores: %s used only %s",
			tool, m.servers(), table.Share(use.Servers))
	case own >= 0.5:
		out.Test = "move " + tool + " to a machine of its own: it used more than " + m.servers()
	case own >= 1-mostOfCores:
		out.Test = "repeat with cheaper statements, or with more cores; " + moved
	default:
		out.Test = "repeat with cheaper statements, or on more or faster cores; " + moved
	}
	return out
}

// takeOneCore takes the time in which one core was full: at most the remaining time in a server, outside of it, or
// both, and the time in which threads had a core or waited for one.
func (s *shares) takeOneCore(m *machineShares) {
	if m.Cores <= 1 || cause.OrZero(m.CPU.High) >= mostlyBusy || !(m.BusiestCore.High >= mostlyBusy) || m.Generator == m.Server {
		return
	}
	within := s.outside + m.tool.sum()
	if m.Server {
		within = s.running + m.local.sum()
	}
	m.oneCore = m.BusiestCore.High * within
	takeTime(m.oneCore-m.tool.sum()-m.local.sum(), &s.outside, &s.running)
	s.attribute(m.oneCore)
}

func (m *machineShares) fullServerCore() LimitFinding {
	return m.fullCore(m.Server, m.of.advice(cause.ServerCore))
}

func (m *machineShares) fullGeneratorCore() LimitFinding {
	return m.fullCore(m.Generator, m.of.advice(cause.OneCore))
}

// fullCore returns the finding about one core that was full, if the machine has the role that it is about.
func (m *machineShares) fullCore(hasRole bool, test string) LimitFinding {
	text := fmt.Sprintf("one core of %s was full for %s of the time", m.title(), table.Share(m.BusiestCore.High))
	if series.IsKnown(m.CPU.Mean) {
		text += fmt.Sprintf(", while all were %s busy", table.Share(m.CPU.Mean))
	}
	return finding(m.oneCore*certainly(hasRole), test, "%s", text)
}

const lowSteal = 0.05

// stolen is the share that other virtual machines explain: at least enough for a finding.
func (m *machineShares) stolen() float64 {
	if !(m.Steal.Mean >= lowSteal) || !m.Generator && !m.Server {
		return 0
	}
	return max(m.Steal.Mean, LeastShare)
}

func (m *machineShares) steal() LimitFinding {
	return finding(m.stolen(), m.of.advice(cause.Steal),
		"other virtual machines took %s of the CPU of %s", table.Share(m.Steal.Mean), m.title())
}
