package engine

// The metrics that several engines share. Each engine sets those that its
// servers really report; a missing one is absent, never 0.
var (
	QueriesTotal         = &Metric{Name: "db_queries_total", Kind: Counter, Help: "Statements that clients asked (MySQL: Questions; MongoDB: opcounters). The agent's own are in it."}
	StatementsTotal      = &Metric{Name: "db_statements_total", Kind: Counter, Help: "Statements executed, those of replication appliers included (MySQL: Queries)."}
	CommitsTotal         = &Metric{Name: "db_commits_total", Kind: Counter, Help: "COMMIT statements executed (MySQL: Com_commit). On asynchronous replicas applied transactions are in it."}
	RollbacksTotal       = &Metric{Name: "db_rollbacks_total", Kind: Counter, Help: "ROLLBACK statements executed (MySQL: Com_rollback). Deadlocks and certification failures are not in it."}
	Connections          = &Metric{Name: "db_connections", Help: "Client connections now. The agent's own is in it."}
	ConnectionsLimit     = &Metric{Name: "db_connections_limit", Help: "Client connections that the server allows."}
	ThreadsRunning       = &Metric{Name: "db_threads_running", Help: "Clients executing a statement at the instant of the sample, the agent's own included."}
	OperationsTotal      = &Metric{Name: "db_operations_total", Kind: Counter, Labels: []string{"op"}, Help: "Operations by kind (select, insert, update, delete …)."}
	BytesTotal           = &Metric{Name: "db_bytes_total", Kind: Counter, Labels: []string{"direction"}, Help: "Bytes received from and sent to clients."}
	LockWaitSeconds      = &Metric{Name: "db_lock_wait_seconds_total", Kind: Counter, Help: "Time that clients waited for row locks."}
	AgentStatementsTotal = &Metric{Name: "db_agent_statements_total", Kind: Counter, Help: "Statements that the agent itself sent to this target since it started: its share of the counters of statements."}

	ReplicationPosition          = &Metric{Name: "replication_position", Help: "How far the server is in the history its cluster shares (Galera: seqno; GTIDs: count of transactions; MongoDB: optime in seconds)."}
	ReplicationLagTransactions   = &Metric{Name: "replication_lag_transactions", Help: "Transactions that the most advanced member of the cluster had at the same tick and this one had not. A few are the time between two answers."}
	ReplicationLagSeconds        = &Metric{Name: "replication_lag_seconds", Help: "How long ago the most advanced member of the cluster was where this one is now; for engines with a better measure of their own, that."}
	ReplicationQueueTransactions = &Metric{Name: "replication_queue_transactions", Help: "Transactions received and waiting to be applied."}
	ReplicationRunning           = &Metric{Name: "replication_running", Labels: []string{"channel", "thread"}, Help: "1 if this part of replication (receiver, applier) runs, else 0."}
)
