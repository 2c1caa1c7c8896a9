package mysql

import (
	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/measure"
)

// The metrics of MySQL and MariaDB beyond those that engines share. Means and
// maxima since the start are left out: they show nothing of the last second.
var (
	handlerOperations = measure.NewCounter("mysql_handler_operations_total", "Calls into storage engines (Handler_*). A commit here is one per engine: several for one transaction.", "op")
	innodbRows        = measure.NewCounter("mysql_innodb_rows_total", "Rows that InnoDB worked on (Innodb_rows_*). MariaDB has no such counters.", "op")
	rowsTotal         = measure.NewCounter("mysql_rows_total", "Rows read from tables and sent to clients (MariaDB: Rows_read, Rows_sent).", "op")
	rowLockWaits      = measure.NewCounter("mysql_innodb_row_lock_waits_total", "Waits for row locks (Innodb_row_lock_waits).")
	rowLockWaiting    = measure.NewGauge("mysql_innodb_row_lock_waiting", "Row locks waited for now (Innodb_row_lock_current_waits).")
	deadlocks         = measure.NewCounter("mysql_innodb_deadlocks_total", "Deadlocks (Innodb_deadlocks; MariaDB and Percona Server).")
	poolReadRequests  = measure.NewCounter("mysql_innodb_buffer_pool_read_requests_total", "Logical reads of pages (Innodb_buffer_pool_read_requests).")
	poolReads         = measure.NewCounter("mysql_innodb_buffer_pool_reads_total", "Reads of pages that were not in the buffer pool (Innodb_buffer_pool_reads).")
	poolWaitFree      = measure.NewCounter("mysql_innodb_buffer_pool_wait_free_total", "Waits for a free page (Innodb_buffer_pool_wait_free): the pool is too small or flushing too slow.")
	poolPages         = measure.NewGauge("mysql_innodb_buffer_pool_pages", "Pages of the buffer pool by what is in them (Innodb_buffer_pool_pages_*).", "state")
	logWaits          = measure.NewCounter("mysql_innodb_log_waits_total", "Waits because the log buffer was full (Innodb_log_waits).")
	logWrites         = measure.NewCounter("mysql_innodb_log_writes_total", "Writes to the redo log (Innodb_log_writes).")
	logBytes          = measure.NewCounter("mysql_innodb_log_written_bytes_total", "Bytes written to the redo log (Innodb_os_log_written).")
	logFsyncs         = measure.NewCounter("mysql_innodb_log_fsyncs_total", "fsyncs of the redo log (Innodb_os_log_fsyncs).")
	dataOperations    = measure.NewCounter("mysql_innodb_data_operations_total", "InnoDB's reads, writes and fsyncs (Innodb_data_reads, _writes, _fsyncs).", "op")
	dataBytes         = measure.NewCounter("mysql_innodb_data_bytes_total", "Bytes that InnoDB read and wrote (Innodb_data_read, _written).", "op")
	checkpointAge     = measure.NewGauge("mysql_innodb_checkpoint_age_bytes", "Redo log not yet covered by a checkpoint (Innodb_checkpoint_age; MariaDB and Percona Server).")
	historyLength     = measure.NewGauge("mysql_innodb_history_list_length", "Undo log entries not purged yet (Innodb_history_list_length; MariaDB and Percona Server).")
	binlogCommits     = measure.NewCounter("mysql_binlog_commits_total", "Transactions written to the binary log (Binlog_commits; MariaDB).")
	binlogGroups      = measure.NewCounter("mysql_binlog_group_commits_total", "Group commits to the binary log (Binlog_group_commits; MariaDB).")
	binlogBytes       = measure.NewCounter("mysql_binlog_written_bytes_total", "Bytes written to the binary log (Binlog_bytes_written; MariaDB).")
	connectionsTotal  = measure.NewCounter("mysql_connection_attempts_total", "Attempts to connect, successful or not (Connections).")
	abortedConnects   = measure.NewCounter("mysql_aborted_connects_total", "Failed attempts to connect (Aborted_connects).")
	refusedConnects   = measure.NewCounter("mysql_connection_errors_max_connections_total", "Connections refused because max_connections was reached (Connection_errors_max_connections).")
	threadsCreated    = measure.NewCounter("mysql_threads_created_total", "Threads created for connections (Threads_created).")
	slowQueries       = measure.NewCounter("mysql_slow_queries_total", "Statements that took longer than long_query_time (Slow_queries).")
	temporaryTables   = measure.NewCounter("mysql_temporary_tables_total", "Internal temporary tables (Created_tmp_tables, of which Created_tmp_disk_tables on disk).", "where")
	tableLockWaits    = measure.NewCounter("mysql_table_lock_waits_total", "Waits for table locks (Table_locks_waited).")
	preparedCommands  = measure.NewCounter("mysql_prepared_statement_commands_total", "Commands of prepared statements (Com_stmt_*): shows whether a benchmark uses them.", "command")
)

