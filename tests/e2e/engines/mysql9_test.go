//go:build versions

package engines

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/internal/servers"
)

func running(s *engine.Sample) bool {
	return is(s, 1, "replication_running", "", "receiver") && is(s, 1, "replication_running", "", "applier")
}

// nearly reports whether the lag is at most what can be written between two answers.
func nearly(s *engine.Sample) bool {
	return s.LagTransactions.Known && s.LagTransactions.Value < 100 && s.LagSeconds.Known && s.LagSeconds.Value < 1
}

func TestMySQL9Replica(t *testing.T) {
	s := start(t, servers.MySQL9, 2)
	w := s.watch(t)
	stop := s.load(t, 1)
	source, replica := s.admin(t, 1), s.admin(t, 2)
	level := func(f engine.Frame) bool { return running(&f.Samples[1]) && nearly(&f.Samples[1]) }
	f := w.until("replica level", 20*time.Second, level)
	if f.Samples[0].Status.Role != "primary" || f.Samples[1].Status.Role != "replica" || f.Samples[1].Status.Flavour != "mysql" {
		t.Errorf("roles:\n%s", describe(f))
	}

	caughtUp := func(f engine.Frame) bool {
		a, b := &f.Samples[0], &f.Samples[1]
		return a.Up() && b.Up() && engine.Reached(b.Status.Position, a.Status.Position)
	}

	for thread, statement := range map[string]string{"applier": "SQL_THREAD", "receiver": "IO_THREAD"} {
		t.Run(thread+" stopped", func(t *testing.T) {
			w := w.in(t)
			replica.do("STOP REPLICA " + statement)
			f := w.until("behind, and growing", 15*time.Second, func(f engine.Frame) bool {
				n := &f.Samples[1]
				return is(n, 0, "replication_running", "", thread) && n.LagTransactions.Known && n.LagTransactions.Value > 100 && n.LagSeconds.Known && n.LagSeconds.Value > 1.5
			})
			if f.Samples[1].Status.LagSeconds.Known {
				t.Errorf("the workers' frozen times are shown: %v s", f.Samples[1].Status.LagSeconds.Value)
			}
			if v, ok := value(&f.Samples[1], "replication_seconds_behind_source", ""); ok {
				t.Errorf("seconds behind is %v while the server has NULL", v)
			}
			replica.do("START REPLICA " + statement)
			w.until("level again", 30*time.Second, level)
		})
	}

	t.Run("applier held by a lock", func(t *testing.T) {
		w := w.in(t)
		replica.do("FLUSH TABLES WITH READ LOCK")
		var first *engine.Sample
		w.until("the workers show the lag", 15*time.Second, func(f engine.Frame) bool {
			first = &f.Samples[1]
			return first.Up() && first.Status.LagSeconds.Known && first.Status.LagSeconds.Value > 1
		})
		f := w.next()
		last := &f.Samples[1]
		if grown := last.LagSeconds.Value - first.LagSeconds.Value; math.Abs(grown-last.Answered.Sub(first.Answered).Seconds()) > 0.3 {
			t.Errorf("lag grew by %.3f s in %v", grown, last.Answered.Sub(first.Answered))
		}
		replica.do("UNLOCK TABLES")
		w.until("level again", 30*time.Second, level)
	})

	t.Run("configured delay", func(t *testing.T) {
		w := w.in(t)
		replica.do("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3", "START REPLICA")
		w.until("held back, but not behind", 20*time.Second, func(f engine.Frame) bool {
			n := &f.Samples[1]
			return is(n, 3, "replication_configured_delay_seconds", "") && n.LagTransactions.Known && n.LagTransactions.Value > 200 &&
				n.LagSeconds.Known && n.LagSeconds.Value < 2
		})
		replica.do("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0", "START REPLICA")
		w.until("level again", 30*time.Second, level)
	})

	t.Run("without GTIDs", func(t *testing.T) {
		stop()
		w.in(t).until("caught up", 20*time.Second, caughtUp)
		replica.do("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0")
		for _, mode := range []string{"ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"} {
			replica.do("SET GLOBAL gtid_mode = " + mode)
			source.do("SET GLOBAL gtid_mode = " + mode)
		}
		replica.do("START REPLICA")
		w := s.watch(t) // what a server is, is read once a minute
		stop := s.load(t, 1)
		level := func(f engine.Frame) bool {
			n := &f.Samples[1]
			return running(n) && !n.LagTransactions.Known && n.LagSeconds.Known && n.LagSeconds.Value < 0.5
		}
		w.until("level", 30*time.Second, level)
		replica.do("STOP REPLICA SQL_THREAD")
		w.until("behind, and growing", 20*time.Second, func(f engine.Frame) bool {
			n := &f.Samples[1]
			return !n.LagTransactions.Known && n.LagSeconds.Known && n.LagSeconds.Value > 2
		})
		replica.do("START REPLICA SQL_THREAD")
		w.until("level again", 30*time.Second, level)
		stop()
		w.until("caught up", 20*time.Second, caughtUp)
	})

	t.Run("no rights", func(t *testing.T) {
		replica.do("SET sql_log_bin = 0", "CREATE USER nothing@127.0.0.1 IDENTIFIED BY 'n'")
		target := engine.Target{Name: "nothing", Engine: "mysql", Cluster: "c", Address: f.Samples[1].Target.Address, User: "nothing", Password: "n"}
		f := watch(t, []engine.Target{target}).next()
		if n := &f.Samples[0]; !n.Up() || !strings.Contains(strings.Join(n.Status.Missing, ";"), "REPLICATION CLIENT") || n.Status.Role != "" {
			t.Errorf("%v, %+v", n.Err, n.Status)
		}
	})
}

