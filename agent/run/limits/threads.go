package limits

import (
	"fmt"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// ThreadsEvidence is what the threads of some processes did: how many ran and how many waited for
// a core on average, the share of the time in which a CPU quota held them, and how many Cores they
// may use.
type ThreadsEvidence struct{ Running, Waiting, Held, Cores float64 }

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

// isKnown reports whether there are statistics of the threads.
func (p *program) isKnown() bool { return series.IsKnown(p.waited) }

func (p *program) sum() float64 { return cause.OrZero(p.worked) + cause.OrZero(p.waited) }

// divideThreads takes the time in which threads of tool and servers had a core or waited for one.
// Sessions do not show it, and a request that a server has not read belongs to no session.
func (s *shares) divideThreads() {
	unknown := series.Unknown()
	// Without a known generator, any machine may be it.
	isGeneratorKnown := slices.ContainsFunc(s.e.Machines, func(m MachineEvidence) bool { return m.Generator })
	spend := func(p *program, t ThreadsEvidence, from, then *float64) {
		if series.IsKnown(t.Waiting) && s.e.Threads > 0 {
			p.worked = takeTime(t.Running/s.e.Threads, from, then)
			p.waited = takeTime(t.Waiting/s.e.Threads, from, then)
		}
	}
	for _, m := range s.machines {
		tool, local := m.Tool, m.Local
		if isGeneratorKnown && m.Generator != m.Server { // one role: nearly all tasks of the machine belong to the program
			all := ThreadsEvidence{m.CPU.Mean * float64(m.Cores), m.Waiting, unknown, unknown}
			switch {
			case m.Generator && !series.IsKnown(tool.Waiting):
				tool = all
			case m.Server && !series.IsKnown(local.Waiting):
				local = all
			}
		}
		m.tool = program{ThreadsEvidence: m.Tool, name: s.e.Tool, worked: unknown, waited: unknown}
		m.local = program{ThreadsEvidence: m.Local, name: m.servers(), worked: unknown, waited: unknown}
		if m.Server {
			spend(&m.local, local, &s.running, &s.outside)
		}
		if m.Generator {
			spend(&m.tool, tool, &s.outside, &s.running)
		}
	}
}

// toolKnown reports whether it is known how long the threads of the tool had a core or waited.
func (s *shares) toolKnown() bool {
	return slices.ContainsFunc(s.machines, func(m *machineShares) bool { return m.tool.isKnown() })
}

// localKnown reports the same of the servers beside the tool.
func (s *shares) localKnown() bool {
	return slices.ContainsFunc(s.machines, func(m *machineShares) bool { return m.local.isKnown() })
}

// confinement is why a program could not use cores that were free.
type confinement int

const (
	byNothing confinement = iota
	byQuota
	byPinning
	bySuspectedPinning // there is no record of the cores that the program may use
)

const (
	// heldShare is the share of the time above which a quota is a reason to wait for a core.
	heldShare = 0.05
	// spareCPU is the mean use of CPU below which there is enough for more clients.
	spareCPU = 0.75
)

// confine finds how much of the time in which a program waited for a core a quota explains, or cores
// that it may not use.
func (m *machineShares) confine(p *program) {
	full := m.CPU.High >= mostlyBusy
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
			elsewhere := (cause.OrZero(m.Tool.Running) + cause.OrZero(m.Local.Running) - p.Running) / (float64(m.Cores) - p.Cores)
			p.confined *= min(1, p.Running/p.Cores) * (1 - min(1, elsewhere))
		}
	case !series.IsKnown(p.Cores) && !full && m.CPU.Mean < spareCPU:
		p.by, p.confined = bySuspectedPinning, p.waited
	}
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
		why = fmt.Sprintf("waited for a core although the cores of %s were only %s busy: it may be bound to a few of them",
			m.Name, table.Share(m.CPU.Mean))
	}
	return LimitFinding{Of: p.name, Share: p.confined, Test: test,
		Evidence: fmt.Sprintf("%s; clients waited because of that for %s of their time", why, table.Share(p.confined))}
}

func (m *machineShares) confinedTool() LimitFinding { return m.confinedBy(&m.tool) }

func (m *machineShares) confinedServers() LimitFinding { return m.confinedBy(&m.local) }

// coresOf prints how many cores were in use.
func coresOf(n float64) string {
	if n < 1 {
		return table.Share(n) + " of a core"
	}
	return plural(n, "core")
}
