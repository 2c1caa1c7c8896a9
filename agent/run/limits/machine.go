package limits

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

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
		own = m.ToolCPU + cause.OrZero(m.ServersCPU)
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
		own = m.ToolCPU + cause.OrZero(m.ServersCPU)
	}
	all := own + m.OthersCPU
	if !(all > 0) {
		unknown := series.Unknown()
		return cause.CPUUse{Tool: unknown, Servers: unknown, Other: unknown, Kernel: unknown}
	}
	kernel := 0.0
	if used := m.CPU.Mean - cause.OrZero(m.Steal.Mean); used > 0 {
		kernel = min(1, cause.OrZero(m.Kernel)/used)
	}
	programs := (1 - kernel) / all
	return cause.CPUUse{
		Tool: m.ToolCPU * programs, Servers: cause.OrZero(m.ServersCPU) * programs, Other: m.OthersCPU * programs, Kernel: kernel,
	}
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

const (
	// namedProgram is the share of the CPU above which a program is named; at most mostPrograms are.
	namedProgram = 0.05
	mostPrograms = 3
)

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

// use describes how busy the cores were, and with what.
func (m *machineShares) use() string {
	if m.Cores == 0 || !series.IsKnown(m.CPU.Mean) {
		return ""
	}
	return fmt.Sprintf(". Its %s were %s busy%s", plural(float64(m.Cores), "core"), table.Share(m.CPU.Mean), m.programs(m.of.e.Tool))
}

// title names the machine and the servers on it.
func (m *machineShares) title() string {
	if len(m.Servers) == 0 || len(m.Servers) == 1 && m.Servers[0] == m.Name {
		return m.Name
	}
	return m.Name + " (" + strings.Join(m.Servers, ", ") + ")"
}
