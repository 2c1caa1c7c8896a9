package mongodb

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// Arm implements engine.Witness. A first sample opens the connections.
func (p *prober) Arm(ctx context.Context) error {
	_, err := p.Probe(ctx)
	return err
}

// Testify implements engine.Witness: a sample, and the operations that wait for a lock or may hold one.
func (p *prober) Testify(ctx context.Context) (*evidence.Answer, error) {
	s, err := p.Probe(ctx)
	if err != nil {
		return nil, err
	}
	a := engine.Testimony(s)
	ctx, release := p.heartbeats.watch(ctx)
	defer release()
	d, err := p.attempt("$currentOp of locks", rightSessions, func() (document, error) {
		return p.command(ctx, "aggregate", bson.E{Key: "pipeline", Value: lockers(p.hello.router)}, bson.E{Key: "cursor", Value: bson.D{}})
	})
	switch {
	case err != nil && !answered(err):
		return nil, p.budget.Check(err)
	case errors.Is(p.budget.Check(err), engine.ErrTooMuch):
		return nil, err
	case d == nil || err != nil:
		a.Missing = append(a.Missing, rightSessions)
		return a, nil
	}
	var all []*operation
	for _, found := range d.list("cursor", "firstBatch") {
		if o := newOperation(found); a.Add(o.id) != nil {
			all = append(all, o)
		}
	}
	tell(a, all)
	return a, nil
}

// lockers is the pipeline for operations and open transactions that wait for a lock, have a strong one, or have run for
// a second. It returns neither values nor texts of commands.
func lockers(router bool) bson.A {
	current := bson.D{{Key: "allUsers", Value: true}, {Key: "idleConnections", Value: false}, {Key: "idleSessions", Value: true}}
	if router { // otherwise it asks all shards
		current = append(current, bson.E{Key: "localOps", Value: true})
	}
	strong := func(resource string) bson.D {
		return bson.D{{Key: "locks." + resource, Value: bson.D{{Key: "$in", Value: bson.A{"R", "W"}}}}}
	}
	return bson.A{
		bson.D{{Key: "$currentOp", Value: current}},
		bson.D{{Key: "$match", Value: bson.D{
			{Key: "appName", Value: bson.D{{Key: "$ne", Value: appName}}},
			{Key: "command.hello", Value: bson.D{{Key: "$exists", Value: false}}}, {Key: "cursor.awaitData", Value: bson.D{{Key: "$ne", Value: true}}},
			{Key: "$or", Value: bson.A{
				bson.D{{Key: "waitingForLock", Value: true}}, bson.D{{Key: "transaction", Value: bson.D{{Key: "$exists", Value: true}}}},
				strong("Global"), strong("Database"), strong("Collection"),
				bson.D{{Key: "microsecs_running", Value: bson.D{{Key: "$gt", Value: 1_000_000}}}, {Key: "op", Value: bson.D{{Key: "$ne", Value: "none"}}}},
			}},
		}}},
		// Those that wait for nothing come first: there are few, and the others wait for them.
		bson.D{{Key: "$sort", Value: bson.D{{Key: "waitingForLock", Value: 1}, {Key: "microsecs_running", Value: -1}}}},
		bson.D{{Key: "$limit", Value: evidence.MostSessions}},
		bson.D{{Key: "$project", Value: bson.D{
			{Key: "opid", Value: 1}, {Key: "connectionId", Value: 1}, {Key: "desc", Value: 1}, {Key: "client", Value: 1}, {Key: "appName", Value: 1},
			{Key: "effectiveUsers", Value: 1}, {Key: "op", Value: 1}, {Key: "ns", Value: 1}, {Key: "planSummary", Value: 1},
			{Key: "microsecs_running", Value: 1}, {Key: "type", Value: 1}, {Key: "locks", Value: 1}, {Key: "lockStats", Value: 1},
			{Key: "waitingForLock", Value: 1}, {Key: "transaction.timeOpenMicros", Value: 1},
			{Key: "command", Value: bson.D{{Key: "$arrayElemAt", Value: bson.A{bson.D{{Key: "$map", Value: bson.D{
				{Key: "input", Value: bson.D{{Key: "$objectToArray", Value: "$command"}}}, {Key: "in", Value: "$$this.k"},
			}}}, 0}}}},
		}}},
	}
}

// operation is an operation, or an open transaction without one.
type operation struct {
	document
	id string
	// held are the locks by resource, in modes of MongoDB: r, w, R, W. An operation that waits has not got the one of
	// awaited yet.
	held    map[string]string
	awaited string
}

