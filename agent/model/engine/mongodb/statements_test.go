package mongodb

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
)

// counted is what `top` reports about one collection.
func counted(of map[string][2]int64) bson.D {
	d := bson.D{}
	for kind, v := range of {
		d = append(d, bson.E{Key: kind, Value: bson.D{{Key: "time", Value: v[0]}, {Key: "count", Value: v[1]}}})
	}
	return d
}

func top(collections ...bson.E) bson.D {
	return bson.D{{Key: "totals", Value: append(bson.D{{Key: "note", Value: "all times in microseconds"}}, collections...)}}
}

// TestStatements guards the operations of a run by collection and command. The answers are composed
// after MongoDB's manual.
func TestStatements(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "standalone")
	p := openFake(t, f)
	if _, err := p.Statements(probeContext(t), nil); err == nil {
		t.Error("not connected, and no error")
	}
	mustProbe(t, p)
	read := func(at time.Time, before *engine.StatementReading, answer bson.D) *engine.StatementReading {
		t.Helper()
		f.answer("top", answer)
		r, err := p.Statements(probeContext(t), before)
		if err != nil {
			t.Fatal(err)
		}
		r.At = at
		return r
	}
	begin := time.Unix(1_800_000_000, 0)
	internal := bson.E{Key: "local.oplog.rs", Value: counted(map[string][2]int64{"getmore": {1, 1}})}
	before := read(begin, nil, top(internal, bson.E{Key: "ycsb.usertable", Value: counted(map[string][2]int64{
		"total": {9_000, 30}, "readLock": {9, 9}, "queries": {1_000_000, 100}, "update": {5, 1}, "insert": {0, 0}})}))
	if len(before.Statements) != 2 || before.UptimeSeconds < 7200 || before.Questions.Known {
		t.Errorf("%+v", before)
	}
	serve(t, f, 2, composed, "8.0", "standalone") // ten seconds later
	after := read(begin.Add(10*time.Second), before, top(internal, bson.E{Key: "ycsb.usertable", Value: counted(map[string][2]int64{
		"queries": {3_000_000, 1100}, "update": {5, 1}, "insert": {70_000, 7}})}))
	delta, err := engine.StatementsBetween(before, after)
	if err != nil || len(delta.Statements) != 2 {
		t.Fatalf("%+v, %v", delta, err)
	}
	if s := delta.Statements[0]; s.Text != "find ycsb.usertable" || s.Schema != "ycsb" || s.Executions != 1000 || s.Seconds != 2 {
		t.Errorf("%+v", s)
	}
	if s := delta.Statements[1]; s.Text != "insert ycsb.usertable" || s.Executions != 7 || s.Seconds != 0.07 {
		t.Errorf("%+v", s)
	}
	dropped := read(begin.Add(10*time.Second), before, top(bson.E{Key: "ycsb.usertable", Value: counted(map[string][2]int64{"queries": {30, 1}})}))
	if _, err := engine.StatementsBetween(before, dropped); !errors.Is(err, engine.ErrStatementsReset) {
		t.Error(err)
	}
}

