package engine

import "github.com/benchwatch/benchwatch/agent/model/measure"

// The metrics that several engines share. Each engine sets those that its servers report; a metric
// that a server lacks is absent, never 0.
var (
	QueriesTotal = measure.NewCounter("db_queries_total",
		"Statements that clients sent (MySQL: Questions; MongoDB: commands that read or write, see databases.md). "+
			"Includes the agent's own (MySQL).")
	StatementsTotal = measure.NewCounter("db_statements_total", "Statements executed, including those of replication appliers (MySQL: Queries).")
	CommitsTotal    = measure.NewCounter("db_commits_total",
		"COMMIT statements executed (MySQL: Com_commit), without autocommit. Includes applied transactions on "+
			"asynchronous replicas.")
	AutocommitsTotal = measure.NewCounter("db_autocommits_total",
		"Transactions committed without a COMMIT statement since the agent first sampled the server (MySQL, "+
			"MariaDB): transactions in the binary log (Binlog_cache_use) minus COMMIT statements, which is a lower "+
			"bound; without a binary log, statements that write while no client uses BEGIN or COMMIT.")
	RollbacksTotal = measure.NewCounter("db_rollbacks_total",
		"ROLLBACK statements executed (MySQL: Com_rollback). Excludes deadlocks and certification failures.")
	Connections      = measure.NewGauge("db_connections", "Client connections now, including the agent's own.")
	ConnectionsLimit = measure.NewGauge("db_connections_limit", "Client connections that the server allows.")
	ThreadsRunning   = measure.NewGauge("db_threads_running", "Clients executing a statement at the instant of the sample, including the agent.")
	OperationsTotal  = measure.NewCounter("db_operations_total", "Operations by kind (select, insert, update, delete …).", "op")
	BytesTotal       = measure.NewCounter("db_bytes_total", "Bytes received from and sent to clients.", "direction")
	LockWaitSeconds  = measure.NewCounter("db_lock_wait_seconds_total", "Time that clients waited for row locks.")
	ActiveSessions   = measure.NewGauge("db_active_sessions",
		"Client sessions that execute a statement at the instant of the sample, except the agent's own, by what they "+
			"wait for (class) and the server's name for it (event). Sessions of the class running are not known to wait. "+
			"A series that was once present remains, as 0.", "class", SessionEvent)
	AgentStatementsTotal = measure.NewCounter("db_agent_statements_total",
		"Statements that the agent itself sent to this target since it started: its share of the counters of "+
			"statements.")

	// The sampler itself computes these from all samples of a target or cluster.
	Up             = measure.NewGauge("db_up", "1 if the server answered the last sample, 0 if it did not.")
	MissingDetails = measure.NewGauge("db_missing_details",
		"Kinds of values that could not be read at the last sample: a privilege is missing, or a detail was refused "+
			"or too slow. The agent's log names each once.")
	// RoundTripSeconds is Status.RoundTrip.
	RoundTripSeconds = measure.NewGauge("db_round_trip_seconds",
		"Time from the agent to the server and back at the last sample: a ping, which the server answers without "+
			"work (MySQL: COM_PING, to a sampled proxy the statement DO 0; MongoDB: ping). Includes waiting for a CPU on "+
			"either side.")
	RestartsTotal = measure.NewCounter("db_restarts_total", "Restarts of the server seen since the agent began to sample it.")

	ReplicationChannelLagTransactions = measure.NewGauge("replication_channel_lag_transactions",
		"How many transactions of its source a channel of a replica with several sources lacks.", "channel")
	ReplicationChannelLagSeconds = measure.NewGauge("replication_channel_lag_seconds",
		"How long ago the source of a channel was where the channel is now, without a configured delay, for a "+
			"replica with several sources.", "channel")
	ReplicationPosition = measure.NewGauge("replication_position",
		"How far the server is in the history its cluster shares (Galera: seqno; GTIDs: count of transactions; "+
			"MongoDB: optime in seconds).")
	ReplicationLagTransactions = measure.NewGauge("replication_lag_transactions",
		"Transactions that the most advanced member of the cluster had at the same tick and this member had not. A "+
			"few result from the time between two answers. Absent on a primary.")
	ReplicationLagSeconds = measure.NewGauge("replication_lag_seconds",
		"How long ago the most advanced member of the cluster had the position that this member has now; engines "+
			"that measure the lag more accurately report their own value. 0 if no transaction is missing. Absent on a "+
			"primary.")
	ReplicationLagBytes = measure.NewGauge("replication_lag_bytes",
		"Bytes of the log that the most advanced member of the cluster had at the same tick and this member had not "+
			"(PostgreSQL). A few result from the time between two answers. Absent on a primary and for a delayed standby.")
	ReplicationQueueTransactions = measure.NewGauge("replication_queue_transactions", "Transactions received and waiting to be applied.")
	ReplicationRunning           = measure.NewGauge("replication_running", "1 if this part of replication (receiver, applier) runs, else 0.", "channel", "thread")
)

