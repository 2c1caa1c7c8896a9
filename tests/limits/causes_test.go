//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/run/limits"
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
	"nothing planted in reads of rows":          {event: `con:query("SELECT c FROM sbtest1 WHERE id = " .. sysbench.rand.uniform(1, 100000))`},
	"nothing planted in oltp_read_only":         {args: []string{"oltp_read_only"}},
	"nothing planted in oltp_read_only as text": {args: []string{"oltp_read_only", "--db-ps-mode=disable"}},
	"nothing planted in oltp_update_non_index":  {args: []string{"oltp_update_non_index", "--rand-type=uniform"}},
	"nothing planted in oltp_insert":            {args: []string{"oltp_insert"}},
	"nothing planted in oltp_read_write":        {args: []string{"oltp_read_write", "--rand-type=uniform", "--db-ps-mode=disable"}},
}

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
			l := own(servers.MariaDB, 1, append([]string{"innodb_flush_log_at_trx_commit=0", "sync_binlog=0"}, settings...)...)(t)
			execute := func(all []string) {
				for _, s := range all {
					_, err := l.group.Query(context.Background(), 1, s)
					must(t, err)
				}
			}
			execute([]string{"GRANT SELECT ON performance_schema.* TO monitor@127.0.0.1"})
			execute(c.prepare)
			run := func(id, event string) *limits.Verdict {
				args := append(slices.Clone(c.args), "--threads=4", "--time=12")
				if event != "" {
					args = script(t, event, "--threads=4", "--time=12")
				}
				v, foreign := l.one(t, id, nil, args...)
				t.Logf("%s: %.0f transactions/s, other programs %.0f %% of the CPU", id, l.tps(t, id), foreign*100)
				logCauses(t, &v)
				return &v
			}
			v := run("planted", c.event)
			c.judge(t, v)
			if len(c.remedy)+len(c.better) == 0 {
				return
			}
			execute(c.remedy)
			event := c.event
			if len(c.better) > 0 {
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
