//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/tests/e2e/galera"
)

// A node that is stopped under load is reported as down within three ticks, and delays
// neither scrapes nor the samples of the other nodes.
func TestNodeStopped(t *testing.T) {
	const id = "node-stopped"
	a := startAgent(t, env.Targets())
	a.Run(t, id, env.Load(20)...)
	a.up(t, 3, true)
	a.reports(t, id, 2)

	must(t, env.Cluster.Pause(3))
	resumed := false
	defer func() {
		if !resumed {
			must(t, env.Cluster.Resume(3))
		}
		waitSynced(t)
	}()
	stopped := time.Now()
	var scrapes []time.Duration
	ticks := map[string]map[float64]bool{"n1": {}, "n2": {}}
	var down time.Duration
	watch := time.NewTicker(100 * time.Millisecond)
	defer watch.Stop()
	for since := time.Duration(0); since < 4500*time.Millisecond; since = time.Since(stopped) {
		asked := time.Now()
		e := a.Scrape(t)
		scrapes = append(scrapes, time.Since(asked))
		for target, seen := range ticks {
			if at, err := e.Value("benchwatch_db_sample_timestamp_seconds", "target", target); err == nil {
				seen[at] = true
			}
		}
		if down == 0 && e.Must(t, "benchwatch_db_up", "target", "n3") == 0 {
			down = time.Since(stopped)
			for _, name := range e.Families("target", "n3") {
				if name != "benchwatch_db_up" && name != "benchwatch_db_restarts_total" && name != "benchwatch_run_target_info" {
					t.Errorf("a stopped node still has %s", name)
				}
			}
		}
		<-watch.C
	}
	must(t, env.Cluster.Resume(3))
	resumed = true
	if down == 0 || down > 3*time.Second+500*time.Millisecond {
		t.Errorf("down after %s, want three ticks at most", down)
	}
	slices.Sort(scrapes)
	if median := scrapes[len(scrapes)/2]; median > 100*time.Millisecond {
		t.Errorf("median of %d scrapes is %s", len(scrapes), median)
	}
	for target, seen := range ticks {
		if len(seen) < 4 {
			t.Errorf("%s was sampled %d times in 4.5 s", target, len(seen))
		}
	}
	a.up(t, 3, true)
}

// up waits until the agent reports that node n answers, or that it does not.
func (a *agent) up(t *testing.T, n int, want bool) {
	t.Helper()
	agents.Wait(t, 30*time.Second, fmt.Sprintf("n%d up is %t", n, want), func() error {
		v, err := a.Scrape(t).Value("benchwatch_db_up", "target", fmt.Sprintf("n%d", n))
		if err == nil && (v == 1) != want {
			err = fmt.Errorf("db_up is %g", v)
		}
		return err
	})
}

// A killed node is reported as down, the others as a cluster of two. After it has rejoined
// by IST it is synced again, and its restart is counted.
func TestNodeKilledAndRejoined(t *testing.T) {
	a := startAgent(t, env.Targets())
	for n := 1; n <= galera.Nodes; n++ {
		a.up(t, n, true)
	}
	must(t, env.Cluster.Kill(3))
	a.up(t, 3, false)
	agents.Wait(t, 30*time.Second, "cluster of two", func() error {
		v, err := a.Scrape(t).Value("benchwatch_galera_cluster_size", "target", "n1")
		if err == nil && v != 2 {
			err = fmt.Errorf("size is %g", v)
		}
		return err
	})
	must(t, env.Cluster.Rejoin(t.Context(), 3))
	defer waitSynced(t)
	agents.Wait(t, 30*time.Second, "n3 synced", func() error {
		e := a.Scrape(t)
		state, err := e.Value("benchwatch_galera_local_state", "target", "n3")
		if err == nil && state != 4 {
			err = fmt.Errorf("state is %g", state)
		}
		return err
	})
	agents.Wait(t, 10*time.Second, "restart counted", func() error {
		v, err := a.Scrape(t).Value("benchwatch_db_restarts_total", "target", "n3")
		if err == nil && v != 1 {
			err = fmt.Errorf("restarts: %g", v)
		}
		return err
	})
}

// The agent reports the same values for a node as the node itself.
func TestValuesAreTheServers(t *testing.T) {
	a := startAgent(t, env.Targets())
	a.up(t, 2, true)
	for name, variable := range map[string]string{
		"benchwatch_galera_cluster_size":   "wsrep_cluster_size",
		"benchwatch_galera_local_state":    "wsrep_local_state",
		"benchwatch_galera_last_committed": "wsrep_last_committed",
		"benchwatch_db_commits_total":      "Com_commit",
		"benchwatch_db_rollbacks_total":    "Com_rollback",
	} {
		// Nothing writes now, so the values do not change.
		want := status(t, 2, variable)
		agents.Wait(t, 5*time.Second, name, func() error {
			v, err := a.Scrape(t).Value(name, "target", "n2")
			if err == nil && v != want {
				err = fmt.Errorf("have %g, the server has %g", v, want)
			}
			return err
		})
	}
}