const (
	recovering = 1
	online     = 2
)

func TestMySQL9Group(t *testing.T) {
	s := start(t, servers.MySQL9Group, 3)
	w := s.watch(t)
	complete := func(f engine.Frame) bool {
		for i := range f.Samples {
			if !is(&f.Samples[i], online, "group_replication_member_state") || !is(&f.Samples[i], 3, "group_replication_members_online") {
				return false
			}
		}
		return true
	}
	f := w.until("three members online", 30*time.Second, complete)
	for i, want := range []string{"primary", "secondary", "secondary"} {
		if got := f.Samples[i].Status.Role; got != want {
			t.Errorf("n%d is %s", i+1, got)
		}
	}
	for i, settings := range w.settings() {
		for name, want := range map[string]string{
			"group_replication_single_primary_mode": "ON", "group_replication_flow_control_mode": "QUOTA",
			"gtid_mode": "ON", "transaction_isolation": "REPEATABLE-READ",
		} {
			if settings[name] != want {
				t.Errorf("n%d: %s is %q, want %q of\n%v", i+1, name, settings[name], want, settings)
			}
		}
		if settings["innodb_redo_log_capacity"] == "" || settings["group_replication_group_name"] != "" {
			t.Errorf("n%d: %v", i+1, settings)
		}
	}
	stop := s.load(t, 1)

	t.Run("applier held by a lock", func(t *testing.T) {
		w := w.in(t)
		n3 := s.admin(t, 3)
		n3.do("FLUSH TABLES WITH READ LOCK")
		f := w.until("behind, with a queue", 20*time.Second, func(f engine.Frame) bool {
			n := &f.Samples[2]
			queue, ok := value(n, "group_replication_applier_queue")
			return ok && queue > 50 && n.LagTransactions.Known && n.LagTransactions.Value > 50 && n.LagSeconds.Known && n.LagSeconds.Value > 1
		})
		if queue, _ := value(&f.Samples[0], "group_replication_applier_queue"); queue > 10 {
			t.Errorf("the primary shows a queue of %v that is another's", queue)
		}
		for _, v := range f.Samples[2].Status.Values { // appliers are no sessions of clients
			if v.Metric == engine.ActiveSessions && v.V > 0 {
				t.Errorf("n3, to which no client is connected, has %v active sessions: %v", v.V, v.Labels)
			}
		}
		n3.do("UNLOCK TABLES")
		w.until("level again", 30*time.Second, func(f engine.Frame) bool { return nearly(&f.Samples[2]) })
	})

	t.Run("member killed", func(t *testing.T) {
		w := w.in(t)
		must(t, s.Kill(3))
		w.until("down", 3*time.Second, func(f engine.Frame) bool { return !f.Samples[2].Up() })
		dead := strings.TrimSpace(f.Samples[2].Target.Address)
		w.until("unreachable to the others", 30*time.Second, func(f engine.Frame) bool {
			return is(&f.Samples[0], 1, "group_replication_member_info", dead, "unreachable", "secondary")
		})
		w.until("out of the group", 60*time.Second, func(f engine.Frame) bool {
			return is(&f.Samples[0], 2, "group_replication_group_size")
		})
		must(t, s.Rejoin(t.Context(), 3))
		w.until("back", 60*time.Second, func(f engine.Frame) bool {
			return complete(f) && f.Samples[2].Restarts == 1 && nearly(&f.Samples[2])
		})
	})

	t.Run("primary killed", func(t *testing.T) {
		w := w.in(t)
		stop()
		must(t, s.Kill(1))
		var primary int
		w.until("another primary", 60*time.Second, func(f engine.Frame) bool {
			for i := 1; i <= 2; i++ {
				if is(&f.Samples[i], 1, "group_replication_primary") && is(&f.Samples[i], 0, "group_replication_super_read_only") {
					primary = i
					return true
				}
			}
			return false
		})
		// The new primary takes numbers from another block, so the sets have gaps now.
		stop := s.load(t, primary+1)
		defer stop()
		w.until("the other follows the new primary, which has no lag", 30*time.Second, func(f engine.Frame) bool {
			p, secondary := &f.Samples[primary], &f.Samples[3-primary]
			return nearly(secondary) && !p.LagTransactions.Known && strings.Count(p.Status.Position.String(), ":") == 2
		})
	})
}

func TestMySQL9StatementsAndWaits(t *testing.T) {
	s := start(t, servers.MySQL9, 1)
	t.Run("statements", func(t *testing.T) {
		checkStatements(t, s, true, "SELECT ON performance_schema.events_statements_summary_by_digest",
			"SELECT ON performance_schema.events_statements_histogram_global", "SELECT ON performance_schema.events_statements_histogram_by_digest")
	})
	t.Run("waits", func(t *testing.T) {
		checkRowLockWait(t, s, s.account(t, "waits", "SELECT ON performance_schema.threads", "SELECT ON performance_schema.events_waits_current"))
	})
}

func TestMySQL9Sources(t *testing.T) { checkSources(t, start(t, servers.MySQL9, 3), mysqlDialect) }
