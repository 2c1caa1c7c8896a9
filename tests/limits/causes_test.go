//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// planted is a run with one known cause of its limit, and what the advice changes.
type planted struct {
	// cause is the name of the cause, empty if none may be found.
	cause string
	// of are the findings that it may explain.
	of []cause.Limit
	// settings are those of the server. prepare are statements before the run, remedy those that follow the advice; they
	// are undone by undo.
	settings              []string
	prepare, remedy, undo []string
	event                 string
	args, better          []string
	// setup starts other servers than one MariaDB with these settings.
	setup func(t *testing.T) *lab
	// during happens beside the planted run only.
	during func(t *testing.T, l *lab, meta rundir.Meta)
}

// scanning are the findings of statements that are too expensive.
var scanning = []cause.Limit{cause.SharedCPU, cause.ServerCPU, cause.ProcessCPU, cause.Neighbours}

// causes are the causes that sysbench on one MariaDB can show.
var causes = map[string]planted{
	"no index": {
		cause: "statements without an index", of: scanning,
		event:  `con:query("SELECT id FROM sbtest1 WHERE pad = '" .. sysbench.rand.uniform(1, 99999) .. "'")`,
		remedy: []string{"CREATE INDEX pad ON sbtest.sbtest1 (pad)"}, undo: []string{"DROP INDEX pad ON sbtest.sbtest1"},
	},
	"no index and no statements": {
		cause: "statements without an index", of: scanning, settings: []string{"performance_schema=OFF"},
		event:  `con:query("SELECT id FROM sbtest1 WHERE pad = '" .. sysbench.rand.uniform(1, 99999) .. "'")`,
		remedy: []string{"CREATE INDEX pad ON sbtest.sbtest1 (pad)"}, undo: []string{"DROP INDEX pad ON sbtest.sbtest1"},
	},
	"join without index": {
		cause: "statements without an index", of: scanning,
		prepare: []string{"CREATE TABLE sbtest.a AS SELECT id, k FROM sbtest.sbtest1 LIMIT 1500", "CREATE TABLE sbtest.b AS SELECT id, k FROM sbtest.sbtest2 LIMIT 1500"},
		event:   `con:query("SELECT COUNT(*) FROM a JOIN b ON a.k = b.k")`,
		remedy:  []string{"CREATE INDEX k ON sbtest.b (k)"}, undo: []string{"DROP TABLE sbtest.a", "DROP TABLE sbtest.b"},
	},
	"rows of a poor index": {
		cause: "rows read far beyond rows sent", of: scanning,
		event:  `con:query("SELECT id FROM sbtest1 WHERE id < 20000 AND pad = '" .. sysbench.rand.uniform(1, 99999) .. "'")`,
		remedy: []string{"CREATE INDEX pad ON sbtest.sbtest1 (pad, id)"}, undo: []string{"DROP INDEX pad ON sbtest.sbtest1"},
	},
	"group by": {
		cause: "temporary tables", of: scanning,
		event:  `con:query("SELECT k % 5000 g, COUNT(*) FROM sbtest1 WHERE id <= 20000 GROUP BY k % 5000 ORDER BY COUNT(*) DESC LIMIT 5")`,
		better: []string{`con:query("SELECT k, COUNT(*) FROM sbtest1 WHERE k BETWEEN 49000 AND 49100 GROUP BY k LIMIT 5")`},
	},
	"order by": {
		cause: "sorts", of: scanning,
		event:  `con:query("SELECT id FROM sbtest1 WHERE id <= 20000 ORDER BY pad LIMIT 20000, 5")`,
		better: []string{`con:query("SELECT id FROM sbtest1 WHERE id <= 20000 ORDER BY id LIMIT 5")`},
	},
	"whole results": {
		cause: "large results", of: append(slices.Clone(scanning), cause.Network, cause.Outside),
		event:  `con:query("SELECT id, c, pad FROM sbtest1 WHERE id <= 5000")`,
		better: []string{`con:query("SELECT id, c, pad FROM sbtest1 WHERE id <= 50")`},
	},
	"small table cache": {
		cause: "tables opened again and again", of: append(slices.Clone(scanning), cause.State, cause.Locks, cause.Latches),
		settings: []string{"table_open_cache=10", "table_open_cache_instances=1"},
		prepare:  tables(100),
		event:    `con:query("SELECT v FROM t" .. sysbench.rand.uniform(1, 100) .. " WHERE id = 1")`,
		remedy:   []string{"SET GLOBAL table_open_cache = 2000"},
	},
	"prepared each time": {
		cause: "statements prepared again and again", of: append(slices.Clone(scanning), cause.Outside),
		event: `local s = con:prepare("SELECT c FROM sbtest1 WHERE id = 5")
 s:execute()
 s:close()`,
		better: []string{`con:query("SELECT c FROM sbtest1 WHERE id = 5")`},
	},
	"connected each time": {
		cause: "a connection for each transaction", of: append(slices.Clone(scanning), cause.Outside, cause.GeneratorCPU),
		event: `local c = sysbench.sql.driver():connect()
 c:query("SELECT c FROM sbtest1 WHERE id = 5")
 c:disconnect()`,
		better: []string{`con:query("SELECT c FROM sbtest1 WHERE id = 5")`},
	},
	"hot row": {
		cause: "writes to the same rows", of: one(cause.RowLocks),
		event:  events["row locks in a transaction"],
		better: []string{strings.Replace(events["row locks in a transaction"], "WHERE id = 1\"", "WHERE id = \" .. sysbench.rand.uniform(1, 100000)", 1)},
	},
	"gaps": {
		cause: "deadlocks", of: one(cause.RowLocks),
		prepare: []string{"CREATE TABLE sbtest.gap (id INT PRIMARY KEY, v INT, KEY (v))", "INSERT INTO sbtest.gap SELECT id * 1000, id * 1000 FROM sbtest.sbtest1 WHERE id <= 5"},
		event: `local n = sysbench.rand.uniform(1, 1000000000)
 con:query("BEGIN")
 con:query("SELECT * FROM gap WHERE v = 2500 FOR UPDATE")
 pcall(function() con:query("REPLACE INTO gap VALUES (" .. n .. ", 2500)") end)
 pcall(function() con:query("ROLLBACK") end)`,
		remedy: []string{"SET GLOBAL tx_isolation = 'READ-COMMITTED'"}, undo: []string{"DROP TABLE sbtest.gap"},
	},
	"script that computes": {
		cause: "the tool's own work", of: []cause.Limit{cause.SharedCPU, cause.ToolCPU, cause.GeneratorCPU, cause.Neighbours},
		event: `local x = 0
 for i = 1, 2000000 do x = x + i % 7 end
 con:query("SELECT " .. x)`,
		better: []string{`con:query("SELECT 1")`},
	},
	"update without index": {
		cause: "statements without an index", of: append(slices.Clone(scanning), cause.RowLocks),
		event:  `con:query("UPDATE sbtest1 SET k = k + 1 WHERE pad = '" .. sysbench.rand.uniform(1, 99999) .. "'")`,
		remedy: []string{"CREATE INDEX pad ON sbtest.sbtest1 (pad)"}, undo: []string{"DROP INDEX pad ON sbtest.sbtest1"},
	},
	"MyISAM": {
		cause: "tables locked as a whole", of: one(cause.Locks),
		prepare: []string{"CREATE TABLE sbtest.slow (id INT PRIMARY KEY, v INT) ENGINE=MyISAM SELECT id, k v FROM sbtest.sbtest1 WHERE id <= 20000"},
		event:   `con:query("UPDATE slow SET v = v + 1 WHERE id BETWEEN " .. 2000 * sysbench.tid .. " AND " .. 2000 * sysbench.tid + 999)`,
		remedy:  []string{"ALTER TABLE sbtest.slow ENGINE=InnoDB"}, undo: []string{"DROP TABLE sbtest.slow"},
	},
	"backup": {
		cause: "a backup or a global lock", of: one(cause.Locks), args: []string{"oltp_update_index"},
		during: holding("FLUSH TABLES WITH READ LOCK", "DO SLEEP(9)", "UNLOCK TABLES"),
	},
	"DDL": {
		cause: "a lock of metadata", of: one(cause.Locks), args: []string{"oltp_update_index", "--tables=1"},
		during: repeating(9*time.Second, "ALTER TABLE sbtest.sbtest1 FORCE, ALGORITHM=COPY, LOCK=SHARED"),
	},
	"rows of another session": {
		cause: "the holder of a lock", of: one(cause.RowLocks), args: []string{"oltp_update_non_index"},
		during: holding("BEGIN", "UPDATE sbtest.sbtest1 SET k = k + 1", "DO SLEEP(9)", "ROLLBACK"),
	},
	"rows of an idle session": {
		cause: "the holder of a lock", of: one(cause.RowLocks), args: []string{"oltp_update_non_index"},
		during: func(t *testing.T, l *lab, _ rundir.Meta) {
			execute := otherSession(t, l)
			execute("BEGIN")
			execute("UPDATE sbtest.sbtest1 SET k = k + 1")
			execute("UPDATE sbtest.sbtest2 SET k = k + 1")
			time.AfterFunc(8*time.Second, func() { execute("ROLLBACK") })
		},
	},
	"queue beside an old snapshot": {
		cause: "old versions that a transaction keeps", of: scanning,
		prepare: []string{"CREATE TABLE sbtest.queue (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)", "INSERT INTO sbtest.queue (v) SELECT id FROM sbtest.sbtest1 WHERE id <= 10"},
		event: `con:query("INSERT INTO queue (v) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)")
 con:query("DELETE FROM queue WHERE id > 0 ORDER BY id LIMIT 10")`,
		args: []string{"--threads=1", "--time=25"},
		during: func(t *testing.T, l *lab, _ rundir.Meta) {
			execute := otherSession(t, l)
			execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
			time.AfterFunc(24*time.Second, func() { execute("ROLLBACK") })
		},
	},
	"query cache": {
		cause: "the query cache", of: append(slices.Clone(scanning), cause.Latches), settings: []string{"performance_schema=OFF", "query_cache_type=ON", "query_cache_size=256M"},
		event: `local n = sysbench.rand.uniform(1, 100000)
 con:query("SELECT c FROM sbtest1 WHERE id BETWEEN " .. n .. " AND " .. n + 2)
 con:query("UPDATE sbtest1 SET k = k + 1 WHERE id = " .. n)`,
		args:   []string{"--threads=16", "--time=12"},
		remedy: []string{"SET GLOBAL query_cache_type = OFF"},
	},
	"computing": {
		cause: "computing in statements", of: scanning,
		event:  `con:query("SELECT BENCHMARK(200000, SHA2('x', 256))")`,
		better: []string{`con:query("SELECT SHA2('x', 256)")`},
	},
	"small buffer pool": {
		cause: "buffer pool smaller than what is read", of: one(cause.Pool, cause.Disk),
		setup: onShared(func(t *testing.T) {
			set(t, "innodb_buffer_pool_size", strconv.Itoa(16<<20))
			limitDisk(t, 300, 0)
		}),
		args:   []string{"oltp_point_select", "--rand-type=uniform"},
		remedy: []string{"SET GLOBAL innodb_buffer_pool_size = " + strconv.Itoa(256<<20)},
	},
	"small redo log": {
		cause: "redo log too small for the writes", of: one(cause.Checkpoint),
		setup: onShared(func(t *testing.T) {
			set(t, "innodb_flush_log_at_trx_commit", "0")
			set(t, "sync_binlog", "0")
			set(t, "innodb_log_file_size", strconv.Itoa(16<<20))
			limitDisk(t, 0, 150)
		}),
		args:   []string{"oltp_update_index", "--rand-type=uniform", "--time=20"},
		remedy: []string{"SET GLOBAL innodb_log_file_size = " + strconv.Itoa(512<<20)},
	},
	"flush for each commit": {
		cause: "a flush to disk for each commit", of: one(cause.Commit),
		setup: func(t *testing.T) *lab {
			g := syncing(t, "ib_logfile", 20*time.Millisecond, "skip_log_bin", "innodb_flush_log_at_trx_commit=1")
			return newLab(t, g, g.Address(1), g.Address(1))
		},
		args:   []string{"oltp_update_index"},
		remedy: []string{"SET GLOBAL innodb_flush_log_at_trx_commit = 2"},
	},
	"semi-synchronous replica": {
		cause: "acknowledgements of a semi-synchronous replica", of: one(cause.Replication),
		setup: func(t *testing.T) *lab {
			l := own(servers.MariaDB, 2, "rpl_semi_sync_slave_enabled=ON", "rpl_semi_sync_master_timeout=60000")(t)
			_, err := l.group.Query(t.Context(), 1, "SET GLOBAL rpl_semi_sync_master_enabled = ON")
			must(t, err)
			must(t, l.group.Limit(t.Context(), 2, 3))
			return l
		},
		args:   []string{"oltp_update_non_index"},
		remedy: []string{"SET GLOBAL rpl_semi_sync_master_enabled = OFF"},
	},
	"pauses of the tool": {
		cause: "pauses of the tool", of: one(cause.Outside),
		event:  events["pauses of the tool"],
		better: []string{strings.Replace(events["pauses of the tool"], "sleep(20)", "", 1)},
	},
	"round trip": {
		cause: "too few threads", of: one(cause.RoundTrip),
		setup: func(t *testing.T) *lab {
			address := delayed(t, env.server.Address(1), always(5*time.Millisecond))
			return newLab(t, env.server, address, address)
		},
		args: []string{"oltp_point_select"}, better: []string{"", "--threads=16"},
	},
	"nothing planted in point selects of 16":    {args: []string{"oltp_point_select", "--threads=16"}},
	"nothing planted in oltp_delete":            {args: []string{"oltp_delete"}},
	"nothing planted in oltp_update_index":      {args: []string{"oltp_update_index", "--rand-type=uniform"}},
	"nothing planted in select_random_points":   {args: []string{"select_random_points"}},
	"nothing planted in reads of rows":          {event: `con:query("SELECT c FROM sbtest1 WHERE id = " .. sysbench.rand.uniform(1, 100000))`},
	"nothing planted in oltp_read_only":         {args: []string{"oltp_read_only"}},
	"nothing planted in oltp_read_only as text": {args: []string{"oltp_read_only", "--db-ps-mode=disable"}},
	"nothing planted in oltp_update_non_index":  {args: []string{"oltp_update_non_index", "--rand-type=uniform"}},
	"nothing planted in oltp_insert":            {args: []string{"oltp_insert"}},
	"nothing planted in oltp_read_write":        {args: []string{"oltp_read_write", "--rand-type=uniform", "--db-ps-mode=disable"}},
}