// The measures that servers of several engines have. An engine adds its own metrics as sources (Or,
// Prefer); a measure of only one engine is declared in its package.
var (
	QueryRate = column("QPS", measure.EachServer, NewMeasure(100, "queries", "Queries", "statements of clients per second", measure.PerSecond, measure.Mean,
		measure.RateOf(QueriesTotal)))
	CommitRate = column("Commit", measure.NoColumn, NewMeasure(110, "commits", "Commits",
		"transactions committed per second, by COMMIT or autocommit", measure.PerSecond, measure.Mean,
		measure.RateOf(CommitsTotal).Plus(AutocommitsTotal), measure.RateOf(CommitsTotal)))
	RollbackRate = column("Rollback", measure.NoColumn, NewMeasure(120, "rollbacks", "Rollbacks",
		"transactions rolled back per second", measure.PerSecond, measure.Mean,
		measure.RateOf(RollbacksTotal)))
	TransactionRate = column("TPS", measure.NoColumn, uncharted(NewMeasure(130, "ended_transactions",
		"Transactions ended", "commits and rollbacks per second", measure.PerSecond, measure.Mean,
		measure.RateOf(CommitsTotal).Plus(AutocommitsTotal, RollbacksTotal), measure.RateOf(CommitsTotal).Plus(RollbacksTotal))))

	OpenConnections = column("Conn", measure.NoColumn, NewMeasure(140, "connections", "Connections",
		"client connections that are open", measure.Count, measure.Max,
		measure.ValueOf(Connections)))
	RunningThreads = column("Run", measure.NoColumn, NewMeasure(150, "threads_running", "Threads running",
		"clients executing a statement at the instant of the sample", measure.Count, measure.Max,
		measure.ValueOf(ThreadsRunning)))
	ServerLatency = NewMeasure(160, "server_latency", "Latency in the server",
		"mean time of a statement, without network and client", measure.Seconds, measure.Mean)

	// RoundTrip is from the agent's machine.
	RoundTrip = column("RTT(ms)", measure.WorstOfAll, NewMeasure(165, "round_trip", "Round trip",
		"time of a ping from the agent's machine to the server and back", measure.Seconds, measure.Mean,
		measure.ValueOf(RoundTripSeconds)))

	// FlowControlSent shows which node requests flow control.
	FlowControlSent = NewMeasure(205, "flow_control_sent", "Flow control requested",
		"pauses that the node requested per second", measure.PerSecond, measure.Increase)
	FlowControl = spread(column("Paused", measure.WorstOfAll, NewMeasure(200, "flow_control", "Flow control",
		"share of the time in which writes were held back", measure.Ratio, measure.Mean)))
	LagSeconds = column("Lag(s)", measure.WorstOfAll, NewMeasure(220, "lag_seconds", "Replication lag",
		"seconds behind the most advanced server of the cluster", measure.Seconds, measure.Max,
		measure.ValueOf(ReplicationLagSeconds)))
	LagTransactions = column("Lag(trx)", measure.NoColumn, NewMeasure(210, "lag_transactions", "Transactions behind",
		"transactions that the most advanced server had at the same tick", measure.Count, measure.Max,
		measure.ValueOf(ReplicationLagTransactions)))
	LagBytes = NewMeasure(215, "lag_bytes", "Bytes behind", "bytes of the log that the most advanced server had at the same tick", measure.Bytes, measure.Max,
		measure.ValueOf(ReplicationLagBytes))
	ReplicationQueue = column("Queue", measure.NoColumn, NewMeasure(230, "replication_queue", "Replication queue",
		"transactions received and waiting to be applied", measure.Count, measure.Max,
		measure.ValueOf(ReplicationQueueTransactions)))

	// Replicated is the number of the cluster's transactions that a server applied while the tool
	// ran, including warm-up.
	Replicated = uncharted(NewMeasure(225, "trx", "Transactions applied",
		"transactions of all servers of the cluster, including the warm-up", measure.PerSecond, measure.Increase))

	LockWaits = NewMeasure(300, "lock_waits", "Waiting for row locks", "clients waiting, on average",
		measure.Count, measure.Mean, measure.RateOf(LockWaitSeconds))
	Deadlocks             = NewMeasure(310, "deadlocks", "Deadlocks", "per second", measure.PerSecond, measure.Increase)
	CertificationFailures = NewMeasure(320, "certification_failures", "Certification failures",
		"transactions refused by the cluster per second", measure.PerSecond, measure.Increase)
	// MachineCPU is for databases that report the CPU of their machine, such as managed ones.
	MachineCPU = spread(column("", measure.EachServer, NewMeasure(395, "server_cpu", "CPU of the server's machine",
		"share of all cores in use, as the database reports it", measure.Ratio, measure.Mean)))

	ServerCPU    = NewMeasure(400, "process_cpu", "CPU of the server's process", "cores in use", measure.Count, measure.Mean)
	ServerMemory = NewMeasure(410, "server_memory", "Memory of the server's process", "resident", measure.Bytes, measure.Max)

	// PagesRead and PageMisses describe the cache of pages.
	PagesRead = NewMeasure(606, "buffer_pool_reads", "Pages read from disk",
		"per second, since they were not in the buffer pool", measure.PerSecond, measure.Mean)
	PageMisses         = NewMeasure(600, "buffer_pool_misses", "Buffer pool misses", "share of page reads that went to disk", measure.Ratio, measure.Mean)
	RefusedConnections = NewMeasure(630, "connections_refused", "Connections refused",
		"per second, since the server's limit was reached", measure.PerSecond, measure.Increase)

	// OpenedConnections counts the connections that clients opened.
	OpenedConnections = NewMeasure(631, "connections_opened", "Connections opened", "per second, including refused ones", measure.PerSecond, measure.Mean)

	// ClientBytes is the traffic of the database's protocol.
	ClientBytes = NewCost(690, "cost_client_bytes", "Bytes from and to clients", "of the database's protocol", measure.Bytes, measure.RateOf(BytesTotal))
	// SentBytes is the part of it that the server sent, which causes read: results, and not what is inserted.
	SentBytes = measure.NewEvidence(measure.Server, measure.RateOf(BytesTotal).On("direction", "sent"))

	Answered        = uncharted(NewMeasure(900, "up", "Samples answered", "1 if the server answered, else 0", measure.Ratio, measure.Mean, measure.ValueOf(Up)))
	Restarts        = uncharted(NewMeasure(910, "restarts", "Restarts", "restarts of the server", measure.Count, measure.Increase, measure.ValueOf(RestartsTotal)))
	ConnectionLimit = NewMeasure(920, "connection_limit", "Connection limit", "client connections that the server allows", measure.Count, measure.Last,
		measure.ValueOf(ConnectionsLimit))
	// ClusterSize and Primary are charted only if they change.
	ClusterSize = changing(NewMeasure(930, "cluster_size", "Cluster size", "members in the server's view of its cluster", measure.Count, measure.Last))
	Primary     = changing(NewMeasure(935, "primary_component", "Primary component",
		"1 if the server is in the part of its cluster that can commit, else 0", measure.Count, measure.Last))
)

