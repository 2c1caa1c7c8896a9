package mysql

import (
	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/measure"
)

// counter maps variables of SHOW GLOBAL STATUS to one series.
type counter struct {
	metric *measure.Metric
	labels []string
	// names of the variables; those that the server has are added up.
	names []string
	// scale turns the server's unit into the metric's; 0 is 1.
	scale float64
}

// What MySQL and MariaDB tell beyond the vocabulary that all engines share.
// Averages and maxima since start are left out: at one sample a second they
// say nothing.
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
	threadsCreated    = measure.NewCounter("mysql_threads_created_total", "Threads made for connections (Threads_created).")
	slowQueries       = measure.NewCounter("mysql_slow_queries_total", "Statements that took longer than long_query_time (Slow_queries).")
	temporaryTables   = measure.NewCounter("mysql_temporary_tables_total", "Internal temporary tables (Created_tmp_tables, of which Created_tmp_disk_tables on disk).", "where")
	tableLockWaits    = measure.NewCounter("mysql_table_lock_waits_total", "Waits for table locks (Table_locks_waited).")
	preparedCommands  = measure.NewCounter("mysql_prepared_statement_commands_total", "Commands of prepared statements (Com_stmt_*): tells whether a benchmark uses them.", "command")
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

var counters = []counter{
	{metric: engine.QueriesTotal, names: []string{"Questions"}},
	{metric: engine.StatementsTotal, names: []string{"Queries"}},
	{metric: engine.CommitsTotal, names: []string{"Com_commit"}},
	{metric: engine.RollbacksTotal, names: []string{"Com_rollback"}},
	{metric: engine.Connections, names: []string{"Threads_connected"}},
	{metric: engine.ThreadsRunning, names: []string{"Threads_running"}},
	{metric: engine.OperationsTotal, labels: []string{"select"}, names: []string{"Com_select"}},
	{metric: engine.OperationsTotal, labels: []string{"insert"}, names: []string{"Com_insert", "Com_insert_select"}},
	{metric: engine.OperationsTotal, labels: []string{"update"}, names: []string{"Com_update", "Com_update_multi"}},
	{metric: engine.OperationsTotal, labels: []string{"delete"}, names: []string{"Com_delete", "Com_delete_multi"}},
	{metric: engine.OperationsTotal, labels: []string{"replace"}, names: []string{"Com_replace", "Com_replace_select"}},
	{metric: engine.OperationsTotal, labels: []string{"begin"}, names: []string{"Com_begin"}},
	{metric: engine.OperationsTotal, labels: []string{"call"}, names: []string{"Com_call_procedure"}},
	{metric: engine.BytesTotal, labels: []string{"received"}, names: []string{"Bytes_received"}},
	{metric: engine.BytesTotal, labels: []string{"sent"}, names: []string{"Bytes_sent"}},
	{metric: engine.LockWaitSeconds, names: []string{"Innodb_row_lock_time"}, scale: 1e-3},

	{metric: handlerOperations, labels: []string{"commit"}, names: []string{"Handler_commit"}},
	{metric: handlerOperations, labels: []string{"rollback"}, names: []string{"Handler_rollback"}},
	{metric: handlerOperations, labels: []string{"prepare"}, names: []string{"Handler_prepare"}},
	{metric: handlerOperations, labels: []string{"write"}, names: []string{"Handler_write"}},
	{metric: handlerOperations, labels: []string{"update"}, names: []string{"Handler_update"}},
	{metric: handlerOperations, labels: []string{"delete"}, names: []string{"Handler_delete"}},
	{metric: innodbRows, labels: []string{"read"}, names: []string{"Innodb_rows_read"}},
	{metric: innodbRows, labels: []string{"insert"}, names: []string{"Innodb_rows_inserted"}},
	{metric: innodbRows, labels: []string{"update"}, names: []string{"Innodb_rows_updated"}},
	{metric: innodbRows, labels: []string{"delete"}, names: []string{"Innodb_rows_deleted"}},
	{metric: rowsTotal, labels: []string{"read"}, names: []string{"Rows_read"}},
	{metric: rowsTotal, labels: []string{"sent"}, names: []string{"Rows_sent"}},
	{metric: rowLockWaits, names: []string{"Innodb_row_lock_waits"}},
	{metric: rowLockWaiting, names: []string{"Innodb_row_lock_current_waits"}},
	{metric: deadlocks, names: []string{"Innodb_deadlocks"}},
	{metric: poolReadRequests, names: []string{"Innodb_buffer_pool_read_requests"}},
	{metric: poolReads, names: []string{"Innodb_buffer_pool_reads"}},
	{metric: poolWaitFree, names: []string{"Innodb_buffer_pool_wait_free"}},
	{metric: poolPages, labels: []string{"data"}, names: []string{"Innodb_buffer_pool_pages_data"}},
	{metric: poolPages, labels: []string{"dirty"}, names: []string{"Innodb_buffer_pool_pages_dirty"}},
	{metric: poolPages, labels: []string{"free"}, names: []string{"Innodb_buffer_pool_pages_free"}},
	{metric: poolPages, labels: []string{"total"}, names: []string{"Innodb_buffer_pool_pages_total"}},
	{metric: logWaits, names: []string{"Innodb_log_waits"}},
	{metric: logWrites, names: []string{"Innodb_log_writes"}},
	{metric: logBytes, names: []string{"Innodb_os_log_written"}},
	{metric: logFsyncs, names: []string{"Innodb_os_log_fsyncs"}},
	{metric: dataOperations, labels: []string{"read"}, names: []string{"Innodb_data_reads"}},
	{metric: dataOperations, labels: []string{"write"}, names: []string{"Innodb_data_writes"}},
	{metric: dataOperations, labels: []string{"fsync"}, names: []string{"Innodb_data_fsyncs"}},
	{metric: dataBytes, labels: []string{"read"}, names: []string{"Innodb_data_read"}},
	{metric: dataBytes, labels: []string{"write"}, names: []string{"Innodb_data_written"}},
	{metric: checkpointAge, names: []string{"Innodb_checkpoint_age"}},
	{metric: historyLength, names: []string{"Innodb_history_list_length"}},
	{metric: binlogCommits, names: []string{"Binlog_commits"}},
	{metric: binlogGroups, names: []string{"Binlog_group_commits"}},
	{metric: binlogBytes, names: []string{"Binlog_bytes_written"}},
	{metric: connectionsTotal, names: []string{"Connections"}},
	{metric: abortedConnects, names: []string{"Aborted_connects"}},
	{metric: refusedConnects, names: []string{"Connection_errors_max_connections"}},
	{metric: threadsCreated, names: []string{"Threads_created"}},
	{metric: slowQueries, names: []string{"Slow_queries"}},
	{metric: temporaryTables, labels: []string{"all"}, names: []string{"Created_tmp_tables"}},
	{metric: temporaryTables, labels: []string{"disk"}, names: []string{"Created_tmp_disk_tables"}},
	{metric: tableLockWaits, names: []string{"Table_locks_waited"}},
	{metric: preparedCommands, labels: []string{"prepare"}, names: []string{"Com_stmt_prepare"}},
	{metric: preparedCommands, labels: []string{"execute"}, names: []string{"Com_stmt_execute"}},
	{metric: preparedCommands, labels: []string{"close"}, names: []string{"Com_stmt_close"}},
}

