package limits

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// leastClientSeconds is how many samples of a client are needed to know where clients were.
const leastClientSeconds = 30

// addClients adds that clients were outside for a time that even the fastest transaction took, or that there were too
// few of them, if everything is known and nothing was at its limit.
func (f *finder) addClients() {
	if series.IsKnown(f.e.Rate) || !(f.e.Threads > 0) || !(f.e.Throughput > 0) || len(f.v.Missing) > 0 || !f.sampled {
		return
	}
	mean := f.e.Threads / f.e.Throughput // seconds of a transaction
	if fixed := min(f.outside, f.e.MinLatency/mean); fixed >= LeastShare &&
		f.e.Threads*f.e.Seconds >= leastClientSeconds && f.toolKnown() {
		f.add(cause.Outside, finding(fixed, outsideTest,
			"clients spent %s of their time outside the servers, and the threads of %s neither used nor waited for a CPU; "+
				"even the fastest transaction took %.3g ms of %.3g ms on average",
			table.Share(f.outside), f.e.Tool, f.e.MinLatency*1000, mean*1000))
		f.outside -= fixed
	}
	busiest, name := f.e.busiestMachine()
	explained := f.explained()
	if busiest >= spareCPU || explained >= 0.5 || name == "" || f.running+f.byClass[other] >= 0.5 || f.outside >= 0.5 {
		return
	}
	f.add(cause.Clients, finding(1-explained, "repeat with twice the threads: if the throughput rises, this was the cause",
		"%s, each of which waits for its answer, make %s transactions/s of %.3g ms; nothing was at its limit, the busiest CPU (%s) at %s",
		plural(f.e.Threads, "client"), table.Rounded(f.e.Throughput), mean*1000, name, table.Share(busiest)))
	f.running, f.outside = 0, 0
}

// outsideTest is the test of clients that are outside the servers.
const outsideTest = "repeat with the tool on the server's machine, without a proxy and without think time, or with more threads"

// busiestMachine returns the highest mean use of CPU, and whose it is; an empty name if there is no machine.
func (e *Evidence) busiestMachine() (use float64, name string) {
	for i := range e.Machines {
		if m := &e.Machines[i]; (m.Generator || m.Server) && cause.OrZero(m.CPU.Mean) >= use {
			use, name = cause.OrZero(m.CPU.Mean), m.Name
		}
	}
	return use, name
}

// unexplained returns the remaining time, with what is known about it; nil if too little remains.
func (f *finder) unexplained() *Unexplained {
	left := f.running + f.outside + f.byClass[other]
	switch {
	case !(f.e.Threads > 0), f.v.Unlimited != "", !f.sampled && len(f.v.Findings) == 0,
		f.explained() >= whole, left < LeastShare:
		return nil
	}
	parts, texts := []string{"no server was sampled"}, map[cause.Limit]string{}
	if f.sampled {
		parts = f.placesOfRest(texts)
	} else {
		left = min(left, 1-f.explained())
	}
	parts = append(parts, f.suspectedCores()...)
	out := &Unexplained{Share: rounded(left), Evidence: strings.Join(parts, "; "), texts: texts}
	if f.sampled && f.toolKnown() {
		out.outside = min(f.outside, out.Share)
	}
	if f.sampled && f.localKnown() {
		out.inside = min(f.running, out.Share)
	}
	return out
}

// placesOfRest describes where the clients were in the remaining time, and notes the texts by the limit that the time may
// become.
func (s *shares) placesOfRest(texts map[cause.Limit]string) (parts []string) {
	add := func(of cause.Limit, share float64, format string, args ...any) {
		if share >= aboutSame/2 {
			texts[of] = table.Share(share) + " " + fmt.Sprintf(format, args...)
			parts = append(parts, texts[of])
		}
	}
	reason := "whether " + s.e.Tool + " ran or waited for a core is not known"
	if s.toolKnown() {
		reason = fmt.Sprintf("the threads of %s neither used nor waited for a CPU: the network, %s, a pause of the tool, "+
			"or requests that a server had not read", s.e.Tool, s.e.proxyNames("a proxy"))
	}
	add(cause.Outside, s.outside, "without a statement in a server (%s)", reason)
	reason = "whether they ran or waited for a core is not known"
	if s.localKnown() {
		reason = "their threads neither used nor waited for a CPU: the server does not say what they waited for"
	}
	add(cause.State, s.running, "in sessions that execute a statement (%s)", reason)
	reason = "in sessions in other states"
	if name, share := s.largest(s.byClass[other], false); share > 0 {
		reason += fmt.Sprintf(", most of it in %q", name)
	}
	add(cause.Unknown, s.byClass[other], "%s", reason)
	return parts
}

// suspectedCores describes busy cores about which too little is known for a finding.
func (s *shares) suspectedCores() (parts []string) {
	for _, m := range s.machines {
		if m.CPU.High >= mostlyBusy && (m.Server && !m.local.isKnown() || m.Generator && !m.tool.isKnown()) {
			parts = append(parts, fmt.Sprintf("the cores of %s are suspected: they were %s busy, but there are no "+
				"statistics of who waited for them", m.Name, table.Share(m.CPU.Mean)))
		}
	}
	for _, server := range s.servers {
		if server.CPU.High >= mostlyBusy && server.Sessions == nil {
			parts = append(parts, fmt.Sprintf("the cores of %s are suspected: they were %s busy, but what its sessions "+
				"did is not known", server.Name, table.Share(server.CPU.Mean)))
		}
	}
	return parts
}
