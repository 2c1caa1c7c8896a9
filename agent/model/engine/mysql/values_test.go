package mysql

import (
	"context"
	"math"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

func TestValuesByKind(t *testing.T) {
	tests := []struct {
		text   string
		uint   uint64
		number float64 // NaN: no value
	}{
		{"0", 0, 0},
		{"42", 42, 42},
		{"18446744073709551615", math.MaxUint64, 18446744073709551615},
		{"-1", 0, -1},
		{"0.0131361", 0, 0.0131361},
		{"1e3", 0, 1000},
		{"", 0, math.NaN()},
		{"ON", 0, math.NaN()},
		{"Primary", 0, math.NaN()},
		{"-nan", 0, math.NaN()},
		{"nan", 0, math.NaN()},
		{"inf", 0, math.NaN()},
		{"1e999", 0, math.NaN()},
		{"0x10", 0, math.NaN()},
		{"1_000", 0, math.NaN()},
		{"2026-11-21 02:02:44.252953", 0, math.NaN()},
		{"Nov 18 01:34:22 2036 GMT", 0, math.NaN()},
		{"0/0/0/0/0", 0, math.NaN()},
		{"-----BEGIN PUBLIC KEY-----\nMIIB", 0, math.NaN()},
	}
	for _, tt := range tests {
		v := Values{"x": tt.text}
		if n, ok := v.Number("x"); ok == math.IsNaN(tt.number) || ok && n != tt.number {
			t.Errorf("%q: number %v %v, want %v", tt.text, n, ok, tt.number)
		}
		whole := tt.number >= 0 && tt.number == math.Trunc(tt.number) && tt.text != "1e3"
		if n, ok := v.Uint("x"); ok != whole || n != tt.uint {
			t.Errorf("%q: uint %v %v, want %v", tt.text, n, ok, tt.uint)
		}
	}
	for text, want := range map[string]bool{"ON": true, "off": false, "Yes": true, "NO": false, "1": true, "0": false, "TRUE": true} {
		if got, ok := (Values{"x": text}).Bool("x"); !ok || got != want {
			t.Errorf("%q is %v %v", text, got, ok)
		}
	}
	if _, ok := (Values{"x": "Connecting"}).Bool("x"); ok {
		t.Error("Connecting is no switch")
	}
}

func TestFlavours(t *testing.T) {
	tests := []struct {
		variables        Values
		flavour, version string
		number           [3]int
	}{
		{Values{"version": "8.4.3", "version_comment": "MySQL Community Server - GPL"}, "mysql", "8.4.3", [3]int{8, 4, 3}},
		{Values{"version": "5.7.44-log"}, "mysql", "5.7.44-log", [3]int{5, 7, 44}},
		{Values{"version": "5.5.5-10.11.19-MariaDB-0+deb12u1-log"}, "mariadb", "10.11.19-MariaDB-0+deb12u1-log", [3]int{10, 11, 19}},
		{Values{"version": "11.8.2-MariaDB"}, "mariadb", "11.8.2-MariaDB", [3]int{11, 8, 2}},
		{Values{"version": "8.0.36-28", "version_comment": "Percona Server (GPL), Release 28"}, "percona", "8.0.36-28", [3]int{8, 0, 36}},
		{Values{"version": "8.0.32", "version_comment": "Source distribution", "aurora_version": "3.05.2"}, "aurora", "8.0.32", [3]int{8, 0, 32}},
		{Values{"version": "8.0.11-TiDB-v8.5.0", "version_comment": "TiDB Server (Apache License 2.0)"}, "tidb", "8.0.11-TiDB-v8.5.0", [3]int{8, 0, 11}},
	}
	for _, tt := range tests {
		s, err := NewServer(tt.variables)
		if err != nil {
			t.Errorf("%v: %v", tt.variables, err)
			continue
		}
		if s.Flavour != tt.flavour || s.Version != tt.version || s.Number != tt.number {
			t.Errorf("%v: %s %s %v", tt.variables, s.Flavour, s.Version, s.Number)
		}
	}
	for _, version := range []string{"5.1.73", "5.0.81-log", "4.1.22", "", "unknown"} {
		if s, err := NewServer(Values{"version": version}); err == nil {
			t.Errorf("%q accepted as %+v", version, s)
		}
	}
	s, _ := NewServer(Values{"version": "10.11.1-MariaDB"})
	if !s.AtLeast(10, 5, 0) || s.AtLeast(10, 11, 2) || !s.AtLeast(10, 11, 1) {
		t.Error("10.11 compared wrongly")
	}
}

func decode(t *testing.T, status Values) *engine.Status {
	t.Helper()
	server, err := NewServer(Values{"version": "8.4.3", "max_connections": "151"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := Decode(context.Background(), &Tick{Target: &engine.Target{}, Server: server, Status: status}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A value that a server does not report is absent, never 0.
func TestCounters(t *testing.T) {
	out := decode(t, Values{
		"Uptime": "1525", "Questions": "2454", "Queries": "149296", "Com_update": "58640", "Com_update_multi": "2",
		"Innodb_row_lock_time": "1500", "Innodb_row_lock_current_waits": "18446744073709551615", "Threads_running": "", "Com_commit": "ON",
		"Innodb_dblwr_pages_written": "10", "Innodb_page_size": "16384",
		"Innodb_redo_log_current_lsn": "1000", "Innodb_redo_log_checkpoint_lsn": "400", "Innodb_redo_log_capacity_resized": "104857600",
	})
	if out.Uptime != 1525*time.Second || out.Flavour != "mysql" || out.Version != "8.4.3" {
		t.Errorf("%+v", out)
	}
	for _, tt := range []struct {
		metric *measure.Metric
		labels []string
		want   float64
	}{
		{engine.QueriesTotal, nil, 2454},
		{engine.StatementsTotal, nil, 149296},
		{engine.OperationsTotal, []string{"update"}, 58642},
		{engine.LockWaitSeconds, nil, 1.5},
		{engine.ConnectionsLimit, nil, 151},
		{doublewriteBytes, nil, 163840},
		{checkpointAge, nil, 600},
		{checkpointLimit, nil, 104857600},
	} {
		if got, ok := out.Get(tt.metric, tt.labels...); !ok || got != tt.want {
			t.Errorf("%s%q is %v %v, want %v", tt.metric.Name, tt.labels, got, ok, tt.want)
		}
	}
	if len(out.Values) != 8 {
		t.Errorf("invented values: %+v", out.Values)
	}
}

// Each series occurs once, as a collector requires, with as many labels as declared.
func TestCountersAreDistinct(t *testing.T) {
	all := Values{}
	for _, name := range variables.Names() {
		all[name] = "1"
	}
	enginetest.WellFormed(t, decode(t, all))
}

// failing is a detail whose statement fails.
type failing struct{ err error }

func (failing) Needs() Needs { return Needs{} }
func (f failing) Read(context.Context, Querier, *Tick, *engine.Status) error {
	return f.err
}

// A server that refuses the statement of a detail is still sampled; a lost connection fails the
// sample.
func TestFailingDetail(t *testing.T) {
	server, _ := NewServer(Values{"version": "8.4.3"})
	tick := &Tick{Target: &engine.Target{}, Server: server, Status: Values{"Questions": "1"}}
	out, err := Decode(context.Background(), tick, nil, []Detail{failing{&driver.MySQLError{Number: 1205, Message: "Lock wait\ntimeout"}}})
	if err != nil || len(out.Missing) != 1 || out.Missing[0] != "Error 1205: Lock wait timeout" {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err = Decode(context.Background(), tick, nil, []Detail{failing{driver.ErrInvalidConn}}); err == nil {
		t.Error("lost connection not noticed")
	}
}

func FuzzServer(f *testing.F) {
	f.Add("5.5.5-10.11.19-MariaDB-0+deb12u1-log", "mariadb.org binary distribution", "151")
	f.Add("8.0.11-TiDB-v8.5.0", "TiDB Server", "18446744073709551615")
	f.Fuzz(func(t *testing.T, version, comment, value string) {
		status := Values{}
		for _, name := range variables.Names() {
			status[name] = value
		}
		server, err := NewServer(Values{"version": version, "version_comment": comment, "max_connections": value})
		if err != nil {
			return
		}
		out, err := Decode(context.Background(), &Tick{Target: &engine.Target{}, Server: server, Status: status}, nil, nil)
		if err != nil || out.Uptime < 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		for _, v := range out.Values {
			if v.V < 0 || math.IsNaN(v.V) || math.IsInf(v.V, 0) {
				t.Fatalf("%s is %v from %q", v.Metric.Name, v.V, value)
			}
		}
	})
}

// A MariaDB server under load has a value for every measure of InnoDB.
func TestMeasures(t *testing.T) {
	var statuses []*engine.Status
	for _, n := range []string{"1000", "1500"} {
		statuses = append(statuses, decode(t, Values{
			"Questions": n, "Com_commit": n, "Com_rollback": n, "Threads_connected": "5", "Threads_running": "2", "Innodb_row_lock_time": n,
			"Innodb_deadlocks": n, "Innodb_buffer_pool_reads": n, "Innodb_buffer_pool_read_requests": n + "0",
			"Innodb_checkpoint_age": n, "Innodb_history_list_length": n,
		}))
	}
	enginetest.Measures(t, statuses[0], statuses[1], "queries", "commits", "rollbacks", "ended_transactions", "connections", "threads_running",
		"lock_waits", "deadlocks", "buffer_pool_misses", "checkpoint_age", "history_list")
}
