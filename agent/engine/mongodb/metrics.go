package mongodb

import "github.com/benchwatch/benchwatch/agent/engine"

func gauge(name, help string, labels ...string) *engine.Metric {
	return engine.NewGauge("mongodb_"+name, help, labels...)
}

func counter(name, help string, labels ...string) *engine.Metric {
	return engine.NewCounter("mongodb_"+name, help, labels...)
}

// Load of one server, from serverStatus.
var (
	replicatedOperations = counter("replicated_operations_total", "Operations applied by replication, by kind (opcountersRepl).", "op")
	connectionsCreated   = counter("connections_created_total", "Connections that clients opened.")
	connectionsRejected  = counter("connections_rejected_total", "Connections refused because the limit was reached.")
	networkRequests      = counter("network_requests_total", "Requests received over the network.")
	queuedOperations     = gauge("queued_operations", "Operations waiting for a lock or a ticket (globalLock.currentQueue).", "kind")
	activeClients        = gauge("active_clients", "Clients that read or write at this instant (globalLock.activeClients).", "kind")
	openTransactions     = gauge("transactions_open", "Multi-document transactions open now.")
	latencySeconds       = counter("latency_seconds_total", "Time spent in operations, by kind; over mongodb_latency_operations_total it is their mean latency.", "kind")
	latencyOperations    = counter("latency_operations_total", "Operations counted in mongodb_latency_seconds_total.", "kind")
	documents            = counter("documents_total", "Documents inserted, updated, deleted and returned.", "op")
	scannedKeys          = counter("scanned_keys_total", "Index keys examined by queries.")
	scannedDocuments     = counter("scanned_documents_total", "Documents examined by queries.")
	collectionScans      = counter("collection_scans_total", "Queries that read a whole collection.")
	sortsInMemory        = counter("in_memory_sorts_total", "Queries that sorted without an index.")
	writeConflicts       = counter("write_conflicts_total", "Writes that conflicted and were tried again.")
	residentMemory       = gauge("resident_memory_bytes", "Memory of the server process.")
	cpuSeconds           = counter("cpu_seconds_total", "CPU time of the server process.", "mode")
)

// Storage engine and admission control, from serverStatus.
var (
	ticketsInUse      = gauge("tickets_in_use", "Storage engine tickets taken by running operations, under one name over versions.", "kind")
	ticketsAvailable  = gauge("tickets_available", "Storage engine tickets left. From 7.0 on the server moves the limit by itself: a low value alone is no alarm.", "kind")
	ticketsLimit      = gauge("tickets_limit", "Storage engine tickets in all.", "kind")
	ticketQueue       = gauge("ticket_queue_operations", "Operations waiting for a storage engine ticket.", "kind")
	ticketWaitSeconds = counter("ticket_wait_seconds_total", "Time that operations waited for a storage engine ticket.", "kind")
	cacheBytes        = gauge("cache_bytes", "Data in the WiredTiger cache.")
	cacheDirtyBytes   = gauge("cache_dirty_bytes", "Data in the WiredTiger cache not yet written. From 5 % of the limit on it is evicted, from 20 % on writers do that themselves.")
	cacheLimitBytes   = gauge("cache_limit_bytes", "Configured size of the WiredTiger cache.")
	cacheTraffic      = counter("cache_traffic_bytes_total", "Data read into and written from the WiredTiger cache.", "direction")
	cacheAppEvictions = counter("cache_application_evictions_total", "Pages that clients' threads had to evict themselves; growing means that eviction can't keep up.")
	checkpointSeconds = gauge("checkpoint_last_duration_seconds", "How long the last checkpoint took.")

	flowControlEnabled     = gauge("flow_control_enabled", "1 if flow control is switched on.")
	flowControlLagged      = gauge("flow_control_lagged", "1 while the primary holds writes back because the majority lags.")
	flowControlLaggedTotal = counter("flow_control_lagged_total", "How often the majority began to lag.")
	flowControlLaggedTime  = counter("flow_control_lagged_seconds_total", "How long the majority lagged.")
	flowControlWait        = counter("flow_control_wait_seconds_total", "Time that writes waited for a flow control ticket.")
	flowControlTarget      = gauge("flow_control_target_tickets_per_second", "Flow control tickets granted per second; absent while nothing is limited.")
	flowControlSustainer   = gauge("flow_control_sustainer_operations_per_second", "Operations per second that the secondary sustaining the commit point applies.")
)

// Replication, from serverStatus and replSetGetStatus.
var (
	setState      = gauge("replica_set_state", "The server's own state: 1 primary, 2 secondary, 3 recovering, 5 initial sync, 7 arbiter, 9 rollback.")
	setMembers    = gauge("replica_set_members", "Members of the replica set.")
	setPrimaries  = gauge("replica_set_primaries", "Members that this one sees as primary; 0: no writes possible.")
	setTerm       = gauge("replica_set_term", "Term of the replica set; it grows with each election.")
	memberState   = gauge("member_state", "State of each member as this one sees it (8: not reachable).", "member")
	memberHealth  = gauge("member_health", "1 if this member reaches the other.", "member")
	memberPing    = gauge("member_ping_seconds", "Round trip of heartbeats from this member to the other.", "member")
	memberLag     = gauge("member_lag_seconds", "How far each member is behind the primary as this one sees it, by heartbeats of every two seconds.", "member")
	applyBuffer   = gauge("replication_buffer_operations", "Replicated operations received and not yet written (8.0) or applied.", "stage")
	applyBufferBy = gauge("replication_buffer_bytes", "Size of the operations in the buffer.", "stage")
	applyOps      = counter("replication_applied_operations_total", "Oplog entries applied.")
	applyBatches  = counter("replication_batches_total", "Batches of oplog entries applied.")
	applySeconds  = counter("replication_batch_seconds_total", "Time spent in applying batches.")
	receivedBytes = counter("replication_received_bytes_total", "Bytes of oplog received.")
	oplogWindow   = gauge("oplog_window_seconds", "Time between the first and the last entry of the oplog: how long a member may be away without a new initial sync.")
)

// Sharding, from a mongos.
var (
	targetedOperations = counter("targeted_operations_total", "Operations that this router sent, by how many shards they went to.", "op", "shards")
	staleConfig        = counter("stale_config_errors_total", "Operations that were routed by outdated metadata and had to be repeated.")
	shardCount         = gauge("shards", "Shards of the cluster.")
	shardDraining      = gauge("shard_draining", "1 while the shard is being removed.", "shard")
	shardChunks        = gauge("shard_chunks", "Chunks on each shard, of all collections.", "shard")
	shardOperations    = counter("shard_operations_total", "Operations on sharded collections by shard and kind.", "shard", "collection", "kind")
	shardLatency       = counter("shard_latency_seconds_total", "Time spent in operations on sharded collections.", "shard", "collection", "kind")
	shardDocuments     = gauge("shard_documents", "Documents of sharded collections by shard, orphans included.", "shard", "collection")
	shardDataBytes     = gauge("shard_data_bytes", "Uncompressed size of sharded collections by shard.", "shard", "collection")
	shardOrphans       = gauge("shard_orphaned_documents", "Documents that a shard holds but no longer owns.", "shard", "collection")
	balancerEnabled    = gauge("balancer_enabled", "1 if the balancer is switched on.")
	balancerRunning    = gauge("balancer_running", "1 during a balancing round.")
)