func status(t *testing.T, n int, variable string) float64 {
	t.Helper()
	row := sql(t, n, fmt.Sprintf("SHOW GLOBAL STATUS LIKE '%s'", variable))
	if len(row) != 2 {
		t.Fatalf("no status variable %s", variable)
	}
	v, err := strconv.ParseFloat(row[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A node with slow appliers that may lag is behind at the end of the run. The reported
// drain agrees with the time that the test measures.
func TestDrain(t *testing.T) {
	const id = "drain"
	a := startAgent(t, env.Targets())
	must(t, env.Cluster.Lag(t.Context(), 2))
	t.Cleanup(func() { must(t, env.Cluster.Unlag(context.Background(), 2)) })
	wrapper := a.Run(t, id, env.Sysbench("oltp_write_only", "--threads=4", "--report-interval=1", "--time=8", "run")...)
	lag := 0.0
	agents.Wait(t, 60*time.Second, "draining", func() error {
		e := a.Scrape(t)
		if v, err := e.Value("benchwatch_replication_lag_transactions", "target", "n2"); err == nil {
			lag = max(lag, v)
		}
		_, err := e.Value("benchwatch_run_phase", "run", id, "phase", "draining")
		return err
	})
	if lag < 50 {
		t.Fatalf("n2 was only %g transactions behind", lag)
	}
	ended := readEnd(t, a, id)
	goal := status(t, 1, "wsrep_last_committed")
	if wrapper.Cmd.ProcessState != nil {
		t.Error("benchwatch run did not wait for the replica")
	}
	must(t, env.Cluster.Unlag(t.Context(), 2))
	agents.Wait(t, 60*time.Second, "n2 caught up", func() error {
		if have := status(t, 2, "wsrep_last_committed"); have < goal {
			return fmt.Errorf("%g of %g", have, goal)
		}
		return nil
	})
	mine := time.Since(ended).Seconds()
	meta := a.Closed(t, id, 30*time.Second)
	if meta.Drain["n2"].Seconds == nil {
		t.Fatalf("no drain of n2 in %v", meta.Drain)
	}
	// The agent samples once a second, and the query of the test takes a while.
	if reported := *meta.Drain["n2"].Seconds; reported < mine-1.5 || reported > mine+1.5 {
		t.Errorf("drain of n2 is %.1f s, the test measured %.1f s", reported, mine)
	}
	if v := a.Scrape(t).Must(t, "benchwatch_run_drain_seconds", "run", id, "target", "n2"); v != *meta.Drain["n2"].Seconds {
		t.Errorf("run_drain_seconds is %g, run.json has %g", v, *meta.Drain["n2"].Seconds)
	}
	wrapper.Status(t, 10*time.Second)
	if !strings.Contains(wrapper.Output(t), "drain n2") {
		t.Error("the final table has no drain of n2")
	}
}

func readEnd(t *testing.T, a *agent, id string) time.Time {
	t.Helper()
	meta := a.Meta(t, id)
	if meta.EndedAt == nil {
		t.Fatal("draining, but run.json has no end")
	}
	return *meta.EndedAt
}

// With a wrong password the target is down, and the log names it without the password. The
// other targets are not affected. No restart is needed when the account is corrected.
func TestWrongPassword(t *testing.T) {
	password := strings.Repeat("wrong", 3)
	sql(t, 1, "CREATE OR REPLACE USER fresh@127.0.0.1 IDENTIFIED BY 'right'")
	defer sql(t, 1, "DROP USER fresh@127.0.0.1")
	file := t.TempDir() + "/password"
	write(t, file, password)
	a := startAgent(t, env.Targets()+fmt.Sprintf(
		"  - {name: locked, engine: mysql, address: '%s', user: fresh, password_file: %s}\n", env.Cluster.Address(1), file))
	a.up(t, 1, true)
	agents.Wait(t, 10*time.Second, "locked is down", func() error {
		v, err := a.Scrape(t).Value("benchwatch_db_up", "target", "locked")
		if err == nil && v != 0 {
			err = fmt.Errorf("db_up is %g", v)
		}
		return err
	})
	agents.Wait(t, 10*time.Second, "the log names it", func() error {
		if log := a.Output(t); !strings.Contains(log, "locked") || !strings.Contains(log, "1045") && !strings.Contains(log, "denied") {
			return fmt.Errorf("log: %s", log)
		}
		return nil
	})
	if strings.Contains(a.Output(t), password) {
		t.Error("the password is in the log")
	}
	sql(t, 1, fmt.Sprintf("ALTER USER fresh@127.0.0.1 IDENTIFIED BY '%s'", password))
	agents.Wait(t, 60*time.Second, "locked is up", func() error {
		v, err := a.Scrape(t).Value("benchwatch_db_up", "target", "locked")
		if err == nil && v != 1 {
			err = fmt.Errorf("db_up is %g", v)
		}
		return err
	})
}