// besides is how many programs use the CPU beside each case.
var besides, _ = strconv.Atoi(os.Getenv("BESIDE"))

// tables returns the statements for small tables.
func tables(n int) (all []string) {
	for i := 1; i <= n; i++ {
		all = append(all, fmt.Sprintf("CREATE TABLE sbtest.t%d (id INT PRIMARY KEY, v INT)", i), fmt.Sprintf("INSERT INTO sbtest.t%d VALUES (1, 1)", i))
	}
	return all
}

// TestCauses plants a cause, requires that it is named and no other one with most of the time, follows its advice and
// measures again.
func TestCauses(t *testing.T) {
	for name, c := range causes {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			settings := c.settings
			if len(settings) == 0 {
				settings = []string{"performance_schema=ON"}
			}
			setup := c.setup
			if setup == nil {
				setup = own(servers.MariaDB, 1, append([]string{"innodb_flush_log_at_trx_commit=0", "sync_binlog=0"}, settings...)...)
			}
			l := setup(t)
			burn(t, besides)
			execute := func(all []string) {
				for _, s := range all {
					_, err := l.group.Query(context.Background(), 1, s)
					must(t, err)
				}
			}
			execute([]string{"GRANT SELECT ON performance_schema.* TO monitor@127.0.0.1"})
			execute(c.prepare)
			run := func(id, event string) *limits.Verdict {
				args := append([]string{"--threads=4", "--time=12"}, c.args...)
				if id == "remedied" && len(c.better) > 1 {
					args = append(args, c.better[1:]...)
				}
				if event != "" {
					args = script(t, event, args...)
				}
				var during func(rundir.Meta)
				if c.during != nil && id == "planted" {
					during = func(meta rundir.Meta) { c.during(t, l, meta) }
				}
				v, foreign := l.one(t, id, during, args...)
				t.Logf("%s: %.0f transactions/s, other programs %.0f %% of the CPU", id, l.tps(t, id), foreign*100)
				logCauses(t, &v)
				return &v
			}
			v := run("planted", c.event)
			c.judge(t, v)
			if len(c.remedy)+len(c.better) == 0 && c.during == nil {
				return
			}
			execute(c.remedy)
			event := c.event
			if len(c.better) > 0 && c.better[0] != "" {
				event = c.better[0]
			}
			run("remedied", event)
			execute(c.undo)
			before, after := l.tps(t, "planted"), l.tps(t, "remedied")
			t.Logf("GAIN | %s | %s | %.0f → %.0f tps | × %.1f |", name, c.cause, before, after, after/before)
			if after < 1.1*before {
				t.Errorf("the advice against %q does not help: %.0f and %.0f transactions/s", c.cause, before, after)
			}
		})
	}
}

