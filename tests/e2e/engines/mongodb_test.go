//go:build e2e || mongodb

package engines

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// mongoVersions are the tested versions of MongoDB.
var mongoVersions = servers.MongoDBVersions[:1]

// mongoTargets returns the servers of a set as targets of a user; nobody: without a login.
func (s group) mongoTargets(t *testing.T, user string) (targets []engine.Target) {
	t.Helper()
	for n := 1; n <= s.N; n++ {
		target := engine.Target{Name: fmt.Sprintf("n%d", n), Engine: "mongodb", Cluster: "c", Address: s.Address(n)}
		if user != "nobody" {
			target.User, target.Password = user, engine.Secret(s.password(t, user))
		}
		targets = append(targets, target)
	}
	return targets
}

// mongoAdmin runs a command on server n as administrator.
func (s group) mongoAdmin(t *testing.T, n int, command bson.D) bson.Raw {
	t.Helper()
	c, err := s.Mongo(n)
	must(t, err)
	defer func() { _ = c.Disconnect(context.Background()) }()
	raw, err := c.Database("admin").RunCommand(context.Background(), command).Raw()
	must(t, err)
	return raw
}

// mongoClient is a client of the set, like a benchmark's: it finds the members by itself, and counts
// what it sends.
func (s group) mongoClient(t *testing.T) (*mongo.Client, *sent) {
	t.Helper()
	counts := &sent{of: map[string]int{}}
	var hosts []string
	for n := 1; n <= s.N; n++ {
		hosts = append(hosts, s.Address(n))
	}
	c, err := mongo.Connect(options.Client().SetHosts(hosts).SetReplicaSet("rs").SetMonitor(&event.CommandMonitor{Started: counts.started}).
		SetAuth(options.Credential{Username: "bench", Password: s.password(t, "bench")}).SetHeartbeatInterval(500 * time.Millisecond))
	must(t, err)
	t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	return c, counts
}

// sent counts the commands of a client.
type sent struct {
	mu sync.Mutex
	of map[string]int
}

func (s *sent) started(_ context.Context, e *event.CommandStartedEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[e.CommandName]++
}

// take returns the counts, and begins again at 0.
func (s *sent) take() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of
	s.of = map[string]int{}
	return of
}

