//go:build limits

package limits

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// scanning are the findings of statements that are too expensive.
var scanning = []cause.Limit{cause.SharedCPU, cause.ServerCPU, cause.ProcessCPU, cause.Neighbours}

// causes are the causes that sysbench on one MariaDB can show.
var causes = map[string]planted{
	"no index": {
		cause: "statements without an index", cheaper: true, of: scanning,
		event:  `con:query("SELECT id FROM sbtest1 WHERE pad = '" .. sysbench.rand.uniform(1, 99999) .. "'")`,
		remedy: []string{"CREATE INDEX pad ON sbtest.sbtest1 (pad)"}, undo: []string{"DROP INDEX pad ON sbtest.sbtest1"},
	},
	"no index and no statements": {
		cause: "statements without an index", cheaper: true, of: scanning, settings: []string{"performance_schema=OFF"},
		event:  `con:query("SELECT id FROM sbtest1 WHERE pad = '" .. sysbench.rand.uniform(1, 99999) .. "'")`,
		remedy: []string{"CREATE INDEX pad ON sbtest.sbtest1 (pad)"}, undo: []string{"DROP INDEX pad ON sbtest.sbtest1"},
	},
	"join without index": {
		cause: "statements without an index", cheaper: true, of: scanning,
		prepare: []string{"CREATE TABLE sbtest.a AS SELECT id, k FROM sbtest.sbtest1 LIMIT 1500", "CREATE TABLE sbtest.b AS SELECT id, k FROM sbtest.sbtest2 LIMIT 1500"},
		event:   `con:query("SELECT COUNT(*) FROM a JOIN b ON a.k = b.k")`,
		remedy:  []string{"CREATE INDEX k ON sbtest.b (k)"}, undo: []string{"DROP TABLE sbtest.a", "DROP TABLE sbtest.b"},
	},
	"rows of a poor index": {
		cause: "rows read far beyond rows sent", cheaper: true, of: scanning,
		event:  `con:query("SELECT id FROM sbtest1 WHERE id < 20000 AND pad = '" .. sysbench.rand.uniform(1, 99999) .. "'")`,
		remedy: []string{"CREATE INDEX pad ON sbtest.sbtest1 (pad, id)"}, undo: []string{"DROP INDEX pad ON sbtest.sbtest1"},
	},
	"group by": {
		cause: "temporary tables", cheaper: true, of: scanning,
		event:  `con:query("SELECT k % 5000 g, COUNT(*) FROM sbtest1 WHERE id <= 20000 GROUP BY k % 5000 ORDER BY COUNT(*) DESC LIMIT 5")`,
		better: []string{`con:query("SELECT k, COUNT(*) FROM sbtest1 WHERE k BETWEEN 49000 AND 49100 GROUP BY k LIMIT 5")`},
	},
	"order by": {
		cause: "sorts", cheaper: true, of: scanning,
		event:  `con:query("SELECT id FROM sbtest1 WHERE id <= 20000 ORDER BY pad LIMIT 20000, 5")`,
		better: []string{`con:query("SELECT id FROM sbtest1 WHERE id <= 20000 ORDER BY id LIMIT 5")`},
	},
	"whole results": {
		cause: "large results", cheaper: true, of: append(slices.Clone(scanning), cause.Network, cause.Outside),
		event:  `con:query("SELECT id, c, pad FROM sbtest1 WHERE id <= 5000")`,
		better: []string{`con:query("SELECT id, c, pad FROM sbtest1 WHERE id <= 50")`},
	},
	"small table cache": {
		cause: "tables opened again and again", cheaper: true, of: append(slices.Clone(scanning), cause.State, cause.Locks, cause.Latches),
		settings: []string{"table_open_cache=10", "table_open_cache_instances=1"},
		prepare:  tables(100),
		event:    `con:query("SELECT v FROM t" .. sysbench.rand.uniform(1, 100) .. " WHERE id = 1")`,
		remedy:   []string{"SET GLOBAL table_open_cache = 2000"},
	},
	"prepared each time": {
		cause: "statements prepared again and again", cheaper: true, of: append(slices.Clone(scanning), cause.Outside),
		event: `local s = con:prepare("SELECT c FROM sbtest1 WHERE id = 5")
 s:execute()
 s:close()`,
		better: []string{`con:query("SELECT c FROM sbtest1 WHERE id = 5")`},
	},
	"connected each time": {
		cause: "a connection for each transaction", cheaper: true, of: append(slices.Clone(scanning), cause.Outside, cause.GeneratorCPU),
		event: `local c = sysbench.sql.driver():connect()
 c:query("SELECT c FROM sbtest1 WHERE id = 5")
 c:disconnect()`,
		better: []string{`con:query("SELECT c FROM sbtest1 WHERE id = 5")`},
	},
	"hot row": {
		cause: "writes to the same rows", of: one(cause.RowLocks),
		event:  hotRow, // the client holds the row for a while: without free cores, spread writes are no faster otherwise
		better: []string{strings.Replace(hotRow, "WHERE id = 1\"", "WHERE id = \" .. sysbench.rand.uniform(1, 100000)", 1)},
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
		cause: "the tool's own work", cheaper: true, of: []cause.Limit{cause.SharedCPU, cause.ToolCPU, cause.GeneratorCPU, cause.Neighbours},
		event: `local x = 0
 for i = 1, 2000000 do x = x + i % 7 end
 con:query("SELECT " .. x)`,
		better: []string{`con:query("SELECT 1")`},
	},
	"update without index": {
		cause: "statements without an index", cheaper: true, of: append(slices.Clone(scanning), cause.RowLocks),
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
		cause: "old versions that a transaction keeps", cheaper: true, of: scanning,
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
		cause: "the query cache", cheaper: true, of: append(slices.Clone(scanning), cause.Latches), settings: []string{"performance_schema=OFF", "query_cache_type=ON", "query_cache_size=256M"},
		event: `local n = sysbench.rand.uniform(1, 100000)
 con:query("SELECT c FROM sbtest1 WHERE id BETWEEN " .. n .. " AND " .. n + 2)
 con:query("UPDATE sbtest1 SET k = k + 1 WHERE id = " .. n)`,
		args:   []string{"--threads=16", "--time=12"},
		remedy: []string{"SET GLOBAL query_cache_type = OFF"},
	},
	"failures that the tool hides": {
		cause: "failed transactions", cheaper: true, of: append(slices.Clone(scanning), cause.RowLocks),
		prepare: []string{"CREATE TABLE sbtest.failing (id INT PRIMARY KEY)", "INSERT INTO sbtest.failing VALUES (1)"},
		event: `for i = 1, 10 do con:query("SELECT c FROM sbtest1 WHERE id = " .. i) end
 if sysbench.rand.uniform(1, 100) <= 60 then con:query("INSERT INTO failing VALUES (1)") end`,
		better: []string{`for i = 1, 10 do con:query("SELECT c FROM sbtest1 WHERE id = " .. i) end`},
		args:   []string{"--mysql-ignore-errors=1062"},
	},
	"computing": {
		cause: "computing in statements", cheaper: true, of: scanning,
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
	"idle transaction before DDL": {
		cause: "the holder of a metadata lock", of: one(cause.Locks), args: []string{"oltp_update_index", "--tables=1", "--time=14"},
		settings: []string{"performance_schema=ON", "performance-schema-instrument='wait/lock/metadata/sql/mdl=ON'"},
		during: func(t *testing.T, l *lab, _ rundir.Meta) {
			execute, change := otherSession(t, l), otherSession(t, l)
			time.Sleep(3 * time.Second) // the tool prepares its statements before its time begins
			execute("BEGIN")
			execute("SELECT * FROM sbtest.sbtest1 WHERE id = 1")
			time.AfterFunc(8*time.Second, func() { execute("ROLLBACK") })
			change("ALTER TABLE sbtest.sbtest1 COMMENT 'changed'")
		},
	},
	"doublewrite": {
		cause: "pages written twice", of: one(cause.Disk, cause.Checkpoint, cause.Pool, cause.State),
		settings:  []string{"innodb_buffer_pool_size=16M", "innodb_log_file_size=512M"},
		during:    writingSlowly,
		args:      []string{"oltp_update_non_index", "--rand-type=uniform", "--time=15"},
		restarted: []string{"innodb_buffer_pool_size=16M", "innodb_log_file_size=512M", "innodb_doublewrite=OFF"},
		always:    true, also: []string{"flushing that falls behind"},
	},
	"TLS for each transaction": {
		cause: "TLS handshakes", cheaper: true, of: append(slices.Clone(scanning), cause.Outside, cause.GeneratorCPU),
		setup: encrypted,
		event: `local c = sysbench.sql.driver():connect()
 c:query("SELECT c FROM sbtest1 WHERE id = 5")
 c:disconnect()`,
		args: []string{"--mysql-ssl=on"}, better: []string{"", "--mysql-ssl=off"},
	},
	"names of hosts": {
		cause: "name resolution", of: one(cause.Outside),
		setup: slowNames, args: []string{"--threads=8"},
		event: `local c = sysbench.sql.driver():connect()
 c:query("SELECT c FROM sbtest1 WHERE id = 5")
 c:disconnect()`,
		remedy: []string{"SET GLOBAL host_cache_size = 128"},
	},
	"slow flushing": {
		cause: "flushing that falls behind", of: one(cause.Pool, cause.Disk, cause.Checkpoint, cause.State, cause.Latches),
		setup: onShared(func(t *testing.T) {
			set(t, "innodb_flush_log_at_trx_commit", "0")
			set(t, "sync_binlog", "0")
			set(t, "innodb_buffer_pool_size", strconv.Itoa(16<<20))
			set(t, "innodb_log_file_size", strconv.Itoa(512<<20))
			limitDisk(t, 0, 100)
		}),
		args:   []string{"oltp_update_non_index", "--rand-type=uniform", "--time=20"},
		remedy: []string{"SET GLOBAL innodb_buffer_pool_size = " + strconv.Itoa(256<<20)},
	},
	"cold pages": {
		cause: "pages that are read for the first time", of: one(cause.Pool, cause.Disk),
		setup: onShared(func(t *testing.T) {
			query(t, "SET GLOBAL innodb_buffer_pool_size = "+strconv.Itoa(5<<20))
			query(t, "DO SLEEP(3)")
			query(t, "SET GLOBAL innodb_buffer_pool_size = "+strconv.Itoa(256<<20))
			query(t, "DO SLEEP(3)")
			limitDisk(t, 250, 0)
		}),
		args:   []string{"oltp_point_select", "--rand-type=uniform", "--time=24"},
		remedy: []string{"SELECT COUNT(pad) FROM sbtest.sbtest1 FORCE INDEX (PRIMARY)", "SELECT COUNT(pad) FROM sbtest.sbtest2 FORCE INDEX (PRIMARY)"},
	},
	"nothing planted in one client":             {args: []string{"oltp_point_select", "--threads=1"}},
	"nothing planted in oltp_write_only":        {args: []string{"oltp_write_only", "--rand-type=uniform"}},
	"nothing planted in select_random_ranges":   {args: []string{"select_random_ranges", "--threads=2"}},
	"nothing planted in a rate":                 {args: []string{"oltp_point_select", "--rate=200"}},
	"nothing planted in few tables":             {args: []string{"oltp_read_write", "--tables=1", "--threads=2", "--rand-type=uniform"}},
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

// hotRow is a transaction that changes one row first and ends some milliseconds later.
const hotRow = `con:query("BEGIN")
 con:query("UPDATE sbtest1 SET k = k + 1 WHERE id = 1")
 sleep(5)
 con:query("COMMIT")`

// writingSlowly limits what the server writes to 8 MiB a second.
func writingSlowly(t *testing.T, l *lab, _ rundir.Meta) {
	release, err := l.group.LimitDiskWrites(1, 8<<20)
	if err != nil {
		t.Skipf("the server's disk can't be limited: %v", err)
	}
	t.Cleanup(func() { must(t, release()) })
}
