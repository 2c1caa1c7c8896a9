package mongodb

import (
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/measure"
)

// serverStatusCommand asks for the sections that are read. The others are
// switched off, so that the server does not gather them: some take locks or
// walk through allocator statistics. Servers ignore sections they don't know.
func serverStatusCommand(withOplog bool) bson.D {
	cmd := bson.D{{Key: "serverStatus", Value: 1}}
	for _, section := range []string{
		"asserts", "batchedDeletes", "bucketCatalog", "catalogStats", "changeStreamPreImages",
		"collectionCatalog", "defaultRWConcern", "electionMetrics", "featureCompatibilityVersion",
		"hedgingMetrics", "indexBuilds", "indexBulkBuilder", "indexStats", "internalTransactions",
		"locks", "logicalSessionRecordCache", "mirroredReads", "oplogTruncation", "planCache",
		"queryAnalyzers", "querySettings", "readConcernCounters", "readPreferenceCounters",
		"scramCache", "security", "shardSplits", "tcmalloc", "tenantMigrations", "trafficRecording",
		"transportSecurity", "twoPhaseCommitCoordinator", "watchdog",
	} {
		cmd = append(cmd, bson.E{Key: section, Value: 0})
	}
	if withOplog { // not sent unless asked for; since 3.0
		cmd = append(cmd, bson.E{Key: "oplog", Value: 1})
	}
	return cmd
}

// How many of the server's units make a base unit.
const (
	micro = 1e6
	milli = 1e3
	mebi  = 1.0 / (1 << 20)
)

// fields are the numbers of serverStatus by their paths.
var fields = engine.Table{
	{Metric: engine.Connections, Names: []string{"connections.current"}},
	{Metric: engine.BytesTotal, Labels: []string{"received"}, Names: []string{"network.bytesIn"}},
	{Metric: engine.BytesTotal, Labels: []string{"sent"}, Names: []string{"network.bytesOut"}},
	{Metric: engine.CommitsTotal, Names: []string{"transactions.totalCommitted"}},
	{Metric: engine.RollbacksTotal, Names: []string{"transactions.totalAborted"}},

	{Metric: connectionsCreated, Names: []string{"connections.totalCreated"}},
	{Metric: connectionsRejected, Names: []string{"connections.rejected"}},
	{Metric: networkRequests, Names: []string{"network.numRequests"}},
	{Metric: queuedOperations, Labels: []string{"readers"}, Names: []string{"globalLock.currentQueue.readers"}},
	{Metric: queuedOperations, Labels: []string{"writers"}, Names: []string{"globalLock.currentQueue.writers"}},
	{Metric: activeClients, Labels: []string{"readers"}, Names: []string{"globalLock.activeClients.readers"}},
	{Metric: activeClients, Labels: []string{"writers"}, Names: []string{"globalLock.activeClients.writers"}},
	{Metric: openTransactions, Names: []string{"transactions.currentOpen"}},
	{Metric: scannedKeys, Names: []string{"metrics.queryExecutor.scanned"}},
	{Metric: scannedDocuments, Names: []string{"metrics.queryExecutor.scannedObjects"}},
	{Metric: collectionScans, Names: []string{"metrics.queryExecutor.collectionScans.total"}},
	{Metric: sortsInMemory, Names: []string{"metrics.operation.scanAndOrder"}},
	{Metric: writeConflicts, Names: []string{"metrics.operation.writeConflicts"}},
	{Metric: residentMemory, Names: []string{"mem.resident"}, Divisor: mebi},
	{Metric: cpuSeconds, Labels: []string{"user"}, Names: []string{"extra_info.user_time_us"}, Divisor: micro},
	{Metric: cpuSeconds, Labels: []string{"system"}, Names: []string{"extra_info.system_time_us"}, Divisor: micro},

	{Metric: cacheBytes, Names: []string{"wiredTiger.cache.bytes currently in the cache"}},
	{Metric: cacheDirtyBytes, Names: []string{"wiredTiger.cache.tracked dirty bytes in the cache"}},
	{Metric: cacheLimitBytes, Names: []string{"wiredTiger.cache.maximum bytes configured"}},
	{Metric: cacheTraffic, Labels: []string{"read"}, Names: []string{"wiredTiger.cache.bytes read into cache"}},
	{Metric: cacheTraffic, Labels: []string{"written"}, Names: []string{"wiredTiger.cache.bytes written from cache"}},
	{Metric: cacheAppEvictions, Names: []string{"wiredTiger.cache.pages evicted by application threads"}},
	{Metric: checkpointSeconds, Divisor: milli, Names: []string{
		"wiredTiger.checkpoint.most recent time (msecs)", // 8.0
		"wiredTiger.transaction.transaction checkpoint most recent time (msecs)",
	}},

	{Metric: flowControlLaggedTotal, Names: []string{"flowControl.isLaggedCount"}},
	{Metric: flowControlLaggedTime, Names: []string{"flowControl.isLaggedTimeMicros"}, Divisor: micro},
	{Metric: flowControlWait, Names: []string{"flowControl.timeAcquiringMicros"}, Divisor: micro},
	{Metric: flowControlSustainer, Names: []string{"flowControl.sustainerRate"}},

	{Metric: applyOps, Names: []string{"metrics.repl.apply.ops"}},
	{Metric: applyBatches, Names: []string{"metrics.repl.apply.batches.num"}},
	{Metric: applySeconds, Names: []string{"metrics.repl.apply.batches.totalMillis"}, Divisor: milli},
	{Metric: receivedBytes, Names: []string{"metrics.repl.network.bytes"}},
	{Metric: staleConfig, Names: []string{"shardingStatistics.catalogCache.countStaleConfigErrors"}},
}