// Which server took the load of a run.
var (
	_ = NewImbalance(10, "imbalance_operations", "operations", "", QueryRate)
	_ = NewImbalance(20, "imbalance_bytes", "bytes", "", ClientBytes)
	_ = NewImbalance(30, "imbalance_cpu", "CPU", "", ServerCPU)
)

// NewImbalance declares how unevenly the servers of a run, or the values of a label of one server's
// metrics, share a load: how far the largest part exceeds the mean.
func NewImbalance(rank int, id, load, label string, of *measure.Measure) *measure.Measure {
	parts := "servers"
	if label != "" {
		parts = label + "s"
	}
	return measure.New(measure.Measure{
		ID: id, Title: "Imbalance of " + load + " between " + parts, Short: "imbalance of " + load + " between " + parts, Line: load,
		Note: "excess of the largest share over the mean: 0 if all shares are equal, 2 if one of three has everything",
		Unit: measure.Ratio, Scope: measure.Cluster, Summary: measure.Mean, Rank: rank, NoChart: true, Of: of, By: label,
	})
}

// NewMeasure declares a measure of servers. If its summary is measure.Last, it is not charted.
func NewMeasure(rank int, id, title, note string, unit measure.Unit,
	summary measure.Summary, sources ...measure.Source) *measure.Measure {
	return measure.New(measure.Measure{
		ID: id, Title: title, Note: note, Unit: unit, Scope: measure.Server, Summary: summary, Rank: rank, NoChart: summary == measure.Last,
	}).Or(sources...)
}

// NewCost declares what a transaction of the run costs a server.
func NewCost(rank int, id, title, note string, unit measure.Unit, sources ...measure.Source) *measure.Measure {
	return measure.New(measure.Measure{
		ID: id, Title: title, Note: note, Unit: unit, Scope: measure.Server, Summary: measure.Cost, Rank: rank, NoChart: true,
	}).Or(sources...)
}

// spread sets that reports show how long m was above a limit.
func spread(m *measure.Measure) *measure.Measure {
	m.Spread = true
	return m
}

// column gives m a column in tables.
func column(short string, placement measure.Placement, m *measure.Measure) *measure.Measure {
	m.Short, m.Column = short, placement
	return m
}

func changing(m *measure.Measure) *measure.Measure {
	m.NoChart, m.OnlyChanges = false, true
	return m
}

func uncharted(m *measure.Measure) *measure.Measure {
	m.NoChart = true
	return m
}
