package limits

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

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
	// Busy is how much of the time its threads were not idle, waits for a core included; unknown for most proxies. High:
	// from BusyCore.
	Busy Level
	// Cores is how many cores it used.
	Cores float64
}

// proxyShares are the shares of the time that one proxy explains.
type proxyShares struct {
	*ProxyEvidence
	of *shares
	// queued is the time in its queue, thread the time in which its busiest thread used all of a core.
	queued, thread float64
}

// takeQueues takes the time in which clients waited in the queue of a proxy: no server has a session for them, and their
// threads neither run nor wait for a core.
func (s *shares) takeQueues() {
	for _, p := range s.proxies {
		if p.Queue > 0 && s.e.Threads > 0 {
			p.queued = takeTime(p.Queue/s.e.Threads, &s.outside, &s.running)
			s.attribute(p.queued)
		}
	}
}

// queue returns the finding about clients in the queue of a proxy, with the limit that they reached.
func (p *proxyShares) queue() LimitFinding {
	limit := "a connection to a server"
	if p.Limit > 0 {
		limit = fmt.Sprintf("one of its %s to the servers", plural(p.Limit, "connection"))
	}
	f := finding(p.queued, cause.Advice(p.Engine, cause.ProxyQueue),
		"clients waited in the queue of %s for %s for %s", p.Name, limit, p.of.ofClients(p.queued))
	f.Of = p.Name
	return f
}

// takeProxyThreads takes the time that is left outside while a thread of a proxy used all of a core, or had work all the
// time. On a full machine it may have waited for a core with that work, as its clients did.
func (s *shares) takeProxyThreads() {
	for _, p := range s.proxies {
		high := max(cause.OrZero(p.Thread.High), cause.OrZero(p.Busy.High))
		if high >= mostlyBusy {
			p.thread = high * s.outside
			s.outside -= p.thread
			s.attribute(p.thread)
		}
	}
}

func (p *proxyShares) fullThread() LimitFinding {
	text := fmt.Sprintf("the busiest thread of %s used %s of a core on average, and nearly all of it for %s of the time",
		p.Name, table.Share(p.Thread.Mean), table.Share(p.Thread.High))
	if !(p.Thread.High >= mostlyBusy) {
		text = fmt.Sprintf("a thread of %s had work for %s of the time, and waited for a core meanwhile", p.Name, table.Share(p.Busy.Mean))
	}
	f := finding(p.thread, cause.Advice(p.Engine, cause.ProxyThread), "%s", text)
	f.Of = p.Name
	return f
}

// proxyNames lists the run's proxies; otherwise the given words.
func (e *Evidence) proxyNames(otherwise string) string {
	var names []string
	for i := range e.Proxies {
		names = append(names, e.Proxies[i].Name)
	}
	if len(names) == 0 {
		return otherwise
	}
	return strings.Join(names, ", ")
}
