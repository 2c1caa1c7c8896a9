// Package aurora reads what Amazon Aurora MySQL, versions 2 and 3, reports beyond a MySQL server:
// the lag of its replicas from the writer's table, and its own status variables. Values that only
// CloudWatch has are left to Prometheus.
//
// The package has not been tested with a real Aurora.
package aurora

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// variables are the numeric status variables, under the names of version 3 and, if different, of
// version 2. Times are microseconds.
var variables engine.Table

var (
	commits       = variables.Map(measure.NewCounter("aurora_commits_total", "Commits (AuroraDb_commits)."), "AuroraDb_commits")
	commitSeconds = variables.Convert(measure.NewCounter("aurora_commit_latency_seconds_total",
		"Time spent in commits (AuroraDb_commit_latency); divided by aurora_commits_total it is the mean latency of "+
			"a commit."), 1e6, "AuroraDb_commit_latency")
	statementTime = variables.Convert(measure.NewCounter("aurora_statement_duration_seconds_total",
		"Time spent in statements (AuroraDb_*_stmt_duration); divided by db_operations_total it is their mean "+
			"latency. Its rate is the mean number of active sessions.", "op"), 1e6,
		"select: AuroraDb_select_stmt_duration", "insert: AuroraDb_insert_stmt_duration", "update: AuroraDb_update_stmt_duration",
		"delete: AuroraDb_delete_stmt_duration", "ddl: AuroraDb_ddl_stmt_duration")
	external = variables.Map(measure.NewGauge("aurora_external_connections",
		"Connections, except those of RDS itself (Aurora_external_connection_count)."), "Aurora_external_connection_count")
	_ = variables.Map(measure.NewCounter("aurora_replication_received_bytes_total",
		"Bytes replicated into a reader (Aurora_repl_bytes_received)."), "Aurora_repl_bytes_received")
	forwarded = variables.Map(measure.NewCounter("aurora_forwarded_statements_total",
		"Statements that write forwarding sent from a reader (Aurora_fwd_replica_*) or received on the writer "+
			"(Aurora_fwd_writer_*, in version 2 Aurora_fwd_master_*).", "side", "op"),
		"reader,dml: Aurora_fwd_replica_dml_stmt_count", "reader,select: Aurora_fwd_replica_select_stmt_count",
		"writer,dml: Aurora_fwd_writer_dml_stmt_count | Aurora_fwd_master_dml_stmt_count",
		"writer,select: Aurora_fwd_writer_select_stmt_count | Aurora_fwd_master_select_stmt_count")
	_ = variables.Convert(measure.NewCounter("aurora_forwarded_statement_seconds_total", "Time spent in forwarded statements.", "side", "op"), 1e6,
		"reader,dml: Aurora_fwd_replica_dml_stmt_duration", "reader,select: Aurora_fwd_replica_select_stmt_duration",
		"writer,dml: Aurora_fwd_writer_dml_stmt_duration | Aurora_fwd_master_dml_stmt_duration",
		"writer,select: Aurora_fwd_writer_select_stmt_duration | Aurora_fwd_master_select_stmt_duration")
	_ = variables.Map(measure.NewGauge("aurora_forwarding_sessions", "Sessions that forward statements now.", "side"),
		"reader: Aurora_fwd_replica_open_sessions", "writer: Aurora_fwd_writer_open_sessions | Aurora_fwd_master_open_sessions")
	_ = variables.Map(measure.NewCounter("aurora_fast_inserts_total", "Inserts that found, or did not find, their place in the fast insert cache.", "cache"),
		"hit: Aurora_fast_insert_cache_hits", "miss: Aurora_fast_insert_cache_misses")
	_ = variables.Map(measure.NewCounter("aurora_parallel_queries_total", "Parallel queries requested and executed (Aurora_pq_request_*).", "state"),
		"attempted: Aurora_pq_request_attempted", "executed: Aurora_pq_request_executed")
	_ = variables.Map(measure.NewGauge("aurora_thread_pool_threads",
		"Threads of the thread pool (Aurora_thread_pool_thread_count)."), "Aurora_thread_pool_thread_count")
	lockMemory = variables.Map(measure.NewGauge("aurora_lock_manager_memory_bytes",
		"Memory of the lock manager (Aurora_lockmgr_memory_used)."), "Aurora_lockmgr_memory_used")
	deadlocks = variables.Map(measure.NewCounter("aurora_deadlocks_total", "Deadlocks (AuroraDb_thread_deadlocks; version 2 only)."), "AuroraDb_thread_deadlocks")
	_         = variables.Map(measure.NewCounter("aurora_missing_history_incidents_total",
		"Reads on a reader that found their undo history gone (version 2 only)."), "Aurora_missing_history_on_replica_incidents")
)

