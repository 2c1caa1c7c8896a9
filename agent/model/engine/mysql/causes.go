package mysql

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// What causes limits of servers of the family. The causes of statements need their counters in performance_schema;
// where these are off, the server's own counters show the same without the statement.
var _ = cause.Declare(cause.Explanation{
	Engine: Name,
	Causes: []cause.Cause{
		{
			Name: "statements without an index", Of: append(slices.Clone(cause.Statements), cause.RowLocks),
			Reads: "by statement: executions that read a table as a whole or joined one without an index, rows read and sent. Without statements: `Select_scan`, `Select_full_join`, `Rows_read`, `Rows_sent`",
			Find:  withoutIndex, Test: "add an index for its conditions (EXPLAIN shows whether it is used): if rows read fall and the throughput rises, this was the cause",
		},
		{
			Name: "rows read far beyond rows sent", Of: append(slices.Clone(cause.Statements), cause.RowLocks),
			Reads: "by statement: rows read for each row sent or changed",
			Find:  manyRows, Test: "look at its plan (EXPLAIN, ANALYZE): an index that also covers the other conditions reads fewer rows",
		},
		{
			Name: "temporary tables", Of: cause.Statements,
			Reads: "by statement: temporary tables, those on disk, rows read. Without statements: `Created_tmp_disk_tables`",
			Find:  temporary, Test: "repeat with an index in the order of GROUP BY or DISTINCT, or with larger tmp_table_size and max_heap_table_size if they are on disk",
		},
		{
			Name: "sorts", Of: cause.Statements,
			Reads: "by statement: rows sorted and merge passes. Without statements: `Sort_rows`, `Sort_merge_passes`",
			Find:  sorting, Test: "repeat with an index in the order of ORDER BY, or with a larger sort_buffer_size if sorts are merged",
		},
		{
			Name: "large results", Of: append(slices.Clone(cause.CPU), cause.Network, cause.Outside, cause.GeneratorCPU),
			Reads: "bytes to clients for each statement, rows sent by statement",
			Find:  largeResults, Test: "repeat with fewer rows and columns in the results (LIMIT, the columns that are needed)",
		},
		{
			Name: "tables opened again and again", Of: append(slices.Clone(cause.Statements), cause.State, cause.Locks),
			Reads: "`Opened_tables` for each statement, `table_open_cache`",
			Find:  tablesOpened, Test: "repeat with a larger table_open_cache (and open_files_limit)",
		},
		{
			Name: "statements prepared again and again", Of: append(slices.Clone(cause.CPU), cause.Outside, cause.RoundTrip),
			Reads: "`Com_stmt_prepare` and `Com_stmt_execute`",
			Find:  preparedAgain, Test: "prepare each statement once for a connection, or send it as text",
		},
		{
			Name: "a connection for each transaction", Of: append(slices.Clone(cause.CPU), cause.Outside, cause.GeneratorCPU, cause.State, cause.Ports),
			Reads: "`Connections` for each transaction",
			Find:  connecting, Test: "repeat with connections that stay open, or with a pool of connections",
		},
		{
			Name: "buffer pool smaller than what is read", Of: []cause.Limit{cause.Pool, cause.Disk},
			Reads: "pages read from disk and their share, `innodb_buffer_pool_size`",
			Find:  smallPool, Test: "repeat with a larger innodb_buffer_pool_size",
		},
		{
			Name: "redo log too small for the writes", Of: []cause.Limit{cause.Checkpoint},
			Reads: "bytes written to the redo log, limit of the checkpoint age",
			Find:  smallRedo, Test: "repeat with a larger redo log (innodb_log_file_size, innodb_redo_log_capacity)",
		},
		{
			Name: "a flush to disk for each commit", Of: []cause.Limit{cause.Commit},
			Reads: "`innodb_flush_log_at_trx_commit`, `sync_binlog`, `Binlog_commits`, `Binlog_group_commits`",
			Find:  flushedCommits, Test: "repeat with innodb_flush_log_at_trx_commit=2 and sync_binlog=0, for the test only; a disk with a protected write cache has the same effect",
		},
		{
			Name: "deadlocks", Of: append([]cause.Limit{cause.RowLocks}, cause.CPU...),
			Reads: "deadlocks for each transaction",
			Find:  deadlocked, Test: "change rows in the same order in all transactions; repeat with READ COMMITTED, which locks no gaps",
		},
		{
			Name: "computing in statements", Of: cause.CPU,
			Reads: "by statement: CPU time of the server for each execution, rows read and sent",
			Find:  computing, Test: "repeat with the computation in the client, or with its result stored in a column",
		},
		{
			Name: "pages that are read for the first time", Of: []cause.Limit{cause.Pool, cause.Disk},
			Reads: "pages read from disk at the beginning and at the end of the run",
			Find:  coldPages, Test: "repeat after a warm-up, or leave the beginning out of the measured time",
		},
		{
			Name: "the query cache", Of: append([]cause.Limit{cause.Latches, cause.State}, cause.CPU...), Reads: "the states of the sessions",
			Find: lockedBy("waiting for query cache lock", "sessions waited for the one lock of the query cache"),
			Test: "repeat with query_cache_type=OFF",
		},
		{
			Name: "a member that is behind", Of: []cause.Limit{cause.Replication, cause.FlowControl},
			Reads: "replication lag of each member",
			Find:  engine.BehindMember, Test: "look at CPU, disks and appliers of that member, or repeat without it",
		},
		{
			Name: "a lock of metadata", Of: []cause.Limit{cause.Locks}, Reads: "the states of the sessions",
			Find: lockedBy("waiting for table metadata lock", "DDL waited for, or held, the tables' metadata"),
			Test: "run DDL outside the load, with lock_wait_timeout, and end long transactions before it",
		},
		{
			Name: "tables locked as a whole", Of: []cause.Limit{cause.Locks}, Reads: "the states of the sessions",
			Find: lockedBy("waiting for table level lock", "statements locked whole tables (LOCK TABLES, or an engine without row locks such as MyISAM)"),
			Test: "repeat with ENGINE=InnoDB, and without LOCK TABLES",
		},
		{
			Name: "a backup or a global lock", Of: []cause.Limit{cause.Locks, cause.Commit}, Reads: "the states of the sessions",
			Find: lockedBy("waiting for backup lock|waiting for global read lock|waiting for commit lock|waiting for table flush", "a session held all writes (FLUSH TABLES WITH READ LOCK, a backup)"),
			Test: "run the backup outside the load, or with a tool that locks only for its end",
		},
	},
})

