package mongodb

import (
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

var (
	// fields are the numbers in serverStatus by path.
	fields engine.Table

	_ = fields.Map(engine.Connections, "connections.current")
	_ = fields.Map(engine.BytesTotal, "received: network.bytesIn", "sent: network.bytesOut")
	_ = fields.Map(engine.CommitsTotal, "transactions.totalCommitted")
	_ = fields.Map(engine.RollbacksTotal, "transactions.totalAborted")
)

// tickets returns the paths of a field of the storage engine's tickets: in queues since 8.0, in
// wiredTiger before.
func tickets(field string) []string {
	return []string{"read: " + ticketPath("read", field, " | "), "write: " + ticketPath("write", field, " | ")}
}

func ticketPath(kind, field, separator string) string {
	return "queues.execution." + kind + "." + field + separator + "wiredTiger.concurrentTransactions." + kind + "." + field
}

// ticketQueues is tickets for a field of the ticket queues, which exist per priority since 7.0.
// Exempt operations never wait.
func ticketQueues(field string) []string {
	names := tickets("normalPriority." + field)
	for i, kind := range []string{"read", "write"} {
		names[i] += " | " + ticketPath(kind, field, " | ") + " + " + ticketPath(kind, "lowPriority."+field, " + ")
	}
	return names
}

// Load of one server, from serverStatus.
var (
	replicatedOperations = measure.NewCounter("mongodb_replicated_operations_total", "Operations applied by replication, by kind (opcountersRepl).", "op")
	connectionsCreated   = fields.Map(measure.NewCounter("mongodb_connections_created_total", "Connections that clients opened."), "connections.totalCreated")
	_                    = fields.Map(measure.NewCounter("mongodb_connections_rejected_total",
		"Connections refused because the limit was reached."), "connections.rejected")
	_                = fields.Map(measure.NewCounter("mongodb_network_requests_total", "Requests received over the network."), "network.numRequests")
	queuedOperations = fields.Map(measure.NewGauge("mongodb_queued_operations", "Operations waiting for a lock or a ticket (globalLock.currentQueue).", "kind"),
		"readers: globalLock.currentQueue.readers", "writers: globalLock.currentQueue.writers")
	_ = fields.Map(measure.NewGauge("mongodb_active_clients", "Clients that read or write at this instant (globalLock.activeClients).", "kind"),
		"readers: globalLock.activeClients.readers", "writers: globalLock.activeClients.writers")
	_              = fields.Map(measure.NewGauge("mongodb_transactions_open", "Multi-document transactions open now."), "transactions.currentOpen")
	latencySeconds = measure.NewCounter("mongodb_latency_seconds_total",
		"Time spent in operations, by kind (opLatencies); divided by mongodb_latency_operations_total it is their "+
			"mean latency. Excludes other members' reads of the oplog. The kind commands includes commands of drivers, "+
			"members and monitoring.", "kind")
	latencyOperations = measure.NewCounter("mongodb_latency_operations_total", "Operations counted in mongodb_latency_seconds_total.", "kind")
	documents         = measure.NewCounter("mongodb_documents_total", "Documents inserted, updated, deleted and returned.", "op")
	_                 = fields.Map(measure.NewCounter("mongodb_scanned_keys_total", "Index keys examined by queries."), "metrics.queryExecutor.scanned")
	_                 = fields.Map(measure.NewCounter("mongodb_ttl_deleted_documents_total",
		"Documents that expired and were deleted by a TTL index; mongodb_documents_total includes them."), "metrics.ttl.deletedDocuments")
	scannedDocuments = fields.Map(measure.NewCounter("mongodb_scanned_documents_total", "Documents examined by queries."), "metrics.queryExecutor.scannedObjects")
	collectionScans  = fields.Map(measure.NewCounter("mongodb_collection_scans_total", "Queries that read a whole collection."),
		"metrics.queryExecutor.collectionScans.total")
	inMemorySorts  = fields.Map(measure.NewCounter("mongodb_in_memory_sorts_total", "Queries that sorted without an index."), "metrics.operation.scanAndOrder")
	planSelections = fields.Map(measure.NewCounter("mongodb_plan_selections_total",
		"Queries for which the server tried several plans, since the cache had none (6.0)."),
		"metrics.query.multiPlanner.classicCount + metrics.query.multiPlanner.sbeCount")
	planSeconds = fields.Convert(measure.NewCounter("mongodb_plan_selection_seconds_total", "Time spent on trying plans (6.0)."), micro,
		"metrics.query.multiPlanner.classicMicros + metrics.query.multiPlanner.sbeMicros")
	writeConflicts = fields.Map(measure.NewCounter("mongodb_write_conflicts_total",
		"Writes that conflicted and were tried again."), "metrics.operation.writeConflicts")
	residentMemory = fields.Convert(measure.NewGauge("mongodb_resident_memory_bytes", "Memory of the server process."), mebi, "mem.resident")
	cpuSeconds     = fields.Convert(measure.NewCounter("mongodb_cpu_seconds_total", "CPU time of the server process.", "mode"), micro,
		"user: extra_info.user_time_us", "system: extra_info.system_time_us")
)

// Storage engine and admission control, from serverStatus.
var (
	ticketsInUse = fields.Map(measure.NewGauge("mongodb_tickets_in_use",
		"Storage engine tickets taken by running operations, under the same name in all versions.", "kind"), tickets("out")...)
	ticketsLeft = fields.Map(measure.NewGauge("mongodb_tickets_available",
		"Storage engine tickets left. Since 7.0 the server adjusts the limit itself, so a low value alone is no "+
			"reason for alarm.", "kind"), tickets("available")...)
	ticketsLimit = fields.Map(measure.NewGauge("mongodb_tickets_limit", "Total number of storage engine tickets.", "kind"), tickets("totalTickets")...)
	ticketQueue  = fields.Map(measure.NewGauge("mongodb_ticket_queue_operations",
		"Operations waiting for a storage engine ticket.", "kind"), ticketQueues("queueLength")...)
	_ = fields.Convert(measure.NewCounter("mongodb_ticket_wait_seconds_total",
		"Time that operations waited for a storage engine ticket.", "kind"), micro, ticketQueues("totalTimeQueuedMicros")...)
	_               = fields.Map(measure.NewGauge("mongodb_cache_bytes", "Data in the WiredTiger cache."), "wiredTiger.cache.bytes currently in the cache")
	cacheDirtyBytes = fields.Map(measure.NewGauge("mongodb_cache_dirty_bytes",
		"Data in the WiredTiger cache not yet written. Above 5 % of the limit, the server evicts it; above 20 %, "+
			"writers have to evict it."), "wiredTiger.cache.tracked dirty bytes in the cache")
	cacheLimitBytes = fields.Map(measure.NewGauge("mongodb_cache_limit_bytes", "Configured size of the WiredTiger cache."),
		"wiredTiger.cache.maximum bytes configured")
	_ = fields.Map(measure.NewCounter("mongodb_cache_traffic_bytes_total", "Data read into and written from the WiredTiger cache.", "direction"),
		"read: wiredTiger.cache.bytes read into cache", "written: wiredTiger.cache.bytes written from cache")
	cacheAppEvictions = fields.Map(measure.NewCounter("mongodb_cache_application_evictions_total",
		"Pages that clients' threads had to evict themselves; growing means that eviction can't keep up."), "wiredTiger.cache.pages evicted by application threads")
	checkpointRuns = fields.Map(measure.NewGauge("mongodb_checkpoint_running", "1 while a checkpoint is written."),
		"wiredTiger.checkpoint.currently running | wiredTiger.transaction.transaction checkpoint currently running") // 8.0 | before
	checkpointTime = fields.Convert(measure.NewCounter("mongodb_checkpoint_seconds_total", "Time spent on checkpoints."), milli,
		"wiredTiger.checkpoint.total time (msecs) | wiredTiger.transaction.transaction checkpoint total time (msecs)") // 8.0 | before
	checkpointSeconds = fields.Convert(measure.NewGauge("mongodb_checkpoint_last_duration_seconds", "How long the last checkpoint took."), milli,
		"wiredTiger.checkpoint.most recent time (msecs) | wiredTiger.transaction.transaction checkpoint most recent time (msecs)") // 8.0 | before

	_                 = fields.Map(measure.NewGauge("mongodb_flow_control_enabled", "1 if flow control is switched on."), "flowControl.enabled")
	flowControlLagged = fields.Map(measure.NewGauge("mongodb_flow_control_lagged",
		"1 while the primary holds writes back because the majority lags."), "flowControl.isLagged")
	_ = fields.Map(measure.NewCounter("mongodb_flow_control_lagged_total", "How often the majority began to lag."), "flowControl.isLaggedCount")
	_ = fields.Convert(measure.NewCounter("mongodb_flow_control_lagged_seconds_total",
		"How long the majority lagged; the server adds the time when the lag ends."), micro, "flowControl.isLaggedTimeMicros")
	_ = fields.Convert(measure.NewCounter("mongodb_flow_control_wait_seconds_total",
		"Time that writes waited for a flow control ticket."), micro, "flowControl.timeAcquiringMicros")
	flowControlTarget = measure.NewGauge("mongodb_flow_control_target_tickets_per_second",
		"Flow control tickets granted per second; absent while nothing is limited.")
	_ = fields.Map(measure.NewGauge("mongodb_flow_control_sustainer_operations_per_second",
		"Operations per second that the secondary sustaining the commit point applies."), "flowControl.sustainerRate")
)

// Replication, from serverStatus and replSetGetStatus.
var (
	setState = measure.NewGauge("mongodb_replica_set_state",
		"The server's own state: 1 primary, 2 secondary, 3 recovering, 5 initial sync, 7 arbiter, 9 rollback.")
	setMembers   = measure.NewGauge("mongodb_replica_set_members", "Members of the replica set.")
	setPrimaries = measure.NewGauge("mongodb_replica_set_primaries",
		"Members of its replica set that this member sees as primary; 0: no writes are possible.", "set")
	setTerm      = measure.NewGauge("mongodb_replica_set_term", "Term of the replica set; it grows with each election.")
	memberState  = measure.NewGauge("mongodb_member_state", "State of each member as this member sees it (8: not reachable).", "member")
	memberHealth = measure.NewGauge("mongodb_member_health", "1 if this member reaches the other.", "member")
	memberPing   = measure.NewGauge("mongodb_member_ping_seconds", "Round trip of heartbeats from this member to the other.", "member")
	memberLag    = measure.NewGauge("mongodb_member_lag_seconds",
		"How far each member is behind the primary as this member sees it, by heartbeats every two seconds.", "member")
	applyBuffer = fields.Map(measure.NewGauge("mongodb_replication_buffer_operations",
		"Replicated operations received and not yet written (8.0) or applied.", "stage"),
		"apply: metrics.repl.buffer.apply.count | metrics.repl.buffer.count", "write: metrics.repl.buffer.write.count") // 8.0 | before
	_ = fields.Map(measure.NewGauge("mongodb_replication_buffer_bytes", "Size of the operations in the buffer.", "stage"),
		"apply: metrics.repl.buffer.apply.sizeBytes | metrics.repl.buffer.sizeBytes", "write: metrics.repl.buffer.write.sizeBytes") // 8.0 | before
	_ = fields.Map(measure.NewCounter("mongodb_replication_applied_operations_total", "Oplog entries applied."), "metrics.repl.apply.ops")
	_ = fields.Map(measure.NewCounter("mongodb_replication_batches_total", "Batches of oplog entries applied."), "metrics.repl.apply.batches.num")
	_ = fields.Convert(measure.NewCounter(
		"mongodb_replication_batch_seconds_total", "Time spent in applying batches."), milli, "metrics.repl.apply.batches.totalMillis")
	_           = fields.Map(measure.NewCounter("mongodb_replication_received_bytes_total", "Bytes of oplog received."), "metrics.repl.network.bytes")
	oplogWindow = measure.NewGauge("mongodb_oplog_window_seconds",
		"Time between the first and the last entry of the oplog: how long a member may be away without a new initial "+
			"sync.")
)

// Sharding, from a mongos.
var (
	targetedOperations = measure.NewCounter("mongodb_targeted_operations_total",
		"Operations that this router sent, by how many shards they went to.", "op", "shards")
	_ = fields.Map(measure.NewCounter("mongodb_stale_config_errors_total",
		"Operations that were routed by outdated metadata and had to be repeated."), "shardingStatistics.catalogCache.countStaleConfigErrors")
	shardCount      = measure.NewGauge("mongodb_shards", "Shards of the cluster.")
	shardDraining   = measure.NewGauge("mongodb_shard_draining", "1 while the shard is being removed.", "shard")
	shardChunks     = measure.NewGauge("mongodb_shard_chunks", "Chunks on each shard, of all collections.", "shard")
	databasePrimary = measure.NewGauge("mongodb_database_primary_info",
		"1 for each database with its primary shard, which holds the collections that are neither sharded nor moved.", "database", "shard")
	shardOperations = measure.NewCounter("mongodb_shard_operations_total",
		"Operations on collections, sharded or not, by shard and kind.", "shard", "collection", "kind")
	shardLatency = measure.NewCounter("mongodb_shard_latency_seconds_total",
		"Time spent in operations on collections, by shard.", "shard", "collection", "kind")
	shardDocuments  = measure.NewGauge("mongodb_shard_documents", "Documents of collections by shard, orphans included.", "shard", "collection")
	shardDataBytes  = measure.NewGauge("mongodb_shard_data_bytes", "Uncompressed size of collections by shard.", "shard", "collection")
	shardOrphans    = measure.NewGauge("mongodb_shard_orphaned_documents", "Documents that a shard holds but no longer owns.", "shard", "collection")
	balancerEnabled = measure.NewGauge("mongodb_balancer_enabled", "1 if the balancer is switched on.")
	balancerRunning = measure.NewGauge("mongodb_balancer_running", "1 during a balancing round.")
)

// Counters that causes read.
var (
	examined = measure.NewEvidence(measure.Server, measure.RateOf(scannedDocuments))
	returned = measure.NewEvidence(measure.Server, measure.RateOf(documents).On("op", "returned"))
	scans    = measure.NewEvidence(measure.Server, measure.RateOf(collectionScans))
	sorts    = measure.NewEvidence(measure.Server, measure.RateOf(inMemorySorts))
	plans    = measure.NewEvidence(measure.Server, measure.RateOf(planSelections))
	planning = measure.NewEvidence(measure.Server, measure.RateOf(planSeconds))
	spent    = measure.NewEvidence(measure.Server, measure.RateOf(latencySeconds).On("kind", "reads", "writes"))
	written  = measure.NewEvidence(measure.Server, measure.RateOf(checkpointTime))
	targeted = measure.NewEvidence(measure.Server, measure.RateOf(targetedOperations))
)

// The measures of a server.
var (
	_ = engine.ServerLatency.Or(measure.RateOf(latencySeconds).Over(latencyOperations).On("kind", reads, writes))
	_ = engine.FlowControl.Or(measure.ValueOf(flowControlLagged))
	_ = engine.ServerCPU.Or(measure.RateOf(cpuSeconds))
	_ = engine.ServerMemory.Or(measure.ValueOf(residentMemory))
	_ = engine.ClusterSize.Or(measure.ValueOf(setMembers))
	_ = engine.OpenedConnections.Or(measure.RateOf(connectionsCreated))

	// Each router reports all shards, so operations on shards are not a cost of the router.
	_ = engine.NewImbalance(40, "imbalance_shard_operations", "operations", "shard",
		(&measure.Measure{ID: "shard_operations", Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Cost}).Or(measure.RateOf(shardOperations)))

	queued = engine.NewMeasure(500, "queued_operations", "Queued operations", "operations waiting for a lock or a ticket", measure.Count, measure.Max,
		measure.ValueOf(queuedOperations))
	conflicts = engine.NewMeasure(510, "write_conflicts", "Write conflicts", "writes tried again per second", measure.PerSecond, measure.Increase,
		measure.RateOf(writeConflicts))
	cacheDirty = engine.NewMeasure(600, "cache_dirty", "Dirty WiredTiger cache",
		"share of the cache not yet written; from 20 % on clients have to evict", measure.Ratio, measure.Max,
		measure.ValueOf(cacheDirtyBytes).Over(cacheLimitBytes))
	evictions = engine.NewMeasure(610, "cache_evictions", "Evictions by clients",
		"pages per second that clients' threads evict from the WiredTiger cache", measure.PerSecond, measure.Mean,
		measure.RateOf(cacheAppEvictions))
	checkpointing = engine.NewMeasure(622, "checkpoint_in_progress", "WiredTiger checkpoint in progress", "share of the time", measure.Ratio, measure.Mean,
		measure.ValueOf(checkpointRuns))
	usedTickets = engine.NewMeasure(630, "tickets_in_use", "Tickets in use",
		"of the storage engine, by operations that run", measure.Count, measure.Mean, measure.ValueOf(ticketsInUse))
	readTickets = engine.NewMeasure(941, "read_tickets", "Tickets for reads",
		"limit of the operations that run at the same time in the storage engine", measure.Count, measure.Last, measure.ValueOf(ticketsLimit).On("kind", "read"))
	writeTickets = engine.NewMeasure(942, "write_tickets", "Tickets for writes",
		"limit of the operations that run at the same time in the storage engine", measure.Count, measure.Last, measure.ValueOf(ticketsLimit).On("kind", "write"))
	shards = engine.NewMeasure(943, "shards", "Shards", "of the cluster", measure.Count, measure.Last, measure.ValueOf(shardCount))
	_      = engine.NewMeasure(620, "checkpoint_duration", "WiredTiger checkpoint", "duration of the last checkpoint", measure.Seconds, measure.Max,
		measure.ValueOf(checkpointSeconds))
	_ = engine.NewMeasure(940, "cache_limit", "WiredTiger cache limit", "configured size of the cache", measure.Bytes,
		measure.Last, measure.ValueOf(cacheLimitBytes))
)
