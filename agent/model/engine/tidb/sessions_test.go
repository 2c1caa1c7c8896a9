package tidb

import (
	"context"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// answers answers a statement by the longest part of it in the map; other statements are unknown to
// the server.
type answers struct {
	byPart map[string][]mysql.Row
	asked  []string
}

func (a *answers) Rows(_ context.Context, statement string) ([]mysql.Row, error) {
	a.asked = append(a.asked, statement)
	found := ""
	for part := range a.byPart {
		if strings.Contains(statement, part) && len(part) > len(found) {
			found = part
		}
	}
	if found == "" {
		return nil, &driver.MySQLError{Number: 1146, Message: "Table doesn't exist"}
	}
	return a.byPart[found], nil
}

// TestSessions guards what the sessions of a server wait for. The answers are composed; the states
// come from TiDB's documentation.
func TestSessions(t *testing.T) {
	q := &answers{byPart: map[string][]mysql.Row{"TIDB_TRX": rows("state|n", "NULL|2", "Idle|1", "Running|3", "LockWaiting|4", "Committing|5", "RollingBack|1", "Unheard|1")}}
	target := &engine.Target{Address: "127.0.0.1:4000", Options: map[string]string{optionStatusAddress: "127.0.0.1:1"}}
	d := newDetail(t)
	s := sample(t, d, q, target)
	for event, want := range map[string]struct {
		class string
		n     float64
	}{engine.Running: {engine.Running, 7}, lockWaiting: {engine.RowLock, 4}, committing: {engine.Commit, 5}, rollingBack: {engine.Other, 1}} {
		enginetest.Want(t, s, want.n, engine.ActiveSessions, want.class, event)
	}
	// A state that occurred stays, as 0.
	q.byPart["TIDB_TRX"] = rows("state|n", "Running|1")
	s = sample(t, d, q, target)
	enginetest.Want(t, s, 1, engine.ActiveSessions, engine.Running, engine.Running)
	enginetest.Want(t, s, 0, engine.ActiveSessions, engine.RowLock, lockWaiting)
	for _, statement := range q.asked {
		if strings.Contains(statement, "CLUSTER_") {
			t.Errorf("asked all servers: %s", statement)
		}
	}

	// Before 5.1 the list of processes is the only source.
	old := &answers{byPart: map[string][]mysql.Row{".PROCESSLIST p WHERE": rows("state|n", "NULL|2")}}
	s = sample(t, newDetail(t), old, target)
	enginetest.Want(t, s, 2, engine.ActiveSessions, engine.Running, engine.Running)
	enginetest.Absent(t, s, engine.ActiveSessions, engine.RowLock, lockWaiting)

	all := &answers{byPart: map[string][]mysql.Row{"CLUSTER_PROCESSLIST p\nLEFT JOIN information_schema.CLUSTER_TIDB_TRX t ON t.SESSION_ID = p.ID AND t.INSTANCE = p.INSTANCE": rows("state|n", "LockWaiting|9")}}
	target.Options[engine.OptionSessions] = engine.Cluster
	enginetest.Want(t, sample(t, newDetail(t), all, target), 9, engine.ActiveSessions, engine.RowLock, lockWaiting)

	target.Options[engine.OptionSessions] = engine.Off
	s = sample(t, d, q, target)
	enginetest.Absent(t, s, engine.ActiveSessions, engine.Running, engine.Running)
}
