//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// twoStatements is a transaction with a statement by the primary key of one table, which reads a few rows, and one by a
// secondary index of another table, which reads all rows.
const twoStatements = `function thread_init()
   con = sysbench.sql.driver():connect()
end
function event()
   con:query("SELECT c FROM sbtest1 WHERE id = " .. sysbench.rand.uniform(1, 100))
   con:query("SELECT pad FROM sbtest2 WHERE k = " .. sysbench.rand.uniform(1, 100000))
end
`

const secondary = "SELECT `pad` FROM `sbtest2` WHERE `k` = ?"

// compared is what `compare` reports.
type compared struct {
	ServerSettings []compare.Difference          `json:"server_settings"`
	Statements     []compare.StatementDifference `json:"statements"`
	Summary        []string                      `json:"summary"`
}

// TestComparedWithItself guards that a comparison of two runs that differ in one thing names it, and the statement that
// took longer because of it.
func TestComparedWithItself(t *testing.T) {
	ctx := t.Context()
	server, err := servers.Start(ctx, filepath.Join(env.dir, "compared"), servers.MariaDB,
		servers.Options{Servers: 1, Attached: true, Settings: []string{"performance_schema=ON"}})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop(context.Background())) })
	query := func(statement string) [][]string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		rows, err := server.Query(ctx, 1, statement)
		must(t, err)
		return rows
	}
	query("GRANT SELECT ON performance_schema.* TO monitor@127.0.0.1")
	script := filepath.Join(t.TempDir(), "two.lua")
	must(t, os.WriteFile(script, []byte(twoStatements), 0o644))
	host, port, err := net.SplitHostPort(server.Address(1))
	must(t, err)
	tool := func(args ...string) []string {
		return append([]string{"sysbench", "--config-file=" + filepath.Join(server.Dir, "sysbench.cnf"), "--mysql-host=" + host, "--mysql-port=" + port}, args...)
	}
	out, err := exec.Command("sysbench", tool("oltp_read_only", "--tables=2", "--table-size=100000", "--threads=2", "prepare")[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("prepare tables: %v\n%s", err, out)
	}
	a := agents.New(t, env.binary, fmt.Sprintf("targets:\n  - {name: db1, engine: mysql, cluster: one, address: '%s', user: monitor, password_file: %s/monitor.password}\n",
		server.Address(1), server.Dir))
	a.Again(t)
	run := func(t *testing.T, id string) {
		t.Helper()
		wrapper := agents.StartCommand(t, a.Command([]string{"--run-id=" + id}, tool(script, "--threads=4", "--report-interval=1", "--time=8", "run")...))
		t.Cleanup(func() { a.EndTool(id) })
		if status := wrapper.Status(t, time.Minute); status != 0 {
			t.Fatalf("benchwatch run exited with %d:\n%s", status, wrapper.Output(t))
		}
		a.Closed(t, id, 30*time.Second)
	}
	compare := func(t *testing.T, before, after string) (c compared) {
		t.Helper()
		text, err := exec.Command(env.binary, "compare", before, after, "--config.file="+a.Config).Output()
		must(t, err)
		t.Logf("%s", text)
		out, err := exec.Command(env.binary, "compare", before, after, "--config.file="+a.Config, "--format=json").Output()
		must(t, err)
		must(t, json.Unmarshal(out, &c))
		if len(c.Statements) == 0 {
			t.Fatal("no statements were compared")
		}
		return c
	}
	// differ fails the test if any other setting differs.
	differ := func(t *testing.T, c compared, name, before, after string) {
		t.Helper()
		if name == "" && len(c.ServerSettings) == 0 {
			return
		}
		if len(c.ServerSettings) != 1 || c.ServerSettings[0].Name != name ||
			!strings.HasPrefix(c.ServerSettings[0].Values[0], before) || !strings.HasPrefix(c.ServerSettings[0].Values[1], after) {
			t.Errorf("%+v differ, want %s: %s and %s", c.ServerSettings, name, before, after)
		}
	}
	paid := func(t *testing.T, c compared, words ...string) {
		t.Helper()
		summary := strings.Join(c.Summary, "\n")
		for _, word := range append(words, "more in statements per transaction", secondary) {
			if !strings.Contains(summary, word) {
				t.Errorf("no %q in the summary:\n%s", word, summary)
			}
		}
		if c.Statements[0].Text != secondary {
			t.Errorf("the first of the statements is %q", c.Statements[0].Text)
		}
	}

	t.Run("index", func(t *testing.T) {
		run(t, "index-with")
		query("DROP INDEX k_2 ON sbtest.sbtest2")
		t.Cleanup(func() { query("CREATE INDEX k_2 ON sbtest.sbtest2 (k)") })
		run(t, "index-without")
		c := compare(t, "index-with", "index-without")
		differ(t, c, "", "", "")
		paid(t, c, "read 100", " rows instead of ", "now without an index") // thousand, and some again
	})
	t.Run("buffer pool", func(t *testing.T) {
		limitDisk(t, 300, 0)
		query("SELECT COUNT(pad) FROM sbtest.sbtest2 FORCE INDEX (PRIMARY)") // is in the pool
		run(t, "pool-large")
		large := query("SELECT @@GLOBAL.innodb_buffer_pool_size")[0][0]
		small := strconv.Itoa(16 << 20)
		query("SET GLOBAL innodb_buffer_pool_size = " + small)
		t.Cleanup(func() { query("SET GLOBAL innodb_buffer_pool_size = " + large) })
		run(t, "pool-small")
		c := compare(t, "pool-large", "pool-small")
		differ(t, c, "innodb_buffer_pool_size", large, small)
		paid(t, c)
	})
	t.Run("kernel", func(t *testing.T) {
		const file = "/proc/sys/vm/swappiness"
		before, err := os.ReadFile(file)
		must(t, err)
		was, is := strings.TrimSpace(string(before)), "17"
		run(t, "kernel-before")
		if err := os.WriteFile(file, []byte(is), 0); err != nil {
			t.Skipf("the kernel's settings can't be changed: %v", err)
		}
		t.Cleanup(func() { must(t, os.WriteFile(file, before, 0)) })
		run(t, "kernel-after")
		differ(t, compare(t, "kernel-before", "kernel-after"), "vm.swappiness", was, is)
	})
}
