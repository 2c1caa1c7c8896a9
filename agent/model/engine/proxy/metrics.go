package proxy

import (
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// The metrics of any proxy. An engine does not set those that its proxy does not report. The role of a backend is the
// proxy's name for the group in which it uses the server: rw or ro (Atlas), a backend section (HAProxy), a database
// (PgBouncer), a route (MySQL Router) or a hostgroup (ProxySQL).
var (
	BackendUp = measure.NewGauge("proxy_backend_up",
		"1 if the proxy uses the backend, 0 if it is down or taken offline; absent while that is unknown to the proxy.",
		"backend", "backend_role")
	BackendState = measure.NewGauge("proxy_backend_state",
		"1 for the state of the backend as the proxy sees it, 0 for the others. "+
			"A proxy without traffic may not notice that a backend died.",
		"backend", "backend_role", "state")
	Backends           = measure.NewGauge("proxy_backends", "Backends that the proxy lists. The first 64 have series of their own.")
	ClientConnections  = measure.NewGauge("proxy_client_connections", "Connections from clients to the proxy now.")
	ClientLimit        = measure.NewGauge("proxy_client_connections_limit", "Connections from clients that the proxy allows.")
	AcceptedTotal      = measure.NewCounter("proxy_client_connections_total", "Connections from clients that the proxy accepted.")
	RefusedTotal       = measure.NewCounter("proxy_client_refused_total", "Connections and requests of clients that the proxy refused.")
	BackendConnections = measure.NewGauge("proxy_backend_connections",
		"Connections from the proxy to a backend now; they stay pooled when clients leave.", "backend")

	QueueLength = measure.NewGauge("proxy_queue_length",
		"Clients that wait in the proxy for a connection to a backend.", "backend_role")
	QueueSecondsTotal = measure.NewCounter("proxy_queue_seconds_total",
		"Time that clients waited in the proxy for a connection to a backend (PgBouncer).", "backend_role")
	QueueSeconds = measure.NewGauge("proxy_queue_seconds",
		"Mean time in the queue of the last 512 connections to a server, the largest of the servers (HAProxy).", "backend_role")
	PoolConnections = measure.NewGauge("proxy_pool_connections",
		"Connections from the proxy to the backends of a role by what they do (PgBouncer, ProxySQL, MySQL Router).", "backend_role", "state")
	PoolLimit = measure.NewGauge("proxy_pool_limit",
		"Connections to the backends of a role that the proxy allows. Clients beyond it wait in its queue.", "backend_role")
	TransactionSecondsTotal = measure.NewCounter("proxy_transaction_seconds_total",
		"Time that clients had a connection to a backend within transactions, without waiting for it (PgBouncer).", "backend_role")

	QuerySecondsTotal = measure.NewCounter("proxy_query_seconds_total",
		"Time that clients waited for answers of a backend to their queries, without waiting for a connection (PgBouncer).", "backend_role")

	ConnectSeconds = measure.NewGauge("proxy_backend_connect_seconds",
		"Time to connect to a backend: the mean of the last 512 connections (HAProxy), or a ping (ProxySQL).", "backend", "backend_role")
	SlowestConnect = measure.NewGauge("proxy_connect_seconds",
		"The longest proxy_backend_connect_seconds of the backends that the proxy uses.")
	ResponseSeconds = measure.NewGauge("proxy_backend_response_seconds",
		"Mean time until a backend began to answer, of the last 512 requests (HAProxy in mode http).", "backend", "backend_role")
	SessionsTotal = measure.NewCounter("proxy_backend_sessions_total",
		"Sessions, transactions or queries, as the proxy counts its work, that a backend got.", "backend", "backend_role")
	BackendBytesTotal = measure.NewCounter("proxy_backend_bytes_total",
		"Bytes sent to a backend and received from it.", "backend", "backend_role", "direction")
	ErrorsTotal = measure.NewCounter("proxy_backend_errors_total",
		"Errors with a backend by kind: connect, response, or a connection that the backend or the client ended early.",
		"backend", "backend_role", "kind")
	RetriesTotal = measure.NewCounter("proxy_backend_retries_total",
		"Connections to a backend that were tried again, also at another backend.", "backend", "backend_role")
	OpenedTotal = measure.NewCounter("proxy_backend_connections_opened_total",
		"Connections to a backend that the proxy opened.", "backend", "backend_role")
	ReusedTotal = measure.NewCounter("proxy_backend_connections_reused_total",
		"Uses of a connection to a backend that was open already.", "backend", "backend_role")
	CheckFailuresTotal = measure.NewCounter("proxy_backend_check_failures_total",
		"Health checks of a backend that failed.", "backend", "backend_role")
	DownsTotal = measure.NewCounter("proxy_backend_downs_total",
		"Times that the proxy marked a backend as down.", "backend", "backend_role")
	Weight       = measure.NewGauge("proxy_backend_weight", "Weight of a backend in the distribution.", "backend", "backend_role")
	BackendLimit = measure.NewGauge("proxy_backend_connections_limit",
		"Connections to a backend that the proxy allows. Clients beyond it wait in its queue.", "backend", "backend_role")

	CPUSeconds       = measure.NewCounter("proxy_cpu_seconds_total", "CPU time of the proxy's process.", "mode")
	ThreadCPUSeconds = measure.NewCounter("proxy_thread_cpu_seconds_total",
		"CPU time of each thread of the proxy in the order of their start: 0 is the main thread. "+
			"A thread near one second per second limits the proxy.", "thread")
	BusiestThread = measure.NewGauge("proxy_busiest_thread_ratio",
		"Share of one core that the proxy's busiest thread used since the previous sample.")
	BusyThreads = measure.NewGauge("proxy_busy_ratio",
		"Share of the time in which the proxy's threads were not idle, as the proxy reports it (HAProxy).")
	ResidentBytes = measure.NewGauge("proxy_resident_bytes", "Memory of the proxy's process.")
	Threads       = measure.NewGauge("proxy_threads", "Threads of the proxy's process.")
	OpenFDs       = measure.NewGauge("proxy_open_fds", "Open files and sockets of the proxy's process.")
)

// PoolActive is the state of a connection in a pool that a client has.
const PoolActive = "active"

// The measures of a proxy. Those that rules and causes read are exported.
var (
	_ = engine.ServerCPU.Or(measure.RateOf(CPUSeconds))
	_ = engine.ServerMemory.Or(measure.ValueOf(ResidentBytes))

	Connections = engine.NewMeasure(500, "backend_connections", "Connections to backends", "of the proxy, including those in its pool",
		measure.Count, measure.Max, measure.ValueOf(BackendConnections))
	BackendsUp = engine.NewMeasure(510, "backends_up", "Backends in use", "backends that the proxy uses",
		measure.Count, measure.Mean, measure.ValueOf(BackendUp))
	_ = engine.NewMeasure(520, "open_files", "Open files", "files and sockets of the proxy's process",
		measure.Count, measure.Max, measure.ValueOf(OpenFDs))
	Queue = engine.NewMeasure(490, "proxy_queue", "Queue of the proxy", "clients that wait in the proxy for a connection to a server",
		measure.Count, measure.Mean, measure.ValueOf(QueueLength))
	// Waited counts waits when they end: it is exact for short waits, and misses those that last.
	Waited = engine.NewMeasure(491, "proxy_waited", "Queue of the proxy, by the time of waits that ended", "clients, on average",
		measure.Count, measure.Mean, measure.RateOf(QueueSecondsTotal))
	ThreadUse = engine.NewMeasure(492, "proxy_thread", "Busiest thread of the proxy", "share of one core",
		measure.Ratio, measure.Mean, measure.ValueOf(BusiestThread), measure.ValueOf(BusyThreads))
	// Busy contains waits for a core.
	Busy = engine.NewMeasure(493, "proxy_busy", "Proxy not idle", "share of the time in which its threads had work",
		measure.Ratio, measure.Mean, measure.ValueOf(BusyThreads))
	// Accepted are clients, Given what Sessions counts.
	Accepted = measure.NewEvidence(measure.Server, measure.RateOf(AcceptedTotal))
	Given    = measure.NewEvidence(measure.Server, measure.RateOf(SessionsTotal))
	Connect  = engine.NewMeasure(494, "proxy_connect", "Connecting to servers", "time that the proxy needs to connect to a server",
		measure.Seconds, measure.Mean, measure.ValueOf(SlowestConnect))
	Sessions = engine.NewMeasure(496, "proxy_sessions", "Sessions to servers", "per second, as the proxy counts them",
		measure.PerSecond, measure.Mean, measure.RateOf(SessionsTotal))
	Opened = engine.NewMeasure(497, "proxy_opened", "Connections opened to servers", "per second, by the proxy",
		measure.PerSecond, measure.Increase, measure.RateOf(OpenedTotal))
	Reused = engine.NewMeasure(498, "proxy_reused", "Connections reused", "per second, from the proxy's pool",
		measure.PerSecond, measure.Increase, measure.RateOf(ReusedTotal))
	Errors = engine.NewMeasure(530, "proxy_errors", "Errors with servers", "per second, as the proxy counts them",
		measure.PerSecond, measure.Increase, measure.RateOf(ErrorsTotal))
	Retries = engine.NewMeasure(532, "proxy_retries", "Retries", "connections to servers per second that the proxy tried again",
		measure.PerSecond, measure.Increase, measure.RateOf(RetriesTotal))
	Refused = engine.NewMeasure(534, "proxy_refused", "Clients refused", "per second, by the proxy",
		measure.PerSecond, measure.Increase, measure.RateOf(RefusedTotal))
	CheckFailures = engine.NewMeasure(536, "proxy_check_failures", "Failed health checks", "per second",
		measure.PerSecond, measure.Increase, measure.RateOf(CheckFailuresTotal))
	Downs = engine.NewMeasure(538, "proxy_downs", "Servers marked down", "times per second that the proxy marked a server as down",
		measure.PerSecond, measure.Increase, measure.RateOf(DownsTotal))
	// Limit, Listed and ClientsLimit are what the proxy allows and lists.
	Limit = engine.NewMeasure(543, "proxy_limit", "Limit of connections to servers", "that the proxy allows; clients beyond it wait in its queue",
		measure.Count, measure.Last, measure.ValueOf(PoolLimit))
	Listed = engine.NewMeasure(544, "proxy_backends", "Servers behind the proxy", "that it lists",
		measure.Count, measure.Last, measure.ValueOf(Backends))
	ClientsLimit = engine.NewMeasure(545, "proxy_clients_limit", "Limit of clients", "that the proxy allows",
		measure.Count, measure.Last, measure.ValueOf(ClientLimit))
	// InTransactions, InQueries and Assigned are connections to servers: those within a transaction, those with a query, and
	// all that clients hold.
	InTransactions = engine.NewMeasure(540, "proxy_in_transactions", "Connections in a transaction", "connections to servers, on average",
		measure.Count, measure.Mean, measure.RateOf(TransactionSecondsTotal))
	InQueries = engine.NewMeasure(541, "proxy_in_queries", "Connections with a query", "connections to servers, on average",
		measure.Count, measure.Mean, measure.RateOf(QuerySecondsTotal))
	Assigned = engine.NewMeasure(542, "proxy_assigned", "Connections that clients hold", "connections to servers that a client of the proxy has",
		measure.Count, measure.Mean, measure.ValueOf(PoolConnections).On("state", PoolActive))
	_ = engine.NewImbalance(40, "imbalance_sessions", "sessions", "backend", Sessions)
)
