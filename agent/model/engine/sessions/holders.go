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

// The sessions that hold row locks and old snapshots. Only those that have done the same for a second or more count:
// the tool's own short transactions hold locks, too. The texts of their statements are not read but for the verb.
const (
	columnsOfHolder = `%s AS user, %s AS command, LEFT(LTRIM(%s), 40) AS verb, COUNT(*) AS n `
	holdersInInnoDB = `FROM information_schema.INNODB_LOCK_WAITS w JOIN information_schema.INNODB_TRX t ON t.trx_id = w.blocking_trx_id
JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id WHERE t.trx_state <> 'LOCK WAIT' AND p.TIME >= 1 GROUP BY 1, 2, 3 LIMIT 10`
	holdersInSchema = `FROM performance_schema.data_lock_waits w JOIN performance_schema.threads t ON t.THREAD_ID = w.BLOCKING_THREAD_ID
WHERE t.PROCESSLIST_TIME >= 1 AND w.BLOCKING_THREAD_ID NOT IN (SELECT REQUESTING_THREAD_ID FROM performance_schema.data_lock_waits) GROUP BY 1, 2, 3 LIMIT 10`
	fromOldest = `SELECT TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) AS age, p.USER AS user, p.COMMAND AS command, LEFT(LTRIM(p.INFO), 40) AS verb
FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id ORDER BY t.trx_started LIMIT 1`

	oldestEvery = 4 * time.Second
	// longHistory is the length of the history list from which on the oldest transaction is read, oldTransaction the age
	// from which on it is old.
	longHistory, oldTransaction = 1000, 5
	// mostHolders limits the label sets of one server.
	mostHolders = 16
)

// held adds up the time for which sessions held something, by session.
type held struct {
	locks, snapshots, metadata sums
	waited                     bool // sessions waited at the previous tick
}

// sums are seconds by session. A counter that begins with its first value would not have grown, so a new name is set to
// 0 first: fresh is added at the next tick.
type sums struct {
	at             time.Time
	seconds, fresh map[string]float64
}

// read adds the holders of what sessions wait for and, while the history list is long, the oldest transaction.
func (h *held) read(ctx context.Context, q mysql.Querier, tick *mysql.Tick, waiting float64, out *engine.Status) error {
	if err := h.readHolders(ctx, q, tick, waiting); err != nil {
		return err
	}
	if err := h.readOldest(ctx, q, tick); err != nil {
		return err
	}
	h.locks.set(out, mysql.LocksHeldSeconds)
	h.snapshots.set(out, mysql.SnapshotHeldSeconds)
	return nil
}

func (h *held) readHolders(ctx context.Context, q mysql.Querier, tick *mysql.Tick, waiting float64) error {
	before := h.waited
	h.waited = waiting > 0
	if waiting == 0 || !before || time.Since(h.locks.at) < locksEvery || !tick.Server.MariaDB() && !tick.Server.AtLeast(8, 0, 1) {
		return nil
	}
	statement := "SELECT " + fmt.Sprintf(columnsOfHolder, "p.USER", "p.COMMAND", "p.INFO") + holdersInInnoDB
	if !tick.Server.MariaDB() {
		statement = "SELECT " + fmt.Sprintf(columnsOfHolder, "t.PROCESSLIST_USER", "t.PROCESSLIST_COMMAND", "t.PROCESSLIST_INFO") + holdersInSchema
	}
	seconds := h.locks.since(locksEvery)
	rows, err := q.Rows(ctx, statement)
	if err != nil && !mysql.Refused(err) {
		return err
	}
	all := 0.0
	for _, row := range rows {
		n, _ := row.Number("n")
		all += n
	}
	for _, row := range rows {
		n, _ := row.Number("n")
		h.locks.add(holderName(row), waiting*seconds*n/all)
	}
	return nil
}

func (h *held) readOldest(ctx context.Context, q mysql.Querier, tick *mysql.Tick) error {
	length, known := tick.Status.Number("Innodb_history_list_length")
	if !known || length < longHistory || time.Since(h.snapshots.at) < oldestEvery {
		return nil
	}
	seconds := h.snapshots.since(oldestEvery)
	rows, err := q.Rows(ctx, fromOldest)
	if err != nil && !mysql.Refused(err) || len(rows) == 0 {
		return err
	}
	age, _ := rows[0].Number("age")
	if age >= oldTransaction {
		h.snapshots.add(holderName(rows[0]), seconds)
	}
	return nil
}

// since returns the seconds since the last reading, about as many as between two readings, and begins the next.
func (s *sums) since(every time.Duration) float64 {
	since := time.Since(s.at)
	s.at = time.Now()
	if since > 2*every { // nothing was read meanwhile
		return every.Seconds()
	}
	return since.Seconds()
}

