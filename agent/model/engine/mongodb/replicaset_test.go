package mongodb

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
)

// second0 is the moment of the composed members below.
const second0 = 1767261600

// setMemberDoc composes an entry of replSetGetStatus.
func setMemberDoc(name string, state int32, change ...bson.E) bson.D {
	doc := bson.D{
		{Key: "name", Value: name}, {Key: "health", Value: 1.0}, {Key: "state", Value: state},
		{Key: "optime", Value: bson.D{{Key: "ts", Value: bson.Timestamp{T: second0, I: 1}}, {Key: "t", Value: int64(4)}}},
		{Key: "optimeDate", Value: bson.DateTime(second0 * 1000)},
	}
	for _, c := range change {
		doc = with(doc, c.Value, c.Key)
	}
	return doc
}

func set(key string, v any) bson.E { return bson.E{Key: key, Value: v} }

// atSecond is an optime a number of seconds after second0, in term 4.
func atSecond(offset int) bson.E {
	return set("optime", bson.D{{Key: "ts", Value: bson.Timestamp{T: uint32(second0 + offset), I: 1}}, {Key: "t", Value: int64(4)}})
}

func atWall(ms int64) bson.E {
	return set("lastAppliedWallTime", bson.DateTime(second0*1000+ms))
}

func TestMembersAsOneSeesThem(t *testing.T) {
	self := set("self", true)
	dead := []bson.E{set("health", 0.0), set("optimeDate", bson.DateTime(0)),
		set("optime", bson.D{{Key: "ts", Value: bson.Timestamp{}}, {Key: "t", Value: int64(-1)}})}
	unknown := -1.0
	cases := map[string]struct {
		members   bson.A
		delay     time.Duration
		state     int32
		role      string
		lag       map[string]float64 // lag by member, complete
		own       float64
		primaries float64
	}{
		"behind in whole seconds": {
			members: bson.A{setMemberDoc("a", 1), setMemberDoc("b", 2, atSecond(-3), self)},
			state:   2, role: "secondary", lag: map[string]float64{"a": 0, "b": 3}, own: 3, primaries: 1,
		},
		"behind in milliseconds": {
			members: bson.A{setMemberDoc("a", 1, atWall(250)), setMemberDoc("b", 2, atSecond(-1), atWall(-1000), self)},
			state:   2, role: "secondary", lag: map[string]float64{"a": 0, "b": 1.25}, own: 1.25, primaries: 1,
		},
		"heard of later than the primary": {
			members: bson.A{setMemberDoc("a", 1), setMemberDoc("b", 2, atSecond(2), self)},
			state:   2, role: "secondary", lag: map[string]float64{"a": 0, "b": 0}, own: 0, primaries: 1,
		},
		"the same operation, clocks apart": {
			members: bson.A{setMemberDoc("a", 1, atWall(900)), setMemberDoc("b", 2, atWall(0), self)},
			state:   2, role: "secondary", lag: map[string]float64{"a": 0, "b": 0}, own: 0, primaries: 1,
		},
		"held back on purpose": {
			members: bson.A{setMemberDoc("a", 1), setMemberDoc("b", 2, atSecond(-3602), self)}, delay: time.Hour,
			state: 2, role: "secondary", lag: map[string]float64{"a": 0, "b": 3602}, own: 2, primaries: 1,
		},
		"a dead member has no lag": {
			members: bson.A{setMemberDoc("a", 1, self), setMemberDoc("b", 8, dead...)},
			state:   1, role: "primary", lag: map[string]float64{"a": 0}, own: unknown, primaries: 1,
		},
		"no primary, no lag": {
			members: bson.A{setMemberDoc("a", 8, dead...), setMemberDoc("b", 2, atSecond(-3), self)},
			state:   2, role: "secondary", lag: map[string]float64{}, own: unknown, primaries: 0,
		},
		"two primaries, the later term counts": {
			members: bson.A{setMemberDoc("a", 1, atSecond(5)),
				setMemberDoc("b", 1, set("optime", bson.D{{Key: "ts", Value: bson.Timestamp{T: second0, I: 9}}, {Key: "t", Value: int64(5)}})),
				setMemberDoc("c", 2, atSecond(-4), self)},
			state: 2, role: "secondary", lag: map[string]float64{"a": 0, "b": 0, "c": 4}, own: 4, primaries: 2,
		},
		"initial sync": {
			members: bson.A{setMemberDoc("a", 1), setMemberDoc("b", 5, atSecond(-900), self)},
			state:   5, role: "initial_sync", lag: map[string]float64{"a": 0}, own: unknown, primaries: 1,
		},
		"rollback": {
			members: bson.A{setMemberDoc("a", 1), setMemberDoc("b", 9, self)},
			state:   9, role: "rollback", lag: map[string]float64{"a": 0}, own: unknown, primaries: 1,
		},
		"an arbiter": {
			members: bson.A{setMemberDoc("a", 1), setMemberDoc("b", 7, set("optime", nil), set("optimeDate", nil), self)},
			state:   7, role: "arbiter", lag: map[string]float64{"a": 0}, own: unknown, primaries: 1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			raw, err := bson.Marshal(bson.D{{Key: "set", Value: "rs0"}, {Key: "myState", Value: c.state}, {Key: "members", Value: c.members}})
			if err != nil {
				t.Fatal(err)
			}
			s := engine.Status{Delay: c.delay}
			readReplicaSet(&s, document(raw))
			if s.Role != c.role {
				t.Errorf("role %q, not %q", s.Role, c.role)
			}
			for _, name := range []string{"a", "b", "c"} {
				if want, ok := c.lag[name]; ok {
					enginetest.Want(t, &s, want, memberLag, name)
				} else {
					enginetest.Absent(t, &s, memberLag, name)
				}
			}
			switch {
			case c.own == unknown && s.CoarseLagSeconds.Known:
				t.Errorf("own lag %v, but is unknown", s.CoarseLagSeconds.Value)
			case c.own != unknown && s.CoarseLagSeconds != series.Some(c.own):
				t.Errorf("own lag %v, not %v", s.CoarseLagSeconds, c.own)
			}
			if s.Replicating != (c.own != unknown || c.primaries == 0 || c.role == "primary") {
				t.Errorf("replicating: %v", s.Replicating)
			}
			enginetest.Want(t, &s, c.primaries, setPrimaries, "rs0")
		})
	}
}