const (
	// manyRead are the rows that an execution must read to be expensive, farBeyond how many of them for each row sent or
	// changed.
	manyRead, farBeyond = 1000, 50
	// fewResults is how many rows a scan must read for each one sent or changed: an index helps little for most of a table.
	fewResults = 5
	// scanned are the rows that a scan must read: small tables are read as a whole on purpose.
	scanned = 500
	// rowSeconds is the least time of a core to read a row, estimated from scans of narrow rows in memory.
	rowSeconds = 0.25e-6
)

func count(v float64) string { return table.Rounded(v) }

// questions is the number of statements that the server executed.
func questions(v *cause.View) float64 { return v.Mean(engine.QueryRate) * v.Seconds }

// withoutIndex finds statements with at least half of their executions without an index.
func withoutIndex(v *cause.View) (cause.Found, bool) {
	top, part := v.TopOf(func(s *cause.Statement) bool {
		return s.Per(s.FullScans+s.FullJoins) >= 0.5 && s.Per(s.RowsExamined) >= scanned &&
			s.RowsExamined >= fewResults*(s.RowsSent+s.RowsAffected) && (v.Limit != cause.RowLocks || IsLocking(s))
	})
	if top != nil {
		kind := "read a whole table"
		if top.FullJoins > top.FullScans/2 {
			kind = "joined a table without an index"
		}
		return cause.Found{Of: top.Text, Part: part, Evidence: fmt.Sprintf("%s of %s executions of %s %s: %s rows read for %s sent, %s",
			count(max(top.FullScans, top.FullJoins)), count(top.Executions), top.Text, kind, count(top.Per(top.RowsExamined)), count(top.Per(top.RowsSent)), top.Took())}, true
	}
	if len(v.Executed) > 0 || v.ForeignShare > 0.3 || v.Limit == cause.RowLocks {
		return cause.Found{}, false
	}
	all, full := questions(v), v.Increase(tableScans)+v.Increase(joinScans)
	read, sent := v.Increase(rowsRead), v.Increase(rowsSent)
	part = read * rowSeconds / (v.ServerCores * v.Seconds)
	if !(full >= 0.05*all) || !(read/full >= scanned) || read < farBeyond*sent || !(part > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Part: min(1, part), Evidence: fmt.Sprintf(
		"%s scans of whole tables and %s joins without an index in %s statements, %s rows read for each row sent; "+
			"the counters by statement do not show which",
		count(v.Increase(tableScans)), count(v.Increase(joinScans)), count(all), count(read/max(1, sent)))}, true
}

