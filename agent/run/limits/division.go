package limits

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Division is where the time of a transaction went, in seconds on average. The parts add up to Transaction: what no
// other part explains is Proxy.
type Division struct {
	Transaction float64 `json:"transaction_seconds"`
	// Client is the time in which a thread of the tool ran or waited for a core, unknown and 0 without statistics of its
	// threads.
	Client float64 `json:"client_seconds"`
	// Queue is the time in queues of proxies, Server the time in which a server executed a statement.
	Queue  float64 `json:"queue_seconds"`
	Server float64 `json:"server_seconds"`
	// Proxy is the rest: the work of proxies, if there are any, and the network. CPU is how long their threads ran
	// for a transaction, 0 if unknown.
	Proxy float64 `json:"proxy_seconds"`
	CPU   float64 `json:"proxy_cpu_seconds,omitempty"`
	// Proxies names them; empty without one. Tool is the tool.
	Proxies string `json:"proxies,omitempty"`
	Tool    string `json:"-"`
}

// String describes the division in one sentence.
func (d *Division) String() string {
	part := func(seconds float64, where string) string {
		return fmt.Sprintf("%s ms %s", table.Milliseconds.Format(seconds), where)
	}
	rest := part(d.Proxy, "in "+d.Proxies+" and on the network")
	if d.CPU > 0 {
		rest += fmt.Sprintf(" (%s ms of it CPU of %s)", table.Milliseconds.Format(d.CPU), d.Proxies)
	}
	return fmt.Sprintf("%s ms on average: %s, %s, %s, %s", table.Milliseconds.Format(d.Transaction), part(d.Client, "in "+d.Tool),
		part(d.Queue, "in the queue of "+d.Proxies), rest, part(d.Server, "in the servers"))
}

// divide returns the division of a transaction's time; nil if the time in the servers is unknown.
// With a configured rate, clients also wait for the next transaction.
func (s *shares) divide() *Division {
	e := s.e
	if !(e.Threads > 0) || !(e.Throughput > 0) || series.IsKnown(e.Rate) || !s.sampled {
		return nil
	}
	d := &Division{Transaction: e.Threads / e.Throughput, Proxies: e.proxyNames(""), Tool: e.Tool}
	queued, cores := 0.0, 0.0
	for _, p := range s.proxies {
		queued += p.queued
		cores += cause.OrZero(p.Cores)
	}
	client, active := 0.0, 0.0
	for _, m := range s.machines {
		client += m.tool.sum()
	}
	for i := range e.Servers {
		for class, n := range e.Servers[i].Sessions {
			if class != engine.Network { // it waits for its client
				active += cause.OrZero(n)
			}
		}
	}
	left := 1.0
	part := func(share float64) float64 {
		share = min(max(0, share), left)
		left -= share
		return share * d.Transaction
	}
	d.Queue, d.Server, d.Client = part(queued), part(active/e.Threads), part(client)
	d.Proxy = left * d.Transaction
	d.CPU = min(cores/e.Throughput, d.Proxy)
	return d
}
