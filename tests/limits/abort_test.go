//go:build limits

package limits

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// within is how long after a condition of --abort-when began to hold the tool may continue.
const within = 2 * time.Second

// aborting is a run that a condition should end.
type aborting struct {
	condition string
	targets   string // in the configuration
	of        string // the targets of the run, if they are not where the tool connects to
	command   []string
	// cause makes the condition hold; undo reverses cause.
	cause, undo func(t *testing.T)
	// printed recognises the tool's line that meets the condition. The tool reports once a second, so the condition
	// can't be known earlier. If it is nil, the condition holds from the start of cause, and the time includes the wait
	// for the agent's samples, once a second.
	printed *regexp.Regexp
	after   time.Duration
	// query is an expression that has a result once the condition holds: Prometheus scrapes once a second, so it can't
	// know it earlier.
	query string
}

// TestAbort guards that a tool has ended 2 s after a condition of --abort-when held, and that
// the run and its marker have the reason: by what a server answers and by what the tool
// prints, with an agent, without one, and in a sweep.
func TestAbort(t *testing.T) {
	one := fmt.Sprintf("targets:\n  - {name: db1, engine: mysql, address: '%s', user: monitor, password_file: %s/monitor.password}\n", env.server.Address(1), env.server.Dir)
	points := sysbench("oltp_point_select", "--threads=2", "--time=60", "--mysql-ignore-errors=all")
	for _, c := range []struct {
		name string
		make func(t *testing.T) aborting
	}{
		{"lag", func(t *testing.T) aborting {
			pair := replicas(t)
			targets := "targets:\n"
			for n := 1; n <= 2; n++ {
				targets += fmt.Sprintf("  - {name: n%d, engine: mysql, cluster: pair, address: '%s', user: monitor, password_file: %s/monitor.password}\n", n, pair.Address(n), pair.Dir)
			}
			replica := session(t, pair, 2)
			return aborting{
				condition: "lag>1s", targets: targets, after: time.Second, // behind since then
				command: []string{"sysbench", "--config-file=" + filepath.Join(pair.Dir, "sysbench.cnf"), "oltp_update_non_index",
					"--tables=1", "--table-size=1000", "--report-interval=1", "--threads=2", "--time=60", "run"},
				cause: func(t *testing.T) { do(t, replica, "STOP SLAVE SQL_THREAD") },
				undo:  func(t *testing.T) { do(t, replica, "START SLAVE SQL_THREAD") },
			}
		}},
		{"round trip", func(t *testing.T) aborting {
			var delay atomic.Int64
			far := delayed(t, env.server.Address(1), &delay)
			return aborting{
				condition: "round_trip>50ms", targets: strings.Replace(one, env.server.Address(1), far, 1), of: "db1", command: append(points, "run"),
				cause: func(*testing.T) { delay.Store(int64(100 * time.Millisecond)) },
				undo:  func(*testing.T) { delay.Store(0) },
			}
		}},
		{"errors", func(t *testing.T) aborting {
			admin := session(t, env.server, 1)
			return aborting{
				condition: "errors>1%", targets: one, command: append(points, "run"), printed: regexp.MustCompile(`err/s: [1-9]`),
				cause: func(t *testing.T) { do(t, admin, "RENAME TABLE sbtest.sbtest2 TO sbtest.gone") },
				undo:  func(t *testing.T) { do(t, admin, "RENAME TABLE sbtest.gone TO sbtest.sbtest2") },
			}
		}},
		{"throughput", func(t *testing.T) aborting {
			admin := session(t, env.server, 1)
			return aborting{
				condition: "tps<5", targets: one, command: append(points, "run"), printed: regexp.MustCompile(`tps: [0-4]\.`),
				cause: func(t *testing.T) { do(t, admin, "LOCK TABLES sbtest.sbtest1 WRITE, sbtest.sbtest2 WRITE") },
				undo:  func(t *testing.T) { do(t, admin, "UNLOCK TABLES") },
			}
		}},
		{"waiting sessions", func(t *testing.T) aborting {
			admin := session(t, env.server, 1)
			return aborting{
				condition: "sessions_row_lock>3", targets: one, command: append(sysbench("oltp_update_non_index", "--table-size=1000", "--threads=4", "--time=60"), "run"),
				cause: func(t *testing.T) {
					do(t, admin, "BEGIN; SELECT COUNT(k) FROM sbtest.sbtest1 WHERE id <= 1000 FOR UPDATE; SELECT COUNT(k) FROM sbtest.sbtest2 WHERE id <= 1000 FOR UPDATE")
				},
				undo: func(t *testing.T) { do(t, admin, "ROLLBACK") },
			}
		}},
		{"Prometheus", func(t *testing.T) aborting {
			admin := session(t, env.server, 1)
			const query = `benchwatch_run_operations_per_second{op="transaction"} < 5`
			return aborting{
				condition: "promql:" + query, query: query, targets: one, command: append(points, "run"),
				cause: func(t *testing.T) { do(t, admin, "LOCK TABLES sbtest.sbtest1 WRITE, sbtest.sbtest2 WRITE") },
				undo:  func(t *testing.T) { do(t, admin, "UNLOCK TABLES") },
			}
		}},
		{"latency", func(t *testing.T) aborting {
			var delay atomic.Int64
			host, port, err := net.SplitHostPort(delayed(t, env.server.Address(1), &delay))
			must(t, err)
			return aborting{
				condition: "p95>50ms", targets: one, of: "db1", printed: regexp.MustCompile(`95%\): (\d{3,}|[5-9]\d)\.`),
				command: append(points, "--mysql-host="+host, "--mysql-port="+port, "run"),
				cause:   func(*testing.T) { delay.Store(int64(100 * time.Millisecond)) },
				undo:    func(*testing.T) { delay.Store(0) },
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := c.make(t)
			for i, how := range []string{"run", "run without agent", "sweep"} {
				if run.query != "" && how == "run without agent" {
					continue // it has no metrics before it runs
				}
				t.Run(how, func(t *testing.T) {
					// The causes come at different times of the second.
					run.measure(t, how, time.Duration(i)*300*time.Millisecond)
				})
			}
		})
	}
}

// measure starts a run, makes the condition hold and measures how long the tool continues.
func (c aborting) measure(t *testing.T, how string, phase time.Duration) {
	t.Helper()
	a := agents.New(t, env.binary, c.targets)
	flags := []string{"--config.file=" + a.Config, "--abort-when=" + c.condition}
	if c.of != "" {
		flags = append(flags, "--targets="+c.of)
	}
	command := slices.Clone(c.command)
	if how == "sweep" {
		flags = append([]string{"sweep", "--set=time=60"}, flags...)
		command[slices.Index(command, "--time=60")] = "--time={time}"
	} else {
		flags = append([]string{"run", "--web.listen-address=127.0.0.1:0", "--linger=0s"}, flags...)
	}
	if !strings.HasSuffix(how, "without agent") {
		a.Again(t)
	}
	var prometheus agents.Prometheus
	if c.query != "" {
		prometheus = agents.StartPrometheus(t, a)
		a.Configure(t, c.targets+fmt.Sprintf("prometheus: {url: 'http://%s'}\n", prometheus.Address))
	}
	wrapper := agents.StartCommand(t, exec.Command(env.binary, append(append(flags, "--"), command...)...))
	var dir rundir.Directory
	var pid int
	agents.Wait(t, 20*time.Second, "reports and samples", func() error {
		ids, err := rundir.List(a.DataDir)
		if err == nil && len(ids) != 1 {
			err = fmt.Errorf("runs %v", ids)
		}
		if err != nil {
			return err
		}
		dir = rundir.At(a.DataDir, ids[0])
		meta, err := dir.Load()
		if err != nil {
			return err
		}
		pid = meta.PID
		if lines := bytes.Count(output(t, dir), []byte("s ] thds: ")); lines < 2 || pid == 0 || meta.Ended() {
			return fmt.Errorf("%d reports, ended: %q", lines, meta.Reason)
		}
		if status, err := os.ReadFile(dir.Path(rundir.StatusFile)); err != nil || bytes.Count(status, []byte("\n")) < 3 {
			return fmt.Errorf("%d bytes of samples: %w", len(status), err)
		}
		return nil
	})
	t.Cleanup(func() { a.EndTool(dir.ID()) })
	<-time.After(phase)
	if c.printed != nil && c.printed.Match(output(t, dir)) {
		t.Fatalf("the condition held before:\n%s", output(t, dir))
	}
	undo := sync.OnceFunc(func() { c.undo(t) })
	t.Cleanup(undo)
	caused := time.Now()
	c.cause(t)
	held := caused.Add(c.after)
	var ended time.Time
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for known := c.printed == nil && c.query == ""; ended.IsZero(); {
		<-tick.C
		if !known && c.printed != nil && c.printed.Match(output(t, dir)) {
			known, held = true, time.Now()
		}
		if !known && c.query != "" {
			asked := time.Now()
			result, err := prometheus.Query(c.query)
			must(t, err)
			if len(result) > 0 {
				known, held = true, asked
			}
		}
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			ended = time.Now()
		} else if time.Since(caused) > 20*time.Second {
			t.Fatal("the tool is still running")
		}
	}
	undo()
	took := ended.Sub(held)
	t.Logf("%s: the tool ended %.2f s after the condition held, %.2f s after its cause", c.condition, took.Seconds(), ended.Sub(caused).Seconds())
	if took > within {
		t.Errorf("%s: %v after the condition held", c.condition, took)
	}
	if status := wrapper.Status(t, time.Minute); status != 5 && how != "sweep" || status == 0 {
		t.Errorf("exit status %d", status)
	}
	meta := a.Closed(t, dir.ID(), time.Minute)
	t.Log(meta.Reason)
	if meta.Outcome != rundir.Aborted || !strings.HasPrefix(meta.Aborted, c.condition+": ") || meta.Reason != meta.Aborted {
		t.Errorf("%s, aborted %q, reason %q", meta.Outcome, meta.Aborted, meta.Reason)
	}
	agents.Wait(t, 10*time.Second, "the reason on the marker", func() error {
		markers, err := os.ReadFile(dir.Path(rundir.MarkersFile))
		if err == nil && !strings.Contains(string(markers), "aborted: "+strings.ReplaceAll(meta.Reason, `"`, `\"`)) {
			err = fmt.Errorf("not %q in\n%s", meta.Reason, markers)
		}
		return err
	})
}