// manyRows finds statements that read many rows by an index for few results.
func manyRows(v *cause.View) (cause.Found, bool) {
	top, part := v.TopOf(func(s *cause.Statement) bool {
		if v.Limit == cause.RowLocks && !IsLocking(s) {
			return false
		}
		collects := s.Per(s.TemporaryTables) >= 0.5 || s.Per(s.SortRows) >= manyRead // which has a cause of its own
		return !collects && s.Per(s.FullScans+s.FullJoins) < 0.5 && s.Per(s.RowsExamined) >= manyRead && s.RowsExamined >= farBeyond*(s.RowsSent+s.RowsAffected)
	})
	if top == nil {
		return cause.Found{}, false
	}
	return cause.Found{Of: top.Text, Part: part, Evidence: fmt.Sprintf("%s read %s rows for %s sent or changed, %s",
		top.Text, count(top.Per(top.RowsExamined)), count(top.Per(top.RowsSent+top.RowsAffected)), top.Took())}, true
}

// temporary finds statements that collect many rows in a temporary table.
func temporary(v *cause.View) (cause.Found, bool) {
	top, part := v.TopOf(func(s *cause.Statement) bool {
		return s.Per(s.TemporaryTables) >= 0.5 && (s.Per(s.RowsExamined) >= manyRead || s.Per(s.TemporaryDiskTables) >= 0.5)
	})
	if top == nil {
		return cause.Found{}, false
	}
	disk := ""
	if top.TemporaryDiskTables > 0 {
		disk = fmt.Sprintf(", %s of them on disk", count(top.TemporaryDiskTables))
	}
	return cause.Found{Of: top.Text, Part: part * 0.9, Evidence: fmt.Sprintf("%s created %s temporary tables in %s executions%s, from %s rows each, %s",
		top.Text, count(top.TemporaryTables), count(top.Executions), disk, count(top.Per(top.RowsExamined)), top.Took())}, true
}

// sorting finds statements that sort many rows.
func sorting(v *cause.View) (cause.Found, bool) {
	top, part := v.TopOf(func(s *cause.Statement) bool {
		return s.Per(s.SortRows) >= manyRead || s.Per(s.SortMerges) >= 0.5
	})
	if top == nil {
		return cause.Found{}, false
	}
	merges := ""
	if top.SortMerges > 0 {
		merges = fmt.Sprintf(" with %s merge passes", count(top.Per(top.SortMerges)))
	}
	return cause.Found{Of: top.Text, Part: part * 0.8, Evidence: fmt.Sprintf("%s sorted %s rows%s in each execution, %s", top.Text, count(top.Per(top.SortRows)), merges, top.Took())}, true
}

const (
	// largeResult is the size of a result in bytes from which its transfer matters on one machine, and largeRows its rows.
	largeResult, largeRows = 64 << 10, 500
)

func largeResults(v *cause.View) (cause.Found, bool) {
	each := v.Increase(engine.SentBytes) / questions(v)
	least := float64(largeResult)
	if v.Limit == cause.Network || v.Limit == cause.Outside {
		least /= 4
	}
	if !(each >= least) {
		return cause.Found{}, false
	}
	part := each / (each + largeResult) // of the time of a statement
	text := fmt.Sprintf("%s a statement to clients on average, %s a second", table.Size(each), table.Size(v.Increase(engine.SentBytes)/v.Seconds))
	top, share := v.TopOf(func(s *cause.Statement) bool { return s.Per(s.RowsSent) >= largeRows })
	of := ""
	if top != nil {
		of, part = top.Text, max(part, share*0.8)
		text += fmt.Sprintf("; %s sends %s rows, %s", top.Text, count(top.Per(top.RowsSent)), top.Took())
	}
	return cause.Found{Of: of, Part: part, Evidence: text}, true
}

const (
	// openSeconds is the least time of a core to open a table, connectSeconds to accept and end a connection.
	openSeconds, connectSeconds = 40e-6, 150e-6
)

func tablesOpened(v *cause.View) (cause.Found, bool) {
	rate := v.PerSecond(opened)
	each := v.Increase(opened) / questions(v)
	if !(rate >= 100) || !(each >= 0.2) {
		return cause.Found{}, false
	}
	part := min(1, rate*openSeconds/v.ServerCores)
	if inState := v.InState("opening table"); v.Limit == cause.State || v.Limit == cause.Locks || inState > 0 && !(part > 0) {
		part = inState
	}
	if each >= 0.5 { // at least half of the statements open a table: that is most of a short statement
		part = max(part, 0.5*min(1, each))
	}
	text := fmt.Sprintf("%s tables opened a second, %.2g for each statement", count(rate), each)
	of := ""
	if size := v.Setting("table_open_cache"); size != "" {
		of, text = "table_open_cache", text+": table_open_cache is "+size
	}
	return cause.Found{Of: of, Part: part, Evidence: text}, true
}

