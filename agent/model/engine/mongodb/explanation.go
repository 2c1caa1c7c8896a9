package mongodb

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

var _ = cause.Declare(cause.Explanation{
	Engine: Engine.Name,
	Waits: []cause.Wait{{
		Class: engine.Replication, Waits: "waited for other members to acknowledge a write (write concern)", Limit: cause.Replication,
	}},
	Advice: map[cause.Limit]string{
		cause.Commit:      "repeat with the write concern j: false, for the test only: if the throughput rises, this was the cause",
		cause.Replication: "repeat with the write concern w: 1, for the test only: if the throughput rises, this was the cause",
		cause.Disk:        "repeat with a larger cache of WiredTiger or a faster disk",
		cause.Checkpoint:  "repeat with a larger cache of WiredTiger, or a disk that writes faster",
	},
	Stalls:   []cause.Stall{{Limit: cause.Checkpoint, Measure: checkpointing, High: 1, Text: "%s wrote a checkpoint for at least %s of a second"}},
	Messages: map[cause.Limit][]string{cause.Connections: {"too many open connections"}},
	Programs: []string{"mongod", "mongos"},
	Causes: []cause.Cause{
		{
			Name: "queries without an index", Of: cause.Statements,
			Reads: "documents examined and returned, collection scans, operations",
			Find:  withoutIndex, Test: "add an index for the filter (explain shows whether it is used): if documents examined fall and the throughput rises, this was the cause",
		},
		{
			Name: "sorts without an index", Of: cause.Statements,
			Reads: "queries that sorted in memory, documents examined",
			Find:  sorting, Test: "repeat with an index in the order of the sort",
		},
		{
			Name: "write conflicts", Of: append([]cause.Limit{cause.RowLocks, cause.State, cause.Latches}, cause.CPU...),
			Reads: "writes that conflicted and were tried again, for each operation",
			Find:  conflicting, Test: "spread the writes over more documents: if the throughput rises, this was the cause",
		},
		{
			Name: "clients that evict pages from the cache", Of: append([]cause.Limit{cause.Disk, cause.State, cause.Pool}, cause.CPU...),
			Reads: "pages evicted by clients' threads, dirty share of the cache",
			Find:  evicting, Test: "repeat with a larger cache (storage.wiredTiger.engineConfig.cacheSizeGB) or a faster disk",
		},
		{
			Name: "large results", Of: append([]cause.Limit{cause.Network, cause.Outside, cause.GeneratorCPU}, cause.CPU...),
			Reads: "bytes to clients, and documents returned, for each operation",
			Find:  largeResults, Test: "repeat with fewer documents and fields in the results (limit, projection)",
		},
		{
			Name: "tickets of the storage engine", Of: []cause.Limit{cause.Latches, cause.State},
			Reads: "operations in the queue, tickets in use and their limits",
			Find:  fewTickets, Test: "repeat with more tickets (storageEngineConcurrentReadTransactions and …WriteTransactions; before 7.0 wiredTigerConcurrent…): if the throughput rises, this was the cause",
		},
		{
			Name: "checkpoints of the cache", Of: []cause.Limit{cause.Checkpoint, cause.Disk},
			Reads: "time spent on checkpoints, dirty share of the cache",
			Find:  longCheckpoints, Test: "repeat with a disk that writes faster, or with fewer writes; compare runs that are longer than a minute, since a checkpoint is written once a minute",
		},
		{
			Name: "plans chosen again and again", Of: append([]cause.Limit{cause.State}, cause.CPU...),
			Reads: "queries for which several plans were tried, and the time of that (6.0) as a share of the operations' time",
			Find:  noPlanCached, Test: "repeat with a hint, an index filter, or without the indexes that the query does not need",
		},
		{
			Name: "operations sent to all shards", Of: append([]cause.Limit{cause.Outside, cause.RoundTrip, cause.State}, cause.CPU...),
			Reads: "operations by how many shards they went to, as a mongos counts them; shards of the cluster",
			Find:  scattered, Test: "repeat with the shard key in the filter, or with a shard key that the queries have",
		},
		{
			Name: "a connection for each transaction", Of: append([]cause.Limit{cause.Outside}, cause.CPU...),
			Reads: "connections opened for each transaction",
			Find:  connecting, Test: "repeat with one client of the driver for all operations: it has a pool of connections",
		},
		{
			Name: "a member that is behind", Of: []cause.Limit{cause.Replication, cause.FlowControl},
			Reads: "replication lag of each member",
			Find:  engine.BehindMember, Test: "repeat with w: 1 for the test only, or without that member",
		},
	},
})

