//go:build e2e || versions

package engines

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/internal/servers"
)

func TestReplica(t *testing.T) { onMariaDB(t, servers.MariaDB, 2, checkReplica) }

func checkReplica(t *testing.T, s group) {
	w := s.watch(t)
	stop := s.load(t, 1)
	replica := s.admin(t, 2)
	level := func(f engine.Frame) bool {
		n := &f.Samples[1]
		return is(n, 1, "replication_running", "", "receiver") && is(n, 1, "replication_running", "", "applier") &&
			n.LagTransactions.Known && n.LagTransactions.Value < 100 && n.LagSeconds.Known && n.LagSeconds.Value < 1
	}
	w.until("replica level", 20*time.Second, level)
	// A replica that stops before the second sample stays where no primary was seen: its
	// lag is then unknown.
	f := w.until("replica level again", 20*time.Second, level)
	if f.Samples[0].Status.Role != "primary" || f.Samples[1].Status.Role != "replica" {
		t.Errorf("roles:\n%s", describe(f))
	}

	for thread, statement := range map[string]string{"applier": "SQL_THREAD", "receiver": "IO_THREAD"} {
		t.Run(thread+" stopped", func(t *testing.T) {
			w := w.in(t)
			replica.do("STOP SLAVE " + statement)
			f := w.until("behind, and growing", 15*time.Second, func(f engine.Frame) bool {
				n := &f.Samples[1]
				return is(n, 0, "replication_running", "", thread) && n.LagTransactions.Known && n.LagTransactions.Value > 100 && n.LagSeconds.Known && n.LagSeconds.Value > 1
			})
			if v, ok := value(&f.Samples[1], "replication_seconds_behind_source", ""); ok {
				t.Errorf("seconds behind is %v while the server has NULL", v)
			}
			replica.do("START SLAVE " + statement)
			w.until("level again", 30*time.Second, level)
		})
	}

	t.Run("configured delay", func(t *testing.T) {
		w := w.in(t)
		replica.do("STOP SLAVE", "CHANGE MASTER TO MASTER_DELAY = 3", "START SLAVE")
		w.until("held back, but not behind", 20*time.Second, func(f engine.Frame) bool {
			n := &f.Samples[1]
			return is(n, 3, "replication_configured_delay_seconds", "") && n.LagTransactions.Known && n.LagTransactions.Value > 200 &&
				n.LagSeconds.Known && n.LagSeconds.Value < 1.5
		})
		replica.do("STOP SLAVE", "CHANGE MASTER TO MASTER_DELAY = 0", "START SLAVE")
		w.until("level again", 30*time.Second, level)
	})

	t.Run("FLUSH STATUS is no restart", func(t *testing.T) {
		w := w.in(t)
		replica.do("FLUSH STATUS")
		for range 3 {
			if f := w.next(); f.Samples[1].Restarts != 0 {
				t.Error("taken for a restart")
			}
		}
	})

	stop()
	t.Run("primary killed", func(t *testing.T) {
		w := w.in(t)
		must(t, s.Kill(1))
		f := w.until("primary down", 3*time.Second, func(f engine.Frame) bool { return !f.Samples[0].Up() })
		if n := &f.Samples[1]; !n.Up() || n.LagTransactions.Known {
			t.Errorf("lag of a replica whose primary is gone:\n%s", describe(f))
		}
		must(t, s.Rejoin(t.Context(), 1))
		w.until("primary back", 10*time.Second, func(f engine.Frame) bool {
			return f.Samples[0].Up() && f.Samples[0].Restarts == 1
		})
	})
}

// The reported values with the privileges in docs/databases.md, and without them.
func TestRights(t *testing.T) { onMariaDB(t, servers.MariaDB, 2, checkRights) }

func checkRights(t *testing.T, s group) {
	primary := s.admin(t, 1)
	primary.do("CREATE USER nothing@127.0.0.1 IDENTIFIED BY 'n'", "CREATE USER watcher@127.0.0.1 IDENTIFIED BY 'w'",
		"GRANT SLAVE MONITOR ON *.* TO watcher@127.0.0.1")
	address := s.Address(2)
	targets := []engine.Target{
		{Name: "nothing", Engine: "mysql", Address: address, User: "nothing", Password: "n"},
		{Name: "watcher", Engine: "mysql", Address: address, User: "watcher", Password: "w"},
		{Name: "wrong", Engine: "mysql", Address: address, User: "watcher", Password: "x"},
	}
	w := watch(t, targets)
	f := w.until("both users known to the replica", 20*time.Second, func(f engine.Frame) bool {
		return f.Samples[0].Up() && f.Samples[1].Up()
	})
	nothing, watcher, wrong := &f.Samples[0], &f.Samples[1], &f.Samples[2]
	// Neither user sees other sessions, which is noticed while there are some.
	missing := func(s *engine.Sample) []string {
		return slices.DeleteFunc(slices.Clone(s.Status.Missing), func(m string) bool { return strings.HasPrefix(m, "active sessions") })
	}
	if m := missing(nothing); len(m) != 1 || !strings.Contains(m[0], "SLAVE MONITOR") {
		t.Errorf("missing: %q", m)
	}
	if _, ok := value(nothing, "db_queries_total"); !ok {
		t.Error("what is public is not shown")
	}
	if len(missing(watcher)) != 0 || watcher.Status.Role != "replica" {
		t.Errorf("watcher: %q, role %q", watcher.Status.Missing, watcher.Status.Role)
	}
	if wrong.Up() || !strings.Contains(wrong.Err.Error(), "check user and password_file") {
		t.Errorf("wrong password: %v", wrong.Err)
	}

	primary.do("ALTER USER watcher@127.0.0.1 IDENTIFIED BY 'x'")
	w.until("recovery without a restart", 20*time.Second, func(f engine.Frame) bool { return f.Samples[2].Up() })
}

// A server that closes the agent's connection costs no tick.
func TestConnectionLost(t *testing.T) {
	s := start(t, servers.MariaDB, 1)
	w := s.watch(t)
	w.until("up", 5*time.Second, func(f engine.Frame) bool { return f.Samples[0].Up() })
	root := s.admin(t, 1)
	for range 3 {
		root.do("KILL USER monitor@127.0.0.1")
		if f := w.next(); !f.Samples[0].Up() {
			t.Errorf("tick missed: %v", f.Samples[0].Err)
		}
	}
}
