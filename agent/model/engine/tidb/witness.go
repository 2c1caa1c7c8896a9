package tidb

import (
	"context"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// What a server of TiDB knows of transactions and of their waits for each other, since 5.1. The waits are in TiKV, which
// the server asks; transactions of other servers are in the tables of the cluster. The forms are composed after TiDB's
// manual (5.1 to 8.5).
const (
	witnessCounts = `SELECT t.STATE AS state, COUNT(*) AS n FROM information_schema.PROCESSLIST p
LEFT JOIN information_schema.TIDB_TRX t ON t.SESSION_ID = p.ID WHERE ` + ofClients + ` GROUP BY 1`
	witnessWaits = `SELECT w.TRX_ID AS waiting, w.CURRENT_HOLDING_TRX_ID AS holder, w.KEY_INFO AS info, w.SQL_DIGEST_TEXT AS text
FROM information_schema.DATA_LOCK_WAITS w LIMIT 500`
	witnessTransactions = `SELECT ID AS trx, INSTANCE AS instance, SESSION_ID AS session, USER AS user, STATE AS state, CURRENT_SQL_DIGEST_TEXT AS text,
TIMESTAMPDIFF(MICROSECOND, START_TIME, NOW(6)) / 1e6 AS age, TIMESTAMPDIFF(MICROSECOND, WAITING_START_TIME, NOW(6)) / 1e6 AS waited
FROM information_schema.CLUSTER_TIDB_TRX ORDER BY START_TIME LIMIT 200`
	witnessDeadlocks = `SELECT COUNT(DISTINCT DEADLOCK_ID) AS n FROM information_schema.DEADLOCKS`
)

const missingWaits = "transactions and their locks: the right PROCESS"

// Testify implements mysql.WitnessDetail.
func (d *Detail) Testify(ctx context.Context, q mysql.Querier, server *mysql.Server, a *evidence.Answer) error {
	if server.Flavour != "tidb" {
		return nil
	}
	ask := func(statement string, read func(mysql.Row)) error {
		rows, err := q.Rows(ctx, statement)
		if mysql.Refused(err) {
			if len(a.Missing) == 0 || a.Missing[len(a.Missing)-1] != missingWaits {
				a.Missing = append(a.Missing, missingWaits)
			}
			return nil
		}
		for _, row := range rows {
			read(row)
		}
		return err
	}
	t := &testimony{a: a, names: map[string]string{}}
	for _, part := range []struct {
		statement string
		read      func(mysql.Row)
	}{
		{witnessCounts, t.count}, {witnessTransactions, t.transaction}, {witnessWaits, t.wait},
		{witnessDeadlocks, func(row mysql.Row) {
			if n, ok := row.Number("n"); ok {
				a.Set("deadlocks", n)
			}
		}},
	} {
		if err := ask(part.statement, part.read); err != nil {
			return err
		}
	}
	return nil
}

// testimony is one answer in the making. names are the sessions by transaction.
type testimony struct {
	a     *evidence.Answer
	names map[string]string
}

func (t *testimony) count(row mysql.Row) {
	n, _ := row.Number("n")
	t.a.Active += int(n)
	state := stateOf(row.Text("state"))
	if t.a.States == nil {
		t.a.States = map[string]int{}
	}
	t.a.States[engine.OneLine(state.Event)] += int(n)
	if kind := map[string]evidence.Kind{engine.RowLock: evidence.RowLock, engine.Commit: evidence.Committing}[state.Class]; kind != "" {
		t.a.Wait(kind, t.a.Waiting[kind]+int(n))
	}
}

// transaction adds the session of a transaction. Those of other servers have their server's address in the name.
func (t *testimony) transaction(row mysql.Row) {
	trx, id := row.Text("trx"), row.Text("session")
	if trx == "" || id == "" {
		return
	}
	t.names[trx] = id
	if len(t.a.Sessions) >= evidence.MostSessions {
		return
	}
	if s := t.a.Add(id); s != nil {
		t.describe(s, row)
	}
}

func (t *testimony) describe(s *evidence.Session, row mysql.Row) {
	s.User, s.State = engine.OneLine(row.Text("user")), engine.OneLine(row.Text("state"))
	s.Statement = evidence.Digest(row.Text("text"))
	s.Idle = strings.EqualFold(s.State, "Idle")
	if age, ok := row.Number("age"); ok {
		s.Transaction = series.Some(max(0, age))
	}
	if waited, ok := row.Number("waited"); ok {
		s.Seconds = series.Some(max(0, waited))
	}
}

// wait adds a wait for a lock of a key.
func (t *testimony) wait(row mysql.Row) {
	waiting, holder := t.names[row.Text("waiting")], t.names[row.Text("holder")]
	if waiting == "" {
		return
	}
	t.a.Block(waiting, holder, evidence.RowLock, keyOf(row.Text("info")))
	if s := t.a.Session(waiting); s != nil && s.Statement == "" {
		s.Statement = evidence.Digest(row.Text("text"))
	}
}

// keyOf returns the table and index of a key: {"db_name":"test","table_name":"t","index_name":"k",…}. Values are left out.
func keyOf(info string) string {
	field := func(name string) string {
		_, rest, ok := strings.Cut(info, `"`+name+`":"`)
		if !ok {
			return ""
		}
		value, _, _ := strings.Cut(rest, `"`)
		return engine.OneLine(value)
	}
	name := strings.Trim(field("db_name")+"."+field("table_name"), ".")
	if index := field("index_name"); index != "" {
		name += " index " + index
	}
	return name
}
