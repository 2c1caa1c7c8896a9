package sessions

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Row locks that sessions wait for. InnoDB lists only locks that wait or block, while it holds a mutex, so they are read
// only while sessions wait, and not at each tick.
const (
	fromInnoDB = `SELECT lock_table AS object, lock_index AS name, lock_mode AS mode, COUNT(*) AS n FROM information_schema.INNODB_LOCKS
WHERE lock_id IN (SELECT requested_lock_id FROM information_schema.INNODB_LOCK_WAITS) GROUP BY 1, 2, 3 ORDER BY n DESC LIMIT 5`
	fromDataLocks = `SELECT CONCAT(l.OBJECT_SCHEMA, '.', l.OBJECT_NAME) AS object, l.INDEX_NAME AS name, l.LOCK_MODE AS mode, COUNT(*) AS n
FROM performance_schema.data_lock_waits w JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID
GROUP BY 1, 2, 3 ORDER BY n DESC LIMIT 5`
	locksEvery = 2 * time.Second
	// mostLocks limits the label sets of one server.
	mostLocks = 16
)

var (
	locksSeen = measure.NewCounter("mysql_row_locks_waited_for_total",
		"Waits for row locks that were seen, by table, index and kind of lock (information_schema.INNODB_LOCKS; "+
			"MySQL 8: performance_schema.data_locks). Read every two seconds while sessions wait.", "lock")
	waitedFor = measure.NewEvidence(measure.Server, measure.RateOf(locksSeen))
)

var _ = cause.Declare(cause.Explanation{
	Engine: mysql.Name,
	Causes: []cause.Cause{
		{
			Name: "locks of one index", Of: []cause.Limit{cause.RowLocks},
			Reads: "table, index and kind of the row locks that sessions waited for",
			Find:  oneIndex, Test: "look for the statements that lock this index: gap locks end with READ COMMITTED, locks of many records with an index for the condition",
		},
		{
			Name: "writes to the same rows", Of: []cause.Limit{cause.RowLocks},
			Reads: "by statement: the share of the time of writes and locking reads; waits for row locks, deadlocks",
			Find:  sameRows, Test: "spread these writes over more rows, move them to the end of the transaction, or shorten it",
		},
	},
})

// sameRows finds the writes that took most of the time, without what a session of another kind held.
func sameRows(v *cause.View) (cause.Found, bool) {
	waits := v.PerSecond(mysql.LockWaitRate)
	top, part := v.TopOf(mysql.IsLocking)
	if !(waits >= 0.1) || top == nil || top.Per(top.RowsExamined) >= manyRead { // which has a cause of its own
		return cause.Found{}, false
	}
	return cause.Found{Of: top.Text, Part: part * (1 - heldShare(v)), Evidence: fmt.Sprintf("%s waits for row locks a second; %s took %s", table.Rounded(waits), top.Text, top.Took())}, true
}

// manyRead are the rows that a statement reads, and so locks, from which on these are the cause.
const manyRead = 1000

// leastSeen is the number of waits below which they say nothing about the others.
const leastSeen = 5

// oneIndex finds that most of the waits were for locks of one index.
func oneIndex(v *cause.View) (cause.Found, bool) {
	most, of, all := 0.0, "", 0.0
	for lock, n := range v.IncreaseBy(waitedFor, "lock") {
		all += n
		if n > most || n == most && lock < of {
			most, of = n, lock
		}
	}
	if all < leastSeen {
		return cause.Found{}, false
	}
	f := cause.Found{Of: of, Part: 0.8 * most / all * (1 - heldShare(v)), Evidence: fmt.Sprintf("%s of %s waits that were seen were for a lock of %s", table.Rounded(most), table.Rounded(all), of)}
	if strings.Contains(of, "gap") {
		f.Test = "repeat with READ COMMITTED, which locks no gaps"
	}
	return f, true
}

// lockName describes a lock. InnoDB locks a record, the gap before it, or both.
func lockName(object, index, mode string) string {
	kind := "record and gap"
	switch {
	case strings.Contains(mode, "INSERT_INTENTION"):
		kind = "gap, to insert"
	case strings.Contains(mode, "REC_NOT_GAP"):
		kind = "record"
	case strings.Contains(mode, "GAP"):
		kind = "gap"
	case !strings.Contains(mode, ","): // MariaDB does not distinguish records with and without their gap
		kind = "record"
	}
	return strings.ReplaceAll(object, "`", "") + ", index " + strings.ReplaceAll(index, "`", "") + " (" + kind + ")"
}

// readLocks adds the locks that sessions wait for to what was seen before.
func (d *Detail) readLocks(ctx context.Context, q mysql.Querier, tick *mysql.Tick, waiting float64, out *engine.Status) error {
	seen := map[string]float64{}
	if now := time.Now(); waiting > 0 && now.Sub(d.locksAt) >= locksEvery && (tick.Server.MariaDB() || tick.Server.AtLeast(8, 0, 1)) {
		d.locksAt = now
		statement := fromInnoDB
		if !tick.Server.MariaDB() {
			statement = fromDataLocks
		}
		rows, err := q.Rows(ctx, statement)
		if err != nil && !mysql.Refused(err) {
			return err
		}
		for _, row := range rows {
			if n, ok := row.Number("n"); ok {
				seen[lockName(row.Text("object"), row.Text("name"), row.Text("mode"))] += n
			}
		}
	}
	for name := range seen {
		if _, known := d.locks[name]; !known && len(d.locks) < mostLocks {
			if d.locks == nil {
				d.locks = map[string]float64{}
			}
			d.locks[name] = 0 // a counter that begins with its first value would not have grown
		}
	}
	for name, n := range d.locks {
		out.Set(locksSeen, n, name)
		d.locks[name] = n + seen[name]
	}
	return nil
}