// unlimitedTickets is flow control's target rate while it limits nothing.
const unlimitedTickets = 1_000_000_000

// readServerStatus fills s from the answer to serverStatus.
func readServerStatus(s *engine.Status, d document) {
	s.Version = d.text("version")
	if ms, ok := d.number("uptimeMillis"); ok {
		s.Uptime = time.Duration(ms) * time.Millisecond
	} else if seconds, ok := d.number("uptime"); ok {
		s.Uptime = time.Duration(seconds * float64(time.Second))
	}
	fields.Read(s, func(path string) (float64, bool) { return d.number(strings.Split(path, ".")...) })
	readCommon(s, d)
	readLatencies(s, d)
	readTickets(s, d)
	readFlowControl(s, d)
	readApplyBuffer(s, d)
	readTargeting(s, d)
}

// readCommon sets the metrics that all engines share.
func readCommon(s *engine.Status, d document) {
	asked, known := 0.0, false
	d.numbers(func(op string, n float64) {
		s.Set(engine.OperationsTotal, n, op)
		asked += n
		known = true
	}, "opcounters")
	if known {
		s.Set(engine.QueriesTotal, asked)
		replicated := 0.0
		d.numbers(func(op string, n float64) {
			s.Set(replicatedOperations, n, op)
			replicated += n
		}, "opcountersRepl")
		s.Set(engine.StatementsTotal, asked+replicated)
	}
	d.numbers(func(op string, n float64) { s.Set(documents, n, op) }, "metrics", "document")

	current, ok1 := d.number("connections", "current")
	available, ok2 := d.number("connections", "available")
	if ok1 && ok2 {
		s.Set(engine.ConnectionsLimit, current+available)
	}
	// Clients that wait to hear of a change of topology count as active.
	if active, ok := d.number("connections", "active"); ok {
		waiting, _ := d.number("connections", "awaitingTopologyChanges")
		s.Set(engine.ThreadsRunning, max(0, active-waiting))
	}
}

// readLatencies sets the time spent in operations. The sums are microseconds.
func readLatencies(s *engine.Status, d document) {
	for _, kind := range []string{"reads", "writes", "commands", "transactions"} {
		sum, ok1 := d.number("opLatencies", kind, "latency")
		count, ok2 := d.number("opLatencies", kind, "ops")
		if ok1 && ok2 {
			s.Set(latencySeconds, sum/micro, kind)
			s.Set(latencyOperations, count, kind)
		}
	}
}

// readTickets sets the storage engine's tickets: in wiredTiger up to 7.x, in
// queues.execution from 8.0 on.
func readTickets(s *engine.Status, d document) {
	for _, kind := range []string{"read", "write"} {
		t, ok := d.sub("queues", "execution", kind)
		if !ok {
			if t, ok = d.sub("wiredTiger", "concurrentTransactions", kind); !ok {
				continue
			}
		}
		for name, m := range map[string]*measure.Metric{"out": ticketsInUse, "available": ticketsAvailable, "totalTickets": ticketsLimit} {
			if v, ok := t.number(name); ok {
				s.Set(m, v, kind)
			}
		}
		sumOf(s, ticketQueue, kind, 1, t, "queueLength")
		sumOf(s, ticketWaitSeconds, kind, micro, t, "totalTimeQueuedMicros")
	}
}

// sumOf sets m to the sum of a field over the priorities that a ticket queue
// distinguishes; operations that are exempt never wait.
func sumOf(s *engine.Status, m *measure.Metric, kind string, divisor float64, tickets document, name string) {
	sum, known := 0.0, false
	for _, priority := range []string{"normalPriority", "lowPriority"} {
		if v, ok := tickets.number(priority, name); ok {
			sum += v
			known = true
		}
	}
	if !known {
		if sum, known = tickets.number(name); !known {
			return
		}
	}
	s.Set(m, sum/divisor, kind)
}

func readFlowControl(s *engine.Status, d document) {
	if on, ok := d.boolean("flowControl", "enabled"); ok {
		s.SetBool(flowControlEnabled, on)
	}
	if lagged, ok := d.boolean("flowControl", "isLagged"); ok {
		s.SetBool(flowControlLagged, lagged)
	}
	if rate, ok := d.number("flowControl", "targetRateLimit"); ok && rate < unlimitedTickets {
		s.Set(flowControlTarget, rate)
	}
}

// readApplyBuffer sets what was received from the sync source and is not yet
// written to the oplog (8.0: write) or applied.
func readApplyBuffer(s *engine.Status, d document) {
	buffer, ok := d.sub("metrics", "repl", "buffer")
	if !ok {
		return
	}
	stages := map[string]document{"apply": buffer}
	if apply, ok := buffer.sub("apply"); ok { // 8.0
		stages["apply"] = apply
		if write, ok := buffer.sub("write"); ok {
			stages["write"] = write
		}
	}
	for stage, b := range stages {
		if n, ok := b.number("count"); ok {
			s.Set(applyBuffer, n, stage)
		}
		if n, ok := b.number("sizeBytes"); ok {
			s.Set(applyBufferBy, n, stage)
		}
	}
}

// readTargeting sets to how many shards a router sent its operations.
func readTargeting(s *engine.Status, d document) {
	if d.text("process") != "mongos" {
		return
	}
	names := map[string]string{"oneShard": "one", "manyShards": "many", "allShards": "all", "unsharded": "unsharded"}
	for _, op := range []string{"find", "insert", "update", "delete", "aggregate"} {
		d.numbers(func(key string, n float64) {
			if name, ok := names[key]; ok {
				s.Set(targetedOperations, n, op, name)
			}
		}, "shardingStatistics", "numHostsTargeted", op)
	}
}
