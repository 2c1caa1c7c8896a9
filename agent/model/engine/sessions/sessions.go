// Package sessions samples what the sessions of a MySQL server are doing: how many execute a
// statement, and what they wait for. It sends one statement per tick, to performance_schema if that
// is on, otherwise to the list of processes.
//
// Only waits in progress count. Neither table has waits for row locks; waits for pages from disk
// are only in performance_schema with its instruments on. Two status variables have their current
// numbers: Innodb_row_lock_current_waits and Innodb_data_pending_reads.
package sessions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// Only the sessions of clients count: not this connection, not those of replication and events, and
// no dumps of the binary log.
const (
	idle   = `('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID', 'Connect')`
	system = `('system user', 'event_scheduler')`
	// noReplica: Group Replication's appliers have the command Query and the user who started the group.
	noReplica = `t.NAME NOT LIKE 'thread/sql/replica%' AND t.NAME NOT LIKE 'thread/sql/slave%' AND t.NAME NOT LIKE 'thread/group_rpl/%'`
	// waits are waits in progress. If waits are nested, such as a metadata lock with its condition
	// variable, the first by name counts.
	waits   = `w.END_EVENT_ID IS NULL AND w.EVENT_NAME <> 'idle' AND w.EVENT_NAME NOT LIKE 'wait/io/table/%'`
	schema  = `performance_schema.threads t`
	current = `performance_schema.events_waits_current w`

	fromSchema = `SELECT state, event, COUNT(*) AS n FROM (
SELECT t.THREAD_ID, MAX(IF(t.PROCESSLIST_STATE = 'starting' AND t.PROCESSLIST_INFO LIKE 'commit%', 'commit', t.PROCESSLIST_STATE)) AS state, MIN(w.EVENT_NAME) AS event
FROM ` + schema + ` LEFT JOIN ` + current + ` ON w.THREAD_ID = t.THREAD_ID AND ` + waits + `
WHERE t.TYPE = 'FOREGROUND' AND t.PROCESSLIST_ID <> CONNECTION_ID() AND t.PROCESSLIST_COMMAND NOT IN ` + idle + ` AND t.PROCESSLIST_USER NOT IN ` + system + ` AND ` + noReplica + `
GROUP BY t.THREAD_ID) s GROUP BY 1, 2` + bounded
	// A COMMIT waits in the state "starting", as seen on MariaDB 10.5. The sum of seen is the
	// number of sessions that the user can see.
	fromList = `SELECT ` + listed + ` AS state, NULL AS event, ` + counted + `
FROM information_schema.PROCESSLIST p WHERE p.USER NOT IN ` + system + ` GROUP BY 1` + bounded
	listed  = `IF(p.STATE = 'starting' AND p.INFO LIKE 'commit%', 'commit', p.STATE)`
	counted = `SUM(p.COMMAND NOT IN ` + idle + ` AND p.ID <> CONNECTION_ID()) AS n, COUNT(*) AS seen`
	// MariaDB's performance_schema has no state where the list has Updating.
	fromBoth = `SELECT ` + listed + ` AS state, e.event, ` + counted + `
FROM information_schema.PROCESSLIST p LEFT JOIN (
SELECT t.PROCESSLIST_ID AS id, MIN(w.EVENT_NAME) AS event FROM ` + current + ` JOIN ` + schema + ` ON w.THREAD_ID = t.THREAD_ID
WHERE ` + waits + ` AND t.PROCESSLIST_ID IS NOT NULL GROUP BY 1) e ON e.id = p.ID
WHERE p.USER NOT IN ` + system + ` GROUP BY 1, 2` + bounded

	// fromPool returns the requests that wait for a thread of MariaDB's thread pool (10.5). In the
	// list their sessions are idle.
	fromPool = `SELECT SUM(QUEUE_LENGTH) AS n FROM information_schema.THREAD_POOL_GROUPS`
)

// mostStates limits an answer to the most frequent states. bounded asks for one more, which shows
// that there are more.
const (
	mostStates = 1000
	bounded    = ` ORDER BY n DESC LIMIT 1001`
)

// Messages for a user whose sessions are not all counted.
const (
	cutShort = "active sessions: those in other states than the 1000 most frequent ones"
	tooSlow  = "active sessions: the server needs more than half of an interval to list them, and is asked once a minute"
)

