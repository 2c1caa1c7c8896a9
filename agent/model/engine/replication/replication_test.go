package replication

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// server answers statements by prefix; all others are unknown to it.
type server struct {
	answers map[string][]mysql.Row
	refuse  map[string]uint16
	asked   []string
}

func (s *server) Rows(_ context.Context, statement string) ([]mysql.Row, error) {
	s.asked = append(s.asked, statement)
	for begin, number := range s.refuse {
		if strings.HasPrefix(statement, begin) {
			return nil, &driver.MySQLError{Number: number, Message: "refused"}
		}
	}
	for begin, rows := range s.answers {
		if strings.HasPrefix(statement, begin) {
			return rows, nil
		}
	}
	return nil, mysql.ErrUnknownStatement
}

// row returns a row of "column=value" pairs; a column without a value is NULL.
func row(cells ...string) mysql.Row {
	var names []string
	var values []sql.NullString
	for _, c := range cells {
		name, value, set := strings.Cut(c, "=")
		names, values = append(names, name), append(values, sql.NullString{String: value, Valid: set})
	}
	return mysql.NewRow(names, values)
}

func read(t *testing.T, d mysql.Detail, s *server, variables mysql.Values, cluster string) *engine.Status {
	t.Helper()
	known, err := mysql.NewServer(variables)
	if err != nil {
		t.Fatal(err)
	}
	out := &engine.Status{}
	tick := &mysql.Tick{Target: &engine.Target{Cluster: cluster}, Server: known}
	if err := d.Read(context.Background(), s, tick, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Several channels with the column names of MySQL 5.7; one is delayed, one is down.
func TestChannels(t *testing.T) {
	s := &server{answers: map[string][]mysql.Row{"SHOW SLAVE STATUS": {
		row("Slave_IO_Running=Yes", "Slave_SQL_Running=Yes", "Seconds_Behind_Master=12", "SQL_Delay=10", "Channel_Name=east", "Master_UUID=a"),
		row("Slave_IO_Running=Yes", "Slave_SQL_Running=Yes", "Seconds_Behind_Master=4", "SQL_Delay=0", "Channel_Name=west", "Master_UUID=b"),
		row("Slave_IO_Running=Yes", "Slave_SQL_Running=Yes", "Seconds_Behind_Master=0", "Channel_Name=group_replication_applier"),
	}}}
	out := read(t, New(), s, mysql.Values{"version": "5.7.44-log"}, "c")
	if s.asked[0] != "SHOW SLAVE STATUS" {
		t.Errorf("asked %q", s.asked)
	}
	if out.CoarseLagSeconds != series.Some(4.) {
		t.Errorf("lag %v, want the worst without the delay", out.CoarseLagSeconds)
	}
	for channel, want := range map[string]float64{"east": 12, "west": 4} {
		if got, ok := out.Get(secondsBehind, channel); !ok || got != want {
			t.Errorf("%s: %v", channel, got)
		}
	}
	if _, ok := out.Get(engine.ReplicationRunning, "group_replication_applier", "applier"); ok {
		t.Error("a group's channel is shown as a replica's")
	}
	if out.Delay != 10*time.Second || out.Position != nil {
		t.Errorf("delay %v, position %v", out.Delay, out.Position)
	}

	s.answers["SHOW SLAVE STATUS"][1] = row("Slave_IO_Running=Connecting", "Slave_SQL_Running=Yes", "Seconds_Behind_Master", "Channel_Name=west")
	if out = read(t, New(), s, mysql.Values{"version": "5.7.44-log"}, "c"); out.CoarseLagSeconds.Known {
		t.Errorf("lag %v though a channel does not know", out.CoarseLagSeconds.Value)
	}
}

func TestStatementOfTheVersion(t *testing.T) {
	for version, want := range map[string]string{
		"5.5.62": "SHOW SLAVE STATUS", "8.0.21": "SHOW SLAVE STATUS", "8.0.22": "SHOW REPLICA STATUS", "9.7.4": "SHOW REPLICA STATUS",
		"10.11.19-MariaDB": "SHOW ALL SLAVES STATUS", "5.5.5-10.3.1-MariaDB": "SHOW ALL SLAVES STATUS",
	} {
		s := &server{answers: map[string][]mysql.Row{"SHOW": {}}}
		read(t, New(), s, mysql.Values{"version": version}, "")
		if len(s.asked) != 1 || s.asked[0] != want {
			t.Errorf("%s: asked %q, want only %q", version, s.asked, want)
		}
	}
	s := &server{answers: map[string][]mysql.Row{"SHOW SLAVE STATUS": {row("Slave_IO_Running=Yes")}}}
	if out := read(t, New(), s, mysql.Values{"version": "8.0.30-fork"}, ""); out.Role != "replica" {
		t.Errorf("old statement not tried: %q", s.asked)
	}
}

// Without the right the role is unknown: neither primary nor replica.
func TestNoRight(t *testing.T) {
	s := &server{
		refuse:  map[string]uint16{"SHOW": 1227},
		answers: map[string][]mysql.Row{"SELECT @@GLOBAL.gtid_binlog_pos": {row("gtid_binlog_pos=0-5-10", "gtid_slave_pos=0-5-12", "server_id=6")}},
	}
	out := read(t, New(), s, mysql.Values{"version": "10.11.19-MariaDB"}, "c")
	if len(out.Missing) != 1 || !strings.Contains(out.Missing[0], "SLAVE MONITOR") || out.Role != "" {
		t.Errorf("missing %q, role %q", out.Missing, out.Role)
	}
	if out.Position == nil || out.Position.Scalar() != 12 {
		t.Errorf("position %v is open to all", out.Position)
	}
}

// A server that becomes a replica is noticed within seconds and then asked at every tick; other
// servers are not.
func TestBecomingAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: map[string][]mysql.Row{"SHOW": {}}}
		d := New()
		for range 12 {
			read(t, d, s, mysql.Values{"version": "8.4.0"}, "")
			time.Sleep(time.Second)
		}
		if len(s.asked) != 3 {
			t.Errorf("asked %d times in 12 s", len(s.asked))
		}
		s.answers["SHOW"] = []mysql.Row{row("Replica_IO_Running=Yes", "Replica_SQL_Running=No")}
		for range 5 {
			read(t, d, s, mysql.Values{"version": "8.4.0"}, "")
			time.Sleep(time.Second)
		}
		if out := read(t, d, s, mysql.Values{"version": "8.4.0"}, ""); out.Role != "replica" {
			t.Error("not noticed")
		}
	})
}

