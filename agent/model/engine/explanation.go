package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// What waits of sessions mean for every engine. An engine declares its own waits and advice beside its measures; they
// replace these.
var _ = cause.Declare(cause.Explanation{
	Waits: []cause.Wait{
		{Class: RowLock, Waits: "waited for a row lock", Limit: cause.RowLocks, Stopped: "find the session that held the rows, and what it did meanwhile"},
		{Class: Lock, Waits: "waited for a lock of a table or its metadata", Limit: cause.Locks},
		{Class: Commit, Waits: "waited in commit, for a log", Limit: cause.Commit},
		{Class: Replication, Waits: "waited in commit for a replica's acknowledgement", Limit: cause.Replication},
		{Class: Disk, Waits: "waited for a disk", Limit: cause.Disk},
		{Class: Latch, Waits: "waited for a latch within the server", Limit: cause.Latches},
		{Class: Network, Waits: "sent or received data", Limit: cause.Network},
	},
	Causes: []cause.Cause{{
		Name: "a member that does not answer", Of: []cause.Limit{cause.Replication, cause.FlowControl, cause.Commit},
		Reads: "samples without an answer of each server of the run",
		Find:  silentMember, Test: "start or repair that member, or remove it from the cluster",
	}},
	Advice: map[cause.Limit]string{
		cause.RowLocks:    "spread the writes over more rows, or shorten the transactions: if the throughput rises, this was the cause",
		cause.Locks:       "find what holds it: DDL, an explicit lock or a backup in another session",
		cause.Commit:      "repeat with commits that do not wait for the disk, for the test only: if the throughput rises, this was the cause",
		cause.Replication: "repeat without synchronous replication",
		cause.Disk:        "repeat with a larger cache or a faster disk",
		cause.Latches:     "repeat with fewer threads: if the throughput does not fall, this was the cause",
		cause.Network:     "repeat with the tool on the server's machine, or with smaller results",
		cause.State:       "find in the server's documentation what sessions in this state wait for",
		cause.FlowControl: "make the server that is behind faster, start it if it is down, or run without it",
		cause.Connections: "raise the limit above the threads and what else connects, or lower the threads",
		cause.ProxyQueue:  "raise the limit of the proxy's connections to servers, or repeat without the proxy: if the throughput rises, this was the cause",
		cause.ProxyThread: "give the proxy more threads or processes, or repeat without it: if the throughput rises, this was the cause",
		cause.Pool:        "repeat with a larger cache, or with less data: if the throughput rises, this was the cause",
		cause.Checkpoint:  "repeat with a larger log, or with more I/O capacity to write pages",
	},
})

// silentMember finds a server of the run that mostly did not answer while commits waited for other members.
func silentMember(v *cause.View) (cause.Found, bool) {
	for _, name := range slices.Sorted(maps.Keys(v.Silent)) {
		return cause.Found{Of: name, Part: 1, Evidence: v.Silent[name]}, true
	}
	return cause.Found{}, false
}

// leastLag is the lag in seconds from which on a member is behind.
const leastLag = 1

// BehindMember finds that a member lagged, for causes of engines whose commits wait for members. Where members request
// pauses, one that is behind delays the others only by these: the member must have requested most of them, and have
// lagged when it did.
func BehindMember(v *cause.View) (cause.Found, bool) {
	lag := v.Max(LagSeconds)
	if all := v.Cluster(FlowControlSent); all > 0 {
		if v.Limit != cause.FlowControl || !(v.Increase(FlowControlSent) >= all/2) {
			return cause.Found{}, false
		}
		lag = lagInPauses(v)
	}
	if !(lag >= leastLag) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: 1, Evidence: fmt.Sprintf("%s was up to %s s behind", v.Target, table.Rounded(lag))}, true
}

// lagInPauses returns how far a member was behind while it requested pauses, unknown if it requested none.
func lagInPauses(v *cause.View) float64 {
	most, lags := series.Unknown(), v.Values(LagSeconds)
	for i, sent := range v.Values(FlowControlSent) {
		if sent > 0 && i < len(lags) && (lags[i] > most || !series.IsKnown(most)) {
			most = lags[i]
		}
	}
	return most
}
