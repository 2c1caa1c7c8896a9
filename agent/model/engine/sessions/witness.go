package sessions

import (
	"context"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// The statements for what holds up the sessions of a server. Each is bounded in what it returns; none reads the locks
// that are held, which are many, but only those that are waited for.
const (
	// counted are the sessions that execute a statement, by state.
	countStates = `SELECT STATE AS state, COUNT(*) AS n FROM information_schema.PROCESSLIST
WHERE COMMAND NOT IN ` + idle + ` AND ID <> CONNECTION_ID() AND USER NOT IN ` + system + ` GROUP BY 1 ORDER BY 2 DESC LIMIT 30`
	countThreads = `SELECT PROCESSLIST_STATE AS state, COUNT(*) AS n FROM performance_schema.threads t
WHERE t.TYPE = 'FOREGROUND' AND t.PROCESSLIST_ID <> CONNECTION_ID() AND t.PROCESSLIST_COMMAND NOT IN ` + idle + `
AND t.PROCESSLIST_USER NOT IN ` + system + ` AND ` + noReplica + ` GROUP BY 1 ORDER BY 2 DESC LIMIT 30`

	oldest = `SELECT trx_mysql_thread_id AS id, trx_state AS state, TIMESTAMPDIFF(MICROSECOND, trx_started, NOW(6)) / 1e6 AS age,
trx_rows_modified AS modified FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id > 0 ORDER BY trx_started LIMIT 20`
	oldestEvents = `SELECT t.PROCESSLIST_ID AS id, '' AS state, e.TIMER_WAIT / 1e12 AS age FROM performance_schema.events_transactions_current e
JOIN performance_schema.threads t USING (THREAD_ID) WHERE e.STATE = 'ACTIVE' AND t.PROCESSLIST_ID <> CONNECTION_ID() ORDER BY e.TIMER_WAIT DESC LIMIT 20`

	innoDBWaits = `SELECT r.trx_mysql_thread_id AS waiting, b.trx_mysql_thread_id AS holder, l.lock_table AS object, l.lock_index AS name, l.lock_mode AS mode
FROM information_schema.INNODB_LOCK_WAITS w JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id
JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id
LEFT JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id LIMIT 500`
	dataLockWaits = `SELECT r.PROCESSLIST_ID AS waiting, b.PROCESSLIST_ID AS holder, w.REQUESTING_ENGINE_LOCK_ID AS lock_id FROM
(SELECT REQUESTING_THREAD_ID, BLOCKING_THREAD_ID, REQUESTING_ENGINE_LOCK_ID FROM performance_schema.data_lock_waits LIMIT 500) w
JOIN performance_schema.threads r ON r.THREAD_ID = w.REQUESTING_THREAD_ID JOIN performance_schema.threads b ON b.THREAD_ID = w.BLOCKING_THREAD_ID`
	dataLock = `SELECT CONCAT(OBJECT_SCHEMA, '.', OBJECT_NAME) AS object, INDEX_NAME AS name, LOCK_MODE AS mode FROM performance_schema.data_locks WHERE ENGINE_LOCK_ID = `

	pendingLocks = `SELECT OBJECT_TYPE AS type, OBJECT_SCHEMA AS db, OBJECT_NAME AS object, LOCK_TYPE AS mode, t.PROCESSLIST_ID AS id FROM
(SELECT OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, LOCK_TYPE, OWNER_THREAD_ID FROM performance_schema.metadata_locks WHERE LOCK_STATUS = 'PENDING' LIMIT 200) m
JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID`
	grantedLocks = `SELECT OBJECT_TYPE AS type, OBJECT_SCHEMA AS db, OBJECT_NAME AS object, LOCK_TYPE AS mode, t.PROCESSLIST_ID AS id FROM
(SELECT OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, LOCK_TYPE, OWNER_THREAD_ID FROM performance_schema.metadata_locks WHERE LOCK_STATUS = 'GRANTED' AND `
	grantedEnd = ` LIMIT 300) m JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID`
	// lockInfo is of MariaDB's plugin METADATA_LOCK_INFO, which lists granted locks only.
	lockInfo = `SELECT LOCK_TYPE AS type, TABLE_SCHEMA AS db, TABLE_NAME AS object, LOCK_MODE AS mode, THREAD_ID AS id FROM information_schema.METADATA_LOCK_INFO
WHERE LOCK_MODE NOT IN ('MDL_INTENTION_EXCLUSIVE', 'MDL_BACKUP_DML', 'MDL_BACKUP_TRANS_DML', 'MDL_SHARED_READ', 'MDL_SHARED_WRITE') OR THREAD_ID IN (`

	listedSessions = `SELECT ID AS id, USER AS user, HOST AS host, COMMAND AS command, TIME_MS / 1000 AS seconds, STATE AS state, LEFT(INFO, 1000) AS text
FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND (ID IN (`
	listedEnd  = `) OR COMMAND NOT IN ` + idle + ` AND USER NOT IN ` + system + `) ORDER BY ID IN (`
	listedLast = `) DESC, TIME_MS DESC LIMIT 100`

	threadSessions = `SELECT t.PROCESSLIST_ID AS id, t.PROCESSLIST_USER AS user, t.PROCESSLIST_HOST AS host, t.PROCESSLIST_COMMAND AS command,
t.PROCESSLIST_TIME AS seconds, t.PROCESSLIST_STATE AS state,
(SELECT s.DIGEST_TEXT FROM performance_schema.events_statements_current s WHERE s.THREAD_ID = t.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1) AS text
FROM performance_schema.threads t WHERE t.TYPE = 'FOREGROUND' AND t.PROCESSLIST_ID <> CONNECTION_ID() AND (t.PROCESSLIST_ID IN (`
	threadEnd = `) OR t.PROCESSLIST_COMMAND NOT IN ` + idle + ` AND t.PROCESSLIST_USER NOT IN ` + system + ` AND ` + noReplica + `)
ORDER BY t.PROCESSLIST_ID IN (`
	threadLast = `) DESC, t.PROCESSLIST_TIME DESC LIMIT 100`
)

// stateKinds are the beginnings of states in which sessions wait for a lock.
var stateKinds = []struct {
	state string
	kind  evidence.Kind
}{
	{"waiting for table metadata lock", evidence.MetadataLock},
	{"waiting for schema metadata lock", evidence.MetadataLock},
	{"waiting for stored", evidence.MetadataLock},
	{"waiting for trigger metadata lock", evidence.MetadataLock},
	{"waiting for event metadata lock", evidence.MetadataLock},
	{"waiting for global read lock", evidence.GlobalLock},
	{"waiting for commit lock", evidence.GlobalLock},
	{"waiting for backup lock", evidence.BackupLock},
	{"waiting for table level lock", evidence.TableLock},
	{"waiting for table flush", tableFlush},
	{"waiting for someone to free space", fullDisk},
	{"user lock", evidence.UserLock},
	{"waiting for semi-sync ack", evidence.Acknowledging},
	{"waiting for semi-sync slave ack", evidence.Acknowledging},
}

// tableFlush: the table is to be closed, and a statement still uses it.
const tableFlush evidence.Kind = "flush of a table"

// fullDisk: the server can't write its binary log.
const fullDisk evidence.Kind = "space on the disk"

// classKinds are the kinds of waits by the class of a state.
var classKinds = map[string]evidence.Kind{
	engine.Commit: evidence.Committing, engine.FlowControlWait: evidence.FlowControl, engine.Replication: evidence.OtherNodes,
}

// kindOf returns what sessions in a state wait for; empty if they do not wait for another one.
func kindOf(state string) evidence.Kind {
	state = strings.ToLower(state)
	for _, k := range stateKinds {
		if strings.HasPrefix(state, k.state) {
			return k.kind
		}
	}
	return classKinds[classOf(stateRules, state)]
}

// Testify implements mysql.WitnessDetail.
func (d *Detail) Testify(ctx context.Context, q mysql.Querier, server *mysql.Server, a *evidence.Answer) error {
	if server.Flavour == "tidb" { // package tidb has its own
		return nil
	}
	w := &witness{q: q, server: server, a: a}
	for _, step := range []func(context.Context) error{w.count, w.rowLocks, w.transactions, w.metadataLocks, w.sessions, d.inno.step(w)} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	w.likely()
	return nil
}

// witness is one answer in the making.
type witness struct {
	q      mysql.Querier
	server *mysql.Server
	a      *evidence.Answer
	held   []metadataLock // from the plugin
}

// rows returns an answer; none if the server refuses it, with what is missing then.
func (w *witness) rows(ctx context.Context, statement, missing string) ([]mysql.Row, error) {
	rows, err := w.q.Rows(ctx, statement)
	if mysql.Refused(err) {
		if missing != "" {
			w.a.Missing = append(w.a.Missing, missing)
		}
		return nil, nil
	}
	return rows, err
}

// schema reports whether performance_schema has the sessions.
func (w *witness) schema() bool {
	on, _ := w.server.Variables.Bool("performance_schema")
	return on && !w.server.MariaDB()
}

// count counts the sessions by state.
func (w *witness) count(ctx context.Context) error {
	statement := countStates
	if w.schema() {
		statement = countThreads
	}
	missing := len(w.a.Missing)
	rows, err := w.rows(ctx, statement, "sessions by state (PROCESS, or SELECT on performance_schema.threads)")
	if err == nil && len(w.a.Missing) == missing && w.server.Variables["thread_handling"] != "pool-of-threads" {
		w.a.Connected = int(max(0, w.a.Values["Threads_connected"])) // requests that wait for a thread of a pool seem idle
	}
	if err == nil && len(w.a.Missing) == missing {
		w.a.Active = 0
	}
	for _, row := range rows {
		n, _ := row.Number("n")
		state := row.Text("state")
		w.a.Active += int(n)
		if w.a.States == nil {
			w.a.States = map[string]int{}
		}
		w.a.States[engine.OneLine(state)] += int(n)
		if kind := kindOf(state); kind != "" {
			w.a.Wait(kind, w.a.Waiting[kind]+int(n))
		}
	}
	return err
}

// rowLocks reads who waits for whom in InnoDB. Each session in a queue waits for all before it, so that the bounded list
// has only some of many: the status variable has their number.
func (w *witness) rowLocks(ctx context.Context) error {
	if n := w.a.Number("Innodb_row_lock_current_waits"); n > 0 {
		w.a.Wait(evidence.RowLock, int(n))
	}
	switch {
	case w.server.MariaDB() || !w.server.AtLeast(8, 0, 1):
		rows, err := w.rows(ctx, innoDBWaits, "row locks (PROCESS)")
		w.block(rows, func(row mysql.Row) string {
			return lockName(row.Text("object"), row.Text("name"), row.Text("mode"))
		})
		return err
	case !w.schema():
		w.a.Missing = append(w.a.Missing, "row locks (performance_schema=ON)")
		return nil
	}
	rows, err := w.rows(ctx, dataLockWaits, "row locks (SELECT on performance_schema.data_lock_waits)")
	if err != nil || len(rows) == 0 {
		return err
	}
	names := map[string]string{}
	w.block(rows, func(row mysql.Row) string {
		id := row.Text("lock_id")
		if name, known := names[id]; known || len(names) >= 8 || !isLockID(id) {
			return name
		}
		names[id] = ""
		locks, lockErr := w.q.Rows(ctx, dataLock+"'"+id+"' LIMIT 1")
		if lockErr == nil && len(locks) == 1 {
			names[id] = lockName(locks[0].Text("object"), locks[0].Text("name"), locks[0].Text("mode"))
		} else if lockErr != nil && !mysql.Refused(lockErr) {
			err = lockErr
		}
		return names[id]
	})
	return err
}

// isLockID reports whether a text is what InnoDB names a lock: numbers separated by colons.
func isLockID(id string) bool {
	return id != "" && len(id) < 100 && strings.Trim(id, "0123456789:") == ""
}

// block adds row locks.
func (w *witness) block(rows []mysql.Row, name func(mysql.Row) string) {
	waiting := map[string]bool{}
	for _, row := range rows {
		id, holder := row.Text("waiting"), row.Text("holder")
		if id == "" || id == "0" || holder == "0" {
			continue
		}
		waiting[id] = true
		if s := w.a.Session(id); s != nil && s.Waits != nil {
			w.a.Block(id, holder, evidence.RowLock, "")
			continue
		}
		w.a.Block(id, holder, evidence.RowLock, name(row))
	}
	if len(waiting) > 0 {
		w.a.Wait(evidence.RowLock, len(waiting))
	}
}

// transactions adds the oldest transactions.
func (w *witness) transactions(ctx context.Context) error {
	rows, err := w.q.Rows(ctx, oldest)
	if mysql.Refused(err) && w.schema() {
		rows, err = w.rows(ctx, oldestEvents, "transactions (PROCESS)")
	}
	if mysql.Refused(err) {
		w.a.Missing, err = append(w.a.Missing, "transactions (PROCESS)"), nil
	}
	for _, row := range rows {
		age, ok := row.Number("age")
		s := w.a.Add(row.Text("id"))
		if s == nil || !ok {
			continue
		}
		s.Transaction = series.Some(max(0, age))
	}
	return err
}

// sessions describes the sessions that were found, and those that have executed a statement for the longest time.
func (w *witness) sessions(ctx context.Context) error {
	ids := []string{"0"}
	for i := range w.a.Sessions {
		if id := w.a.Sessions[i].ID; strings.Trim(id, "0123456789") == "" {
			ids = append(ids, id)
		}
	}
	found := strings.Join(ids, ",")
	statement := listedSessions + found + listedEnd + found + listedLast
	if w.schema() {
		statement = threadSessions + found + threadEnd + found + threadLast
	}
	rows, err := w.rows(ctx, statement, "")
	for _, row := range rows {
		known := w.a.Session(row.Text("id")) != nil
		kind := kindOf(row.Text("state"))
		if !known && len(w.a.Sessions) >= evidence.MostSessions && kind == "" {
			continue
		}
		s := w.a.Add(row.Text("id"))
		if s == nil {
			break
		}
		w.describe(s, row)
		if kind != "" && s.Waits == nil {
			s.Waits = &evidence.Wait{Kind: kind}
		}
	}
	return err
}

// describe takes what the list of sessions has about one.
func (w *witness) describe(s *evidence.Session, row mysql.Row) {
	s.User, s.Host, s.State = engine.OneLine(row.Text("user")), engine.OneLine(row.Text("host")), engine.OneLine(row.Text("state"))
	s.Host, _, _ = strings.Cut(s.Host, ":")
	s.Idle = row.Text("command") == "Sleep"
	if seconds, ok := row.Number("seconds"); ok && seconds >= 0 {
		s.Seconds = series.Some(seconds)
	}
	s.Statement = evidence.Digest(row.Text("text"))
}
