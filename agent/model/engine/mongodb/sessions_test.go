package mongodb

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
)

// group is a row of the pipeline's answer. A field that a group lacks is missing in its _id.
func group(n int32, id ...bson.E) bson.D {
	return bson.D{{Key: "_id", Value: append(bson.D{}, id...)}, {Key: "n", Value: n}}
}

// TestSessions guards what the operations in progress wait for, and that ended operations are in no
// sample. The answers are composed after MongoDB's manual.
func TestSessions(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "standalone")
	f.answer("aggregate", cursor("admin.$cmd.aggregate",
		group(3, bson.E{Key: "op", Value: "update"}, bson.E{Key: "lock", Value: false}, bson.E{Key: "flow", Value: false}),
		group(2, bson.E{Key: "op", Value: "query"}, bson.E{Key: "lock", Value: true}),
		group(4, bson.E{Key: "op", Value: "insert"}, bson.E{Key: "flow", Value: true}),
		group(5, bson.E{Key: "op", Value: "query"}, bson.E{Key: "lock", Value: true}, bson.E{Key: "queue", Value: "execution"}),
		group(1, bson.E{Key: "op", Value: "query"}, bson.E{Key: "latch", Value: "FutureResolution"}),
		group(2, bson.E{Key: "op", Value: "update"}, bson.E{Key: "latch", Value: "FutureResolution"}),
		group(1, bson.E{Key: "op", Value: "none"}),
		bson.D{{Key: "n", Value: "x"}}, bson.D{}))
	p := openFake(t, f)
	s := mustProbe(t, p)
	for event, want := range map[string]struct {
		class string
		n     float64
	}{
		"update": {engine.Running, 3}, "lock": {engine.Lock, 2}, "flow control": {engine.FlowControlWait, 4}, "queue execution": {engine.Latch, 5},
		"latch FutureResolution": {engine.Latch, 1}, "write concern": {engine.Replication, 2}, engine.Running: {engine.Running, 1},
	} {
		enginetest.Want(t, s, want.n, engine.ActiveSessions, want.class, event)
	}
	f.answer("aggregate", cursor("admin.$cmd.aggregate"))
	s = mustProbe(t, p)
	enginetest.Want(t, s, 0, engine.ActiveSessions, engine.Lock, "lock")

	stages, _ := f.last("aggregate").Lookup("pipeline").Array().Values()
	if own, err := stages[1].Document().LookupErr("$match", "appName", "$ne"); err != nil || own.StringValue() != appName {
		t.Errorf("the agent's own operations are not left out: %s", stages[1])
	}
	if _, err := stages[0].Document().LookupErr("$currentOp", "localOps"); err == nil {
		t.Error("localOps is for a mongos")
	}
}

// TestSessionsOfRouter guards that a mongos is queried for its own operations, not for the operations of all shards.
func TestSessionsOfRouter(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "mongos")
	mustProbe(t, openFake(t, f))
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.asked, func(cmd bson.Raw) bool {
		_, err := cmd.LookupErr("pipeline", "0", "$currentOp", "localOps")
		return err == nil
	})
	if i < 0 {
		t.Error("a router is asked for the operations of all shards")
	}
}

// TestNoSessions guards that a server without the right, without the stage or with sessions
// switched off is still sampled, and is not asked again at once.
func TestNoSessions(t *testing.T) {
	for name, c := range map[string]struct {
		refuse  func(f *fakeServer)
		change  func(*engine.Target)
		asked   int
		missing []string
	}{
		"right": {refuse: func(f *fakeServer) { f.refuse("aggregate", 13, "Unauthorized", "not authorized") }, asked: 1, missing: []string{rightSessions}},
		"stage": {refuse: func(f *fakeServer) {
			f.refuse("aggregate", 40324, "Location40324", "Unrecognized pipeline stage name: '$currentOp'")
		}, asked: 1},
		"FerretDB": {refuse: func(f *fakeServer) { f.refuse("aggregate", 238, "NotImplemented", "not implemented yet") }, asked: 1},
		"off":      {change: func(target *engine.Target) { target.Options = map[string]string{engine.OptionSessions: engine.Off} }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			serve(t, f, 1, composed, "8.0", "standalone")
			var changes []func(*engine.Target)
			if c.refuse != nil {
				c.refuse(f)
			}
			if c.change != nil {
				changes = append(changes, c.change)
			}
			p := openFake(t, f, changes...)
			mustProbe(t, p)
			s := mustProbe(t, p)
			enginetest.Absent(t, s, engine.ActiveSessions, engine.Running, engine.Running)
			if n := f.commands()["aggregate"]; n != c.asked || !slices.Equal(s.Missing, c.missing) {
				t.Errorf("asked %d times, missing %q", n, s.Missing)
			}
		})
	}
}
