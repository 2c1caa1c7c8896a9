//go:build versions

// Package versions tests a run from its start to its report on the versions of MariaDB and MySQL
// that people use (`make test-versions`).
package versions

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// TestRun guards that a run on each version has the results of the demo: flow control and the node that requested it,
// lag, the drain, the statements and what the sessions waited for.
func TestRun(t *testing.T) {
	dir, err := os.MkdirTemp("", "benchwatch-versions.")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o711)) // for the servers' own user
	binary := filepath.Join(dir, "benchwatch")
	must(t, agents.Build(binary, "."))
	systems := []system{{kind: servers.MySQL9, members: 2}, {kind: servers.MySQL9Group, members: 3}}
	for _, version := range servers.MariaDBVersions {
		systems = append(systems, system{servers.MariaDB, version, 2}, system{servers.Galera, version, 3})
	}
	for _, s := range systems {
		t.Run(strings.Trim(string(s.kind)+"-"+s.version, "-"), func(t *testing.T) { s.run(t, binary, dir) })
	}
}

type system struct {
	kind    servers.Kind
	version string
	members int
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s system) run(t *testing.T, binary, dir string) {
	ctx, mysql := t.Context(), s.kind == servers.MySQL9 || s.kind == servers.MySQL9Group
	o := servers.Options{Servers: s.members, Version: s.version, Attached: true}
	if !mysql {
		o.Settings = []string{"performance_schema=ON"}
	}
	g, err := servers.Start(ctx, filepath.Join(dir, string(s.kind)+s.version), s.kind, o)
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(ctx)) })
	tool := []string{"sysbench", "--config-file=" + filepath.Join(g.Dir, "sysbench.cnf"), "oltp_write_only", "--tables=2", "--table-size=2000",
		"--db-ps-mode=disable", "--mysql-ignore-errors=1213,1020,1205,1047"}
	if out, err := exec.CommandContext(ctx, tool[0], append(tool[1:], "prepare")...).CombinedOutput(); err != nil {
		t.Fatalf("prepare: %v\n%s", err, out)
	}
	for n := 1; n <= g.N && !mysql; n++ { // in a Galera cluster, a second GRANT changes nothing
		_, err := g.Query(ctx, n, "GRANT SELECT ON performance_schema.* TO monitor@127.0.0.1")
		must(t, err)
	}
	config := "targets:\n"
	for n := 1; n <= g.N; n++ {
		config += fmt.Sprintf("  - {name: n%d, engine: mysql, cluster: c, address: '%s', user: monitor, password_file: %s/monitor.password}\n", n, g.Address(n), g.Dir)
	}
	a := agents.New(t, binary, config)
	a.Again(t)
	until := func(what, metric string, least float64, labels ...string) {
		t.Helper()
		agents.Wait(t, 40*time.Second, what, func() error {
			v, err := a.Scrape(t).Value(metric, labels...)
			if err == nil && v < least {
				err = fmt.Errorf("%v", v)
			}
			return err
		})
	}
	seconds := 12
	if s.kind == servers.Galera {
		seconds = 25
	}
	last := fmt.Sprintf("n%d", g.N)
	until("samples", "benchwatch_db_up", 1, "target", last)
	w := a.Run(t, "story", append(tool, "--threads=8", "--report-interval=1", fmt.Sprintf("--time=%d", seconds), "run")...)
	until("run", "benchwatch_run_elapsed_seconds", 3, "run", "story")
	if s.kind == servers.Galera {
		must(t, g.Limit(ctx, 3, 1))
		until("pauses of the writer", "benchwatch_galera_flow_control_paused_seconds_total", 1, "target", "n1")
		until("requests of the slow node", "benchwatch_galera_flow_control_sent_total", 1, "target", "n3")
		agents.Wait(t, 40*time.Second, "sessions that wait", func() error {
			e := a.Scrape(t)
			if len(e.Series("benchwatch_db_active_sessions", "target", "n1")) == 0 {
				t.Log("the machine is too slow to list the sessions")
				return nil
			}
			_, err := e.Value("benchwatch_db_active_sessions", "target", "n1", "class", "flow_control")
			return err
		})
		must(t, g.Unlimit(ctx, 3))
	}
	must(t, g.Lag(ctx, 2))
	until("lag in transactions", "benchwatch_replication_lag_transactions", 100, "target", "n2")
	until("lag in seconds", "benchwatch_replication_lag_seconds", 2, "target", "n2")
	until("drain", "benchwatch_run_phase", 1, "run", "story", "phase", "draining")
	must(t, g.Unlag(ctx, 2))
	w.Status(t, time.Minute)
	meta := a.Closed(t, "story", time.Minute)
	if d := meta.Drain["n2"]; d.Seconds == nil || !(*d.Seconds > 0) {
		t.Errorf("drain %+v", meta.Drain)
	}
	report, err := exec.CommandContext(ctx, binary, "report", "story", "--format=text", "--config.file="+a.Config).Output()
	must(t, err)
	for _, line := range []string{`n1 counted \d+ executions .*, (9[89]|100)(\.\d+)? % of the statements that its clients sent`, "UPDATE.*sbtest1.* WHERE", "active sessions"} {
		if !regexp.MustCompile("(?i)" + line).Match(report) {
			t.Errorf("the report lacks %q", line)
		}
	}
	if bytes.Contains(report, []byte("rights")) {
		t.Error("rights are missing")
	}
	if t.Failed() {
		t.Logf("%s", report)
	}
}
