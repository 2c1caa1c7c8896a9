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