func TestOptimeOrder(t *testing.T) {
	a := optime{set: "rs0", seconds: 100, increment: 5, term: 4}
	cases := map[string]struct {
		b    optime
		less bool // a before b
		more bool // b before a
	}{
		"same":                      {b: a},
		"next in the second":        {b: optime{set: "rs0", seconds: 100, increment: 6, term: 4}, less: true},
		"next second":               {b: optime{set: "rs0", seconds: 101, increment: 1, term: 4}, less: true},
		"later term, earlier time":  {b: optime{set: "rs0", seconds: 99, increment: 1, term: 5}, less: true},
		"earlier term":              {b: optime{set: "rs0", seconds: 200, increment: 1, term: 3}, more: true},
		"unknown term, later time":  {b: optime{set: "rs0", seconds: 200, increment: 1, term: -1}, less: true},
		"unknown term, before that": {b: optime{set: "rs0", seconds: 99, increment: 9, term: -1}, more: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := engine.Reached(a, c.b); got != !c.less {
				t.Errorf("a reaches b: %v", got)
			}
			if got := engine.Reached(c.b, a); got != !c.more {
				t.Errorf("b reaches a: %v", got)
			}
			if _, ok := a.Behind(c.b); ok {
				t.Error("operations were counted")
			}
		})
	}
	if engine.Reached(a, optime{set: "rs1", seconds: 1, term: 1}) {
		t.Error("optimes of two replica sets were compared")
	}
	if low, high := a.Scalar(), (optime{seconds: 100, increment: 6}).Scalar(); low >= high {
		t.Errorf("%v is not below %v", low, high)
	}
}

// Members at the same ticks: the lag is the time since the primary was where the secondary is now,
// and disappears when the secondary has caught up.
func TestLagOfMembersAtTheSameTick(t *testing.T) {
	const interval = 250 * time.Millisecond
	fakes := map[string]*fakeServer{}
	var targets []engine.Target
	for _, name := range []string{"a", "b"} {
		f := newFake(t)
		fakes[name] = f
		serve(t, f, 1, composed, "7.0", "pss-primary")
		targets = append(targets, engine.Target{Name: name, Engine: "mongodb", Address: f.Address(), Cluster: "rs0"})
	}
	position := func(name string, state int32, offset int) {
		fakes[name].answer("replSetGetStatus", bson.D{{Key: "set", Value: "rs0"}, {Key: "myState", Value: state}, {Key: "members", Value: bson.A{
			setMemberDoc(name, state, atSecond(offset), set("self", true))}}})
	}
	position("a", 1, 0)
	position("b", 2, 0)

	log := slog.New(slog.DiscardHandler)
	sampler := engine.NewSampler(targets, func(target engine.Target) (engine.Prober, error) { return Engine.Open(target, log) }, interval, engine.Options{Logger: log})
	frames, cancel := sampler.Subscribe(8)
	defer cancel()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sampler.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	// await returns the first frame whose lag of b satisfies ok.
	await := func(what string, ok func(lag float64) bool) *engine.Sample {
		t.Helper()
		timeout := time.After(20 * time.Second)
		for {
			select {
			case frame := <-frames:
				b := &frame.Samples[1]
				if frame.Samples[0].Up() && b.Up() && b.LagSeconds.Known && ok(b.LagSeconds.Value) {
					return b
				}
			case <-timeout:
				t.Fatal(what, "was not seen")
			}
		}
	}
	await("no lag at first", func(lag float64) bool { return lag == 0 })
	position("a", 1, 10)
	b := await("growing lag", func(lag float64) bool { return lag > 2*interval.Seconds() })
	if b.LagTransactions.Known {
		t.Errorf("%v transactions behind, but optimes can't be counted", b.LagTransactions.Value)
	}
	position("b", 2, 10)
	await("having caught up", func(lag float64) bool { return lag == 0 })
}
