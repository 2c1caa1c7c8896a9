package mongodb

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

const rightOplogLatency = "collStats on local (role clusterMonitor): latency of reads, without those of replication"

// latencySum is the time spent in operations and their number.
type latencySum struct{ seconds, operations float64 }

// oplogReads are the reads of the oplog by other members, which a server counts like clients' reads.
type oplogReads struct {
	served  float64    // requests for more of the oplog, at the last reading
	sum     latencySum // at the last reading
	clients latencySum // reads without those of the oplog, as last shown
}

// leaveOutOplogReads subtracts other members' reads of the oplog from the latency of reads. Without the privilege to
// read them, the latency of reads is absent. The two are read one after the other, so the difference is kept from going
// back.
func (p *prober) leaveOutOplogReads(ctx context.Context, s *engine.Status, d document) error {
	served, _ := d.number("metrics", "repl", "network", "oplogGetMoresProcessed", "num") // since 4.4
	seconds, ok := s.Get(latencySeconds, reads)
	if served == 0 || !ok {
		return nil
	}
	operations, _ := s.Get(latencyOperations, reads)
	o := &p.oplog
	if served != o.served {
		ctx, cancel := engine.WithShare(ctx, 0.5)
		defer cancel()
		stats, err := p.attempt("$collStats", rightOplogLatency, func() (document, error) {
			docs, err := p.documents(p.client.aggregate(ctx, "local", "oplog.rs", bson.A{latencyStats(false)}))
			if err != nil || len(docs) == 0 {
				return nil, err
			}
			return docs[0], nil
		})
		if err != nil {
			return err
		}
		micros, ok1 := stats.number("latencyStats", reads, "latency")
		n, ok2 := stats.number("latencyStats", reads, "ops")
		if !ok1 || !ok2 {
			s.Values = slices.DeleteFunc(s.Values, func(v engine.Value) bool {
				return (v.Metric == latencySeconds || v.Metric == latencyOperations) && v.Labels[0] == reads
			})
			return nil
		}
		o.served, o.sum = served, latencySum{micros / micro, n}
	}
	o.clients.seconds = max(o.clients.seconds, seconds-o.sum.seconds)
	o.clients.operations = max(o.clients.operations, operations-o.sum.operations)
	setOnce(s, latencySeconds, o.clients.seconds, reads)
	setOnce(s, latencyOperations, o.clients.operations, reads)
	return nil
}

// latencyStats is the stage of a pipeline that returns a collection's latencies.
func latencyStats(histograms bool) bson.D {
	return bson.D{{Key: "$collStats", Value: bson.D{{Key: "latencyStats", Value: bson.D{{Key: "histograms", Value: histograms}}}}}}
}
