package postgresql

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
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
	// witnessProgress are the vacuums, index builds and rewrites of tables that run, with what is done and what there is
	// to do, in blocks.
	witnessProgress = `SELECT pid, 'VACUUM' AS command, param4 AS done, param3 AS total FROM pg_stat_get_progress_info('VACUUM') UNION ALL
SELECT pid, 'CREATE INDEX', param17, param16 FROM pg_stat_get_progress_info('CREATE INDEX') UNION ALL
SELECT pid, CASE param1 WHEN 1 THEN 'CLUSTER' ELSE 'VACUUM FULL' END, param7, param6 FROM pg_stat_get_progress_info('CLUSTER') UNION ALL
SELECT pid, 'ANALYZE', param3, param2 FROM pg_stat_get_progress_info('ANALYZE') LIMIT 50`
	// witnessWriters are what the processes that write wait for.
	witnessWriters = `SELECT backend_type, coalesce(wait_event_type || ':' || wait_event, 'running') AS event FROM pg_stat_get_activity(NULL)
WHERE backend_type IN ('checkpointer', 'walwriter', 'background writer') LIMIT 10`
	// witnessStandbys are the standbys, the synchronous ones first.
	witnessStandbys = `SELECT application_name AS name, sync_state AS sync, state, extract(epoch FROM clock_timestamp() - reply_time) AS silent,
CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_wal_lsn_diff(pg_current_wal_insert_lsn(), flush_lsn) END AS behind
FROM pg_stat_replication ORDER BY sync_priority = 0, sync_priority LIMIT 20`
	witnessSync = `SELECT setting FROM pg_settings WHERE name = 'synchronous_standby_names'`
	// witnessSlots are the slots, with the WAL that each keeps.
	witnessSlots = `SELECT slot_name AS name, active, CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn) END AS kept
FROM pg_replication_slots LIMIT 20`
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
	case eventType == "LWLock" && (event == "WALWrite" || event == "WALInsert"), eventType == "IO" && strings.HasPrefix(event, "WAL"):
		return evidence.LogWrite
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
		{name: "witness progress", text: witnessProgress, read: func(r row) { witnessCommand(a, r) }},
		{name: "witness writers", text: witnessWriters, read: func(r row) { a.Say(r.text("backend_type"), engine.OneLine(r.text("event"))) }},
		{name: "witness standbys", text: witnessStandbys, missing: "standbys", read: func(r row) { witnessStandby(a, r) }},
		{name: "witness sync", text: witnessSync, read: func(r row) { a.Say("synchronous_standby_names", engine.OneLine(r.text("setting"))) }},
		{name: "witness slots", text: witnessSlots, read: func(r row) {
			if kept, ok := r.number("kept"); ok {
				a.Set("bytes of WAL kept by slot "+engine.OneLine(r.text("name"))+" (active: "+r.text("active")+")", kept)
			}
		}},
	})
	if err = p.budget.Check(err); err != nil {
		at := p.connector.at
		p.drop()
		return nil, explain(&p.target, at, err)
	}
	if kind := string(evidence.Acknowledging); a.Waiting[evidence.Acknowledging] > 0 && a.Texts[kind] == "" {
		a.Say(kind, "none is connected (synchronous_standby_names = "+a.Texts["synchronous_standby_names"]+")")
	}
	if !p.server.sees {
		a.Missing = append(a.Missing, "sessions of other users (GRANT pg_monitor)")
	}
	return a, nil
}

// witnessCommand notes what a long command has done, for the session that executes it too.
func witnessCommand(a *evidence.Answer, r row) {
	text := r.text("command")
	done, _ := r.number("done")
	if total, ok := r.number("total"); ok && total > 0 {
		text += fmt.Sprintf(": %.0f of %.0f blocks", done, total)
	}
	a.Say("progress of session "+r.text("pid"), text)
	if s := a.Session(r.text("pid")); s != nil {
		s.State = text
	}
}

// witnessStandby notes a standby: the first synchronous one is the one that commits wait for.
func witnessStandby(a *evidence.Answer, r row) {
	text := engine.OneLine(cmp.Or(r.text("name"), "a standby")) + " (" + engine.OneLine(r.text("sync")+", "+r.text("state"))
	if behind, ok := r.number("behind"); ok && behind >= 0 {
		text += ", " + table.Size(behind) + " behind"
	}
	if silent, ok := r.number("silent"); ok && silent >= 0 {
		text += fmt.Sprintf(", last replied %.1f s before", silent)
	}
	text += ")"
	a.Say("standby "+engine.OneLine(r.text("name")), text)
	kind := string(evidence.Acknowledging)
	if sync := r.text("sync"); a.Texts[kind] == "" && (sync == "sync" || sync == "quorum") {
		a.Say(kind, text)
	}
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