const (
	// manyDocuments is how many documents an operation must examine on average to be expensive, farBeyond how many for
	// each one that it returns. documentSeconds is the least time of a core to examine one.
	manyDocuments, farBeyond = 500, 50
	documentSeconds          = 0.5e-6
)

// executed is the number of operations that clients sent.
func executed(v *cause.View) float64 { return v.Mean(engine.QueryRate) * v.Seconds }

func withoutIndex(v *cause.View) (cause.Found, bool) {
	read, sent, n := v.Increase(examined), v.Increase(returned), executed(v)
	if !(read/n >= manyDocuments) || read < farBeyond*sent || v.ForeignShare > 0.3 || v.Increase(sorts) >= 0.5*n { // which has a cause of its own
		return cause.Found{}, false
	}
	text := fmt.Sprintf("%s documents examined for %s returned, %s for each operation", table.Rounded(read), table.Rounded(sent), table.Rounded(read/n))
	if scanned := v.Increase(scans); scanned > 0 {
		text += fmt.Sprintf("; %s queries read a whole collection", table.Rounded(scanned))
	}
	of := ""
	if top, _ := v.TopOf(func(s *cause.Statement) bool { return !s.IsSum }); top != nil && top.Share >= 0.5 {
		of = top.Text
		text += fmt.Sprintf("; %s took %s", top.Text, top.Took())
	}
	part := min(1, read/v.Seconds*documentSeconds/v.ServerCores)
	if !series.IsKnown(part) {
		return cause.Found{}, false
	}
	return cause.Found{Of: of, Part: part, Evidence: text}, true
}

func sorting(v *cause.View) (cause.Found, bool) {
	sorted, n, read := v.Increase(sorts), executed(v), v.Increase(examined)
	if !(sorted >= 0.3*n) || !(read/n >= manyDocuments) {
		return cause.Found{}, false
	}
	return cause.Found{Part: min(0.9, sorted/n, read/v.Seconds*documentSeconds/v.ServerCores), Evidence: fmt.Sprintf("%s of %s operations sorted without an index, from %s documents each",
		table.Rounded(sorted), table.Rounded(n), table.Rounded(read/n))}, true
}

func conflicting(v *cause.View) (cause.Found, bool) {
	again, n := v.Increase(conflicts), executed(v)
	if !(again >= 0.2*n) || !(n > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Part: again / (again + n), Evidence: fmt.Sprintf("%s writes conflicted with another one and were tried again, %.2g for each operation",
		table.Rounded(again), again/n)}, true
}

// largeResult is the size of a result in bytes from which its transfer matters on one machine.
const largeResult = 64 << 10

func largeResults(v *cause.View) (cause.Found, bool) {
	n := executed(v)
	each := v.Increase(engine.SentBytes) / n
	if !(each >= largeResult) {
		return cause.Found{}, false
	}
	return cause.Found{Part: each / (each + largeResult), Evidence: fmt.Sprintf("%s an operation to clients on average, %s documents returned for each",
		table.Size(each), table.Rounded(v.Increase(returned)/n))}, true
}

// dirtyCache is the share of the cache from which on clients have to evict.
const dirtyCache = 0.2