// mongoLoad inserts documents from some clients until it is stopped, and returns how many were
// acknowledged.
func (s group) mongoLoad(t *testing.T, clients int, concern *writeconcern.WriteConcern) (stop func() int64) {
	t.Helper()
	c, _ := s.mongoClient(t)
	collection := c.Database("t").Collection("load", options.Collection().SetWriteConcern(concern))
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	var done atomic.Int64
	for range clients {
		writers.Go(func() {
			for ctx.Err() == nil {
				if _, err := collection.InsertOne(ctx, bson.D{{Key: "f", Value: strings.Repeat("x", 100)}}); err == nil {
					done.Add(1)
				} // the tests provoke errors: there is no primary
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
	stop = sync.OnceValue(func() int64 {
		cancel()
		writers.Wait()
		return done.Load()
	})
	t.Cleanup(func() { stop() })
	return stop
}

// fresh returns the first frame whose tick is after this call.
func (w *watcher) fresh() engine.Frame {
	w.t.Helper()
	now := time.Now()
	return w.until("all answer", 10*time.Second, func(f engine.Frame) bool {
		return f.Tick.After(now) && !slices.ContainsFunc(f.Samples, func(s engine.Sample) bool { return !s.Up() })
	})
}

func roles(f engine.Frame) (all []string) {
	for i := range f.Samples {
		role := "down"
		if s := &f.Samples[i]; s.Up() {
			role = s.Status.Role
		}
		all = append(all, role)
	}
	return all
}

func rolesAre(want ...string) func(engine.Frame) bool {
	return func(f engine.Frame) bool { return slices.Equal(roles(f), want) }
}

// within reports whether a number is that of the client, within 1 %.
func within(got, want float64) bool { return math.Abs(got-want) <= 0.01*want }

// TestMongoDB guards what is reported of a replica set with an arbiter: at rest, at a known load, and
// while its members fail. The parts change one set, each from the state of the previous one.
func TestMongoDB(t *testing.T) {
	for _, version := range mongoVersions {
		t.Run(version, func(t *testing.T) {
			s := startWith(t, servers.MongoDB, servers.Options{Servers: 3, Version: version, Auth: true, Settings: []string{"maxConns=100"}})
			sampler, w := sample(t, s.mongoTargets(t, "monitor"))
			w.until("roles", 20*time.Second, rolesAre("primary", "secondary", "arbiter"))
			parts := mongoParts{s, sampler}
			t.Run("at rest", func(t *testing.T) { parts.atRest(t, w.in(t)) })
			t.Run("counts", func(t *testing.T) { parts.counts(t, w.in(t)) })
		})
	}
}

// mongoParts are the parts of the test on one set.
type mongoParts struct {
	group
	sampler *engine.Sampler
}

// atRest guards that an arbiter has neither a position nor sessions, and that no tick shows a lag in
// transactions.
func (p mongoParts) atRest(t *testing.T, w *watcher) {
	for range 5 {
		f := w.next()
		for i := range f.Samples {
			s := &f.Samples[i]
			if !s.Up() || s.LagTransactions.Known || s.Status.NoData != (i == 2) || (s.Status.Position == nil) != (i == 2) {
				t.Errorf("%s", describe(f))
			}
			if n, known := sessionsOf(s, engine.Running); !known || n != 0 {
				t.Errorf("%s has %v sessions, known %v", s.Target.Name, n, known)
			}
		}
		if lag := f.Samples[1].LagSeconds; !lag.Known || lag.Value != 0 || f.Samples[2].LagSeconds.Known {
			t.Errorf("%s", describe(f))
		}
	}
}

// counts guards that queries, statements and latencies are those of the clients. Meanwhile a
// secondary reads the oplog, the members and the driver send heartbeats, and the agent samples.
func (p mongoParts) counts(t *testing.T, w *watcher) {
	client, counted := p.mongoClient(t)
	c := client.Database("t").Collection("counts")
	ctx := t.Context()
	_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: "first"}})
	must(t, err)
	before := reading(t, p.sampler, "n1", nil)
	must(t, before.Err)
	first := w.fresh()
	counted.take()
	const rounds = 1000
	for i := range rounds {
		id := bson.D{{Key: "_id", Value: i}}
		_, err := c.InsertOne(ctx, append(id, bson.E{Key: "f", Value: "x"}))
		must(t, err)
		must(t, c.FindOne(ctx, id).Err())
		_, err = c.UpdateOne(ctx, id, bson.D{{Key: "$set", Value: bson.D{{Key: "f", Value: "y"}}}})
		must(t, err)
		must(t, c.FindOneAndUpdate(ctx, id, bson.D{{Key: "$set", Value: bson.D{{Key: "f", Value: "z"}}}}).Err())
		if i%10 == 9 { // several documents by one command, and several commands for one query
			_, err = c.InsertMany(ctx, []any{bson.D{{Key: "m", Value: 1}}, bson.D{{Key: "m", Value: 2}}})
			must(t, err)
			cursor, err := c.Find(ctx, bson.D{}, options.Find().SetBatchSize(2).SetLimit(6))
			must(t, err)
			var found []bson.Raw
			must(t, cursor.All(ctx, &found))
			_, err = c.CountDocuments(ctx, bson.D{{Key: "m", Value: 1}})
			must(t, err)
			_, err = c.DeleteMany(ctx, bson.D{{Key: "m", Value: bson.D{{Key: "$exists", Value: true}}}})
			must(t, err)
		}
	}
	of := counted.take()
	after := reading(t, p.sampler, "n1", before.StatementReading)
	must(t, after.Err)
	last := w.fresh()

	sum := func(commands ...string) (n float64) {
		for _, c := range commands {
			n += float64(of[c])
		}
		return n
	}
	grown := func(i int, name string, labels ...string) float64 {
		from, ok1 := value(&first.Samples[i], name, labels...)
		to, ok2 := value(&last.Samples[i], name, labels...)
		if !ok1 || !ok2 {
			t.Errorf("no %s %v", name, labels)
		}
		return to - from
	}
	getMores := sum("getMore")
	queries := sum("insert", "find", "update", "delete", "findAndModify", "aggregate")
	t.Logf("client: %v; queries %v, opcounters: getmore %v, command %v", of, grown(0, "db_queries_total"),
		grown(0, "db_operations_total", "getmore"), grown(0, "db_operations_total", "command"))
	if got := grown(0, "db_queries_total"); !within(got, queries) {
		t.Errorf("%v queries, the client sent %v", got, queries)
	}
	if got := grown(1, "db_queries_total"); got > 60 {
		t.Errorf("%v queries on the secondary, which no client asked", got)
	}
	if got := grown(2, "db_queries_total"); got != 0 {
		t.Errorf("%v queries on the arbiter", got)
	}
	if grown(0, "db_operations_total", "getmore") < getMores+0.5*rounds {
		t.Error("the secondary did not read the oplog: this test shows nothing")
	}
	clientReads, clientWrites := sum("find", "aggregate", "getMore"), sum("insert", "update", "delete", "findAndModify")
	if got := grown(0, "mongodb_latency_operations_total", "reads"); !within(got, clientReads) && math.Abs(got-clientReads) > 60 {
		t.Errorf("latency of %v reads, the client sent %v", got, clientReads)
	}
	if got := grown(0, "mongodb_latency_operations_total", "writes"); !within(got, clientWrites) {
		t.Errorf("latency of %v writes, the client sent %v", got, clientWrites)
	}

	d, err := engine.StatementsBetween(before.StatementReading, after.StatementReading)
	must(t, err)
	statements := map[string]float64{}
	for _, s := range d.Statements {
		statements[s.Text] = s.Executions
	}
	t.Log(statements)
	measured := 0.0
	for _, b := range d.Latency {
		measured += float64(b.N)
	}
	if !within(measured, clientReads+clientWrites) {
		t.Errorf("%v operations in the distribution of the latencies, the client sent %v", measured, clientReads+clientWrites)
	}
	for text, want := range map[string]float64{"find t.counts": sum("find"), "update t.counts": sum("update"), "insert t.counts": sum("insert"), "delete t.counts": sum("delete"), "getMore t.counts": getMores} {
		if !within(statements[text], want) {
			t.Errorf("%v of %s, the client sent %v", statements[text], text, want)
		}
	}
}