// askAgain is how long a server that was too slow is not queried.
const askAgain = time.Minute

// missing is the message for an account that can't see other sessions.
const missing = "active sessions: the right PROCESS, or with performance_schema SELECT on its threads and events_waits_current"

// Detail samples the sessions of one server.
type Detail struct {
	states   engine.SessionStates
	slowTill time.Time // zero: the server was fast enough
	// locks are the waits for row locks that were seen, read at locksAt.
	locks   map[string]float64
	locksAt time.Time
	held    held
	inno    innoDB
	logins  logins
}

type state = engine.SessionState

// New returns the detail of one prober.
func New() mysql.Detail { return &Detail{} }

// Needs implements mysql.Detail.
func (d *Detail) Needs() mysql.Needs {
	return mysql.Needs{
		Status:    []string{"Innodb_row_lock_current_waits", "Innodb_data_pending_reads", "Threads_connected", flowControlActive, loginsVariable},
		Variables: []string{"performance_schema", "thread_handling"},
		Options:   engine.OptionChecks{engine.OptionSessions: engine.OneOf(engine.On, engine.Off, engine.Cluster)},
	}
}

// Read implements mysql.Detail.
func (d *Detail) Read(ctx context.Context, q mysql.Querier, tick *mysql.Tick, out *engine.Status) error {
	if tick.Target.Options[engine.OptionSessions] == engine.Off || tick.Server.Flavour == "tidb" { // package tidb samples its own sessions
		return nil
	}
	if time.Now().Before(d.slowTill) {
		out.Missing = append(out.Missing, tooSlow)
		return nil
	}
	own, cancel := engine.WithShare(ctx, 0.5)
	defer cancel()
	rows, err := d.ask(own, q, tick)
	switch {
	case err != nil && own.Err() != nil && ctx.Err() == nil: // the connection is lost as well
		d.slowTill = time.Now().Add(askAgain)
		out.Missing = append(out.Missing, tooSlow)
		return nil
	case mysql.Refused(err), errors.Is(err, errHidden):
		out.Missing = append(out.Missing, missing)
		return nil
	case err != nil:
		return err
	}
	if len(rows) > mostStates {
		rows = rows[:mostStates]
		out.Missing = append(out.Missing, cutShort)
	}
	counts := map[state]float64{}
	for _, row := range rows {
		n, ok := row.Number("n")
		if !ok || n <= 0 {
			continue
		}
		class, event := classify(row.Text("state"), row.Text("event"))
		counts[d.states.Known(state{Class: class, Event: event})] += n
	}
	if err := d.addQueue(own, q, tick, counts); err != nil {
		return err
	}
	if n, ok := tick.Status.Number("Innodb_row_lock_current_waits"); ok {
		d.move(counts, n, state{Class: engine.RowLock, Event: rowLockWait}, lockRank)
		if err := d.readLocks(own, q, tick, n, out); err != nil {
			if own.Err() != nil && ctx.Err() == nil { // as for the sessions themselves
				d.slowTill = time.Now().Add(askAgain)
				out.Missing = append(out.Missing, tooSlow)
				return nil
			}
			return err
		}
		if err := d.held.read(own, q, tick, n, out); err != nil {
			return err
		}
	}
	if err := d.readWaits(own, q, tick, counts, out); err != nil {
		return err
	}
	if n, ok := tick.Status.Number("Innodb_data_pending_reads"); ok {
		for s, seen := range counts { // visible in performance_schema
			if s.Class == engine.Disk {
				n -= seen
			}
		}
		d.move(counts, n, state{Class: engine.Disk, Event: pageReadWait}, readRank)
	}
	if on, _ := tick.Status.Bool(flowControlActive); on {
		d.holdBack(counts)
	}
	d.states.Set(out, counts)
	return nil
}

// readWaits reads what is asked only while sessions wait or connect.
func (d *Detail) readWaits(ctx context.Context, q mysql.Querier, tick *mysql.Tick, counts map[state]float64, out *engine.Status) error {
	waiting := 0.0
	for s, n := range counts {
		if s.Class == engine.Lock {
			waiting += n
		}
	}
	if err := d.readMetadata(ctx, q, tick, waiting, out); err != nil {
		return err
	}
	return d.logins.read(ctx, q, tick, out)
}

