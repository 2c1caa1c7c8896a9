package mysql

import (
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

var (
	// variables are the numeric variables of SHOW GLOBAL STATUS.
	variables engine.Table

	_ = variables.Map(engine.QueriesTotal, "Questions")
	_ = variables.Map(engine.StatementsTotal, "Queries")
	_ = variables.Map(engine.CommitsTotal, "Com_commit")
	_ = variables.Map(engine.RollbacksTotal, "Com_rollback")
	_ = variables.Map(engine.Connections, "Threads_connected")
	_ = variables.Map(engine.ThreadsRunning, "Threads_running")
	_ = variables.Map(engine.OperationsTotal,
		"select: Com_select", "insert: Com_insert + Com_insert_select", "update: Com_update + Com_update_multi",
		"delete: Com_delete + Com_delete_multi", "replace: Com_replace + Com_replace_select", "begin: Com_begin",
		"call: Com_call_procedure")
	_ = variables.Map(engine.BytesTotal, "received: Bytes_received", "sent: Bytes_sent")
	_ = variables.Convert(engine.LockWaitSeconds, 1e3, "Innodb_row_lock_time")
)

// The metrics of MySQL and MariaDB in addition to the shared ones. Means and maxima since the start
// are left out, since they show nothing about the last second.
var (
	_ = variables.Map(measure.NewCounter("mysql_handler_operations_total",
		"Calls into storage engines (Handler_*). One transaction may commit in several engines.", "op"),
		"commit: Handler_commit", "rollback: Handler_rollback", "prepare: Handler_prepare", "write: Handler_write",
		"update: Handler_update", "delete: Handler_delete")
	innodbRows = variables.Map(measure.NewCounter("mysql_innodb_rows_total", "Rows that InnoDB worked on (Innodb_rows_*). MariaDB has no such counters.", "op"),
		"read: Innodb_rows_read", "insert: Innodb_rows_inserted", "update: Innodb_rows_updated", "delete: Innodb_rows_deleted")
	rows = variables.Map(measure.NewCounter("mysql_rows_total", "Rows read from tables and sent to clients (MariaDB: Rows_read, Rows_sent).", "op"),
		"read: Rows_read", "sent: Rows_sent")
	rowLockWaits = variables.Map(measure.NewCounter("mysql_innodb_row_lock_waits_total",
		"Waits for row locks (Innodb_row_lock_waits)."), "Innodb_row_lock_waits")
	_ = variables.Map(measure.NewGauge("mysql_innodb_row_lock_waiting",
		"Row locks waited for now (Innodb_row_lock_current_waits)."), "Innodb_row_lock_current_waits")
	deadlocks = variables.Map(measure.NewCounter("mysql_innodb_deadlocks_total",
		"Deadlocks (Innodb_deadlocks; MariaDB and Percona Server)."), "Innodb_deadlocks")
	poolReadRequests = variables.Map(measure.NewCounter("mysql_innodb_buffer_pool_read_requests_total",
		"Logical reads of pages (Innodb_buffer_pool_read_requests)."), "Innodb_buffer_pool_read_requests")
	poolReads = variables.Map(measure.NewCounter("mysql_innodb_buffer_pool_reads_total",
		"Reads of pages that were not in the buffer pool (Innodb_buffer_pool_reads)."), "Innodb_buffer_pool_reads")
	poolWaits = variables.Map(measure.NewCounter("mysql_innodb_buffer_pool_wait_free_total",
		"Waits for a free page (Innodb_buffer_pool_wait_free): the pool is too small or flushing too slow."), "Innodb_buffer_pool_wait_free")
	poolPages = variables.Map(measure.NewGauge("mysql_innodb_buffer_pool_pages",
		"Pages of the buffer pool by what is in them (Innodb_buffer_pool_pages_*).", "state"),
		"data: Innodb_buffer_pool_pages_data", "dirty: Innodb_buffer_pool_pages_dirty", "free: Innodb_buffer_pool_pages_free",
		"total: Innodb_buffer_pool_pages_total")
	_ = variables.Map(measure.NewCounter("mysql_innodb_log_waits_total",
		"Waits because the log buffer was full (Innodb_log_waits)."), "Innodb_log_waits")
	_         = variables.Map(measure.NewCounter("mysql_innodb_log_writes_total", "Writes to the redo log (Innodb_log_writes)."), "Innodb_log_writes")
	redoBytes = variables.Map(measure.NewCounter("mysql_innodb_log_written_bytes_total",
		"Bytes written to the redo log (Innodb_os_log_written)."), "Innodb_os_log_written")
	redoFsyncs       = variables.Map(measure.NewCounter("mysql_innodb_log_fsyncs_total", "fsyncs of the redo log (Innodb_os_log_fsyncs)."), "Innodb_os_log_fsyncs")
	innodbOperations = variables.Map(measure.NewCounter("mysql_innodb_data_operations_total",
		"InnoDB's reads, writes and fsyncs (Innodb_data_reads, _writes, _fsyncs).", "op"),
		"read: Innodb_data_reads", "write: Innodb_data_writes", "fsync: Innodb_data_fsyncs")
	innodbBytes = variables.Map(measure.NewCounter("mysql_innodb_data_bytes_total", "Bytes that InnoDB read and wrote (Innodb_data_read, _written).", "op"),
		"read: Innodb_data_read", "write: Innodb_data_written")
	checkpointAge = variables.Map(measure.NewGauge("mysql_innodb_checkpoint_age_bytes",
		"Redo log not yet covered by a checkpoint (Innodb_checkpoint_age; MySQL 8.0.30 and later: "+
			"Innodb_redo_log_current_lsn minus Innodb_redo_log_checkpoint_lsn)."), "Innodb_checkpoint_age")
	// MySQL's capacity is the physical one: writes wait from about 85 % of it.
	checkpointLimit = variables.Map(measure.NewGauge("mysql_innodb_checkpoint_age_limit_bytes",
		"Limit of the checkpoint age (Innodb_checkpoint_max_age; MySQL 8.0.30 and later: "+
			"Innodb_redo_log_capacity_resized)."), "Innodb_checkpoint_max_age | Innodb_redo_log_capacity_resized")
	historyLength = variables.Map(measure.NewGauge("mysql_innodb_history_list_length",
		"Undo log entries not purged yet (Innodb_history_list_length; MariaDB and Percona Server)."), "Innodb_history_list_length")
	binlogCommits = variables.Map(measure.NewCounter("mysql_binlog_commits_total",
		"Transactions written to the binary log (Binlog_commits; MariaDB)."), "Binlog_commits")
	groupCommits = variables.Map(measure.NewCounter("mysql_binlog_group_commits_total",
		"Group commits to the binary log (Binlog_group_commits; MariaDB)."), "Binlog_group_commits")
	binlogBytes = variables.Map(measure.NewCounter("mysql_binlog_written_bytes_total",
		"Bytes written to the binary log (Binlog_bytes_written; MariaDB)."), "Binlog_bytes_written")
	doublewriteBytes = measure.NewCounter("mysql_innodb_doublewrite_bytes_total",
		"Bytes written to the doublewrite buffer (Innodb_dblwr_pages_written times Innodb_page_size).")
	attempts = variables.Map(measure.NewCounter("mysql_connection_attempts_total", "Attempts to connect, successful or not (Connections)."), "Connections")
	_        = variables.Map(measure.NewCounter("mysql_aborted_connects_total", "Failed attempts to connect (Aborted_connects)."), "Aborted_connects")
	refused  = variables.Map(measure.NewCounter("mysql_connection_errors_max_connections_total",
		"Connections refused because max_connections was reached (Connection_errors_max_connections)."), "Connection_errors_max_connections")
	_ = variables.Map(measure.NewCounter("mysql_threads_created_total", "Threads created for connections (Threads_created)."), "Threads_created")
	_ = variables.Map(measure.NewCounter("mysql_slow_queries_total", "Statements that took longer than long_query_time (Slow_queries)."), "Slow_queries")
	_ = variables.Map(measure.NewCounter("mysql_temporary_tables_total",
		"Internal temporary tables (Created_tmp_tables, of which Created_tmp_disk_tables on disk).", "where"),
		"all: Created_tmp_tables", "disk: Created_tmp_disk_tables")
	_        = variables.Map(measure.NewCounter("mysql_table_lock_waits_total", "Waits for table locks (Table_locks_waited)."), "Table_locks_waited")
	prepared = variables.Map(measure.NewCounter("mysql_prepared_statement_commands_total",
		"Commands of prepared statements (Com_stmt_*): shows whether a benchmark uses them.", "command"),
		"prepare: Com_stmt_prepare", "execute: Com_stmt_execute", "close: Com_stmt_close")
	scans = variables.Map(measure.NewCounter("mysql_scans_total",
		"SELECT statements that read the first table as a whole (Select_scan), or a joined table without an index "+
			"(Select_full_join, Select_range_check).", "kind"),
		"table: Select_scan", "join: Select_full_join + Select_range_check")
	_ = variables.Map(measure.NewCounter("mysql_sorts_total",
		"Sorted rows (Sort_rows), and merge passes of sorts that did not fit into sort_buffer_size "+
			"(Sort_merge_passes).", "of"),
		"rows: Sort_rows", "merges: Sort_merge_passes")
	handshakes = variables.Map(measure.NewCounter("mysql_tls_handshakes_total",
		"TLS handshakes with clients that the server finished (Ssl_finished_accepts)."), "Ssl_finished_accepts")
	flushedPages = variables.Map(measure.NewCounter("mysql_innodb_pages_flushed_for_free_ones_total",
		"Dirty pages that InnoDB wrote to make room for other pages (Innodb_buffer_pool_pages_lru_flushed; MariaDB)."),
		"Innodb_buffer_pool_pages_lru_flushed | Innodb_buffer_pool_pages_LRU_flushed")
	readAhead = variables.Map(measure.NewCounter("mysql_innodb_read_ahead_pages_total",
		"Pages that InnoDB read before a statement asked for them, and those of them that it evicted without any use "+
			"(Innodb_buffer_pool_read_ahead, _rnd, _evicted).", "kind"),
		"linear: Innodb_buffer_pool_read_ahead", "random: Innodb_buffer_pool_read_ahead_rnd", "evicted: Innodb_buffer_pool_read_ahead_evicted")
	openedTables = variables.Map(measure.NewCounter("mysql_opened_tables_total",
		"Tables opened because they were not in the table cache (Opened_tables)."), "Opened_tables")
)

// Locks and snapshots that sessions hold, which package sessions reads.
var (
	LocksHeldSeconds = measure.NewCounter("mysql_row_locks_held_seconds_total",
		"Time that clients waited for row locks, by the session that held them for more than a second: its user and "+
			"what it does (information_schema.INNODB_LOCK_WAITS; MySQL 8: performance_schema.data_lock_waits). Read "+
			"every two seconds while sessions wait.", "holder")
	MetadataHeldSeconds = measure.NewCounter("mysql_metadata_locks_held_seconds_total",
		"Time that clients waited for locks of tables, metadata or the whole server, by the session that held them "+
			"for more than a second: its user and what it does (performance_schema.metadata_locks, or MariaDB's "+
			"METADATA_LOCK_INFO). Read every two seconds while sessions wait.", "holder")
	SnapshotHeldSeconds = measure.NewCounter("mysql_snapshot_held_seconds_total",
		"Time for which the oldest transaction was older than five seconds, by its session: its user and what it "+
			"does (information_schema.INNODB_TRX). Read every four seconds while the history list is long.", "holder")
)

// The measures of InnoDB.
var (
	_ = engine.Deadlocks.Or(measure.RateOf(deadlocks))

	_          = engine.PageMisses.Or(measure.RateOf(poolReads).Over(poolReadRequests))
	_          = engine.PagesRead.Or(measure.RateOf(poolReads))
	_          = engine.RefusedConnections.Or(measure.RateOf(refused))
	_          = engine.OpenedConnections.Or(measure.RateOf(attempts))
	dirtyPages = engine.NewMeasure(607, "dirty_pages", "Dirty pages", "pages of the buffer pool that are not yet written", measure.Count, measure.Mean,
		measure.ValueOf(poolPages).On("state", "dirty"))
	allPages = engine.NewMeasure(608, "buffer_pool_pages", "Pages of the buffer pool", "", measure.Count, measure.Last,
		measure.ValueOf(poolPages).On("state", "total"))
	freeWaits = engine.NewMeasure(605, "buffer_pool_waits", "Waits for a free page",
		"per second: the buffer pool is too small or flushing too slow", measure.PerSecond, measure.Increase,
		measure.RateOf(poolWaits))
	checkpointBytes = engine.NewMeasure(610, "checkpoint_age", "InnoDB checkpoint age", "redo log not yet covered by a checkpoint", measure.Bytes, measure.Max,
		measure.ValueOf(checkpointAge))
	// CheckpointAge and HistoryList describe InnoDB.
	CheckpointAge = engine.NewMeasure(612, "checkpoint_age_share", "InnoDB checkpoint age, of its limit",
		"redo log not yet covered by a checkpoint; writes wait for flushed pages before all of the log is used",
		measure.Ratio, measure.Max, measure.ValueOf(checkpointAge).Over(checkpointLimit))
	HistoryList = engine.NewMeasure(620, "history_list", "InnoDB history list", "undo logs not purged yet",
		measure.Count, measure.Max, measure.ValueOf(historyLength))
)

// Counters that causes read.
var (
	tableScans = measure.NewEvidence(measure.Server, measure.RateOf(scans).On("kind", "table"))
	joinScans  = measure.NewEvidence(measure.Server, measure.RateOf(scans).On("kind", "join"))
	opened     = measure.NewEvidence(measure.Server, measure.RateOf(openedTables))
	prepares   = measure.NewEvidence(measure.Server, measure.RateOf(prepared).On("command", "prepare"))
	executes   = measure.NewEvidence(measure.Server, measure.RateOf(prepared).On("command", "execute"))
	rowsSent   = measure.NewEvidence(measure.Server, measure.RateOf(rows).On("op", "sent"))
	// LockWaitRate is waits for row locks a second.
	LockWaitRate    = measure.NewEvidence(measure.Server, measure.RateOf(rowLockWaits))
	LocksHeld       = measure.NewEvidence(measure.Server, measure.RateOf(LocksHeldSeconds))
	MetadataHeld    = measure.NewEvidence(measure.Server, measure.RateOf(MetadataHeldSeconds))
	SnapshotHeld    = measure.NewEvidence(measure.Server, measure.RateOf(SnapshotHeldSeconds))
	commitsInBinlog = measure.NewEvidence(measure.Server, measure.RateOf(binlogCommits))
	// Handshakes are the TLS handshakes of clients.
	Handshakes     = measure.NewEvidence(measure.Server, measure.RateOf(handshakes))
	flushedForRoom = measure.NewEvidence(measure.Server, measure.RateOf(flushedPages))
	readBefore     = measure.NewEvidence(measure.Server, measure.RateOf(readAhead).On("kind", "linear", "random"))
	readForNothing = measure.NewEvidence(measure.Server, measure.RateOf(readAhead).On("kind", "evicted"))
	bytesWritten   = measure.NewEvidence(measure.Server, measure.RateOf(innodbBytes).On("op", "write"))
	writtenTwice   = measure.NewEvidence(measure.Server, measure.RateOf(doublewriteBytes))
	groupsInBinlog = measure.NewEvidence(measure.Server, measure.RateOf(groupCommits))
)

// The cost of one transaction of the run on a server.
var (
	rowsRead = engine.NewCost(700, "cost_rows_read", "Rows read", "by all statements", measure.Count,
		measure.RateOf(innodbRows).On("op", "read"), measure.RateOf(rows).On("op", "read"))
	_    = engine.NewCost(710, "cost_buffer_pool_misses", "Buffer pool misses", "pages read from disk", measure.Count, measure.RateOf(poolReads))
	redo = engine.NewCost(720, "cost_redo", "Redo log", "bytes", measure.Bytes, measure.RateOf(redoBytes))
	_    = engine.NewCost(730, "cost_binlog", "Binary log", "bytes", measure.Bytes, measure.RateOf(binlogBytes))
	_    = engine.NewCost(735, "cost_doublewrite", "Doublewrite buffer", "bytes", measure.Bytes, measure.RateOf(doublewriteBytes))
	_    = engine.NewCost(740, "cost_innodb_writes", "InnoDB writes", "operations", measure.Count, measure.RateOf(innodbOperations).On("op", "write"))
	_    = engine.NewCost(750, "cost_innodb_fsyncs", "InnoDB fsyncs",
		"operations, on MariaDB without the redo log's", measure.Count, measure.RateOf(innodbOperations).On("op", "fsync"))
	redoSyncs = engine.NewCost(760, "cost_redo_fsyncs", "Redo log fsyncs", "operations", measure.Count, measure.RateOf(redoFsyncs))
)

// combinedNames are variables that are not a metric by themselves.
var combinedNames = []string{"Innodb_dblwr_pages_written", "Innodb_page_size", "Innodb_redo_log_current_lsn", "Innodb_redo_log_checkpoint_lsn"}

// readVariables sets the metrics that any server of the family may have. It sets only what the
// server reports.
func readVariables(tick *Tick, out *engine.Status) {
	if out.Values == nil {
		out.Values = make([]engine.Value, 0, len(variables)+64)
	}
	variables.Read(out, tick.Status.Number)
	pages, ok := tick.Status.Number("Innodb_dblwr_pages_written")
	if size, sized := tick.Status.Number("Innodb_page_size"); ok && sized {
		out.Set(doublewriteBytes, pages*size)
	}
	current, ok := tick.Status.Number("Innodb_redo_log_current_lsn")
	if checkpoint, covered := tick.Status.Number("Innodb_redo_log_checkpoint_lsn"); ok && covered && checkpoint <= current {
		out.Set(checkpointAge, current-checkpoint)
	}
	// Some clones report 0 for "unlimited".
	if limit, ok := tick.Server.Variables.Number("max_connections"); ok && limit > 0 {
		out.Set(engine.ConnectionsLimit, limit)
	}
}