// TestLatencies guards the distribution of reads and writes of all collections between two readings:
// the bounds of buckets (the answer has only lower bounds), buckets that appear, the server's own
// collections, a view, and what can't be known. The answers are like those of 6.0.5.
func TestLatencies(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "standalone")
	ops := counted(map[string][2]int64{"queries": {1, 1}, "insert": {1, 1}})
	named := func(names ...string) (all []bson.E) {
		for _, name := range names {
			all = append(all, bson.E{Key: name, Value: ops})
		}
		return all
	}
	f.answer("top", top(named("t.a", "t.b", "t.view", "local.oplog.rs", "admin.$cmd.aggregate")...))
	p := openFake(t, f)
	mustProbe(t, p)
	status := fixture(t, composed, "8.0", "standalone", "serverStatus-1.json")
	begin := time.Unix(1_800_000_000, 0)
	collection := func(of map[string][][2]int64) bson.D {
		answer := bson.D{}
		for kind, buckets := range of {
			array := bson.A{}
			for _, b := range buckets {
				array = append(array, bson.D{{Key: "micros", Value: b[0]}, {Key: "count", Value: b[1]}})
			}
			answer = with(answer, array, "latencyStats", kind, "histogram")
		}
		return answer
	}
	read := func(at time.Time, of map[string]bson.D) *engine.StatementReading {
		t.Helper()
		answer := with(status, float64(7200+at.Unix()-begin.Unix()), "uptime")
		f.answer("serverStatus", with(answer, (7200+at.Unix()-begin.Unix())*1000, "uptimeMillis"))
		f.answerFunc("aggregate", func(cmd bson.Raw) bson.D {
			name, _ := cmd.Lookup("aggregate").StringValueOK()
			stats, known := of[name]
			if !known {
				t.Errorf("asked for the latencies of %s", name)
			}
			if lookup(stats, "ok") != nil {
				return stats
			}
			if on, _ := cmd.Lookup("pipeline", "0", "$collStats", "latencyStats", "histograms").BooleanOK(); !on {
				t.Error("the histograms are not asked for")
			}
			return cursor("t."+name, stats)
		})
		r, err := p.Statements(probeContext(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.At = at
		return r
	}
	refused := func(code int32) bson.D {
		return bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "refused"}, {Key: "code", Value: code}}
	}
	before := read(begin, map[string]bson.D{
		"a": collection(map[string][][2]int64{"reads": {{64, 100}, {2048, 5}}, "writes": {{2048, 7}}, "commands": {{0, 9000}}}), "view": refused(166),
		"b": collection(map[string][][2]int64{"reads": {}, "writes": {}}),
	})
	after := read(begin.Add(time.Minute), map[string]bson.D{
		"a": collection(map[string][][2]int64{"reads": {{64, 600}, {2048, 5}, {3072, 1}}, "writes": {{0, 4}, {2048, 107}}, "commands": {{0, 19000}}, "transactions": {{4096, 3}}}),
		"b": collection(map[string][][2]int64{"reads": {{3072, 1}, {1099511627776, 1}}, "writes": {}}), "view": refused(166),
	})
	delta, err := engine.StatementsBetween(before, after)
	if err != nil {
		t.Fatal(err)
	}
	want := engine.LatencyBuckets{
		{Low: 0, High: 2e-6, N: 4}, {Low: 64e-6, High: 128e-6, N: 500}, {Low: 2048e-6, High: 3072e-6, N: 100}, {Low: 3072e-6, High: 4096e-6, N: 2},
		{Low: 1099511.627776, High: math.Inf(1), N: 1},
	}
	if d := cmp.Diff(want, delta.Latency); d != "" {
		t.Error(d)
	}
	empty := bson.D{{Key: "latencyStats", Value: bson.D{}}}
	for what, answer := range map[string]bson.D{"no histograms": empty, "no right": refused(13)} {
		if none := read(begin, map[string]bson.D{"a": answer, "b": answer, "view": answer}); none.Latency != nil || len(none.Statements) != 6 {
			t.Errorf("%s: %v", what, none.Latency)
		}
	}
	var many []string
	for i := range mostHistograms + 1 {
		many = append(many, fmt.Sprintf("t.c%d", i))
	}
	f.answer("top", top(named(many...)...))
	if none := read(begin, nil); none.Latency != nil || len(none.Statements) != 2*len(many) {
		t.Errorf("%d statements, %v", len(none.Statements), none.Latency)
	}
	if n := len(lowerBounds); n != 51 || lowerBounds[12] != 3072 || lowerBounds[31] != 2<<20 || lowerBounds[30] != 1.5*(1<<20) {
		t.Errorf("%d bounds: %v", n, lowerBounds)
	}
}