// The measures of InnoDB.
var (
	_ = engine.Deadlocks.Or(measure.RateOf(deadlocks))

	_ = measure.New(measure.Measure{
		ID: "buffer_pool_misses", Title: "InnoDB buffer pool misses", Note: "share of page reads that went to disk",
		Unit: measure.Ratio, Scope: measure.Server, Summary: measure.Mean, Rank: 600,
	}).Or(measure.RateOf(poolReads).Over(poolReadRequests))
	_ = measure.New(measure.Measure{
		ID: "checkpoint_age", Title: "InnoDB checkpoint age", Note: "redo log not yet covered by a checkpoint",
		Unit: measure.Bytes, Scope: measure.Server, Summary: measure.Max, Rank: 610,
	}).Or(measure.ValueOf(checkpointAge))
	_ = measure.New(measure.Measure{
		ID: "history_list", Title: "InnoDB history list", Note: "undo logs not purged yet",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Max, Rank: 620,
	}).Or(measure.ValueOf(historyLength))
)

// variables are those of SHOW GLOBAL STATUS that are a number each.
var variables = engine.Table{
	{Metric: engine.QueriesTotal, Names: []string{"Questions"}},
	{Metric: engine.StatementsTotal, Names: []string{"Queries"}},
	{Metric: engine.CommitsTotal, Names: []string{"Com_commit"}},
	{Metric: engine.RollbacksTotal, Names: []string{"Com_rollback"}},
	{Metric: engine.Connections, Names: []string{"Threads_connected"}},
	{Metric: engine.ThreadsRunning, Names: []string{"Threads_running"}},
	{Metric: engine.OperationsTotal, Labels: []string{"select"}, Names: []string{"Com_select"}},
	{Metric: engine.OperationsTotal, Labels: []string{"insert"}, Names: []string{"Com_insert"}, Plus: []string{"Com_insert_select"}},
	{Metric: engine.OperationsTotal, Labels: []string{"update"}, Names: []string{"Com_update"}, Plus: []string{"Com_update_multi"}},
	{Metric: engine.OperationsTotal, Labels: []string{"delete"}, Names: []string{"Com_delete"}, Plus: []string{"Com_delete_multi"}},
	{Metric: engine.OperationsTotal, Labels: []string{"replace"}, Names: []string{"Com_replace"}, Plus: []string{"Com_replace_select"}},
	{Metric: engine.OperationsTotal, Labels: []string{"begin"}, Names: []string{"Com_begin"}},
	{Metric: engine.OperationsTotal, Labels: []string{"call"}, Names: []string{"Com_call_procedure"}},
	{Metric: engine.BytesTotal, Labels: []string{"received"}, Names: []string{"Bytes_received"}},
	{Metric: engine.BytesTotal, Labels: []string{"sent"}, Names: []string{"Bytes_sent"}},
	{Metric: engine.LockWaitSeconds, Names: []string{"Innodb_row_lock_time"}, Divisor: 1e3},

	{Metric: handlerOperations, Labels: []string{"commit"}, Names: []string{"Handler_commit"}},
	{Metric: handlerOperations, Labels: []string{"rollback"}, Names: []string{"Handler_rollback"}},
	{Metric: handlerOperations, Labels: []string{"prepare"}, Names: []string{"Handler_prepare"}},
	{Metric: handlerOperations, Labels: []string{"write"}, Names: []string{"Handler_write"}},
	{Metric: handlerOperations, Labels: []string{"update"}, Names: []string{"Handler_update"}},
	{Metric: handlerOperations, Labels: []string{"delete"}, Names: []string{"Handler_delete"}},
	{Metric: innodbRows, Labels: []string{"read"}, Names: []string{"Innodb_rows_read"}},
	{Metric: innodbRows, Labels: []string{"insert"}, Names: []string{"Innodb_rows_inserted"}},
	{Metric: innodbRows, Labels: []string{"update"}, Names: []string{"Innodb_rows_updated"}},
	{Metric: innodbRows, Labels: []string{"delete"}, Names: []string{"Innodb_rows_deleted"}},
	{Metric: rowsTotal, Labels: []string{"read"}, Names: []string{"Rows_read"}},
	{Metric: rowsTotal, Labels: []string{"sent"}, Names: []string{"Rows_sent"}},
	{Metric: rowLockWaits, Names: []string{"Innodb_row_lock_waits"}},
	{Metric: rowLockWaiting, Names: []string{"Innodb_row_lock_current_waits"}},
	{Metric: deadlocks, Names: []string{"Innodb_deadlocks"}},
	{Metric: poolReadRequests, Names: []string{"Innodb_buffer_pool_read_requests"}},
	{Metric: poolReads, Names: []string{"Innodb_buffer_pool_reads"}},
	{Metric: poolWaitFree, Names: []string{"Innodb_buffer_pool_wait_free"}},
	{Metric: poolPages, Labels: []string{"data"}, Names: []string{"Innodb_buffer_pool_pages_data"}},
	{Metric: poolPages, Labels: []string{"dirty"}, Names: []string{"Innodb_buffer_pool_pages_dirty"}},
	{Metric: poolPages, Labels: []string{"free"}, Names: []string{"Innodb_buffer_pool_pages_free"}},
	{Metric: poolPages, Labels: []string{"total"}, Names: []string{"Innodb_buffer_pool_pages_total"}},
	{Metric: logWaits, Names: []string{"Innodb_log_waits"}},
	{Metric: logWrites, Names: []string{"Innodb_log_writes"}},
	{Metric: logBytes, Names: []string{"Innodb_os_log_written"}},
	{Metric: logFsyncs, Names: []string{"Innodb_os_log_fsyncs"}},
	{Metric: dataOperations, Labels: []string{"read"}, Names: []string{"Innodb_data_reads"}},
	{Metric: dataOperations, Labels: []string{"write"}, Names: []string{"Innodb_data_writes"}},
	{Metric: dataOperations, Labels: []string{"fsync"}, Names: []string{"Innodb_data_fsyncs"}},
	{Metric: dataBytes, Labels: []string{"read"}, Names: []string{"Innodb_data_read"}},
	{Metric: dataBytes, Labels: []string{"write"}, Names: []string{"Innodb_data_written"}},
	{Metric: checkpointAge, Names: []string{"Innodb_checkpoint_age"}},
	{Metric: historyLength, Names: []string{"Innodb_history_list_length"}},
	{Metric: binlogCommits, Names: []string{"Binlog_commits"}},
	{Metric: binlogGroups, Names: []string{"Binlog_group_commits"}},
	{Metric: binlogBytes, Names: []string{"Binlog_bytes_written"}},
	{Metric: connectionsTotal, Names: []string{"Connections"}},
	{Metric: abortedConnects, Names: []string{"Aborted_connects"}},
	{Metric: refusedConnects, Names: []string{"Connection_errors_max_connections"}},
	{Metric: threadsCreated, Names: []string{"Threads_created"}},
	{Metric: slowQueries, Names: []string{"Slow_queries"}},
	{Metric: temporaryTables, Labels: []string{"all"}, Names: []string{"Created_tmp_tables"}},
	{Metric: temporaryTables, Labels: []string{"disk"}, Names: []string{"Created_tmp_disk_tables"}},
	{Metric: tableLockWaits, Names: []string{"Table_locks_waited"}},
	{Metric: preparedCommands, Labels: []string{"prepare"}, Names: []string{"Com_stmt_prepare"}},
	{Metric: preparedCommands, Labels: []string{"execute"}, Names: []string{"Com_stmt_execute"}},
	{Metric: preparedCommands, Labels: []string{"close"}, Names: []string{"Com_stmt_close"}},
}

// readVariables sets the metrics that any server of the family may have. One
// that a server does not report is absent.
func readVariables(tick *Tick, out *engine.Status) {
	if out.Values == nil {
		out.Values = make([]engine.Value, 0, len(variables)+32)
	}
	variables.Read(out, tick.Status.Number)
	// 0 is unlimited on some clones, and never a limit.
	if limit, ok := tick.Server.Variables.Number("max_connections"); ok && limit > 0 {
		out.Set(engine.ConnectionsLimit, limit)
	}
}
