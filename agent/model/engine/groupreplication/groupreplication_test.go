package groupreplication

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

const me = "a79a6c5b-e54b-11f1-b380-02fc00000001"

// server answers a statement that contains a key and refuses others.
type server map[string][]mysql.Row

func (s server) Rows(_ context.Context, statement string) ([]mysql.Row, error) {
	for part, rows := range s {
		if strings.Contains(statement, part) {
			return rows, nil
		}
	}
	return nil, &driver.MySQLError{Number: 1142, Message: "SELECT command denied"}
}

func row(cells ...string) mysql.Row {
	var names []string
	var values []sql.NullString
	for _, c := range cells {
		name, value, set := strings.Cut(c, "=")
		names, values = append(names, name), append(values, sql.NullString{String: value, Valid: set})
	}
	return mysql.NewRow(names, values)
}

func read(t *testing.T, s server, variables, status mysql.Values) *engine.Status {
	t.Helper()
	known, err := mysql.NewServer(variables)
	if err != nil {
		t.Fatal(err)
	}
	out := &engine.Status{}
	if err := New().Read(context.Background(), s, &mysql.Tick{Target: &engine.Target{}, Server: known, Status: status}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

var self = row("gtid_executed="+group+":1-100898:1070769-1090273,\n"+me+":1-3", "server_uuid="+me, "super_read_only=1")

// After a change of primary the set has a permanent gap. The accounts of a single member are no lag
// of the others.
func TestPositionCountsAllIntervals(t *testing.T) {
	out := read(t, server{"gtid_executed": {self}, "group_members": {row("MEMBER_ID="+me, "MEMBER_STATE=ONLINE", "MEMBER_ROLE=SECONDARY")}, "stats": nil, "by_worker": nil},
		mysql.Values{"version": "8.4.3", "group_replication_group_name": strings.ToUpper(group)}, nil)
	if out.Position == nil || out.Position.Scalar() != 100898+19505 || !out.Replicating || out.Role != "secondary" {
		t.Errorf("%+v", out)
	}
}

func TestNoPlugin(t *testing.T) {
	for _, variables := range []mysql.Values{{"version": "8.4.3"}, {"version": "8.4.3", "group_replication_group_name": ""}, {"version": "10.11.1-MariaDB"}} {
		if out := read(t, nil, variables, nil); len(out.Values) != 0 || out.Position != nil {
			t.Errorf("%v: %+v", variables, out)
		}
	}
}

// With the fewest rights the position is still there, and each missing right is named.
func TestNoRights(t *testing.T) {
	out := read(t, server{"gtid_executed AS": {self}}, mysql.Values{"version": "9.7.4", "group_replication_group_name": group},
		mysql.Values{"Gr_flow_control_throttle_time_sum": "7800000", "Gr_flow_control_throttle_count": "12"})
	if len(out.Missing) != 2 || out.Position == nil || !out.Replicating {
		t.Errorf("missing %q, position %v", out.Missing, out.Position)
	}
	if s, ok := out.Get(throttledSeconds); !ok || s != 7.8 {
		t.Errorf("throttled %v s", s)
	}
}

// MySQL 5.7 has neither roles nor versions in its table of members.
func TestMySQL57(t *testing.T) {
	out := read(t, server{"gtid_executed AS": {self}, "group_members": {
		row("MEMBER_ID="+me, "MEMBER_HOST=a", "MEMBER_PORT=3306", "MEMBER_STATE=ONLINE"),
		row("MEMBER_ID=other", "MEMBER_HOST=b", "MEMBER_PORT=3306", "MEMBER_STATE=ONLINE"),
	}, "stats": {row("MEMBER_ID="+me, "VIEW_ID=15:4", "COUNT_TRANSACTIONS_IN_QUEUE=3")}, "by_worker": nil},
		mysql.Values{"version": "5.7.44", "group_replication_group_name": group}, mysql.Values{"group_replication_primary_member": me})
	if out.Role != "primary" {
		t.Errorf("role %q", out.Role)
	}
	if _, ok := out.Get(memberInfo, "b:3306", "online", "secondary"); !ok {
		t.Errorf("members: %+v", out.Values)
	}
	if n, ok := out.Get(certificationQueue); !ok || n != 3 {
		t.Errorf("queue %v", n)
	}
	if _, ok := out.Get(applierQueue); ok {
		t.Error("a queue that this version does not tell")
	}
}
