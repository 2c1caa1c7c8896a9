package engine

import "github.com/benchwatch/benchwatch/agent/measure"

// The metrics that several engines share. Each engine sets those that its
// servers report; one that a server lacks is absent, never 0.
var (
	QueriesTotal         = measure.NewCounter("db_queries_total", "Statements that clients sent (MySQL: Questions; MongoDB: opcounters). The agent's own are in it.")
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

	// The sampler itself computes these from all samples of a target or cluster.
	Up             = measure.NewGauge("db_up", "1 if the server answered the last sample, 0 if it did not.")
	MissingDetails = measure.NewGauge("db_missing_details", "Kinds of values that could not be read at the last sample: a right is missing, or a detail was refused or too slow. The agent's log names each once.")
	RestartsTotal  = measure.NewCounter("db_restarts_total", "Restarts of the server seen since the agent began to sample it.")

	ReplicationPosition          = measure.NewGauge("replication_position", "How far the server is in the history its cluster shares (Galera: seqno; GTIDs: count of transactions; MongoDB: optime in seconds).")
	ReplicationLagTransactions   = measure.NewGauge("replication_lag_transactions", "Transactions that the most advanced member of the cluster had at the same tick and this one had not. A few are the time between two answers.")
	ReplicationLagSeconds        = measure.NewGauge("replication_lag_seconds", "How long ago the most advanced member of the cluster was where this one is now; engines with a more accurate lag of their own report that.")
	ReplicationQueueTransactions = measure.NewGauge("replication_queue_transactions", "Transactions received and waiting to be applied.")
	ReplicationRunning           = measure.NewGauge("replication_running", "1 if this part of replication (receiver, applier) runs, else 0.", "channel", "thread")
)

// The measures that servers of several engines have. An engine adds its own
// metrics as sources (Or, Prefer); measures of one engine only are declared in
// its package.
var (
	QueryRate = measure.New(measure.Measure{
		ID: "queries", Title: "Queries", Short: "QPS", Note: "statements of clients per second",
		Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Mean, Column: measure.EachServer, Rank: 100,
	}).Or(measure.RateOf(QueriesTotal))
	CommitRate = measure.New(measure.Measure{
		ID: "commits", Title: "Commits", Short: "Commit", Note: "transactions committed per second",
		Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Mean, Rank: 110,
	}).Or(measure.RateOf(CommitsTotal))
	RollbackRate = measure.New(measure.Measure{
		ID: "rollbacks", Title: "Rollbacks", Short: "Rollback", Note: "transactions rolled back per second",
		Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Mean, Rank: 120,
	}).Or(measure.RateOf(RollbacksTotal))
	TransactionRate = measure.New(measure.Measure{
		ID: "transactions", Title: "Transactions", Short: "TPS", Note: "commits and rollbacks per second",
		Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Mean, NoChart: true, Rank: 130,
	}).Or(measure.RateOf(CommitsTotal).Plus(RollbacksTotal))

	OpenConnections = measure.New(measure.Measure{
		ID: "connections", Title: "Connections", Short: "Conn", Note: "client connections that are open",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Max, Rank: 140,
	}).Or(measure.ValueOf(Connections))
	RunningThreads = measure.New(measure.Measure{
		ID: "threads_running", Title: "Threads running", Short: "Run", Note: "clients executing a statement at the instant of the sample",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Max, Rank: 150,
	}).Or(measure.ValueOf(ThreadsRunning))
	ServerLatency = measure.New(measure.Measure{
		ID: "server_latency", Title: "Latency in the server", Note: "mean time of a statement, without network and client",
		Unit: measure.Seconds, Scope: measure.Server, Summary: measure.Mean, Rank: 160,
	})

	FlowControl = measure.New(measure.Measure{
		ID: "flow_control", Title: "Flow control", Short: "Paused", Note: "share of the time in which writes were held back",
		Unit: measure.Ratio, Scope: measure.Server, Summary: measure.Mean, Column: measure.WorstOfAll, Rank: 200,
	})
	LagSeconds = measure.New(measure.Measure{
		ID: "lag_seconds", Title: "Replication lag", Short: "Lag(s)", Note: "seconds behind the most advanced server of the cluster",
		Unit: measure.Seconds, Scope: measure.Server, Summary: measure.Max, Column: measure.WorstOfAll, Rank: 220,
	}).Or(measure.ValueOf(ReplicationLagSeconds))
	LagTransactions = measure.New(measure.Measure{
		ID: "lag_transactions", Title: "Transactions behind", Short: "Lag(trx)", Note: "transactions that the most advanced server had at the same tick",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Max, Rank: 210,
	}).Or(measure.ValueOf(ReplicationLagTransactions))
	ReplicationQueue = measure.New(measure.Measure{
		ID: "replication_queue", Title: "Replication queue", Short: "Queue", Note: "transactions received and waiting to be applied",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Max, Rank: 230,
	}).Or(measure.ValueOf(ReplicationQueueTransactions))

	LockWaits = measure.New(measure.Measure{
		ID: "lock_waits", Title: "Waiting for row locks", Note: "clients waiting, on average",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Mean, Rank: 300,
	}).Or(measure.RateOf(LockWaitSeconds))
	Deadlocks = measure.New(measure.Measure{
		ID: "deadlocks", Title: "Deadlocks", Note: "per second",
		Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Increase, Rank: 310,
	})
	CertificationFailures = measure.New(measure.Measure{
		ID: "certification_failures", Title: "Certification failures", Note: "transactions refused by the cluster per second",
		Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Increase, Rank: 320,
	})
	ServerCPU = measure.New(measure.Measure{
		ID: "server_cpu", Title: "CPU of the server's process", Note: "cores in use",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Mean, Rank: 400,
	})
	ServerMemory = measure.New(measure.Measure{
		ID: "server_memory", Title: "Memory of the server's process", Note: "resident",
		Unit: measure.Bytes, Scope: measure.Server, Summary: measure.Max, Rank: 410,
	})

	Answered = measure.New(measure.Measure{
		ID: "up", Title: "Samples answered", Note: "1 if the server answered, else 0",
		Unit: measure.Ratio, Scope: measure.Server, Summary: measure.Mean, NoChart: true, Rank: 900,
	}).Or(measure.ValueOf(Up))
	Restarts = measure.New(measure.Measure{
		ID: "restarts", Title: "Restarts", Note: "restarts of the server",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Increase, NoChart: true, Rank: 910,
	}).Or(measure.ValueOf(RestartsTotal))
	ConnectionLimit = measure.New(measure.Measure{
		ID: "connection_limit", Title: "Connection limit", Note: "client connections that the server allows",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Last, NoChart: true, Rank: 920,
	}).Or(measure.ValueOf(ConnectionsLimit))
	ClusterSize = measure.New(measure.Measure{
		ID: "cluster_size", Title: "Cluster size", Note: "members in the server's view of its cluster",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Last, NoChart: true, Rank: 930,
	})
)