// holdBack changes the sessions that commit on a Galera node into waits for flow control, which
// holds write sets back in the states of certification (MariaDB 10.11, 11.8) and of a commit (10.5).
func (d *Detail) holdBack(counts map[state]float64) {
	held := d.states.Known(state{Class: engine.FlowControlWait, Event: flowControlWait})
	for s, n := range counts {
		if s.Event == certificationWait || s.Event == "commit" {
			counts[s] -= n
			counts[held] += n
		}
	}
}

// ask returns the sessions from the most exact source.
func (d *Detail) ask(ctx context.Context, q mysql.Querier, tick *mysql.Tick) (rows []mysql.Row, err error) {
	statements := []string{fromList}
	if on, _ := tick.Server.Variables.Bool("performance_schema"); on && tick.Server.MariaDB() {
		statements = []string{fromBoth, fromSchema, fromList}
	} else if on {
		statements = []string{fromSchema, fromList}
	}
	for _, s := range statements {
		rows, err = q.Rows(ctx, s)
		if err == nil && hidden(rows, tick) {
			err = errHidden
		}
		if err == nil || !mysql.Refused(err) && !errors.Is(err, errHidden) {
			break
		}
	}
	return rows, err
}

// errHidden: the list of processes has only the user's own sessions, and there was no error.
var errHidden = errors.New("other sessions are hidden")

func hidden(rows []mysql.Row, tick *mysql.Tick) bool {
	visible, listed := 0.0, false
	for _, row := range rows {
		if n, ok := row.Number("seen"); ok {
			visible, listed = visible+n, true
		}
	}
	connected, ok := tick.Status.Number("Threads_connected")
	return ok && listed && visible <= 1 && connected > 2
}

// addQueue adds the requests that wait for a thread of the pool.
func (d *Detail) addQueue(ctx context.Context, q mysql.Querier, tick *mysql.Tick, counts map[state]float64) error {
	if tick.Server.Variables["thread_handling"] != "pool-of-threads" || !tick.Server.MariaDB() {
		return nil
	}
	rows, err := q.Rows(ctx, fromPool)
	if mysql.Refused(err) {
		return nil
	}
	if err != nil || len(rows) == 0 {
		return err
	}
	if n, ok := rows[0].Number("n"); ok && n > 0 {
		counts[d.states.Known(state{Class: engine.Latch, Event: poolQueue})] += n
	}
	return nil
}

// Waits that only a status variable shows.
const (
	rowLockWait  = "innodb row lock"
	pageReadWait = "innodb page read"
	poolQueue    = "thread pool queue"
)

// flowControlActive is a status variable of Galera 4.
const (
	flowControlActive = "wsrep_flow_control_active"
	flowControlWait   = "waiting for flow control"
	certificationWait = "waiting for certification"
)

// move changes n of the sessions that seem to run into waiting ones, lowest rank first. Any further
// waits are not of clients but of replication appliers or reading ahead.
func (d *Detail) move(counts map[state]float64, n float64, wait state, rank func(event string) int) {
	wait = d.states.Known(wait)
	var running []state
	for s := range counts {
		if s.Class == engine.Running {
			running = append(running, s)
		}
	}
	slices.SortFunc(running, func(a, b state) int {
		return cmp.Or(cmp.Compare(rank(a.Event), rank(b.Event)), cmp.Compare(counts[b], counts[a]), strings.Compare(a.Event, b.Event))
	})
	for _, s := range running {
		moved := min(n, counts[s])
		if moved <= 0 {
			continue
		}
		counts[s] -= moved
		counts[wait] += moved
		n -= moved
	}
}

// lockRank: a lock wait occurs in a statement that reads or changes rows.
func lockRank(event string) int {
	switch event {
	case "updating", "update", "deleting from main table", "updating main table":
		return 0
	case "statistics", "sending data", "executing", "init for update", "reading":
		return 1
	}
	return 2
}

// readRank: statements that look for rows read pages.
func readRank(event string) int {
	switch event {
	case "statistics", "sending data", "executing", "updating", "update", "reading", "init for update":
		return 0
	}
	return 1
}

