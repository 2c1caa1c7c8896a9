package host

import "github.com/benchwatch/benchwatch/agent/model/cause"

var _ = cause.Declare(cause.Explanation{
	Advice: map[cause.Limit]string{
		cause.ServerCPU:    "repeat on more or faster cores, or with cheaper statements",
		cause.GeneratorCPU: "add a generator, or take a faster one: if the throughput rises, this was the cause",
		cause.ServerCore:   "look for a single thread: replication, interrupts of one queue, a purge",
		cause.OneCore:      "start a second process of the tool, or spread the interrupts of the network over the cores",
		cause.Steal:        "repeat on a machine of its own, or at another time",
		cause.Ports:        "widen net.ipv4.ip_local_port_range, or use connections again instead of opening new ones",
	},
	// Clients in C print only the number of a system error.
	Messages: map[cause.Limit][]string{
		cause.Ports: {"annot assign requested address", "' (99)"},
		cause.Files: {"oo many open files", "socket (24)"},
	},
	Programs: []string{"envoy"},
})
