package engine

import "github.com/benchwatch/benchwatch/agent/measure"

// The metrics that several engines share. Each engine sets those that its
// servers really report; a missing one is absent, never 0.
var (
	QueriesTotal         = measure.NewCounter("db_queries_total", "Statements that clients asked (MySQL: Questions; MongoDB: opcounters). The agent's own are in it.")
	StatementsTotal      = measure.NewCounter("db_statements_total", "Statements executed, those of replication appliers included (MySQL: Queries).")
	CommitsTotal         = measure.NewCounter("db_commits_total", "COMMIT statements executed (MySQL: Com_commit). On asynchronous replicas applied transactions are in it.")
	RollbacksTotal       = measure.NewCounter("db_rollbacks_total", "ROLLBACK statements executed (MySQL: Com_rollback). Deadlocks and certification failures are not in it.")
	Connections          = measure.NewGauge("db_connections", "Client connections now. The agent's own is in it.")
	ConnectionsLimit     = measure.NewGauge("db_connections_limit", "Client connections that the server allows.")
	ThreadsRunning       = measure.NewGauge("db_threads_running", "Clients executing a statement at the instant of the sample, the agent's own included.")
	OperationsTotal      = measure.NewCounter("db_operations_total", "Operations by kind (select, insert, update, delete …).", "op")
	BytesTotal           = measure.NewCounter("db_bytes_total", "Bytes received from and sent to clients.", "direction")
	LockWaitSeconds      = measure.NewCounter("db_lock_wait_seconds_total", "Time that clients waited for row locks.")
	AgentStatementsTotal = measure.NewCounter("db_agent_statements_total", "Statements that the agent itself sent to this target since it started: its share of the counters of statements.")

	ReplicationPosition          = measure.NewGauge("replication_position", "How far the server is in the history its cluster shares (Galera: seqno; GTIDs: count of transactions; MongoDB: optime in seconds).")
	ReplicationLagTransactions   = measure.NewGauge("replication_lag_transactions", "Transactions that the most advanced member of the cluster had at the same tick and this one had not. A few are the time between two answers.")
	ReplicationLagSeconds        = measure.NewGauge("replication_lag_seconds", "How long ago the most advanced member of the cluster was where this one is now; for engines with a better measure of their own, that.")
	ReplicationQueueTransactions = measure.NewGauge("replication_queue_transactions", "Transactions received and waiting to be applied.")
	ReplicationRunning           = measure.NewGauge("replication_running", "1 if this part of replication (receiver, applier) runs, else 0.", "channel", "thread")
)