func preparedAgain(v *cause.View) (cause.Found, bool) {
	prepared, executed := v.PerSecond(prepares), v.PerSecond(executes)
	if !(prepared >= 50) || !(prepared >= 0.5*executed) || prepared < 0.3*v.Mean(engine.QueryRate) {
		return cause.Found{}, false
	}
	return cause.Found{Part: prepared / (prepared + max(executed, v.Mean(engine.QueryRate))),
		Evidence: fmt.Sprintf("%s statements a second were prepared for %s executions", count(prepared), count(executed))}, true
}

func connecting(v *cause.View) (cause.Found, bool) {
	rate := v.Mean(engine.OpenedConnections)
	each := rate / v.Throughput
	if !(rate >= 20) || !(each >= 0.5) || each > 3 {
		return cause.Found{}, false
	}
	part := min(1, rate*connectSeconds/v.ServerCores)
	if !(part > 0) || v.Statements <= 3 { // most of what such a transaction does is to connect
		part = max(0.5, cause.OrZero(part))
	}
	isFar := v.Limit == cause.Outside && !series.IsKnown(v.RoundTrip)  // through a proxy, or on an unknown way
	if v.PerSecond(Handshakes) >= rate/2 || LooksUpNames(v) || isFar { // which have causes of their own
		part = min(0.4, part)
	}
	return cause.Found{Part: part, Evidence: fmt.Sprintf("clients opened %s connections a second, %.2g for each transaction of %s", count(rate), each, statementsText(v.Statements))}, true
}

// LooksUpNames reports whether the server looks up the name of each new client, and forgets it.
func LooksUpNames(v *cause.View) bool {
	off := v.Setting("skip_name_resolve")
	return (off == "0" || strings.EqualFold(off, "OFF")) && v.Setting("host_cache_size") == "0"
}

func statementsText(n float64) string {
	if math.Round(n) == 1 {
		return "1 statement"
	}
	return count(n) + " statements"
}

func smallPool(v *cause.View) (cause.Found, bool) {
	reads, misses := v.Mean(engine.PagesRead), v.Mean(engine.PageMisses)
	if first, last := v.Ends(engine.PagesRead); !(reads >= 50) || !(misses >= 0.005) || last < warm*first {
		return cause.Found{}, false
	}
	text := fmt.Sprintf("%s of the pages that were asked for were not in memory: %s reads a second", table.Share(misses), count(reads))
	of := ""
	if size := v.Number("innodb_buffer_pool_size"); size > 0 {
		of, text = "innodb_buffer_pool_size", text+"; innodb_buffer_pool_size is "+table.Size(size)
	}
	top, _ := v.TopOf(func(s *cause.Statement) bool { return !s.IsSum })
	if top != nil && top.Share >= 0.5 {
		text += "; " + top.Text + " took " + top.Took()
	}
	return cause.Found{Of: of, Part: 1, Evidence: text}, true
}

func smallRedo(v *cause.View) (cause.Found, bool) {
	rate, age, share := v.Increase(redo)/v.Seconds, v.Max(checkpointBytes), v.Max(CheckpointAge)
	limit := age / share
	if !(rate > 0) || !(limit > 0) || !(limit/rate < 300) {
		return cause.Found{}, false
	}
	return cause.Found{Of: "redo log", Part: 1, Evidence: fmt.Sprintf("%s a second were written to a redo log that may hold %s without a checkpoint: it is full after %s s",
		table.Size(rate), table.Size(limit), count(limit/rate))}, true
}

func flushedCommits(v *cause.View) (cause.Found, bool) {
	redo, binary := v.Number("innodb_flush_log_at_trx_commit"), v.Number("sync_binlog")
	logging := strings.EqualFold(v.Setting("log_bin"), "ON") || v.Setting("log_bin") == "1"
	var parts []string
	if redo == 1 {
		parts = append(parts, "innodb_flush_log_at_trx_commit=1")
	}
	if logging && binary == 1 {
		parts = append(parts, "sync_binlog=1")
	}
	if len(parts) == 0 {
		return cause.Found{}, false
	}
	text := "by " + strings.Join(parts, " and ") + " each commit waits until its log is on disk"
	if commits, groups := v.Increase(commitsInBinlog), v.Increase(groupsInBinlog); groups > 0 {
		text += fmt.Sprintf(": %s group commits a second, with %.2g transactions each", count(groups/v.Seconds), commits/groups)
	} else if syncs := v.Increase(redoSyncs); syncs > 0 {
		text += fmt.Sprintf(": %s flushes of the redo log a second", count(syncs/v.Seconds))
	}
	return cause.Found{Of: strings.Join(parts, ", "), Part: 1, Evidence: text}, true
}

