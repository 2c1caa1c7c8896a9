package engine

// The metrics that several engines share. Each engine sets those that its
// servers really report; a missing one is absent, never 0.
var (
	QueriesTotal         = NewCounter("db_queries_total", "Statements that clients asked (MySQL: Questions; MongoDB: opcounters). The agent's own are in it.")
	StatementsTotal      = NewCounter("db_statements_total", "Statements executed, those of replication appliers included (MySQL: Queries).")
	CommitsTotal         = NewCounter("db_commits_total", "COMMIT statements executed (MySQL: Com_commit). On asynchronous replicas applied transactions are in it.")
	RollbacksTotal       = NewCounter("db_rollbacks_total", "ROLLBACK statements executed (MySQL: Com_rollback). Deadlocks and certification failures are not in it.")
	Connections          = NewGauge("db_connections", "Client connections now. The agent's own is in it.")
	ConnectionsLimit     = NewGauge("db_connections_limit", "Client connections that the server allows.")
	ThreadsRunning       = NewGauge("db_threads_running", "Clients executing a statement at the instant of the sample, the agent's own included.")
	OperationsTotal      = NewCounter("db_operations_total", "Operations by kind (select, insert, update, delete …).", "op")
	BytesTotal           = NewCounter("db_bytes_total", "Bytes received from and sent to clients.", "direction")
	LockWaitSeconds      = NewCounter("db_lock_wait_seconds_total", "Time that clients waited for row locks.")
	AgentStatementsTotal = NewCounter("db_agent_statements_total", "Statements that the agent itself sent to this target since it started: its share of the counters of statements.")

	ReplicationPosition          = NewGauge("replication_position", "How far the server is in the history its cluster shares (Galera: seqno; GTIDs: count of transactions; MongoDB: optime in seconds).")
	ReplicationLagTransactions   = NewGauge("replication_lag_transactions", "Transactions that the most advanced member of the cluster had at the same tick and this one had not. A few are the time between two answers.")
	ReplicationLagSeconds        = NewGauge("replication_lag_seconds", "How long ago the most advanced member of the cluster was where this one is now; for engines with a better measure of their own, that.")
	ReplicationQueueTransactions = NewGauge("replication_queue_transactions", "Transactions received and waiting to be applied.")
	ReplicationRunning           = NewGauge("replication_running", "1 if this part of replication (receiver, applier) runs, else 0.", "channel", "thread")
)
