package mongodb

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
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

// TestLatencies guards the distribution of reads and writes between two readings: the bounds of
// buckets (the answer has only lower bounds), buckets that appear, and a server without histograms.
// The answers are composed after MongoDB's manual and source.
func TestLatencies(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "standalone")
	f.answer("top", top())
	p := openFake(t, f)
	mustProbe(t, p)
	status := fixture(t, composed, "8.0", "standalone", "serverStatus-1.json")
	begin := time.Unix(1_800_000_000, 0)
	read := func(at time.Time, of map[string][][2]int64) *engine.StatementReading {
		t.Helper()
		f.answerFunc("serverStatus", func(cmd bson.Raw) bson.D {
			answer := with(status, float64(7200+at.Unix()-begin.Unix()), "uptime")
			answer = with(answer, (7200+at.Unix()-begin.Unix())*1000, "uptimeMillis")
			if on, _ := cmd.Lookup("opLatencies", "histograms").BooleanOK(); !on {
				t.Error("the histograms are not asked for")
			}
			for kind, buckets := range of {
				array := bson.A{}
				for _, b := range buckets {
					array = append(array, bson.D{{Key: "micros", Value: b[0]}, {Key: "count", Value: b[1]}})
				}
				answer = with(answer, array, "opLatencies", kind, "histogram")
			}
			return answer
		})
		r, err := p.Statements(probeContext(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.At = at
		return r
	}
	before := read(begin, map[string][][2]int64{"reads": {{64, 100}, {2048, 5}}, "writes": {{2048, 7}}, "commands": {{0, 9000}}})
	after := read(begin.Add(time.Minute), map[string][][2]int64{
		"reads": {{64, 600}, {2048, 5}, {3072, 2}, {1099511627776, 1}}, "writes": {{0, 4}, {2048, 107}}, "commands": {{0, 19000}}, "transactions": {{4096, 3}}})
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
	if none := read(begin, nil); none.Latency != nil {
		t.Errorf("%v", none.Latency)
	}
	if n := len(lowerBounds); n != 51 || lowerBounds[12] != 3072 || lowerBounds[31] != 2<<20 || lowerBounds[30] != 1.5*(1<<20) {
		t.Errorf("%d bounds: %v", n, lowerBounds)
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
