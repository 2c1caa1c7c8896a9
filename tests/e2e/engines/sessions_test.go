//go:build e2e || versions

package engines

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// TestSessions guards that a session counts as waiting for a row lock only while it waits, that idle sessions never
// count, and what an account without privileges gets.
func TestSessions(t *testing.T) { onMariaDB(t, servers.MariaDB, 1, checkSessions) }

func checkSessions(t *testing.T, s group) {
	admin := s.admin(t, 1)
	admin.do("CREATE TABLE sbtest.hot (id INT PRIMARY KEY, n INT) ENGINE=InnoDB", "INSERT INTO sbtest.hot VALUES (1, 0)",
		"CREATE USER plain@127.0.0.1 IDENTIFIED BY 'plain'", "CREATE USER process@127.0.0.1 IDENTIFIED BY 'process'", "GRANT PROCESS ON *.* TO process@127.0.0.1")
	target := func(user string) engine.Target {
		return engine.Target{Name: user, Engine: "mysql", Address: s.Address(1), User: user, Password: engine.Secret(user)}
	}
	off := target("process")
	off.Name, off.Options = "off", map[string]string{"sessions": "off"}
	w := watch(t, []engine.Target{target("process"), target("plain"), off})
	idle := w.until("all answer", 30*time.Second, func(f engine.Frame) bool { return f.Samples[0].Up() && f.Samples[1].Up() && f.Samples[2].Up() })
	// The other accounts of this test are clients too.
	if n, known := sessionsOf(&idle.Samples[0], engine.Running); !known || n > 2 {
		t.Errorf("%v sessions run (known: %t) on an idle server", n, known)
	}

	holder, waiter := s.open(t, 1, "bench"), s.open(t, 1, "bench")
	tx, err := holder.Begin()
	must(t, err)
	_, err = tx.Exec("UPDATE sbtest.hot SET n = n + 1")
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- wait(waiter) }()
	w.until("the wait", 20*time.Second, func(f engine.Frame) bool { n, _ := sessionsOf(&f.Samples[0], engine.RowLock); return n == 1 })
	for range 9 {
		f := w.next()
		if n, _ := sessionsOf(&f.Samples[0], engine.RowLock); n != 1 {
			t.Errorf("%v sessions wait for a row lock, want 1:\n%s", n, describe(f))
		}
		for _, i := range []int{1, 2} {
			if n, known := sessionsOf(&f.Samples[i], engine.RowLock); known {
				t.Errorf("%s has %v sessions", f.Samples[i].Target.Name, n)
			}
		}
		without := func(s string) bool { return strings.HasPrefix(s, "active sessions: the right PROCESS") }
		for i, want := range []bool{false, true, false} {
			if missing := f.Samples[i].Status.Missing; slices.ContainsFunc(missing, without) != want {
				t.Errorf("%s: %q is missing", f.Samples[i].Target.Name, missing)
			}
		}
	}
	must(t, tx.Commit())
	must(t, <-ended)
	w.next() // a tick may have begun before
	for range 3 {
		f := w.next()
		if n, known := sessionsOf(&f.Samples[0], engine.RowLock); !known || n != 0 {
			t.Errorf("%v sessions wait (known: %t) after the end, want 0", n, known)
		}
	}
}

func wait(db *sql.DB) error {
	_, err := db.Exec("UPDATE sbtest.hot SET n = n + 1")
	return err
}

// TestStatementsAndWaits is for MariaDB with performance_schema.
func TestStatementsAndWaits(t *testing.T) {
	onMariaDB(t, servers.MariaDB, 1, checkStatementsAndWaits, "performance_schema=ON")
}

func checkStatementsAndWaits(t *testing.T, s group) {
	t.Run("statements", func(t *testing.T) {
		checkStatements(t, s, false, "SELECT ON performance_schema.events_statements_summary_by_digest", "SELECT ON performance_schema.events_statements_summary_global_by_event_name")
	})
	t.Run("waits by performance_schema", func(t *testing.T) {
		checkRowLockWait(t, s, s.account(t, "waits", "SELECT ON performance_schema.threads", "SELECT ON performance_schema.events_waits_current"))
	})
}

// TestWaits is for MariaDB without it.
func TestWaits(t *testing.T) {
	onMariaDB(t, servers.MariaDB, 1, func(t *testing.T, s group) {
		checkRowLockWait(t, s, s.account(t, "list", "PROCESS ON *.*"))
	})
}
