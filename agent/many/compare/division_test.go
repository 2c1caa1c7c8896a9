package compare

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// TestDivided checks the sentence about where the time of a transaction went, direct against proxied.
func TestDivided(t *testing.T) {
	run := func(d *limits.Division) review.Row { return review.Row{Limits: &limits.Verdict{Division: d}} }
	direct := func(server float64) review.Row {
		return run(&limits.Division{Transaction: server + 0.0002, Client: 0.0001, Server: server, Proxy: 0.0001, Tool: "pgbench"})
	}
	proxied := func(queue, proxy float64) review.Row {
		return run(&limits.Division{Transaction: 0.0011 + queue + proxy, Client: 0.0001, Queue: queue, Server: 0.001, Proxy: proxy, Proxies: "px", Tool: "pgbench"})
	}
	for _, c := range []struct {
		name   string
		groups [][]review.Row
		want   string
	}{
		{"the proxy's work", [][]review.Row{{direct(0.001)}, {proxied(0, 0.0004)}},
			"A transaction of via=px took 1.50 ms instead of 1.20 ms: 0.30 ms more in px and on the network"},
		{"its queue", [][]review.Row{{direct(0.001)}, {proxied(0.01, 0.0001)}},
			"A transaction of via=px took 11.20 ms instead of 1.20 ms: 10.00 ms more in the queue of px"},
		{"several runs have a mean", [][]review.Row{{direct(0.001), direct(0.003)}, {proxied(0, 0.0004), proxied(0, 0.0006)}},
			"A transaction of via=px took 1.60 ms instead of 2.20 ms: 0.40 ms more in px and on the network, 1.00 ms less in the servers"},
		{"without the proxy after it", [][]review.Row{{proxied(0, 0.0004)}, {direct(0.001)}},
			"A transaction of via=px took 1.20 ms instead of 1.50 ms: 0.30 ms less in px and on the network"},
		{"no difference", [][]review.Row{{direct(0.001)}, {proxied(0, 0.0001)}}, ""},
		{"no proxy", [][]review.Row{{direct(0.001)}, {direct(0.002)}}, ""},
		{"one run is not divided", [][]review.Row{{direct(0.001), run(nil)}, {proxied(0, 0.0004)}}, ""},
		{"one run has no verdict", [][]review.Row{{direct(0.001)}, {proxied(0, 0.0004), {}}}, ""},
		{"no runs", [][]review.Row{{}, {proxied(0, 0.0004)}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			groups := make([]Group, len(c.groups))
			for i := range c.groups {
				groups[i].Runs = c.groups[i]
			}
			if got := (&Comparison{Groups: []string{"via=direct", "via=px"}}).divided(groups); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