func evicting(v *cause.View) (cause.Found, bool) {
	rate, dirty := v.Mean(evictions), v.Max(cacheDirty)
	if !(rate >= 10) || !(dirty >= dirtyCache/2) && v.Limit != cause.Disk {
		return cause.Found{}, false
	}
	return cause.Found{Part: 0.5, Evidence: fmt.Sprintf("clients' threads evicted %s pages a second from the cache, of which up to %s were not yet written",
		table.Rounded(rate), table.Share(dirty))}, true
}

const (
	// waitingShare is the share of the clients in the queue from which on tickets matter, nearlyAll the share of tickets
	// that is in use then.
	waitingShare, nearlyAll = 0.05, 0.8
)

// fewTickets finds that operations waited for a ticket while nearly all were in use.
func fewTickets(v *cause.View) (cause.Found, bool) {
	waiting, used := v.Mean(queued), v.Mean(usedTickets)
	limit := min(v.Last(readTickets), v.Last(writeTickets))
	if !(waiting >= waitingShare*v.Threads) || !(used >= nearlyAll*limit) || !(limit > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: min(1, waiting/(v.Threads*v.Share)), Evidence: fmt.Sprintf("%s operations waited for one of %s tickets of %s on average, and %s were in use",
		table.Digits.Format(waiting), table.Rounded(limit), v.Target, table.Digits.Format(used))}, true
}

// leastCheckpoint is the share of the time from which on checkpoints matter.
const leastCheckpoint = 0.1

func longCheckpoints(v *cause.View) (cause.Found, bool) {
	seconds := v.Increase(written)
	share := seconds / v.Seconds
	if !(share >= leastCheckpoint) {
		return cause.Found{}, false
	}
	part := min(1, share)
	if v.Limit == cause.Checkpoint {
		part = 1
	}
	text := fmt.Sprintf("%s wrote checkpoints for %s s of %s", v.Target, table.Rounded(seconds), table.Clock(v.Seconds))
	if dirty := v.Max(cacheDirty); series.IsKnown(dirty) {
		text += fmt.Sprintf("; up to %s of the cache were not yet written", table.Share(dirty))
	}
	return cause.Found{Of: v.Target, Part: part, Evidence: text}, true
}

// oftenPlanned is the share of the operations from which on the choice of plans matters.
const oftenPlanned = 0.2

// noPlanCached finds that much of the operations' time in the server was the choice of their plans.
func noPlanCached(v *cause.View) (cause.Found, bool) {
	n, seconds := v.Increase(plans), v.Increase(planning)
	part := seconds / v.Increase(spent)
	if !(n >= oftenPlanned*executed(v)) || !(part > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: min(0.95, part), Evidence: fmt.Sprintf(
		"%s tried several plans for %s of %s operations, which took %s ms each, %s of the operations' time: no plan stayed in its cache",
		v.Target, table.Rounded(n), table.Rounded(executed(v)), table.Milliseconds.Format(seconds/n), table.Share(min(1, part)))}, true
}

// scattered finds that a router sent most operations to all shards.
func scattered(v *cause.View) (cause.Found, bool) {
	all, wide := 0.0, 0.0
	for to, n := range v.IncreaseBy(targeted, "shards") {
		all += n
		if to == "all" || to == "many" {
			wide += n
		}
	}
	n := v.Last(shards)
	if !(n >= 2) || !(wide >= 0.5*all) || !(all > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: wide / all * (1 - 1/n), Evidence: fmt.Sprintf("%s sent %s of %s operations to several or all of the %s shards, since their filter has no shard key",
		v.Target, table.Rounded(wide), table.Rounded(all), table.Rounded(n))}, true
}

// newEach is how many connections a transaction opens at least if that is the cause.
const newEach = 0.5

func connecting(v *cause.View) (cause.Found, bool) {
	rate := v.Mean(engine.OpenedConnections)
	each := rate / v.Throughput
	if !(rate >= 10) || !(each >= newEach) || each > 5 {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: 0.6, Evidence: fmt.Sprintf("clients opened %s connections a second, %.2g for each transaction", table.Rounded(rate), each)}, true
}