// counterNames lists what readCounters looks for in SHOW GLOBAL STATUS.
func counterNames() []string {
	names := []string{"Uptime"}
	for i := range counters {
		names = append(names, counters[i].names...)
	}
	return names
}

// readCounters sets the series that any server of the family may have; what
// the server does not tell is absent.
func readCounters(tick *Tick, out *engine.Status) {
	if out.Values == nil {
		out.Values = make([]engine.Value, 0, len(counters)+32)
	}
	for i := range counters {
		c := &counters[i]
		sum, known := 0.0, false
		for _, name := range c.names {
			if n, ok := tick.Status.Number(name); ok && plausible(c.metric.Kind, n) {
				sum, known = sum+n, true
			}
		}
		if !known {
			continue
		}
		if c.scale != 0 {
			sum *= c.scale
		}
		out.Set(c.metric, sum, c.labels...)
	}
	// 0 is unlimited on some clones, and never a limit.
	if limit, ok := tick.Server.Variables.Number("max_connections"); ok && limit > 0 {
		out.Set(engine.ConnectionsLimit, limit)
	}
}

// plausible rejects numbers that can't be counts: negative ones, those beyond
// 64 bits, and gauges that a server let run below 0, which it shows as nearly
// 2^64.
func plausible(kind measure.Kind, n float64) bool {
	limit := float64(1 << 63)
	if kind == measure.Counter {
		limit *= 2
	}
	return n >= 0 && (n < limit || kind == measure.Counter && n == limit)
}