func TestAFormerPrimarysPosition(t *testing.T) {
	position := func(written, applied string, replica bool) *engine.Status {
		s := &server{answers: map[string][]mysql.Row{
			"SELECT @@GLOBAL.gtid_binlog_pos": {row("gtid_binlog_pos="+written, "gtid_slave_pos="+applied, "server_id=6")},
			"SHOW":                            {},
		}}
		if replica {
			s.answers["SHOW"] = []mysql.Row{row("Connection_name=", "Slave_IO_Running=Yes", "Slave_SQL_Running=Yes", "Master_Server_Id=5", "Using_Gtid=Slave_Pos", "Gtid_IO_Pos=", "Gtid_Slave_Pos="+applied)}
		}
		return read(t, New(), s, mysql.Values{"version": "10.11.19-MariaDB"}, "c")
	}
	if out := position("0-6-500", "0-5-100", false); out.Position.Scalar() != 500 {
		t.Errorf("promoted: %v", out.Position)
	}
	if out := position("0-6-500", "0-5-100", true); out.Position.Scalar() != 100 {
		t.Errorf("an errant write counts as applied: %v", out.Position)
	}
	if out := position("", "", false); out.Position != nil {
		t.Errorf("without a binary log: %v", out.Position)
	}
	out := position("", "0-5-100", true)
	if _, ok := out.Get(engine.ReplicationQueueTransactions); ok {
		t.Error("a queue from an empty receiver position")
	}
}

