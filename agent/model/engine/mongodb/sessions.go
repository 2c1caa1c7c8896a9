package mongodb

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

const rightSessions = "inprog (role clusterMonitor): active sessions"

// operations is the pipeline that counts clients' operations in progress by what they wait for. It
// leaves out the agent's own connections, operations that wait for news (a driver's monitor, a
// change stream, replication), and the server's own work, which has no client.
func operations(router bool) bson.A {
	current := bson.D{{Key: "allUsers", Value: true}, {Key: "idleConnections", Value: false}}
	if router { // otherwise it asks all shards
		current = append(current, bson.E{Key: "localOps", Value: true})
	}
	is := func(exists bool) bson.D { return bson.D{{Key: "$exists", Value: exists}} }
	return bson.A{
		bson.D{{Key: "$currentOp", Value: current}},
		bson.D{{Key: "$match", Value: bson.D{
			{Key: "active", Value: true},
			{Key: "appName", Value: bson.D{{Key: "$ne", Value: appName}}},
			{Key: "$or", Value: bson.A{bson.D{{Key: "client", Value: is(true)}}, bson.D{{Key: "client_s", Value: is(true)}}}},
			{Key: "command.hello", Value: is(false)}, {Key: "command.isMaster", Value: is(false)}, {Key: "command.ismaster", Value: is(false)},
			{Key: "cursor.awaitData", Value: bson.D{{Key: "$ne", Value: true}}},
			{Key: "ns", Value: bson.D{{Key: "$not", Value: bson.Regex{Pattern: `^local\.`}}}},
		}}},
		bson.D{{Key: "$group", Value: bson.D{
			{Key: "_id", Value: bson.D{
				{Key: "op", Value: "$op"}, {Key: "lock", Value: "$waitingForLock"}, {Key: "flow", Value: "$waitingForFlowControl"},
				{Key: "latch", Value: "$waitingForLatch.captureName"}, {Key: "queue", Value: "$currentQueue.name"},
			}},
			{Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}},
		}}},
		bson.D{{Key: "$limit", Value: 100}},
	}
}

// probeSessions sets what the operations in progress are waiting for. Operations that have ended do
// not appear.
func (p *prober) probeSessions(ctx context.Context, s *engine.Status, router bool) error {
	if p.target.Options[engine.OptionSessions] == engine.Off {
		return nil
	}
	ctx, cancel := engine.WithShare(ctx, 0.5)
	defer cancel()
	d, err := p.attempt("$currentOp", rightSessions, func() (document, error) {
		return p.command(ctx, "aggregate", bson.E{Key: "pipeline", Value: operations(router)}, bson.E{Key: "cursor", Value: bson.D{}})
	})
	if err != nil || d == nil {
		return err
	}
	counts := map[engine.SessionState]float64{}
	for _, group := range d.list("cursor", "firstBatch") {
		if n, ok := group.number("n"); ok {
			counts[stateOf(group)] += n
		}
	}
	waitForTickets(s, counts)
	p.sessions.Set(s, counts)
	return nil
}

// inTicketQueue is the state of operations that wait for a ticket of the storage engine.
const inTicketQueue = "queue of tickets"

// waitForTickets changes running operations into waiting ones, as many as the server counts in its queue beyond those that
// the list shows to wait. Before 8.0 the list has no queue.
func waitForTickets(s *engine.Status, counts map[engine.SessionState]float64) {
	waiting := 0.0
	for i := range s.Values {
		if s.Values[i].Metric == queuedOperations {
			waiting += s.Values[i].V
		}
	}
	var running []engine.SessionState
	for state, n := range counts {
		switch state.Class {
		case engine.Running:
			running = append(running, state)
		case engine.Lock, engine.Latch:
			waiting -= n
		}
	}
	slices.SortFunc(running, func(a, b engine.SessionState) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a.Event, b.Event))
	})
	for _, state := range running {
		if moved := min(waiting, counts[state]); moved > 0 {
			counts[state] -= moved
			counts[engine.SessionState{Class: engine.Latch, Event: inTicketQueue}] += moved
			waiting -= moved
		}
	}
}

// isAcknowledged reports whether writes wait until other members have acknowledged them, by the latch in which a write with
// w: majority waits for a member that is stopped (AnonymousLockable on 6.0.5). Reads wait for other things there.
func isAcknowledged(group document) bool {
	switch group.text("_id", "op") {
	case "insert", "update", "remove", "command": // an update that was applied is a command again
		latch := group.text("_id", "latch")
		return latch == "FutureResolution" || latch == "AnonymousLockable"
	}
	return false
}

// stateOf returns the state of a group of operations. An operation in a queue has no lock yet.
func stateOf(group document) engine.SessionState {
	switch {
	case group.is("_id", "flow"):
		return engine.SessionState{Class: engine.FlowControlWait, Event: "flow control"}
	case group.text("_id", "queue") != "": // 8.0
		return engine.SessionState{Class: engine.Latch, Event: "queue " + group.text("_id", "queue")}
	case group.is("_id", "lock"):
		return engine.SessionState{Class: engine.Lock, Event: "lock"}
	case isAcknowledged(group):
		return engine.SessionState{Class: engine.Replication, Event: "write concern"}
	case group.text("_id", "latch") != "": // up to 7.0
		return engine.SessionState{Class: engine.Latch, Event: "latch " + group.text("_id", "latch")}
	}
	op := group.text("_id", "op")
	if op == "" || op == "none" {
		op = engine.Running
	}
	return engine.SessionState{Class: engine.Running, Event: op}
}
