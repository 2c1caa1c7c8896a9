package mongodb

import (
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

// How many of a server's units make a base unit.
const (
	micro = 1e6
	milli = 1e3
	mebi  = 1.0 / (1 << 20)
)

// field says where the value of a metric is found. Of several paths the first
// that is there counts: places change between versions.
type field struct {
	metric *measure.Metric
	labels []string
	unit   float64 // how many make a base unit; 0: 1
	paths  [][]string
}

func at(path ...string) [][]string { return [][]string{path} }

var fields = []field{
	{metric: engine.Connections, paths: at("connections", "current")},
	{metric: engine.BytesTotal, labels: []string{"received"}, paths: at("network", "bytesIn")},
	{metric: engine.BytesTotal, labels: []string{"sent"}, paths: at("network", "bytesOut")},
	{metric: engine.CommitsTotal, paths: at("transactions", "totalCommitted")},
	{metric: engine.RollbacksTotal, paths: at("transactions", "totalAborted")},

	{metric: connectionsCreated, paths: at("connections", "totalCreated")},
	{metric: connectionsRejected, paths: at("connections", "rejected")},
	{metric: networkRequests, paths: at("network", "numRequests")},
	{metric: queuedOperations, labels: []string{"readers"}, paths: at("globalLock", "currentQueue", "readers")},
	{metric: queuedOperations, labels: []string{"writers"}, paths: at("globalLock", "currentQueue", "writers")},
	{metric: activeClients, labels: []string{"readers"}, paths: at("globalLock", "activeClients", "readers")},
	{metric: activeClients, labels: []string{"writers"}, paths: at("globalLock", "activeClients", "writers")},
	{metric: openTransactions, paths: at("transactions", "currentOpen")},
	{metric: scannedKeys, paths: at("metrics", "queryExecutor", "scanned")},
	{metric: scannedDocuments, paths: at("metrics", "queryExecutor", "scannedObjects")},
	{metric: collectionScans, paths: at("metrics", "queryExecutor", "collectionScans", "total")},
	{metric: sortsInMemory, paths: at("metrics", "operation", "scanAndOrder")},
	{metric: writeConflicts, paths: at("metrics", "operation", "writeConflicts")},
	{metric: residentMemory, unit: mebi, paths: at("mem", "resident")},
	{metric: cpuSeconds, labels: []string{"user"}, unit: micro, paths: at("extra_info", "user_time_us")},
	{metric: cpuSeconds, labels: []string{"system"}, unit: micro, paths: at("extra_info", "system_time_us")},

	{metric: cacheBytes, paths: at("wiredTiger", "cache", "bytes currently in the cache")},
	{metric: cacheDirtyBytes, paths: at("wiredTiger", "cache", "tracked dirty bytes in the cache")},
	{metric: cacheLimitBytes, paths: at("wiredTiger", "cache", "maximum bytes configured")},
	{metric: cacheTraffic, labels: []string{"read"}, paths: at("wiredTiger", "cache", "bytes read into cache")},
	{metric: cacheTraffic, labels: []string{"written"}, paths: at("wiredTiger", "cache", "bytes written from cache")},
	{metric: cacheAppEvictions, paths: at("wiredTiger", "cache", "pages evicted by application threads")},
	{metric: checkpointSeconds, unit: milli, paths: [][]string{
		{"wiredTiger", "checkpoint", "most recent time (msecs)"}, // 8.0
		{"wiredTiger", "transaction", "transaction checkpoint most recent time (msecs)"},
	}},

	{metric: flowControlLaggedTotal, paths: at("flowControl", "isLaggedCount")},
	{metric: flowControlLaggedTime, unit: micro, paths: at("flowControl", "isLaggedTimeMicros")},
	{metric: flowControlWait, unit: micro, paths: at("flowControl", "timeAcquiringMicros")},
	{metric: flowControlSustainer, paths: at("flowControl", "sustainerRate")},

	{metric: applyOps, paths: at("metrics", "repl", "apply", "ops")},
	{metric: applyBatches, paths: at("metrics", "repl", "apply", "batches", "num")},
	{metric: applySeconds, unit: milli, paths: at("metrics", "repl", "apply", "batches", "totalMillis")},
	{metric: receivedBytes, paths: at("metrics", "repl", "network", "bytes")},
	{metric: staleConfig, paths: at("shardingStatistics", "catalogCache", "countStaleConfigErrors")},
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
	for _, f := range fields {
		if v, ok := d.first(f.paths); ok {
			if f.unit != 0 {
				v /= f.unit
			}
			s.Set(f.metric, v, f.labels...)
		}
	}
	readCommon(s, d)
	readLatencies(s, d)
	readTickets(s, d)
	readFlowControl(s, d)
	readApplyBuffer(s, d)
	readTargeting(s, d)
}

// first returns the number at the first path that has one.
func (d document) first(paths [][]string) (float64, bool) {
	for _, path := range paths {
		if v, ok := d.number(path...); ok {
			return v, true
		}
	}
	return 0, false
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
func sumOf(s *engine.Status, m *measure.Metric, kind string, unit float64, tickets document, name string) {
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
	s.Set(m, sum/unit, kind)
}

func readFlowControl(s *engine.Status, d document) {
	if on, ok := d.boolean("flowControl", "enabled"); ok {
		s.Set(flowControlEnabled, oneIf(on))
	}
	if lagged, ok := d.boolean("flowControl", "isLagged"); ok {
		s.Set(flowControlLagged, oneIf(lagged))
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

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