// Frozen values must not be shown as lag.
func TestFrozenWorkers(t *testing.T) {
	worker := func(applying, applyingAt, applied, appliedAt, end string) mysql.Row {
		return row("server_now=1000.000000", "APPLYING_TRANSACTION="+applying, "applying_committed="+applyingAt,
			"LAST_APPLIED_TRANSACTION="+applied, "applied_committed="+appliedAt, "applied_end="+end)
	}
	unused := worker("", "0.000000", "", "0.000000", "0.000000")
	tests := []struct {
		name string
		rows []mysql.Row
		want float64 // negative: absent
	}{
		{"first look", []mysql.Row{unused, worker("", "0.000000", "u:5", "900.000000", "900.130000")}, -1},
		{"idle since", []mysql.Row{unused, worker("", "0.000000", "u:5", "900.000000", "900.130000")}, -1},
		{"one applied", []mysql.Row{unused, worker("", "0.000000", "u:6", "999.000000", "999.250000"), worker("", "0.000000", "u:4", "800.000000", "899.000000")}, 0.25},
		{"one running", []mysql.Row{worker("u:7", "998.500000", "u:5", "900.000000", "900.130000"), worker("u:8", "999.500000", "u:6", "999.000000", "999.250000")}, 1.5},
		{"source's clock ahead", []mysql.Row{worker("u:9", "1000.400000", "u:6", "999.000000", "999.250000")}, 0},
		{"no rows", nil, -1},
	}
	var a Applier
	for _, tt := range tests {
		got, err := a.lag(context.Background(), &server{answers: map[string][]mysql.Row{"SELECT": tt.rows}}, "")
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case tt.want < 0 && got.Known:
			t.Errorf("%s: %v, want absent", tt.name, got.Value)
		case tt.want >= 0 && got != series.Some(tt.want):
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Without GTIDs, positions in the source's binary log are compared.
func TestWithoutGTIDs(t *testing.T) {
	const uuid = "31420075-e54e-11f1-8be2-02fc00000001"
	source := &server{answers: map[string][]mysql.Row{
		"SHOW SLAVE STATUS": {}, "SHOW MASTER STATUS": {row("File=bin.000009", "Position=1000")},
	}}
	variables := mysql.Values{"version": "5.7.44", "gtid_mode": "OFF", "log_bin": "ON", "server_uuid": uuid}
	primary := read(t, New(), source, variables, "c")
	at := func(file, position string) *engine.Status {
		s := &server{answers: map[string][]mysql.Row{"SHOW SLAVE STATUS": {row("Slave_IO_Running=Yes", "Slave_SQL_Running=Yes",
			"Master_UUID="+uuid, "Relay_Master_Log_File="+file, "Exec_Master_Log_Pos="+position, "Retrieved_Gtid_Set=")}}}
		return read(t, New(), s, mysql.Values{"version": "5.7.44", "gtid_mode": "OFF", "log_bin": "ON", "server_uuid": "another"}, "c")
	}
	for _, tt := range []struct {
		file, position string
		reached        bool
	}{
		{"bin.000009", "1000", true}, {"bin.000009", "999", false}, {"bin.000008", "500000", false}, {"bin.000010", "4", true}, {"bin.1000000", "4", true},
	} {
		replica := at(tt.file, tt.position)
		if got := engine.Reached(replica.Position, primary.Position); got != tt.reached {
			t.Errorf("%s:%s has reached %v: %v", tt.file, tt.position, primary.Position, got)
		}
		if _, counted := replica.Position.Behind(primary.Position); counted {
			t.Error("transactions counted from bytes")
		}
	}
	if out := at("", ""); out.Position != nil {
		t.Errorf("position of a replica that has none: %v", out.Position)
	}

	source.refuse = map[string]uint16{"SHOW MASTER STATUS": 1227}
	if out := read(t, New(), source, variables, "c"); len(out.Missing) != 1 || out.Position != nil {
		t.Errorf("missing %q, position %v", out.Missing, out.Position)
	}
	variables["version"] = "8.4.3"
	source = &server{answers: map[string][]mysql.Row{"SHOW REPLICA STATUS": {}, "SHOW BINARY LOG STATUS": {row("File=bin.000001", "Position=4")}}}
	if out := read(t, New(), source, variables, "c"); out.Position == nil || out.Position.String() != "bin.000001:4" {
		t.Errorf("8.4: %v, asked %q", out.Position, source.asked)
	}
}