// add adds seconds to those of a holder.
func (s *sums) add(name string, seconds float64) {
	if s.seconds == nil {
		s.seconds, s.fresh = map[string]float64{}, map[string]float64{}
	}
	if _, known := s.seconds[name]; !known && len(s.seconds) >= mostHolders {
		name = engine.Other
	}
	if _, known := s.seconds[name]; !known {
		s.seconds[name] = 0
	}
	s.fresh[name] += seconds
}

func (s *sums) set(out *engine.Status, m *measure.Metric) {
	for name, seconds := range s.seconds {
		out.Set(m, seconds, name)
		s.seconds[name] += s.fresh[name]
	}
	clear(s.fresh)
}

// holderName names a session by its user and what it does.
func holderName(row mysql.Row) string {
	return nameOf(row.Text("user"), strings.EqualFold(row.Text("command"), "Sleep"), row.Text("verb"))
}

func nameOf(user string, idle bool, statement string) string {
	user = table.Plain(user)
	if idle {
		return user + " (idle in a transaction)"
	}
	words := strings.FieldsFunc(strings.ToUpper(statement), func(r rune) bool { return r < 'A' || r > 'Z' })
	if len(words) == 0 {
		return user
	}
	verb := words[0]
	if len(words) > 1 && (verb == "ALTER" || verb == "LOCK" || verb == "CREATE" || verb == "DROP" || verb == "DO") {
		verb += " " + words[1]
	}
	return user + " (" + verb + ")"
}

var _ = cause.Declare(cause.Explanation{
	Engine: mysql.Name,
	Causes: []cause.Cause{
		{
			Name: "the holder of a lock", Of: []cause.Limit{cause.RowLocks},
			Reads: "the sessions that held row locks for more than a second, every two seconds while clients wait",
			Find:  holder, Test: "end this session's transaction earlier, or repeat without it",
		},
		{
			Name: "old versions that a transaction keeps", Of: append([]cause.Limit{cause.Disk, cause.Pool, cause.Purge, cause.RowLocks}, cause.CPU...),
			Reads: "length of the history list, age and session of the oldest transaction, statements a second at the beginning and at the end of the run",
			Find:  keptVersions, Test: "end that transaction, or repeat without it: if the throughput no longer falls, this was the cause",
		},
	},
})

// most returns the name with the largest value.
func most(all map[string]float64) (name string, n, sum float64) {
	for key, v := range all {
		sum += v
		if v > n || v == n && key < name {
			name, n = key, v
		}
	}
	return name, n, sum
}

// heldShare is the part of the waits for row locks for which a session held the rows longer than a second.
func heldShare(v *cause.View) float64 {
	_, _, seconds := most(v.IncreaseBy(mysql.LocksHeld, "holder"))
	if share := seconds / (v.Mean(engine.RowLockSessions) * v.Seconds); share > 0 {
		return min(1, share)
	}
	return 0
}

func holder(v *cause.View) (cause.Found, bool) {
	name, seconds, _ := most(v.IncreaseBy(mysql.LocksHeld, "holder"))
	waited := v.Mean(engine.RowLockSessions) * v.Seconds
	if name == "" || !(waited > 0) {
		return cause.Found{}, false
	}
	part := min(1, seconds/waited)
	return cause.Found{Of: name, Part: part, Evidence: fmt.Sprintf("%s held the rows for %s of the time that clients waited for row locks", name, table.Share(part))}, true
}

// fewerStatements is the part of the throughput that must be lost while the history grows.
const fewerStatements = 0.25

// keptVersions finds that the throughput fell while the history list grew behind an old transaction.
func keptVersions(v *cause.View) (cause.Found, bool) {
	name, seconds, _ := most(v.IncreaseBy(mysql.SnapshotHeld, "holder"))
	short, long := v.Ends(mysql.HistoryList)
	fast, slow := v.Ends(engine.QueryRate)
	lost := 1 - slow/fast
	if name == "" || !(long >= longHistory) || !(long >= 2*short) || !(lost >= fewerStatements) {
		return cause.Found{}, false
	}
	return cause.Found{Of: name, Part: min(0.95, lost+0.2), Evidence: fmt.Sprintf(
		"the history list grew from %s to %s while %s kept a transaction open for at least %s s; statements a second "+
			"fell from %s to %s",
		table.Rounded(short), table.Rounded(long), name, table.Rounded(oldTransaction+seconds), table.Rounded(fast), table.Rounded(slow))}, true
}
