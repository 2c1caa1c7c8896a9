package postgresql

import (
	"context"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

const (
	// witnessCounts are the sessions of clients that execute a statement, by what they wait for.
	witnessCounts = `SELECT coalesce(wait_event_type, '') AS type, coalesce(wait_event, '') AS event, count(*) AS n
FROM pg_stat_get_activity(NULL) WHERE pid <> pg_backend_pid() AND state = 'active' AND backend_type = 'client backend' GROUP BY 1, 2 LIMIT 200`
	// witnessSessions are the sessions that have waited longest for a lock, those that block them, and the oldest
	// transactions. It asks for the locks of 20 waiting sessions only.
	witnessSessions = `WITH all_sessions AS MATERIALIZED (SELECT pid, usesysid, host(client_addr) AS address, state, wait_event_type, wait_event, left(query, 1000) AS query,
extract(epoch FROM clock_timestamp() - CASE WHEN state = 'active' THEN query_start ELSE state_change END) AS seconds,
extract(epoch FROM clock_timestamp() - xact_start) AS transaction, query_start, xact_start, backend_type
FROM pg_stat_get_activity(NULL) WHERE pid <> pg_backend_pid() AND (datid IS NOT NULL OR backend_type = 'checkpointer')),
waiting AS MATERIALIZED (SELECT pid, pg_blocking_pids(pid) AS blockers FROM
(SELECT pid FROM all_sessions WHERE wait_event_type = 'Lock' ORDER BY query_start LIMIT 20) w)
SELECT s.pid, pg_get_userbyid(s.usesysid) AS username, s.address, s.state, coalesce(s.wait_event_type, '') AS type, coalesce(s.wait_event, '') AS event, s.query,
s.seconds, s.transaction, array_to_string(w.blockers, ',') AS blockers
FROM all_sessions s LEFT JOIN waiting w USING (pid)
WHERE w.pid IS NOT NULL OR s.pid IN (SELECT unnest(blockers) FROM waiting) OR s.transaction > 1
ORDER BY w.pid IS NULL AND s.pid NOT IN (SELECT unnest(blockers) FROM waiting), s.xact_start LIMIT 60`
	// witnessProgress are the vacuums, index builds and rewrites of tables that run.
	witnessProgress = `SELECT pid, 'VACUUM' AS command FROM pg_stat_get_progress_info('VACUUM') UNION ALL
SELECT pid, 'CREATE INDEX' FROM pg_stat_get_progress_info('CREATE INDEX') UNION ALL
SELECT pid, 'CLUSTER or VACUUM FULL' FROM pg_stat_get_progress_info('CLUSTER') UNION ALL
SELECT pid, 'ANALYZE' FROM pg_stat_get_progress_info('ANALYZE') LIMIT 50`
)

// lockKinds are the kinds of heavyweight locks by their wait event.
var lockKinds = map[string]evidence.Kind{
	"relation": evidence.TableLock, "transactionid": evidence.RowLock, "tuple": evidence.RowLock, "advisory": evidence.UserLock,
	"extend": "extension of a table", "virtualxid": "end of other transactions",
}

// kindOf returns what a session waits for; empty if it is nothing that others hold.
func kindOf(eventType, event string) evidence.Kind {
	switch {
	case eventType == "Lock" && lockKinds[event] != "":
		return lockKinds[event]
	case eventType == "Lock":
		return "other lock"
	case event == "SyncRep":
		return evidence.Acknowledging
	case eventType == "LWLock" && (event == "WALWrite" || event == "WALInsert"):
		return "write of the WAL"
	case eventType == "IO" && strings.HasPrefix(event, "WAL"):
		return "write of the WAL"
	}
	return ""
}

// Arm implements engine.Witness.
func (p *prober) Arm(ctx context.Context) error {
	p.budget.Renew()
	if err := p.connect(ctx); err != nil {
		at := p.connector.at
		p.drop()
		return explain(&p.target, at, err)
	}
	return nil
}

// Testify implements engine.Witness.
func (p *prober) Testify(ctx context.Context) (*evidence.Answer, error) {
	if err := p.Arm(ctx); err != nil {
		return nil, err
	}
	a := &evidence.Answer{Version: p.server.version}
	err := p.conn.ask(ctx, []statement{
		{name: "witness counts", text: witnessCounts, missing: "sessions", read: func(r row) { witnessCount(a, r) }},
		{name: "witness sessions", text: witnessSessions, missing: "sessions that wait", read: func(r row) { witnessSession(a, r) }},
		{name: "witness progress", text: witnessProgress, read: func(r row) {
			a.Say("progress of session "+r.text("pid"), r.text("command"))
		}},
	})
	if err = p.budget.Check(err); err != nil {
		at := p.connector.at
		p.drop()
		return nil, explain(&p.target, at, err)
	}
	if !p.server.sees {
		a.Missing = append(a.Missing, "sessions of other users (GRANT pg_monitor)")
	}
	return a, nil
}

// witnessCount counts sessions.
func witnessCount(a *evidence.Answer, r row) {
	n, _ := r.number("n")
	kind, event := r.text("type"), r.text("event")
	a.Active += int(n)
	if a.States == nil {
		a.States = map[string]int{}
	}
	a.States[engine.OneLine(strings.Trim(kind+":"+event, ":"))] += int(n)
	if k := kindOf(kind, event); k != "" {
		a.Wait(k, a.Waiting[k]+int(n))
	}
}

// witnessSession adds a session.
func witnessSession(a *evidence.Answer, r row) {
	id := r.text("pid")
	if a.Add(id) == nil {
		return
	}
	kind := kindOf(r.text("type"), r.text("event"))
	for blocker := range strings.SplitSeq(r.text("blockers"), ",") {
		if blocker != "" && kind != "" {
			a.Block(id, blocker, kind, "")
		}
	}
	s := a.Session(id)
	s.User, s.Host = engine.OneLine(r.text("username")), engine.OneLine(r.text("address"))
	s.State, s.Idle = engine.OneLine(r.text("state")), strings.HasPrefix(r.text("state"), "idle")
	s.Statement = evidence.Digest(r.text("query"))
	if v, ok := r.number("seconds"); ok {
		s.Seconds = series.Some(max(0, v))
	}
	if v, ok := r.number("transaction"); ok {
		s.Transaction = series.Some(max(0, v))
	}
	if kind != "" && s.Waits == nil {
		s.Waits = &evidence.Wait{Kind: kind}
	}
}
