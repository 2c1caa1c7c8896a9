package tool

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// What the tool itself does to a run.
var _ = cause.Declare(cause.Explanation{
	Causes: []cause.Cause{
		{
			Name: "the tool's own work", Of: []cause.Limit{cause.SharedCPU, cause.ToolCPU, cause.GeneratorCPU, cause.OneCore, cause.Neighbours},
			Reads: "CPU time of the tool and of the servers beside it",
			Find:  ownWork, Test: "repeat with a script that computes less, or with a second process of the tool; a machine of its own helps as far as its cores are faster",
		},
		{
			Name: "too few threads", Of: []cause.Limit{cause.Clients, cause.RoundTrip},
			Reads: "clients, throughput and latency (Little's law), use of the cores",
			Find:  fewThreads, Test: "repeat with twice the threads: if the throughput rises, this was the cause",
		},
		{
			Name: "pauses of the tool", Of: []cause.Limit{cause.Outside},
			Reads: "time without a statement in a server, round trip, statements and new connections for each transaction",
			Find:  pauses, Test: "repeat without think time in the script (sleep, keying time), or with more threads",
		},
		{
			Name: "failed transactions", Of: append([]cause.Limit{cause.RowLocks, cause.Replication, cause.Commit, cause.GeneratorCPU}, cause.CPU...),
			Reads: "the share of transactions that failed, each attempt counted",
			Find:  failures, Test: "look at the first error message of the tool; repeat without what makes transactions fail",
		},
	},
})

// mostOfCores is the share of what tool and servers used from which on the tool is the reason that cores are full.
const mostOfCores = 0.6

// ownWork finds that the tool used far more CPU than the servers.
func ownWork(v *cause.View) (cause.Found, bool) {
	use := v.CPU
	share := use.Tool / (use.Tool + use.Servers)
	if v.Limit == cause.GeneratorCPU && !(use.Servers > 0) && use.Tool > 0 {
		share = use.Tool / (use.Tool + use.Other)
	}
	if !(share >= mostOfCores) {
		return cause.Found{}, false
	}
	text := fmt.Sprintf("%s used %s of the CPU", v.Tool, table.Share(use.Tool))
	if use.Servers > 0 {
		text += fmt.Sprintf(", the servers %s", table.Share(use.Servers))
	}
	if seconds := v.ToolCores / v.Throughput; seconds > 0 {
		text += fmt.Sprintf("; a transaction cost the tool %s ms of a core", table.Milliseconds.Format(seconds))
	}
	return cause.Found{Of: v.Tool, Part: share, Evidence: text}, true
}

// fewThreads compares what the clients could do with what they did.
func fewThreads(v *cause.View) (cause.Found, bool) {
	latency := v.Threads / v.Throughput
	if v.Rate > 0 || !(v.Throughput > 0) || !(latency > 0) {
		return cause.Found{}, false
	}
	clients := "1 client"
	if v.Threads != 1 {
		clients = table.Rounded(v.Threads) + " clients"
	}
	text := fmt.Sprintf("%s that each wait %s ms for a transaction make %s a second at most (threads = throughput × latency)",
		clients, table.Milliseconds.Format(latency), table.Rounded(v.Throughput))
	return cause.Found{Of: "threads", Part: 1, Evidence: text}, true
}

const (
	// leastPause is the time in seconds that a transaction must spend outside, and travelling how many round trips a
	// statement takes at most, with what the sample does not see.
	leastPause, travelling = 1e-3, 5
	// fewStatements is how many statements a transaction has at most if the tool does not print that.
	fewStatements = 10
)

// pauses finds that clients spent far more time outside of the servers than round trips take.
func pauses(v *cause.View) (cause.Found, bool) {
	outside := v.Share * v.Threads / v.Throughput
	statements := v.Statements
	if !(statements >= 1) {
		statements = fewStatements
	}
	travelled := v.RoundTrip * statements
	if !(v.Throughput > 0) || !(outside >= leastPause) || !(travelled >= 0) || travelling*travelled >= outside || v.Opened >= 0.5 {
		return cause.Found{}, false
	}
	text := fmt.Sprintf("a transaction spends %s ms outside of the servers, %s ms of it in round trips; no connections are opened for it",
		table.Milliseconds.Format(outside), table.Milliseconds.Format(travelled))
	return cause.Found{Of: v.Tool, Part: 1 - travelling*travelled/outside, Evidence: text}, true
}

// failures finds attempts that failed: they took time and work as those that succeeded.
func failures(v *cause.View) (cause.Found, bool) {
	if !(v.FailedShare > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Part: v.FailedShare, Evidence: fmt.Sprintf("%s of all transactions failed: their time is in no rate", table.Share(v.FailedShare))}, true
}