// The measures of an instance.
var (
	_ = engine.CommitRate.Prefer(measure.RateOf(commits)) // autocommit included
	_ = engine.TransactionRate.Prefer(measure.RateOf(commits).Plus(engine.RollbacksTotal))
	_ = engine.Deadlocks.Prefer(measure.RateOf(deadlocks))
	_ = engine.MachineCPU.Or(measure.ValueOf(ownCPU))

	_ = engine.NewMeasure(500, "commit_latency", "Commit latency", "mean time of a commit in the server", measure.Seconds, measure.Mean,
		measure.RateOf(commitSeconds).Over(commits))
	_ = engine.NewMeasure(510, "active_sessions", "Active sessions", "sessions executing a statement, on average", measure.Count, measure.Mean,
		measure.RateOf(statementTime))
	_ = engine.NewMeasure(520, "forwarded_statements", "Forwarded statements",
		"statements per second that write forwarding sent or received", measure.PerSecond, measure.Mean,
		measure.RateOf(forwarded))
	_ = engine.NewMeasure(530, "lock_manager_memory", "Lock manager", "memory in use", measure.Bytes, measure.Max, measure.ValueOf(lockMemory))
)

// meaningless are prefixes of InnoDB's metrics of redo log, checkpoints and flushing. Aurora has
// these variables, but its storage works differently.
var meaningless = []string{"mysql_innodb_log_", "mysql_innodb_checkpoint_", "mysql_innodb_data_"}

// Detail reads one instance.
type Detail struct {
	views *sync.Map // the writers' views by cluster, shared by all probers
	own   freshness
}

// Details returns the constructor of the probers' details. They share what the writer of a cluster
// reports about its readers.
func Details() func() mysql.Detail {
	var views sync.Map
	return func() mysql.Detail { return &Detail{views: &views} }
}

// Needs implements mysql.Detail.
func (*Detail) Needs() mysql.Needs {
	return mysql.Needs{Status: variables.Names(), Variables: []string{"aurora_server_id", "innodb_read_only"}}
}

// Read implements mysql.Detail.
func (d *Detail) Read(ctx context.Context, q mysql.Querier, tick *mysql.Tick, out *engine.Status) error {
	if tick.Server.Flavour != "aurora" {
		return nil
	}
	readStatus(tick.Status, out)
	dropMeaningless(out)
	return d.readReplicas(ctx, q, tick, out, time.Now())
}

// readStatus ignores the case of names, which differs between versions.
func readStatus(status mysql.Values, out *engine.Status) {
	byName := mysql.Values{}
	for name, value := range status {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "aurora") {
			byName[lower] = value
		}
	}
	variables.Read(out, func(name string) (float64, bool) { return byName.Number(strings.ToLower(name)) })
}

func dropMeaningless(out *engine.Status) {
	out.Values = slices.DeleteFunc(out.Values, func(v engine.Value) bool {
		return slices.ContainsFunc(meaningless, func(prefix string) bool { return strings.HasPrefix(v.Metric.Name, prefix) }) ||
			v.Metric.Name == "mysql_innodb_buffer_pool_pages" && slices.Equal(v.Labels, []string{"dirty"})
	})
}