// resources are what operations lock, in the order in which they do.
var resources = []string{"Global", "Database", "Collection"}

func newOperation(d document) *operation {
	o := &operation{document: d, held: map[string]string{}}
	o.id = d.text("desc")
	if id, ok := d.value("connectionId").AsInt64OK(); ok {
		o.id = "conn" + strconv.FormatInt(id, 10)
	}
	for _, resource := range resources {
		if mode := d.text("locks", resource); mode != "" {
			o.held[resource] = mode
		}
	}
	if !d.is("waitingForLock") {
		return o
	}
	for _, resource := range resources { // the last one that it asked for is what it waits for
		if o.held[resource] != "" {
			o.awaited = resource
		}
	}
	return o
}

// has reports whether an operation has the lock of a resource, and does not wait for it.
func (o *operation) has(resource string) bool {
	return o.held[resource] != "" && (o.awaited == "" || slices.Index(resources, o.awaited) > slices.Index(resources, resource))
}

// blocks reports whether another operation can't get its lock as long as o has its own, or comes before it.
func (o *operation) blocks(other *operation) bool {
	resource := other.awaited
	mode, wanted := o.held[resource], other.held[resource]
	if o == other || mode == "" {
		return false
	}
	mine, its := o.text("ns"), other.text("ns")
	switch {
	case resource == "Collection" && mine != its:
		return false
	case resource == "Database" && database(mine) != database(its):
		return false
	}
	return conflict(mode, wanted)
}

// conflict reports whether two modes can't be held at the same time: r and w are the intent to read and write, R and W
// are shared and exclusive.
func conflict(a, b string) bool {
	return a == "W" || b == "W" || a == "R" && b == "w" || a == "w" && b == "R"
}

func database(ns string) string {
	name, _, _ := strings.Cut(ns, ".")
	return name
}

// fsyncLock is the lock of the command fsync, which a thread of the server has until fsyncUnlock.
const (
	fsyncLock   = evidence.Kind("lock of fsyncLock")
	fsyncWorker = "fsyncLockWorker"
)

// tell adds operations to an answer: what they do, and who waits for whom.
func tell(a *evidence.Answer, all []*operation) {
	kind := evidence.Lock
	if n := a.Waiting[kind]; n > 0 && a.Session(fsyncWorker) != nil {
		delete(a.Waiting, kind)
		kind = fsyncLock
		a.Wait(kind, n)
	}
	for _, o := range all {
		for _, other := range blockers(o, all) {
			a.Block(o.id, other.id, kind, o.object(o.awaited))
		}
		s := a.Session(o.id)
		o.describe(s)
		if o.awaited != "" && s.Waits == nil {
			s.Waits = &evidence.Wait{Kind: kind, On: o.object(o.awaited)}
		}
	}
}

// blockers are the operations that have what another one waits for or, if there are none, those that want all of it.
func blockers(o *operation, all []*operation) []*operation {
	var have, want []*operation
	for _, other := range all {
		switch {
		case o.awaited == "" || !other.blocks(o):
		case other.has(o.awaited):
			have = append(have, other)
		case other.held[o.awaited] == "W":
			want = append(want, other)
		}
	}
	if len(have) > 0 {
		return have
	}
	return want
}

// object names what an operation locks.
func (o *operation) object(resource string) string {
	switch resource {
	case "Collection":
		return "of " + engine.OneLine(o.text("ns"))
	case "Database":
		return "of database " + engine.OneLine(database(o.text("ns")))
	}
	return "of the server"
}

// describe fills in a session.
func (o *operation) describe(s *evidence.Session) {
	s.Host, _, _ = strings.Cut(engine.OneLine(o.text("client")), ":")
	for _, user := range o.list("effectiveUsers") {
		s.User = engine.OneLine(user.text("user"))
	}
	name := o.text("op")
	if name == "command" || name == "" || name == "none" {
		name = o.text("command")
	}
	s.Statement = strings.TrimSpace(engine.OneLine(name + " " + o.text("ns") + " " + o.text("planSummary")))
	s.Idle = o.text("type") == "idleSession"
	if micros, ok := o.number("microsecs_running"); ok {
		s.Seconds = series.Some(micros / micro)
	}
	if micros, ok := o.number("transaction", "timeOpenMicros"); ok {
		s.Transaction = series.Some(micros / micro)
	}
	for _, resource := range resources {
		if mode := o.held[resource]; mode != "" && resource != o.awaited {
			s.Holds = mode + " of " + strings.TrimPrefix(o.object(resource), "of ")
		}
	}
}
