package mongodb

import (
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// statusSections are the sections of serverStatus that are switched on, because they are only sent on
// request, or off, so that the server does not collect them: some take locks or walk through
// allocator statistics. Servers ignore unknown sections.
func statusSections(withOplog bool) (sections []bson.E) {
	for _, section := range []string{
		"asserts", "batchedDeletes", "bucketCatalog", "catalogStats", "changeStreamPreImages",
		"collectionCatalog", "defaultRWConcern", "electionMetrics", "featureCompatibilityVersion",
		"hedgingMetrics", "indexBuilds", "indexBulkBuilder", "indexStats", "internalTransactions",
		"locks", "logicalSessionRecordCache", "oplogTruncation", "planCache",
		"queryAnalyzers", "querySettings", "readConcernCounters", "readPreferenceCounters",
		"scramCache", "security", "shardSplits", "tcmalloc", "tenantMigrations", "trafficRecording",
		"transportSecurity", "twoPhaseCommitCoordinator", "watchdog",
	} {
		sections = append(sections, bson.E{Key: section, Value: 0})
	}
	sections = append(sections, bson.E{Key: "mirroredReads", Value: 1}) // since 4.4
	if withOplog {                                                      // since 3.0
		sections = append(sections, bson.E{Key: "oplog", Value: 1})
	}
	return sections
}

// The number of the server's units in one base unit.
const (
	micro = 1e6
	milli = 1e3
	mebi  = 1.0 / (1 << 20)
)

// unlimitedTickets is flow control's target rate if there is no limit.
const unlimitedTickets = 1_000_000_000

// readServerStatus fills s from the answer to serverStatus.
func readServerStatus(s *engine.Status, d document) {
	s.Version = d.text("version")
	s.Nodename, _, _ = strings.Cut(d.text("host"), ":") // with a port unless it is the default
	if ms, ok := d.number("uptimeMillis"); ok {
		s.Uptime = time.Duration(ms) * time.Millisecond
	} else if seconds, ok := d.number("uptime"); ok {
		s.Uptime = time.Duration(seconds * float64(time.Second))
	}
	fields.Read(s, func(path string) (float64, bool) { return d.number(strings.Split(path, ".")...) })
	readCommon(s, d)
	readLatencies(s, d, latencies, latencySeconds, latencyOperations)
	if rate, ok := d.number("flowControl", "targetRateLimit"); ok && rate < unlimitedTickets {
		s.Set(flowControlTarget, rate)
	}
	readTargeting(s, d)
}

// queryCommands are the commands by which clients read and write. The others come from drivers,
// monitoring and members of the set. getMore does, too: it reads more of an earlier query or, for a
// secondary, of the oplog.
var queryCommands = []string{
	"abortTransaction", "aggregate", "bulkWrite", "commitTransaction", "count", "delete", "distinct", "find", "findAndModify", "insert", "mapReduce", "update",
}

// readCommon sets the metrics that all engines share.
func readCommon(s *engine.Status, d document) {
	executed, known := 0.0, false
	d.numbers(func(op string, n float64) {
		s.Set(engine.OperationsTotal, n, op)
		executed += n
		known = true
	}, "opcounters")
	if known {
		d.numbers(func(op string, n float64) {
			s.Set(replicatedOperations, n, op)
			executed += n
		}, "opcountersRepl")
		s.Set(engine.StatementsTotal, executed)
	}
	queries, known := 0.0, false
	for _, command := range queryCommands {
		if n, ok := d.number("metrics", "commands", command, "total"); ok {
			queries += n
			known = true
		}
	}
	if known {
		mirrored, _ := d.number("mirroredReads", "processedAsSecondary") // sent by the primary, not by clients; since 6.2
		s.Set(engine.QueriesTotal, queries-mirrored)
	}
	d.numbers(func(op string, n float64) { s.Set(documents, n, op) }, "metrics", "document")

	current, ok1 := d.number("connections", "current")
	available, ok2 := d.number("connections", "available")
	if ok1 && ok2 {
		s.Set(engine.ConnectionsLimit, current+available)
	}
	// Clients that wait for a change of topology count as active.
	if active, ok := d.number("connections", "active"); ok {
		waiting, _ := d.number("connections", "awaitingTopologyChanges")
		s.Set(engine.ThreadsRunning, max(0, active-waiting))
	}
}

// readLatencies sets the time spent in operations, in microseconds in the section of d, and the
// number of operations.
func readLatencies(s *engine.Status, d document, section string, seconds, operations *measure.Metric, labels ...string) {
	for _, kind := range []string{reads, writes, "commands", "transactions"} {
		sum, ok1 := d.number(section, kind, "latency")
		count, ok2 := d.number(section, kind, "ops")
		if ok1 && ok2 {
			labels := append(slices.Clone(labels), kind)
			s.Set(seconds, sum/micro, labels...)
			s.Set(operations, count, labels...)
		}
	}
}

// readTargeting sets how many shards a router's operations were sent to.
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