// judge fails the test if the cause was not named, or another one is said to explain most.
func (c *planted) judge(t *testing.T, v *limits.Verdict) {
	t.Helper()
	if len(v.Findings) == 0 {
		if c.cause != "" {
			t.Errorf("no finding: %+v", v)
		}
		return
	}
	for i := range v.Findings {
		for _, found := range v.Findings[i].Causes {
			if found.Cause != c.cause && found.Share > 0.5 && (c.cause == "" || found.Share > shareOf(v, c.cause)) {
				t.Errorf("%s has the cause %q with %.0f %%", v.Findings[i].Limit, found.Cause, found.Share*100)
			}
		}
	}
	for i := range v.Findings {
		f := &v.Findings[i]
		named := slices.ContainsFunc(f.Causes, func(found limits.CauseFinding) bool { return found.Cause == c.cause })
		if named && slices.Contains(c.of, f.Limit) {
			return
		}
		if f.Limit != cause.Neighbours { // the machine is not quiet: the next finding counts
			break
		}
	}
	if c.cause != "" {
		t.Errorf("the first finding is %s, want the cause %q", v.Findings[0].Limit, c.cause)
	}
}

// shareOf is the share of a cause, 0 if it was not found.
func shareOf(v *limits.Verdict, name string) float64 {
	for i := range v.Findings {
		for _, found := range v.Findings[i].Causes {
			if found.Cause == name {
				return found.Share
			}
		}
	}
	return 0
}

func logCauses(t *testing.T, v *limits.Verdict) {
	t.Helper()
	for _, f := range v.Findings {
		t.Logf("%s (%.0f %%): %s. Advice: %s", f.Title(), f.Share*100, f.Evidence, f.Advice())
		for _, c := range f.Causes {
			t.Logf("    because of %s (%.0f %%): %s", c.Cause, c.Share*100, c.Evidence)
		}
	}
	if v.Unexplained != nil {
		t.Logf("not known (%.0f %%): %s", v.Unexplained.Share*100, v.Unexplained.Evidence)
	}
}

// tps is the throughput of a run.
func (l *lab) tps(t *testing.T, id string) float64 {
	t.Helper()
	out, err := exec.Command(env.binary, "report", id, "--config.file="+l.Config, "--format=json").Output()
	must(t, err)
	var report struct {
		Runs []struct {
			TransactionsPerSecond float64 `json:"transactions_per_second"`
		}
	}
	must(t, json.Unmarshal(out, &report))
	return report.Runs[0].TransactionsPerSecond
}