// rule is a prefix of a name, and the class of names with this prefix.
type rule struct{ prefix, class string }

// Names in performance_schema (MySQL 5.6 to 9, MariaDB 10.5); the first match wins.
var eventRules = []rule{
	{"wait/lock/", engine.Lock},
	{"wait/synch/cond/sql/mdl_context::", engine.Lock},
	{"wait/synch/cond/sql/mysql_bin_log::", engine.Commit},
	{"wait/synch/cond/sql/mysql_relay_log::", engine.Replication},
	{"wait/synch/cond/sql/cond_commit_order", engine.Commit},
	{"wait/synch/cond/sql/cond_wait_commit", engine.Commit},
	{"wait/synch/cond/sql/commit_", engine.Commit},
	{"wait/synch/cond/semisync/", engine.Replication},
	{"wait/synch/cond/group_rpl/", engine.Replication},
	{"wait/synch/cond/wsrep/", engine.Replication},
	{"wait/synch/mutex/innodb/log_", engine.Commit},
	{"wait/synch/cond/sql/item_func_sleep", engine.Other},
	{"wait/synch/", engine.Latch},
	{"wait/io/file/innodb/innodb_log_file", engine.Commit},
	{"wait/io/file/sql/binlog", engine.Commit},
	{"wait/io/file/", engine.Disk},
	{"wait/io/socket/", engine.Network},
	{"wait/io/lock/", engine.Lock},
}

// States in the list of processes in lower case (MySQL 5.5 to 9, MariaDB 10.5 to 11.8), classified
// by what their threads do. testdata/README.md has the measurements.
var stateRules = []rule{
	{flowControlWait, engine.FlowControlWait},
	{certificationWait, engine.Replication},
	{"waiting for toi ddl", engine.Replication},
	{"waiting to execute in isolation", engine.Replication},
	{"wsrep", engine.Replication},
	{"waiting for semi-sync", engine.Replication},
	{"waiting for binlog checkpoint", engine.Commit},
	{"waiting for prior transaction", engine.Commit},
	{"waiting for gtid to be written", engine.Commit},
	{"waiting for handler commit", engine.Commit},
	{"updating status", engine.Commit}, // MariaDB 10.11, 11.8: waits for the redo log if that is flushed at commit
	{"commit", engine.Commit},
	{"starting commit", engine.Commit},
	{"innobase_commit_low", engine.Commit}, // Galera
	{"waiting for query cache lock", engine.Latch},
	{"waiting on cond", engine.Latch},
	{"waiting for table", engine.Lock}, // level lock, metadata lock, flush
	{"waiting for backup lock", engine.Lock},
	{"waiting due to global read lock", engine.Lock},
	{"waiting for global read lock", engine.Lock},
	{"user lock", engine.Lock},
	{"writing to net", engine.Network},
	{"reading from net", engine.Network},
	{"sending to client", engine.Network},
	{"receiving from client", engine.Network},
	{"user sleep", engine.Other},
	{"master has sent", engine.Other},
}

// classify returns the class of a session by its wait or, without one, by its state.
func classify(text, event string) (class, name string) {
	text = strings.ToLower(strings.TrimSpace(text))
	stateClass := classOf(stateRules, text)
	if event != "" {
		event = strings.ToLower(event)
		class = cmp.Or(classOf(eventRules, event), engine.Other)
		// The state names the kind of lock, and the condition for which a session waits.
		if class == stateClass && (class == engine.Lock || class == engine.Other) {
			return class, text
		}
		return class, strings.TrimPrefix(event, "wait/")
	}
	switch {
	case stateClass != "":
		return stateClass, text
	case strings.Contains(text, "metadata lock"):
		return engine.Lock, text
	case strings.HasPrefix(text, "waiting"):
		return engine.Other, text
	case text == "" || len(text) > 40:
		return engine.Running, engine.Running
	}
	return engine.Running, text
}

// classOf returns the class of the first rule that matches, empty if none does.
func classOf(rules []rule, name string) string {
	for _, r := range rules {
		if strings.HasPrefix(name, r.prefix) {
			return r.class
		}
	}
	return ""
}
