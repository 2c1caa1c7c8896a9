package tidb

import (
	"context"
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// In TiDB's list of processes the state of a session is not what it waits for but whether a
// transaction is open. What the transaction does is in the list of transactions, in each server's
// memory since 5.1.
const (
	fromTransactions = `SELECT t.STATE AS state, COUNT(*) AS n FROM information_schema.%[1]sPROCESSLIST p
LEFT JOIN information_schema.%[1]sTIDB_TRX t ON t.SESSION_ID = p.ID%[2]s WHERE ` + ofClients + ` GROUP BY 1`
	sameInstance = " AND t.INSTANCE = p.INSTANCE" // sessions of two servers may have the same id
	fromList     = `SELECT NULL AS state, COUNT(*) AS n FROM information_schema.%[1]sPROCESSLIST p WHERE ` + ofClients
	ofClients    = `p.COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump') AND p.ID <> CONNECTION_ID()`
)

const missingSessions = "active sessions: the right PROCESS"

// sessions samples what the sessions of clients are doing.
type sessions struct{ states engine.SessionStates }

// clusterPrefix returns the prefix of tables that cover all servers of the cluster.
func clusterPrefix(t *engine.Target, option string) string {
	if t.Options[option] == engine.Cluster {
		return "CLUSTER_"
	}
	return ""
}

// read sets the number of sessions that execute a statement, by what they wait for. Without the privilege PROCESS
// (denied), the server lists only the user's own sessions.
func (s *sessions) read(ctx context.Context, q mysql.Querier, target *engine.Target, denied bool, out *engine.Status) error {
	switch {
	case target.Options[engine.OptionSessions] == engine.Off:
		return nil
	case denied:
		out.Missing = append(out.Missing, missingSessions)
		return nil
	}
	ctx, cancel := engine.WithShare(ctx, 0.5)
	defer cancel()
	prefix, join := clusterPrefix(target, engine.OptionSessions), ""
	if prefix != "" {
		join = sameInstance
	}
	rows, err := mysql.FirstSupported(ctx, q, fmt.Sprintf(fromTransactions, prefix, join), fmt.Sprintf(fromList, prefix))
	if err != nil {
		return mysql.Optional(err, out, missingSessions)
	}
	counts := map[engine.SessionState]float64{}
	for _, row := range rows {
		if n, ok := row.Number("n"); ok {
			counts[stateOf(row.Text("state"))] += n
		}
	}
	s.states.Set(out, counts)
	return nil
}

// States of transactions (TiDB 5.1 to 8.5) in which no statement does any work.
const lockWaiting, committing, rollingBack = "lockwaiting", "committing", "rollingback"

// stateOf returns the state of a session from the state of its transaction. A session whose
// transaction is idle, or that has none, is running if it executes a statement.
func stateOf(transaction string) engine.SessionState {
	switch event := strings.ToLower(strings.TrimSpace(transaction)); event {
	case lockWaiting:
		return engine.SessionState{Class: engine.RowLock, Event: event}
	case committing:
		return engine.SessionState{Class: engine.Commit, Event: event}
	case rollingBack:
		return engine.SessionState{Class: engine.Other, Event: event}
	}
	return engine.SessionState{Class: engine.Running, Event: engine.Running}
}
