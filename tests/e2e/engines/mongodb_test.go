//go:build e2e || mongodb

package engines

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
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

// mongoVersions are the tested versions of MongoDB. mongoAll adds the parts that take longer.
var (
	mongoVersions = servers.MongoDBVersions[:1]
	mongoAll      = false
)

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

// mongoClient is a client of the set, like a benchmark's: it discovers the members, and counts its commands.
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

// within reports whether a number equals the client's, within 1 %.
func within(got, want float64) bool { return math.Abs(got-want) <= 0.01*want }

// TestMongoDB guards what is reported about a replica set with an arbiter: at rest, at a known load, and while its
// members fail. The parts change one set, each from the state of the previous one.
func TestMongoDB(t *testing.T) {
	for _, version := range mongoVersions {
		t.Run(version, func(t *testing.T) {
			s := startWith(t, servers.MongoDB, servers.Options{Servers: 3, Version: version, Auth: true, Settings: []string{"maxConns=100"}})
			sampler, w := sample(t, s.mongoTargets(t, "monitor"))
			w.until("roles", 20*time.Second, rolesAre("primary", "secondary", "arbiter"))
			parts := mongoParts{s, sampler}
			t.Run("at rest", func(t *testing.T) { parts.atRest(t, w.in(t)) })
			t.Run("counts", func(t *testing.T) { parts.counts(t, w.in(t)) })
			t.Run("rights", func(t *testing.T) { parts.rights(t) })
			t.Run("secondary locked", func(t *testing.T) { parts.secondaryLocked(t, w.in(t)) })
			t.Run("hidden and delayed", func(t *testing.T) { parts.delayed(t, w.in(t)) })
			t.Run("primary steps down", func(t *testing.T) { parts.stepDown(t, w.in(t)) })
			t.Run("expired documents", func(t *testing.T) { parts.expired(t, w.in(t)) })
			if !mongoAll {
				return
			}
			t.Run("limits", func(t *testing.T) { parts.limits(t, w.in(t)) })
			t.Run("primary killed", func(t *testing.T) { parts.primaryKilled(t, w.in(t)) })
			t.Run("primary cut off", func(t *testing.T) { parts.cutOff(t, w.in(t)) })
			t.Run("no majority", func(t *testing.T) { parts.noMajority(t, w.in(t)) })
			t.Run("initial sync", func(t *testing.T) { parts.initialSync(t, w.in(t)) })
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

// counts guards that queries, statements and latencies only count the clients. Meanwhile a secondary reads the oplog,
// the members and the driver send heartbeats, and the agent samples.
func (p mongoParts) counts(t *testing.T, w *watcher) {
	client, counted := p.mongoClient(t)
	c := client.Database("t").Collection("counts")
	ctx := t.Context()
	_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: "first"}})
	must(t, err)
	before := reading(t, p.sampler, "n1", nil)
	must(t, before.Err)
	// The primary repeats some of its reads on the secondary, and the secondary reports how many only since 6.2.
	mirrored := func() float64 {
		status := p.mongoAdmin(t, 1, bson.D{{Key: "serverStatus", Value: 1}, {Key: "mirroredReads", Value: 1}})
		return float64(status.Lookup("mirroredReads", "sent").AsInt64())
	}
	sent, first := mirrored(), w.fresh()
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
	sent = mirrored() - sent

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
	if got := grown(1, "db_queries_total"); got > sent+3 {
		t.Errorf("%v queries on the secondary, which no client asked and to which the primary sent %v", got, sent)
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

// rights guards what a user can see with the documented smallest role, with one that can do nothing,
// and without a login.
func (p mongoParts) rights(t *testing.T) {
	doc := func(pairs ...any) (d bson.D) {
		for i := 0; i < len(pairs); i += 2 {
			d = append(d, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
		}
		return d
	}
	p.mongoAdmin(t, 1, doc("createRole", "smallest", "roles", bson.A{}, "privileges", bson.A{
		doc("resource", doc("cluster", true), "actions", bson.A{"serverStatus", "replSetGetStatus", "inprog", "top", "listShards"}),
		doc("resource", doc("db", "", "collection", ""), "actions", bson.A{"collStats"}),
		doc("resource", doc("db", "local", "collection", "oplog.rs"), "actions", bson.A{"collStats"}),
		doc("resource", doc("db", "config", "collection", ""), "actions", bson.A{"find"}),
	}))
	p.mongoAdmin(t, 1, doc("createUser", "smallest", "pwd", "smallest", "roles", bson.A{"smallest"}))
	p.mongoAdmin(t, 1, doc("createUser", "plain", "pwd", "plain", "roles", bson.A{}))
	target := p.mongoTargets(t, "nobody")[0]
	var targets []engine.Target
	for _, user := range []string{"smallest", "plain", "", "wrong"} {
		target.Name, target.User, target.Password = "as "+user, user, engine.Secret(user)
		targets = append(targets, target)
	}
	for n, name := range map[int]string{2: "on a secondary", 3: "on an arbiter"} {
		other := p.mongoTargets(t, "nobody")[n-1]
		other.Name, other.User, other.Password = name, "plain", "plain"
		targets = append(targets, other)
	}
	slices.SortFunc(targets[4:], func(a, b engine.Target) int { return strings.Compare(b.Name, a.Name) })
	sampler, w := sample(t, targets)
	f := w.until("all users", 20*time.Second, func(f engine.Frame) bool {
		return !slices.ContainsFunc(f.Samples, func(s engine.Sample) bool { return !s.Up() && s.Target.User != "wrong" })
	})
	if missing := f.Samples[0].Status.Missing; len(missing) > 0 {
		t.Errorf("the smallest role lacks %q", missing)
	}
	if _, ok := value(&f.Samples[0], "mongodb_latency_operations_total", "reads"); !ok {
		t.Error("the smallest role shows no latency of reads")
	}
	if a := reading(t, sampler, "as smallest", nil); a.Err != nil || len(a.Latency) == 0 {
		t.Errorf("the smallest role: %v, %v", a.Err, a.StatementReading)
	}
	for _, s := range f.Samples[1:3] {
		missing := strings.Join(s.Status.Missing, "; ")
		if s.Status.Role != "primary" || s.Status.Position == nil || !strings.Contains(missing, "serverStatus (role clusterMonitor)") || !strings.Contains(missing, "inprog (role clusterMonitor)") {
			t.Errorf("%s: %s, %v, %s", s.Target.Name, s.Status.Role, s.Status.Position, missing)
		}
	}
	for i, role := range map[int]string{4: "arbiter", 5: "secondary"} {
		s := f.Samples[i]
		// An arbiter has no users, and allows everything from its own machine.
		if missing := strings.Join(s.Status.Missing, "; "); s.Status.Role != role || strings.Contains(missing, "serverStatus") == (role == "arbiter") {
			t.Errorf("%s: %s, %s", s.Target.Name, s.Status.Role, missing)
		}
	}
	if s := f.Samples[3]; s.Err == nil || !strings.Contains(s.Err.Error(), "login refused") {
		t.Errorf("wrong user: %v", s.Err)
	}
}

// secondaryLocked guards the lag of a secondary whose writes are locked; that writes with a majority wait for it and
// others do not; and that the start of the primary's flow control is reported.
func (p mongoParts) secondaryLocked(t *testing.T, w *watcher) {
	if !strings.HasPrefix(p.Version, "4.4") { // 4.4 needs more time to see that the majority lags
		p.mongoAdmin(t, 1, bson.D{{Key: "setParameter", Value: 1}, {Key: "flowControlTargetLagSeconds", Value: 2}})
		defer p.mongoAdmin(t, 1, bson.D{{Key: "setParameter", Value: 1}, {Key: "flowControlTargetLagSeconds", Value: 10}})
	}
	one := p.mongoLoad(t, 2, writeconcern.W1())
	must(t, p.Lag(t.Context(), 2))
	majority := p.mongoLoad(t, 1, writeconcern.Majority())
	f := w.until("behind, and growing", 20*time.Second, func(f engine.Frame) bool {
		n := &f.Samples[1]
		return n.LagSeconds.Known && n.LagSeconds.Value > 3 && !f.Samples[0].LagSeconds.Known
	})
	// The primary learns a position with a heartbeat, every two seconds; its dates have whole seconds.
	if own, ok := value(&f.Samples[0], "mongodb_member_lag_seconds", p.Address(2)); !ok || math.Abs(own-f.Samples[1].LagSeconds.Value) > 3 {
		t.Errorf("the primary sees a lag of %v s, the ticks show %v s", own, f.Samples[1].LagSeconds.Value)
	}
	next := w.next()
	if grown := next.Samples[1].LagSeconds.Value - f.Samples[1].LagSeconds.Value; !next.Samples[1].LagSeconds.Known || math.Abs(grown-next.Tick.Sub(f.Tick).Seconds()) > 0.5 {
		t.Errorf("lag grew by %v s in %v", grown, next.Tick.Sub(f.Tick))
	}
	if !strings.HasPrefix(p.Version, "4.4") {
		w.until("flow control", 20*time.Second, func(f engine.Frame) bool {
			target, limited := value(&f.Samples[0], "mongodb_flow_control_target_tickets_per_second")
			return is(&f.Samples[0], 1, "mongodb_flow_control_lagged") && limited && target < 1e6
		})
	}
	must(t, p.Unlag(t.Context(), 2))
	w.until("level again", 30*time.Second, func(f engine.Frame) bool {
		n := &f.Samples[1]
		return n.LagSeconds.Known && n.LagSeconds.Value < 0.5
	})
	if ones, majorities := one(), majority(); ones < 100 || majorities > ones/4 {
		t.Errorf("%d writes of one, %d of the majority", ones, majorities)
	}
}

// reconfigure changes a member in the configuration of the set.
func (p mongoParts) reconfigure(t *testing.T, n int, change bson.M) {
	t.Helper()
	var answer struct{ Config bson.M }
	must(t, bson.Unmarshal(p.mongoAdmin(t, 1, bson.D{{Key: "replSetGetConfig", Value: 1}}), &answer))
	config := answer.Config
	config["version"] = config["version"].(int32) + 1
	members := config["members"].(bson.A)
	member := bson.M{}
	for _, e := range members[n-1].(bson.D) {
		member[e.Key] = e.Value
	}
	for key, v := range change {
		if member[key] = v; v == nil {
			delete(member, key)
		}
	}
	members[n-1] = member
	p.mongoAdmin(t, 1, bson.D{{Key: "replSetReconfig", Value: config}})
}

// delayed guards that the delay of a hidden member is not lag.
func (p mongoParts) delayed(t *testing.T, w *watcher) {
	delay := "secondaryDelaySecs"
	if strings.HasPrefix(p.Version, "4.4") {
		delay = "slaveDelay"
	}
	p.reconfigure(t, 2, bson.M{"hidden": true, "priority": 0, delay: 3})
	stop := p.mongoLoad(t, 2, writeconcern.W1())
	behind := 0
	w.until("held back, but not behind", 30*time.Second, func(f engine.Frame) bool {
		a, b := &f.Samples[0], &f.Samples[1]
		if !a.Up() || !b.Up() || b.Status.Delay != 3*time.Second || !b.LagSeconds.Known {
			return false
		}
		if distance := a.Status.Position.Scalar() - b.Status.Position.Scalar(); distance > 2 && distance < 4.5 && b.LagSeconds.Value < 1.5 {
			behind++
		} else {
			behind = 0
		}
		return behind >= 3
	})
	stop()
	p.reconfigure(t, 2, bson.M{"hidden": false, "priority": 1, delay: 0})
	w.until("level again", 30*time.Second, func(f engine.Frame) bool {
		n := &f.Samples[1]
		return n.Up() && n.Status.Delay == 0 && n.LagSeconds.Known && n.LagSeconds.Value < 0.5
	})
}

// limits guards what is shown when clients wait for a ticket, when the cache is too small, and when no
// further connection is accepted.
func (p mongoParts) limits(t *testing.T, w *watcher) {
	parameter := func(name string, v any) {
		p.mongoAdmin(t, 1, bson.D{{Key: "setParameter", Value: 1}, {Key: name, Value: v}})
	}
	f := w.fresh()
	for _, name := range []string{"mongodb_oplog_window_seconds", "mongodb_checkpoint_last_duration_seconds", "mongodb_cache_limit_bytes", "mongodb_flow_control_enabled"} {
		if _, ok := value(&f.Samples[0], name); !ok {
			t.Errorf("no %s", name)
		}
	}
	// Each write lasts until its journal is on disk, and holds a ticket. WiredTiger needs at least 5.
	parameter("wiredTigerConcurrentWriteTransactions", 5)
	parameter("wiredTigerEngineRuntimeConfig", "cache_size=20MB")
	client, _ := p.mongoClient(t)
	c := client.Database("t").Collection("limits")
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 30 {
		writers.Go(func() {
			for ctx.Err() == nil {
				many := make([]any, 50)
				for i := range many {
					many[i] = bson.D{{Key: "f", Value: strings.Repeat("x", 4000)}}
				}
				_, _ = c.InsertMany(ctx, many) // cancelled
			}
		})
	}
	begin, _ := value(&f.Samples[0], "mongodb_cache_application_evictions_total")
	seen := map[string]bool{}
	w.until("tickets used up, queues, evictions", 30*time.Second, func(f engine.Frame) bool {
		n := &f.Samples[0]
		left, ok := value(n, "mongodb_tickets_available", "write")
		seen["tickets"] = seen["tickets"] || ok && left == 0 && is(n, 5, "mongodb_tickets_limit", "write")
		queued, _ := value(n, "mongodb_queued_operations", "writers")
		seen["queue"] = seen["queue"] || queued > 5
		evicted, _ := value(n, "mongodb_cache_application_evictions_total")
		seen["evictions"] = seen["evictions"] || evicted > begin && is(n, 20<<20, "mongodb_cache_limit_bytes")
		return seen["tickets"] && seen["queue"] && seen["evictions"]
	})
	cancel()
	writers.Wait()
	parameter("wiredTigerEngineRuntimeConfig", "cache_size=256MB")
	parameter("wiredTigerConcurrentWriteTransactions", 128)

	var clients []*mongo.Client
	defer func() {
		for _, c := range clients {
			_ = c.Disconnect(context.Background())
		}
	}()
	full := func(f engine.Frame) bool {
		n := &f.Samples[0]
		open, ok1 := value(n, "db_connections")
		limit, ok2 := value(n, "db_connections_limit")
		return ok1 && ok2 && limit == 100 && open >= 98
	}
	w.until("no connection left", 30*time.Second, func(f engine.Frame) bool {
		for range 12 {
			c, err := mongo.Connect(options.Client().SetHosts([]string{p.Address(1)}).SetDirect(true).SetServerSelectionTimeout(300 * time.Millisecond))
			must(t, err)
			clients = append(clients, c)
			_ = c.Ping(t.Context(), nil) // refused in the end
		}
		return full(f)
	})
	late := p.mongoTargets(t, "monitor")[:1]
	if s := watch(t, late).next().Samples[0]; s.Err == nil || !strings.Contains(s.Err.Error(), "accept no more connections") {
		t.Errorf("an agent that comes too late: %v", s.Err)
	}
}

// stepDown guards the roles when a primary steps down and, for its priority, comes back.
func (p mongoParts) stepDown(t *testing.T, w *watcher) {
	stop := p.mongoLoad(t, 2, writeconcern.W1())
	defer stop()
	before := w.fresh()
	term, _ := value(&before.Samples[0], "mongodb_replica_set_term")
	p.mongoAdmin(t, 1, bson.D{{Key: "replSetStepDown", Value: 3}, {Key: "secondaryCatchUpPeriodSecs", Value: 2}})
	f := w.until("the other is primary", 30*time.Second, rolesAre("secondary", "primary", "arbiter"))
	if later, _ := value(&f.Samples[1], "mongodb_replica_set_term"); later <= term {
		t.Errorf("term %v after %v", later, term)
	}
	w.until("it replicates", 20*time.Second, func(f engine.Frame) bool {
		n := &f.Samples[0]
		return n.LagSeconds.Known && n.LagSeconds.Value < 1 && f.Samples[1].Source && !f.Samples[1].LagSeconds.Known
	})
	w.until("it is primary again", 60*time.Second, rolesAre("primary", "secondary", "arbiter"))
}

// expired guards that deletions by a TTL index are shown, and not as queries of clients.
func (p mongoParts) expired(t *testing.T, w *watcher) {
	client, _ := p.mongoClient(t)
	c := client.Database("t").Collection("expired")
	_, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(0)})
	must(t, err)
	many := make([]any, 500)
	for i := range many {
		many[i] = bson.D{{Key: "at", Value: time.Now().Add(-time.Hour)}}
	}
	_, err = c.InsertMany(t.Context(), many)
	must(t, err)
	f := w.fresh()
	before := counter(&f.Samples[0], "db_queries_total")
	gone := counter(&f.Samples[0], "mongodb_ttl_deleted_documents_total")
	p.mongoAdmin(t, 1, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlMonitorSleepSecs", Value: 1}})
	f = w.until("deletion", 90*time.Second, func(f engine.Frame) bool {
		return counter(&f.Samples[0], "mongodb_ttl_deleted_documents_total") >= gone+500
	})
	if n := counter(&f.Samples[0], "db_queries_total") - before; n > 100 {
		t.Errorf("%v queries while nobody sent any", n)
	}
	p.mongoAdmin(t, 1, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlMonitorSleepSecs", Value: 60}})
}

func counter(s *engine.Sample, name string) float64 {
	v, _ := value(s, name)
	return v
}

// cutOff guards that a primary that is cut off and comes back, with its old view at first, is not taken for
// the source beside its successor.
func (p mongoParts) cutOff(t *testing.T, w *watcher) {
	w.until("level", 20*time.Second, func(f engine.Frame) bool {
		return f.Samples[1].Up() && f.Samples[0].Up() && engine.Reached(f.Samples[1].Status.Position, f.Samples[0].Status.Position)
	})
	must(t, p.Pause(1))
	w.until("another primary", 40*time.Second, rolesAre("down", "primary", "arbiter"))
	must(t, p.Resume(1))
	w.until("it is primary again", 90*time.Second, func(f engine.Frame) bool {
		a, b := &f.Samples[0], &f.Samples[1]
		if a.Up() && b.Up() && a.Source && b.Source {
			t.Errorf("two sources:\n%s", describe(f))
		}
		return rolesAre("primary", "secondary", "arbiter")(f) && b.LagSeconds.Known && b.LagSeconds.Value < 0.5
	})
}

// noMajority guards that the last member of a set has a role but no lag, since no primary is known.
func (p mongoParts) noMajority(t *testing.T, w *watcher) {
	must(t, p.Kill(3))
	must(t, p.Kill(1))
	f := w.until("no primary", 40*time.Second, func(f engine.Frame) bool {
		return rolesAre("down", "secondary", "down")(f) && is(&f.Samples[1], 0, "mongodb_replica_set_primaries", "rs")
	})
	if s := &f.Samples[1]; s.LagSeconds.Known || s.Source || s.Status.Position == nil {
		t.Errorf("%s", describe(f))
	}
	must(t, p.Rejoin(t.Context(), 3))
	must(t, p.Rejoin(t.Context(), 1))
	w.until("it is primary again", 90*time.Second, rolesAre("primary", "secondary", "arbiter"))
}

// primaryKilled guards what is shown when the primary dies and comes back.
func (p mongoParts) primaryKilled(t *testing.T, w *watcher) {
	// Writes that the other member lacks would be rolled back, which can take minutes.
	w.until("level", 20*time.Second, func(f engine.Frame) bool {
		return f.Samples[1].Up() && f.Samples[0].Up() && engine.Reached(f.Samples[1].Status.Position, f.Samples[0].Status.Position)
	})
	must(t, p.Kill(1))
	stop := p.mongoLoad(t, 2, writeconcern.W1())
	defer stop()
	w.until("no primary", 10*time.Second, func(f engine.Frame) bool { return !f.Samples[0].Up() })
	f := w.until("another primary", 30*time.Second, rolesAre("down", "primary", "arbiter"))
	if !f.Samples[1].Source {
		t.Error("the new primary is not the source")
	}
	w.until("the dead one is seen", 20*time.Second, func(f engine.Frame) bool {
		return is(&f.Samples[1], 0, "mongodb_member_health", p.Address(1)) && is(&f.Samples[1], 1, "mongodb_replica_set_primaries", "rs")
	})
	must(t, p.Rejoin(t.Context(), 1))
	w.until("it is primary again", 60*time.Second, func(f engine.Frame) bool {
		return rolesAre("primary", "secondary", "arbiter")(f) && f.Samples[0].Restarts == 1 && f.Samples[1].LagSeconds.Known && f.Samples[1].LagSeconds.Value < 0.5
	})
}

// initialSync guards that a member that copies all data has no position yet, and no lag. Before the
// users are copied, and in 4.4 until the end, no login is possible.
func (p mongoParts) initialSync(t *testing.T, w *watcher) {
	must(t, p.Kill(2))
	must(t, os.RemoveAll(filepath.Join(p.Dir, "n2", "data")))
	must(t, os.Mkdir(filepath.Join(p.Dir, "n2", "data"), 0o700))
	w.until("down", 10*time.Second, rolesAre("primary", "down", "arbiter"))
	back := make(chan error, 1)
	go func() { back <- p.Rejoin(context.Background(), 2) }()
	synced := 0
	w.until("level again", 90*time.Second, func(f engine.Frame) bool {
		n := &f.Samples[1]
		if n.Up() && n.Status.Role == "initial_sync" {
			if synced++; n.Status.Position != nil || n.LagSeconds.Known || n.Status.NoData {
				t.Errorf("during its initial sync: %s", describe(f))
			}
		}
		if n.Err != nil && strings.Contains(n.Err.Error(), "no login is possible before the member has copied its data") {
			synced++
		}
		return n.Up() && n.Status.Role == "secondary" && n.LagSeconds.Known && n.LagSeconds.Value < 0.5
	})
	must(t, <-back)
	if synced == 0 {
		t.Error("the initial sync was not seen")
	}
}