// IsLocking reports whether a statement locks the rows that it reads.
func IsLocking(s *cause.Statement) bool {
	text := strings.ToUpper(s.Text)
	for _, verb := range []string{"UPDATE", "DELETE", "INSERT", "REPLACE"} {
		if strings.HasPrefix(text, verb) {
			return true
		}
	}
	return strings.Contains(text, "FOR UPDATE") || strings.Contains(text, "LOCK IN SHARE MODE")
}

const (
	// computed is the CPU time in seconds from which on an execution that reads fewer than fewRows rows computes.
	computed, fewRows = 1e-3, 100
	// warm is the part of the reads at the beginning of a run below which those at its end show that the pages are in memory.
	warm = 0.3
)

// computes reports whether a statement can use CPU for an expression. The time of others, such as COMMIT, is mostly
// waiting.
func computes(s *cause.Statement) bool {
	verb, _, _ := strings.Cut(strings.ToUpper(s.Text), " ")
	return slices.Contains([]string{"SELECT", "WITH", "CALL", "DO", "SET"}, verb) && !IsLocking(s)
}

// computing finds statements that use much CPU for few rows. The CPU time of a statement is its share of what the
// servers used.
func computing(v *cause.View) (cause.Found, bool) {
	cpu := func(s *cause.Statement) float64 { return v.ServerCores * v.Seconds * s.Share / s.Executions }
	top, part := v.TopOf(func(s *cause.Statement) bool {
		return cpu(s) >= computed && s.Per(s.RowsExamined) < fewRows && s.Per(s.RowsSent) < fewRows && s.Per(s.TemporaryTables) < 0.5 && computes(s)
	})
	if top == nil {
		return cause.Found{}, false
	}
	return cause.Found{Of: top.Text, Part: part, Evidence: fmt.Sprintf("%s used about %s ms of a core in each execution for %s rows read, %s",
		top.Text, table.Milliseconds.Format(cpu(top)), count(top.Per(top.RowsExamined)), top.Took())}, true
}

// coldPages finds that pages were read from disk at the beginning of the run only.
func coldPages(v *cause.View) (cause.Found, bool) {
	first, last := v.Ends(engine.PagesRead)
	if !(first >= 100) || !(last < warm*first) {
		return cause.Found{}, false
	}
	return cause.Found{Part: 1 - last/first, Evidence: fmt.Sprintf("%s pages a second were read from disk in the first third of the run, and %s in the last one: the warm-up is within the measured time",
		count(first), count(last))}, true
}

// manyDeadlocks is the share of the transactions from which on deadlocks matter.
const manyDeadlocks = 0.01

func deadlocked(v *cause.View) (cause.Found, bool) {
	n := v.Increase(engine.Deadlocks)
	share := n / (v.Throughput * v.Seconds)
	if !(share >= manyDeadlocks) {
		return cause.Found{}, false
	}
	text := fmt.Sprintf("%s deadlocks, one for each %s transactions: each undoes a transaction that waited", count(n), count(1/share))
	if level := v.Setting("transaction_isolation"); level != "" {
		text += "; transaction_isolation is " + level
	}
	part := min(0.9, 10*share)
	if v.Limit != cause.RowLocks { // of the CPU, the work of the transactions that were undone
		part = share / (1 + share)
	}
	return cause.Found{Part: part, Evidence: text}, true
}

// lockedBy returns the search for a state of sessions; several are separated by |.
func lockedBy(states, what string) func(*cause.View) (cause.Found, bool) {
	return func(v *cause.View) (cause.Found, bool) {
		sessions, part := 0.0, 0.0
		for state := range strings.SplitSeq(states, "|") {
			sessions, part = sessions+v.SessionsIn(state), part+v.InState(state)
		}
		if !(sessions > 0) {
			return cause.Found{}, false
		}
		if v.Limit == cause.Locks { // whose holder is known has a cause of its own
			part *= 1 - HeldMetadata(v)
		}
		return cause.Found{Part: part, Evidence: fmt.Sprintf("%s: %s sessions in that state on average", what, table.Digits.Format(sessions))}, true
	}
}

// HeldMetadata is the part of the waits for locks of tables, metadata and the server whose holder is known.
func HeldMetadata(v *cause.View) float64 {
	seconds := 0.0
	for _, held := range v.IncreaseBy(MetadataHeld, "holder") {
		seconds += held
	}
	return min(1, cause.OrZero(seconds/(v.Mean(engine.LockSessions)*v.Seconds)))
}