// output returns what the tool has printed.
func output(t *testing.T, dir rundir.Directory) []byte {
	t.Helper()
	text, err := os.ReadFile(dir.Path(rundir.StdoutFile))
	must(t, err)
	return text
}

// replicas starts a primary and a replica with a small table, for as long as the test lasts.
func replicas(t *testing.T) *servers.Group {
	t.Helper()
	folder, err := os.MkdirTemp(env.dir, "pair")
	must(t, err)
	must(t, os.Chmod(folder, 0o711))
	pair, err := servers.Start(t.Context(), filepath.Join(folder, "servers"), servers.MariaDB, servers.Options{Servers: 2, Attached: true})
	must(t, err)
	t.Cleanup(func() { must(t, pair.Stop(context.Background())) })
	out, err := exec.Command("sysbench", "--config-file="+filepath.Join(pair.Dir, "sysbench.cnf"), "oltp_update_non_index", "--tables=1", "--table-size=1000", "prepare").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return pair
}

// session returns one connection of the administrator, which keeps its locks.
func session(t *testing.T, g *servers.Group, n int) *sql.Conn {
	t.Helper()
	db, err := g.Admin(n)
	must(t, err)
	conn, err := db.Conn(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(conn.Close(), db.Close())) })
	return conn
}

func do(t *testing.T, conn *sql.Conn, statement string) {
	t.Helper()
	_, err := conn.ExecContext(context.WithoutCancel(t.Context()), statement)
	must(t, err)
}
