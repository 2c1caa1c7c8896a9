package tidb

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// ofStorage are the findings behind which TiDB waits for its storage: its sessions seem to run.
var ofStorage = append([]cause.Limit{cause.State, cause.RowLocks, cause.Commit}, cause.CPU...)

var _ = cause.Declare(cause.Explanation{
	Engine: mysql.Name,
	Causes: []cause.Cause{
		{
			Name: "write conflicts", Of: ofStorage,
			Reads: "pessimistic retries, errors 9007, pauses with the causes `txnLock` and `tikvLockFast`, of TiDB",
			Find:  conflicting, Test: "spread the writes over more rows, or repeat with tidb_txn_mode=pessimistic if transactions are optimistic",
		},
		{
			Name: "a hot region", Of: ofStorage,
			Reads: "pauses of TiDB since a store was busy (`tikvServerBusy`, `serverBusy`), and time that tasks waited there, by statement",
			Find:  hotRegion, Test: "look for the region with the most traffic (TIDB_HOT_REGIONS); repeat with the table split (SPLIT TABLE), with SHARD_ROW_ID_BITS or AUTO_RANDOM",
		},
		{
			Name: "pauses before requests to the storage are repeated", Of: ofStorage,
			Reads: "time of these pauses by cause (`regionMiss`, `tikvRPC` …), of TiDB",
			Find:  backingOff, Test: "look at the state of TiKV and PD: regions that move or split, stores that restart, a slow network",
		},
		{
			Name: "slow tasks of the storage", Of: ofStorage,
			Reads: "time that TiKV computed for a statement, and keys that it read, of TiDB",
			Find:  slowTasks, Test: "look at the plan (EXPLAIN ANALYZE): an index that covers the condition reads fewer keys",
		},
	},
})

// Causes of pauses, as TiDB names them (5.0 to 8.5).
var (
	ofConflicts = []string{"txnLock", "tikvLockFast", "txnLockFast", "txnNotFound"}
	ofBusy      = []string{"tikvServerBusy", "serverBusy", "tikvDiskFull", "regionScheduling"}
)

// paused returns the time of pauses with some causes as a part of the finding, and the seconds.
func paused(v *cause.View, wanted func(name string) bool) (part, seconds float64, largest string) {
	by, most := v.IncreaseBy(backoffTime, "cause"), 0.0
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if n := by[name]; n > 0 && wanted(name) {
			if seconds += n; n > most {
				most, largest = n, name
			}
		}
	}
	return min(1, seconds/(v.Threads*v.Seconds*v.Share)), seconds, largest
}

// manyRetries is the share of the transactions from which on repeated statements matter.
const manyRetries = 0.05

func conflicting(v *cause.View) (cause.Found, bool) {
	part, seconds, _ := paused(v, func(name string) bool { return slices.Contains(ofConflicts, name) })
	again, failed := cause.OrZero(v.Increase(retries)), v.IncreaseBy(failedByCode, "code")["kv:9007"]
	share := (again + failed) / (v.Throughput * v.Seconds)
	if !(share >= manyRetries) && !(seconds > 0 && part >= manyRetries) {
		return cause.Found{}, false
	}
	f := cause.Found{Part: max(part, min(0.9, cause.OrZero(2*share))), Evidence: fmt.Sprintf(
		"statements were repeated %s times because of a conflict, and %s transactions failed with 9007", table.Rounded(again), table.Rounded(cause.OrZero(failed)))}
	if seconds > 0 {
		f.Evidence += fmt.Sprintf("; requests paused for locks for %s s in sum", table.Digits.Format(seconds))
	}
	if top, _ := v.TopOf(mysql.IsLocking); top != nil {
		f.Of, f.Evidence = top.Text, f.Evidence+"; "+top.Text+" took "+top.Took()
	}
	return f, true
}

// leastPaused is the part of the finding for which requests pause at least if that is a cause.
const leastPaused = 0.05

func hotRegion(v *cause.View) (cause.Found, bool) {
	part, seconds, name := paused(v, func(name string) bool { return slices.Contains(ofBusy, name) })
	top, _ := v.TopOf(func(s *cause.Statement) bool {
		return s.QueueSeconds >= s.StorageSeconds && s.QueueSeconds >= 0.25*s.Seconds
	})
	if !(seconds > 0 && part >= leastPaused) {
		return cause.Found{}, false
	}
	f := cause.Found{Part: part, Evidence: fmt.Sprintf("requests paused for %s s in sum, since a store was busy (%s)", table.Digits.Format(seconds), name)}
	if top != nil {
		f.Of, f.Part = top.Text, max(part, min(0.95, top.Share*top.QueueSeconds/top.Seconds))
		f.Evidence += fmt.Sprintf("; the tasks of %s waited there for %s ms", top.Text, table.Milliseconds.Format(top.Per(top.QueueSeconds)))
	}
	return f, true
}

func backingOff(v *cause.View) (cause.Found, bool) {
	part, seconds, name := paused(v, func(name string) bool { return !slices.Contains(ofBusy, name) && !slices.Contains(ofConflicts, name) })
	if !(seconds > 0 && part >= leastPaused) {
		return cause.Found{}, false
	}
	return cause.Found{Of: name, Part: part, Evidence: fmt.Sprintf(
		"requests to the storage paused for %s s in sum before they were repeated, mostly because of %s", table.Digits.Format(seconds), name)}, true
}

const (
	// manyKeys is how many keys the storage reads at least for an expensive task, mostInStorage the share of a statement's time
	// that its tasks take then. Tasks run side by side, so their sum can exceed the time of the statement.
	manyKeys, mostInStorage = 1000, 0.5
)

func slowTasks(v *cause.View) (cause.Found, bool) {
	top, part := v.TopOf(func(s *cause.Statement) bool {
		return s.StorageSeconds >= mostInStorage*s.Seconds && s.Per(s.RowsExamined) >= manyKeys && !strings.HasPrefix(strings.ToUpper(s.Text), "INSERT")
	})
	if top == nil {
		return cause.Found{}, false
	}
	return cause.Found{Of: top.Text, Part: part, Evidence: fmt.Sprintf("TiKV computed %s ms and read %s keys for each execution of %s, %s",
		table.Milliseconds.Format(top.Per(top.StorageSeconds)), table.Rounded(top.Per(top.RowsExamined)), top.Text, top.Took())}, true
}
