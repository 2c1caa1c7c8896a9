//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// pg is a primary with a standby, and an agent that samples them.
type pg struct {
	*agents.Agent
	group *servers.Group
}

func (p *pg) sql(t *testing.T, n int, statements string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for statement := range strings.SplitSeq(statements, ";") { // ALTER SYSTEM and VACUUM stand alone
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := p.group.QueryIn(ctx, n, "sbtest", statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// connect opens a session of the user bench.
func (p *pg) connect(t *testing.T) *pgconn.PgConn {
	t.Helper()
	secret, err := p.group.Password("bench")
	must(t, err)
	c, err := pgconn.Connect(t.Context(), fmt.Sprintf("host=127.0.0.1 port=%d user=bench dbname=sbtest sslmode=disable password=%s application_name=other", p.group.Port+1, secret))
	must(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (p *pg) exec(t *testing.T, c *pgconn.PgConn, statement string) {
	t.Helper()
	if _, err := c.Exec(context.Background(), statement).ReadAll(); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// run executes pgbench and returns the verdict.
func (p *pg) run(t *testing.T, id string, during func(), args ...string) *limits.Verdict {
	t.Helper()
	secret, err := p.group.Password("bench")
	must(t, err)
	program, err := servers.PostgreSQLClient("pgbench")
	must(t, err)
	command := append([]string{program, "-n"}, args...)
	command = append(command, fmt.Sprintf("host=127.0.0.1 port=%d user=bench dbname=sbtest password=%s", p.group.Port+1, secret))
	wrapper := agents.StartCommand(t, p.Command([]string{"--run-id=" + id, "--drain-timeout=5s"}, command...))
	t.Cleanup(func() { p.EndTool(id) })
	if during != nil {
		time.AfterFunc(2*time.Second, during)
	}
	if status := wrapper.Status(t, 90*time.Second); status != 0 {
		t.Logf("exited with %d: %s", status, wrapper.Output(t))
	}
	p.Closed(t, id, 60*time.Second)
	out, err := exec.Command(env.binary, "report", id, "--config.file="+p.Config, "--format=json").Output()
	must(t, err)
	var report struct {
		Runs []struct{ Limits *limits.Verdict }
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Runs) != 1 || report.Runs[0].Limits == nil {
		t.Fatalf("no verdict (%v): %s", err, out)
	}
	return report.Runs[0].Limits
}

// TestPostgreSQLCauses plants one cause after the other. The first finding is the planted limit or, on a machine whose
// cores are used up, the limit of the cores; the cause is named.
func TestPostgreSQLCauses(t *testing.T) {
	version := os.Getenv("POSTGRESQL")
	g, err := servers.Start(t.Context(), filepath.Join(env.dir, "postgresql"), servers.PostgreSQL,
		servers.Options{Servers: 2, Attached: true, Version: version})
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	targets := "targets:\n"
	for n := 1; n <= g.N; n++ {
		targets += fmt.Sprintf("  - {name: n%d, engine: postgresql, cluster: pg, address: '%s', user: monitor, password_file: %s/monitor.password, options: {database: sbtest}}\n", n, g.Address(n), g.Dir)
	}
	p := &pg{agents.New(t, env.binary, targets), g}
	p.Again(t)
	secret, err := g.Password("bench")
	must(t, err)
	program, err := servers.PostgreSQLClient("pgbench")
	must(t, err)
	if out, err := exec.Command(program, "-i", "-q", "-s", "20", fmt.Sprintf("host=127.0.0.1 port=%d user=bench dbname=sbtest password=%s", g.Port+1, secret)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	script := func(t *testing.T, text string) string {
		file := filepath.Join(t.TempDir(), "script.sql")
		must(t, os.WriteFile(file, []byte(text), 0o644))
		return file
	}
	alter := func(t *testing.T, name, value string) {
		p.sql(t, 1, "ALTER SYSTEM SET "+name+" = "+value+"; SELECT pg_reload_conf()")
		t.Cleanup(func() { p.sql(t, 1, "ALTER SYSTEM RESET "+name+"; SELECT pg_reload_conf()") })
	}
	cpu := cause.CPU
	for _, c := range []struct {
		name   string
		plant  func(t *testing.T) (args []string, during func())
		limits []cause.Limit
		cause  string // beginning of its name; empty: none is needed
		of     string // part of what it concerns
	}{
		{"one row", func(t *testing.T) ([]string, func()) {
			return []string{"-c", "8", "-T", "8", "-f", script(t, "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n")}, nil
		}, []cause.Limit{cause.RowLocks}, "the same rows", "pgbench_branches"},
		{"a relation lock", func(t *testing.T) ([]string, func()) {
			c := p.connect(t)
			return []string{"-c", "8", "-T", "12", "-S"}, func() {
				p.exec(t, c, "BEGIN; LOCK TABLE pgbench_accounts")
				time.AfterFunc(7*time.Second, func() { p.exec(t, c, "COMMIT") })
			}
		}, []cause.Limit{cause.Locks}, "the holder of a lock", "LOCK TABLE pgbench_accounts"},
		{"rows held by an idle session", func(t *testing.T) ([]string, func()) {
			c := p.connect(t)
			return []string{"-c", "8", "-T", "12", "-f", script(t, "UPDATE pgbench_tellers SET tbalance = 1 WHERE tid = 1;\n")}, func() {
				p.exec(t, c, "BEGIN; UPDATE pgbench_tellers SET tbalance = 2")
				time.AfterFunc(8*time.Second, func() { p.exec(t, c, "ROLLBACK") })
			}
		}, []cause.Limit{cause.RowLocks}, "the holder of a lock", "UPDATE pgbench_tellers"},
		{"an advisory lock", func(t *testing.T) ([]string, func()) {
			return []string{"-c", "8", "-T", "8", "-f", script(t, "BEGIN;\nSELECT pg_advisory_xact_lock(7);\nSELECT pg_sleep(0.01);\nCOMMIT;\n")}, nil
		}, []cause.Limit{cause.UserLocks}, "", ""},
		{"sleep", func(t *testing.T) ([]string, func()) {
			return []string{"-c", "4", "-T", "6", "-f", script(t, "SELECT pg_sleep(0.05);\n")}, nil
		}, []cause.Limit{cause.Sleep}, "", ""},
		{"a synchronous standby", func(t *testing.T) ([]string, func()) {
			alter(t, "synchronous_standby_names", "'n2'")
			alter(t, "synchronous_commit", "remote_apply")
			p.sql(t, 2, "SELECT pg_wal_replay_pause()")
			t.Cleanup(func() { p.sql(t, 2, "SELECT pg_wal_replay_resume()") })
			return []string{"-c", "4", "-T", "10", "-N"}, func() { time.AfterFunc(6*time.Second, func() { p.sql(t, 2, "SELECT pg_wal_replay_resume()") }) }
		}, []cause.Limit{cause.Replication}, "a synchronous standby", "n2"},
		{"a missing index", func(t *testing.T) ([]string, func()) {
			p.sql(t, 1, "CREATE TABLE wide AS SELECT i AS id, i % 1000 AS k, repeat('x', 200) AS c FROM generate_series(1, 50000) i; GRANT ALL ON wide TO bench; VACUUM wide")
			t.Cleanup(func() { p.sql(t, 1, "DROP TABLE wide") })
			return []string{"-c", "4", "-T", "8", "-f", script(t, "\\set k random(1, 50000)\nSELECT c FROM wide WHERE id = :k;\n")}, nil
		}, cpu, "many blocks for few rows", "FROM wide WHERE id"},
		{"a sort on disk", func(t *testing.T) ([]string, func()) {
			return []string{"-c", "2", "-T", "8", "-f", script(t, "SELECT count(*) FROM (SELECT aid, filler FROM pgbench_accounts WHERE aid < 100000 ORDER BY filler, abalance, aid DESC OFFSET 0) s;\n")}, nil
		}, slices.Concat(cpu, []cause.Limit{cause.Disk}), "temporary files", "pgbench_accounts"},
		{"a connection for each transaction", func(t *testing.T) ([]string, func()) {
			return []string{"-c", "4", "-T", "8", "-S", "-C"}, nil
		}, slices.Concat(cpu, []cause.Limit{cause.Outside, cause.Unknown}), "a connection for each transaction", ""},
		{"deadlocks", func(t *testing.T) ([]string, func()) {
			both := func(a, b int) string {
				return fmt.Sprintf("BEGIN;\nUPDATE pgbench_tellers SET tbalance = 1 WHERE tid = %d;\n\\sleep 5 ms\nUPDATE pgbench_tellers SET tbalance = 1 WHERE tid = %d;\nEND;\n", a, b)
			}
			return []string{"-c", "8", "-T", "12", "--max-tries=100", "-f", script(t, both(1, 2)), "-f", script(t, both(2, 1))}, nil
		}, []cause.Limit{cause.RowLocks}, "deadlocks", ""},
		{"JIT", func(t *testing.T) ([]string, func()) {
			for _, name := range []string{"jit_above_cost", "jit_inline_above_cost", "jit_optimize_above_cost"} {
				alter(t, name, "0")
			}
			return []string{"-c", "4", "-T", "10", "-f", script(t, "SELECT sum(abalance), max(bid) FROM pgbench_accounts WHERE aid < 100 AND filler IS NOT NULL;\n")}, nil
		}, cpu, "JIT compilation", "pgbench_accounts"},
		{"parallel plans", func(t *testing.T) ([]string, func()) {
			alter(t, "parallel_setup_cost", "0")
			alter(t, "parallel_tuple_cost", "0")
			return []string{"-c", "4", "-T", "12", "-f", script(t, "SELECT count(*) FROM pgbench_accounts WHERE filler <> 'x';\n")}, nil
		}, cpu, "parallel plans", ""},
		{"autovacuum", func(t *testing.T) ([]string, func()) {
			for name, v := range map[string]string{"autovacuum_naptime": "'1s'", "autovacuum_vacuum_scale_factor": "0", "autovacuum_vacuum_threshold": "1", "autovacuum_vacuum_cost_delay": "0"} {
				alter(t, name, v)
			}
			return []string{"-c", "4", "-T", "20", "-N"}, nil
		}, slices.Concat(cpu, []cause.Limit{cause.Commit, cause.Disk}), "autovacuum", ""},
		{"updates of indexed columns", func(t *testing.T) ([]string, func()) {
			p.sql(t, 1, "CREATE TABLE indexed AS SELECT i AS id, i AS a, i AS b FROM generate_series(1, 100000) i; ALTER TABLE indexed ADD PRIMARY KEY (id); GRANT ALL ON indexed TO bench")
			for i := range 6 {
				p.sql(t, 1, fmt.Sprintf("CREATE INDEX ON indexed (a, b, (id + %d))", i))
			}
			t.Cleanup(func() { p.sql(t, 1, "DROP TABLE indexed") })
			alter(t, "synchronous_commit", "off")
			return []string{"-c", "4", "-T", "25", "-f", script(t, "\\set i random(1, 100000)\nUPDATE indexed SET a = a + 1 WHERE id = :i;\n")}, nil
		}, slices.Concat(cpu, []cause.Limit{cause.Commit, cause.Disk}), "updates that change every index", ""},
		{"checkpoints", func(t *testing.T) ([]string, func()) {
			alter(t, "max_wal_size", "'32MB'")
			alter(t, "min_wal_size", "'32MB'")
			return []string{"-c", "8", "-T", "12", "-N"}, nil
		}, slices.Concat(cpu, []cause.Limit{cause.Commit, cause.Disk, cause.Checkpoint, cause.Latches}), "requested checkpoints", "max_wal_size"},
		{"commits", func(t *testing.T) ([]string, func()) {
			return []string{"-c", "4", "-T", "8", "-f", script(t, "\\set a random(1, 100000)\nUPDATE pgbench_accounts SET abalance = 1 WHERE aid = :a;\n")}, nil
		}, slices.Concat(cpu, []cause.Limit{cause.Commit}), "", ""},
		{"max_connections", func(t *testing.T) ([]string, func()) {
			return []string{"-c", "150", "-j", "10", "-T", "5", "-S"}, nil
		}, []cause.Limit{cause.Connections}, "", ""},
		{"dead rows", func(t *testing.T) ([]string, func()) {
			p.sql(t, 1, "CREATE TABLE counter (id int PRIMARY KEY, n int) WITH (autovacuum_enabled = off); INSERT INTO counter SELECT i, 0 FROM generate_series(1, 8) i; GRANT ALL ON counter TO bench")
			t.Cleanup(func() { p.sql(t, 1, "DROP TABLE counter") })
			c := p.connect(t)
			p.exec(t, c, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM counter")
			t.Cleanup(func() { p.exec(t, c, "COMMIT") })
			alter(t, "synchronous_commit", "off")
			return []string{"-c", "4", "-j", "2", "-T", "25", "-f", script(t, "\\set i 1 + :client_id\nUPDATE counter SET n = n + 1 WHERE id = :i;\n")}, nil
		}, cpu, "dead rows", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, during := c.plant(t)
			v := p.run(t, strings.ReplaceAll(c.name, " ", "-"), during, args...)
			text, _ := json.MarshalIndent(v, "", " ")
			first := v.First()
			named := c.cause == ""
			for _, f := range v.Findings {
				for _, found := range f.Causes {
					named = named || found.Cause == c.cause && strings.Contains(found.Of, c.of)
				}
			}
			if !slices.Contains(c.limits, first) || !named {
				t.Errorf("the first finding is %q, want one of %q with the cause %q:\n%s", first, c.limits, c.cause, text)
			} else {
				t.Logf("%s: %s", first, v.Findings[0].Evidence)
				for _, found := range v.Findings[0].Causes {
					t.Logf("   %s: %s. %s", found.Cause, found.Evidence, found.Test)
				}
			}
		})
	}
}
