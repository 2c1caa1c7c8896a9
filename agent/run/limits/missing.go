package limits

import (
	"fmt"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// missing lists the evidence that is missing.
func (e *Evidence) missing() []Missing {
	all := slices.Clone(e.NotRepresented)
	add := func(remedy, format string, args ...any) {
		all = append(all, Missing{fmt.Sprintf(format, args...), remedy})
	}
	if !(e.Threads > 0) {
		add("", "the output and the command of %s do not show how many clients there were", e.Tool)
	}
	for i := range e.Machines {
		if m := &e.Machines[i]; tooFew(m.Samples) {
			add("", fewSamples, plural(float64(m.Samples), "sample"), m.Name, LeastSamples)
		}
	}
	hosted, hasGenerator := e.observed()
	if isNamed := len(e.NotRepresented) > 0; !isNamed {
		if len(e.Servers) == 0 {
			add("name them as targets in the configuration, and with --targets if the tool's command does not show where it "+
				"connects to", "no server was sampled")
		}
		if !hasGenerator {
			add("start the tool with benchwatch run where the agent is, or name its node_exporter in hosts with the role "+
				"generator", "the CPU of the generator was not recorded")
		}
	}
	var withoutMachine, withoutSessions []string
	for i := range e.Servers {
		s := &e.Servers[i]
		if !slices.Contains(hosted, s.Name) && !series.IsKnown(s.CPU.Mean) {
			withoutMachine = append(withoutMachine, s.Name)
		}
		switch {
		case tooFew(s.Samples):
			add("", fewSamples, plural(float64(s.Samples), "sample"), s.Name, LeastSamples)
		case s.Sessions == nil:
			withoutSessions = append(withoutSessions, s.Name)
		}
	}
	if len(withoutMachine) > 0 {
		add("set node_exporter of the targets", "CPU and disks of %s were not recorded", listed(withoutMachine))
	}
	if len(withoutSessions) > 0 {
		add("see the rights for active sessions in docs/databases.md",
			"what the sessions of %s waited for was not recorded", listed(withoutSessions))
	}
	return all
}

const fewSamples = "only %s of %s, and at least %d are needed"

// tooFew reports whether there are samples, but not enough of them.
func tooFew(samples int) bool { return samples > 0 && samples < LeastSamples }

// observed returns the servers whose machines were observed, and whether the generator was one of these machines. A
// machine with too few samples counts: what is missing of it is listed by its own name.
func (e *Evidence) observed() (servers []string, generator bool) {
	for i := range e.Machines {
		if m := &e.Machines[i]; series.IsKnown(m.CPU.Mean) || tooFew(m.Samples) {
			servers = append(servers, m.Servers...)
			generator = generator || m.Generator
		}
	}
	return servers, generator
}
