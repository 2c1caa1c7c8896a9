package mongodb

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// The required rights.
const (
	missingTop    = "statements: the right top (role clusterMonitor)"
	missingUptime = "statements: the right serverStatus (role clusterMonitor)"
)

// kinds are the commands that `top` counts, with their names there. Its other fields are sums of
// these.
var kinds = []struct{ field, name string }{
	{"queries", "find"}, {"getmore", "getMore"}, {"insert", "insert"}, {"update", "update"}, {"remove", "delete"}, {"commands", "command"},
}

// mostNamespaces limits the number of namespaces read from the answer to `top`.
const mostNamespaces = 5000

// mostHistograms limits the number of collections whose latencies are read; each takes a command.
const mostHistograms = 200

// latencies is the section of serverStatus with the latencies of all operations. These are two
// kinds of them.
const latencies, reads, writes = "opLatencies", "reads", "writes"

// Statements implements engine.StatementReader: the counts of `top` by collection and command, and
// the latencies of reads and writes. A mongos has no such counts; its shards do.
func (p *prober) Statements(ctx context.Context, _ *engine.StatementReading) (*engine.StatementReading, error) {
	switch {
	case p.target.Options[engine.OptionStatements] == engine.Off || p.hello.router || p.hello.state == stateArbiter:
		return nil, engine.ErrSwitchedOff
	case p.client == nil:
		return nil, errors.New("not connected")
	}
	p.budget.Renew()
	watched, release := p.heartbeats.watch(ctx)
	defer release()
	r := &engine.StatementReading{}
	status, err := p.command(watched, "serverStatus", statusSections(false)...)
	if err != nil {
		return nil, p.unreadable(err, missingUptime)
	}
	var s engine.Status
	readServerStatus(&s, status)
	r.UptimeSeconds = s.Uptime.Seconds()
	top, err := p.command(watched, "top")
	if err != nil {
		return nil, p.unreadable(err, missingTop)
	}
	r.Statements = readTop(top)
	r.Latency, err = p.histograms(watched, r.Statements)
	return r, err
}

// histograms returns the latencies of clients' reads and writes, added up over the collections: the
// server's own sums include other members' reads of the oplog. It returns nil if there are too many
// collections, or if the user may not read the latencies.
func (p *prober) histograms(ctx context.Context, statements []engine.Statement) (engine.LatencyBuckets, error) {
	var names []string
	for i := range statements {
		_, name, _ := strings.Cut(statements[i].Text, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > mostHistograms {
		return nil, nil
	}
	var buckets []histogram.Bucket
	for _, name := range names {
		database, collection, _ := strings.Cut(name, ".")
		docs, err := p.documents(p.client.aggregate(ctx, database, collection, bson.A{latencyStats(true)}))
		_, refused := refusal(err)
		switch {
		case lacksRight(err):
			return nil, nil
		case err != nil && !refused: // if refused: a view, or dropped
			return nil, p.explain(p.budget.Check(err))
		}
		for _, d := range docs {
			more, ok := readHistograms(d)
			if !ok {
				return nil, nil
			}
			buckets = append(buckets, more...)
		}
	}
	return append(engine.LatencyBuckets{}, histogram.New(buckets...).Buckets()...), nil
}

// unreadable returns why a command has no answer.
func (p *prober) unreadable(err error, right string) error {
	switch _, refused := refusal(err); {
	case lacksRight(err):
		return engine.MissingError(right)
	case refused: // not a mongod
		return engine.ErrSwitchedOff
	}
	return p.explain(p.budget.Check(err))
}

// lowerBounds are the lower bounds in microseconds of the buckets in MongoDB's histograms
// (operation_latency_histogram.cpp, 3.4 to 8.0): powers of two, with halves from 2 ms to 2 s.
var lowerBounds = func() []float64 {
	bounds := []float64{0}
	for power := 1; power <= 40; power++ {
		low := math.Ldexp(1, power)
		if bounds = append(bounds, low); power >= 11 && power < 21 {
			bounds = append(bounds, 1.5*low)
		}
	}
	return bounds
}()

// readHistograms reads the latencies of a collection's reads and writes. Transactions consist of
// these, and other commands do not belong to a collection. It returns false for an answer that is
// not understood. The server gives only the lower bound of a bucket, and leaves out empty buckets.
func readHistograms(d document) (buckets []histogram.Bucket, ok bool) {
	for _, kind := range []string{reads, writes} {
		if _, has := d.value("latencyStats", kind, "histogram").ArrayOK(); !has {
			return nil, false
		}
		for _, b := range d.list("latencyStats", kind, "histogram") {
			low, ok1 := b.number("micros")
			n, ok2 := b.number("count")
			if !ok1 || !ok2 || low < 0 || n < 0 || n > math.MaxInt64 {
				return nil, false
			}
			high := math.Inf(1)
			if i := slices.IndexFunc(lowerBounds, func(bound float64) bool { return bound > low }); i >= 0 {
				high = lowerBounds[i] / micro
			}
			buckets = append(buckets, histogram.Bucket{Low: low / micro, High: high, N: uint64(n)})
		}
	}
	return buckets, true
}

// readTop returns the counts of each collection except the server's own.
func readTop(d document) []engine.Statement {
	var all []engine.Statement
	totals, _ := d.sub("totals")
	elements, _ := bson.Raw(totals).Elements() // the valid ones
	for _, e := range elements[:min(len(elements), mostNamespaces)] {
		counts, ok := e.Value().DocumentOK()
		database, collection, _ := strings.Cut(e.Key(), ".")
		if !ok || collection == "" || database == "local" || database == "admin" ||
			database == "config" || strings.HasPrefix(collection, "system.") {
			continue
		}
		for _, kind := range kinds {
			n, ok1 := document(counts).number(kind.field, "count")
			microseconds, ok2 := document(counts).number(kind.field, "time")
			if !ok1 || !ok2 || n <= 0 || microseconds < 0 {
				continue
			}
			text := kind.name + " " + e.Key()
			all = append(all, engine.Statement{Schema: database, Digest: text, Text: text,
				StatementCounts: engine.StatementCounts{Executions: n, Seconds: microseconds * float64(time.Microsecond) / float64(time.Second)}})
		}
	}
	return all
}