// TestReadsOfTheOplog guards that the latency of reads only covers clients' reads: the server also counts other
// members' reads of the oplog. Between two readings the difference never goes back.
func TestReadsOfTheOplog(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "pss-primary")
	full := fixture(t, composed, "8.0", "pss-primary", "serverStatus-1.json")
	oplog := latencySum{}
	f.answerFunc("aggregate", func(cmd bson.Raw) bson.D {
		if name, _ := cmd.Lookup("aggregate").StringValueOK(); name != "oplog.rs" {
			return cursor("admin.$cmd.aggregate")
		}
		return cursor("local.oplog.rs", bson.D{{Key: "latencyStats", Value: bson.D{{Key: "reads", Value: bson.D{
			{Key: "latency", Value: int64(oplog.seconds * micro)}, {Key: "ops", Value: int64(oplog.operations)}}}}}})
	})
	p := openFake(t, f)
	tick := func(uptime, served int64, all, ofOplog latencySum) *engine.Status {
		t.Helper()
		oplog = ofOplog
		status := with(full, uptime*1000, "uptimeMillis")
		status = with(status, served, "metrics", "repl", "network", "oplogGetMoresProcessed", "num")
		status = with(status, int64(all.seconds*micro), "opLatencies", "reads", "latency")
		f.answer("serverStatus", with(status, int64(all.operations), "opLatencies", "reads", "ops"))
		return mustProbe(t, p)
	}
	for _, c := range []struct {
		name           string
		uptime, served int64
		all, oplog     latencySum
		want           latencySum
	}{
		{"no secondary", 100, 0, latencySum{2, 100}, latencySum{}, latencySum{2, 100}},
		{"a secondary", 101, 50, latencySum{3, 160}, latencySum{0.5, 50}, latencySum{2.5, 110}},
		{"its reads are seen later", 102, 60, latencySum{3, 160}, latencySum{0.75, 55}, latencySum{2.5, 110}},
		{"more of clients", 103, 60, latencySum{4, 200}, latencySum{0.75, 55}, latencySum{3.25, 145}},
		{"restarted", 1, 10, latencySum{0.5, 30}, latencySum{0.25, 10}, latencySum{0.25, 20}},
	} {
		s := tick(c.uptime, c.served, c.all, c.oplog)
		seconds, _ := s.Get(latencySeconds, "reads")
		operations, _ := s.Get(latencyOperations, "reads")
		if got := (latencySum{seconds, operations}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	f.answer("aggregate", bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "refused"}, {Key: "code", Value: int32(13)}})
	s := tick(2, 20, latencySum{1, 60}, latencySum{})
	enginetest.Absent(t, s, latencySeconds, "reads")
	enginetest.Absent(t, s, latencyOperations, "reads")
	if !slices.Contains(s.Missing, rightOplogLatency) {
		t.Errorf("missing %q", s.Missing)
	}
	if _, ok := s.Get(latencySeconds, "writes"); !ok {
		t.Error("writes are absent, too")
	}
}

// TestNoStatements guards the reasons for missing counts.
func TestNoStatements(t *testing.T) {
	off := func(target *engine.Target) { target.Options = map[string]string{engine.OptionStatements: engine.Off} }
	for name, c := range map[string]struct {
		role    string
		refuse  string
		code    int32
		changes []func(*engine.Target)
		want    error
	}{
		"off":                    {role: "standalone", changes: []func(*engine.Target){off}, want: engine.ErrSwitchedOff},
		"mongos":                 {role: "mongos", want: engine.ErrSwitchedOff},
		"arbiter":                {role: "psa-arbiter", want: engine.ErrSwitchedOff},
		"no command":             {role: "standalone", refuse: "top", code: 59, want: engine.ErrSwitchedOff},
		"no right":               {role: "standalone", refuse: "top", code: 13, want: engine.MissingError(missingTop)},
		"no right to the uptime": {role: "standalone", refuse: "serverStatus", code: 13, want: engine.MissingError(missingUptime)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			serve(t, f, 1, composed, "8.0", c.role)
			f.answer("top", top())
			p := openFake(t, f, c.changes...)
			mustProbe(t, p)
			if c.refuse != "" {
				f.refuse(c.refuse, c.code, "x", "refused")
			}
			if _, err := p.Statements(probeContext(t), nil); !errors.Is(err, c.want) {
				t.Error(err)
			}
		})
	}
}
