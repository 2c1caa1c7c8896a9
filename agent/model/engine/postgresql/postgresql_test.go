package postgresql

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

func TestOpen(t *testing.T) {
	for _, test := range []struct {
		target engine.Target
		want   string
	}{
		{engine.Target{Address: "db1:5432"}, ""},
		{engine.Target{Address: "/run/postgresql/.s.PGSQL.5432"}, ""},
		{engine.Target{Address: "[::1]:5432", Options: map[string]string{"database": "bench", "sessions": "off"}}, ""},
		{engine.Target{}, "no address"},
		{engine.Target{Address: "db1"}, "neither host:port"},
		{engine.Target{Address: "db1:x"}, "no port number"},
		{engine.Target{Address: "a:1,b:2"}, "not one host:port"},
		{engine.Target{Address: "postgres://a:1"}, "not one host:port"},
		{engine.Target{Address: "a:1", Options: map[string]string{"sessions": "maybe"}}, "option sessions"},
		{engine.Target{Address: "a:1", Options: map[string]string{"x": "1"}}, "unknown option"},
	} {
		_, err := open(test.target, slog.Default())
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.target, err, test.want)
		}
	}
}

// A folder is the one of the socket, as for client libraries.
func TestFolderOfSocket(t *testing.T) {
	folder := t.TempDir()
	_, err := probe(t, newTestProber(t, folder), time.Second)
	if want := "socket " + filepath.Join(folder, ".s.PGSQL.5432") + " does not exist"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// The environment of the agent must not decide to which server it connects, nor with which login.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{"PGHOST": "other", "PGUSER": "other", "PGPASSWORD": "other", "PGSSLMODE": "verify-full",
		"PGTARGETSESSIONATTRS": "standby", "PGOPTIONS": "-c statement_timeout=0", "PGDATABASE": "other", "PGREQUIREAUTH": "none"} {
		t.Setenv(name, value)
	}
	var budget engine.Budget
	c, err := newConnector(&engine.Target{Address: "db1:5433", User: "me", Password: "secret"}, &budget)
	if err != nil {
		t.Fatal(err)
	}
	if o := c.config; o.Host != "db1" || o.Port != 5433 || o.User != "me" || o.Password != "secret" || o.Database != "postgres" || o.TLSConfig != nil ||
		o.Fallbacks != nil || o.ValidateConnect != nil || o.RequireAuth != "!password" {
		t.Errorf("%+v", o)
	}
}

func TestStateOf(t *testing.T) {
	for _, test := range []struct{ kind, event, class string }{
		{"", "", engine.Running},
		{"Lock", "transactionid", engine.RowLock},
		{"Lock", "tuple", engine.RowLock},
		{"Lock", "relation", engine.Lock},
		{"Lock", "advisory", engine.Lock},
		{"Lock", "extend", engine.Latch},
		{"LWLock", "WALWrite", engine.Commit},
		{"LWLock", "WALInsert", engine.Latch},
		{"LWLock", "BufferMapping", engine.Latch},
		{"IO", "WALSync", engine.Commit},
		{"IO", "WalSync", engine.Commit},
		{"IPC", "BufferIo", engine.Disk},
		{"IO", "DataFileRead", engine.Disk},
		{"IO", "BuffileWrite", engine.Disk},
		{"IPC", "SyncRep", engine.Replication},
		{"IPC", "BufferIO", engine.Disk},
		{"IPC", "ParallelFinish", engine.Other},
		{"Client", "ClientRead", engine.Network},
		{"Timeout", "PgSleep", engine.Other},
		{"Extension", "Extension", engine.Other},
		{"InjectionPoint", "x", engine.Other},
	} {
		if got := stateOf(test.kind, test.event); got.Class != test.class {
			t.Errorf("%s:%s is %s, want %s", test.kind, test.event, got.Class, test.class)
		}
	}
}

func TestPosition(t *testing.T) {
	at, ok := parseLSN("16/B374D848")
	p := lsn{"1", 2, at}
	if !ok || p.String() != "16/B374D848" || p.Scalar() != 97500059720 {
		t.Errorf("%v %v %v", p, p.Scalar(), ok)
	}
	for _, bad := range []string{"", "/", "1", "1/", "x/1", "1/100000000"} {
		if _, ok := parseLSN(bad); ok {
			t.Errorf("%q is no position", bad)
		}
	}
	for _, test := range []struct {
		p, goal lsn
		reaches bool
		bytes   uint64
		known   bool
	}{
		{lsn{"1", 1, 100}, lsn{"1", 1, 100}, true, 0, true},
		{lsn{"1", 1, 90}, lsn{"1", 1, 100}, false, 10, true},
		{lsn{"1", 2, 100}, lsn{"1", 1, 90}, true, 0, true},
		{lsn{"1", 1, 100}, lsn{"1", 2, 90}, false, 0, true}, // it has not followed the promotion
		{lsn{"1", 0, 100}, lsn{"1", 2, 90}, true, 0, true},
		{lsn{"", 0, 80}, lsn{"1", 1, 90}, false, 10, true}, // a subscriber
		{lsn{"2", 1, 100}, lsn{"1", 1, 90}, false, 0, false},
	} {
		bytes, known := test.p.BytesBehind(test.goal)
		if got := test.p.Reaches(test.goal); got != test.reaches || known != test.known || known && bytes != test.bytes {
			t.Errorf("%+v of %+v: %v, %d bytes behind (%v)", test.p, test.goal, got, bytes, known)
		}
	}
}

func TestSynchronousWanted(t *testing.T) {
	for names, want := range map[string]float64{"": 0, " ": 0, "*": 1, "a, b": 1, "FIRST 2 (a, b)": 2, "any 1 (a,b,c)": 1, "3 (a, b, c)": 3, "first(a)": 1} {
		if got := synchronousWanted(names); got != want {
			t.Errorf("%q: %v, want %v", names, got, want)
		}
	}
}

func TestSettingOf(t *testing.T) {
	for _, test := range []struct{ value, unit, want string }{
		{"16384", "8kB", "134217728"}, {"4096", "kB", "4194304"}, {"1024", "MB", "1073741824"}, {"262144", "B", "262144"},
		{"200", "ms", "200ms"}, {"300", "s", "300s"}, {"5", "min", "5min"}, {"-1", "8kB", "-1"}, {"on", "", "on"}, {"x", "kB", "x"}, {"1", "xkB", "1xkB"},
	} {
		if got := settingOf(test.value, test.unit); got != test.want {
			t.Errorf("%s %s: %s, want %s", test.value, test.unit, got, test.want)
		}
	}
}

func TestNormalised(t *testing.T) {
	for text, want := range map[string]string{
		"UPDATE t SET a = $1\n WHERE b = $2": "UPDATE t SET a = $1 WHERE b = $2",
		"ALTER USER a PASSWORD 'it''s'":      "ALTER USER a PASSWORD ?",
		"CREATE USER a PASSWORD 'cut":        "CREATE USER a PASSWORD ?",
		"DO $x$ secret $x$":                  "DO ?",
	} {
		if got := normalised(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestVersionNumber(t *testing.T) {
	for text, want := range map[string]int{"15.10": 15, "18beta1": 18, "": 0, "x": 0, "9.6.1": 9} {
		if got, err := versionNumber(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
