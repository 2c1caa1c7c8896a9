package mongodb

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const composed = "composed-not-recorded"

// openFake returns a prober of the fake.
func openFake(t *testing.T, f *fakeServer, changes ...func(*engine.Target)) *prober {
	t.Helper()
	return enginetest.Open(t, Engine, engine.Target{Name: "m1", Engine: "mongodb", Address: f.Address()}, changes).(*prober)
}

func withUser(target *engine.Target) { target.User, target.Password = "bench", "not-so-secret" }

// probeContext has a tick's deadline, long enough for a busy machine.
func probeContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func mustProbe(t *testing.T, p *prober) *engine.Status {
	t.Helper()
	s, err := p.Probe(probeContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.WellFormed(t, s)
}

// serve makes the fake answer with the fixtures of a version and role.
func serve(t *testing.T, f *fakeServer, sample int, path ...string) {
	t.Helper()
	file := func(name string) []string { return append(slices.Clone(path), name) }
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(append([]string{"testdata"}, file(name)...)...))
		return err == nil
	}
	status := fixture(t, file(fmt.Sprintf("serverStatus-%d.json", sample))...)
	f.answer("serverStatus", status)
	if exists("hello.json") {
		f.answer("hello", fixture(t, file("hello.json")...))
	} else { // only serverStatus, whose `repl` has the fields of hello
		hello := fixture(t, composed, path[1], "pss-primary", "hello.json")
		hello = with(hello, "shard01", "setName")
		f.answer("hello", hello)
	}
	for name, command := range map[string]string{
		fmt.Sprintf("replSetGetStatus-%d.json", sample): "replSetGetStatus",
		"replSetGetStatus-error.json":                   "replSetGetStatus",
		"listShards.json":                               "listShards",
		"balancerStatus.json":                           "balancerStatus",
	} {
		if exists(name) {
			f.answer(command, fixture(t, file(name)...))
		}
	}
	if exists("chunks-per-shard.json") {
		chunks := fixtures(t, file("chunks-per-shard.json")...)
		load := fixtures(t, file("aggregate-collStats-usertable.json")...)
		f.answerFunc("aggregate", func(cmd bson.Raw) bson.D {
			switch of, _ := cmd.Lookup("aggregate").StringValueOK(); of {
			case "":
				return cursor("admin.$cmd.aggregate")
			case "chunks":
				return cursor("config.chunks", chunks...)
			}
			return cursor("ycsb.usertable", load...)
		})
		f.answerFunc("find", func(cmd bson.Raw) bson.D {
			if cmd.Lookup("find").StringValue() == "databases" {
				return cursor("config.databases", bson.D{{Key: "_id", Value: "config"}, {Key: "primary", Value: "config"}}, bson.D{{Key: "_id", Value: "ycsb"}, {Key: "primary", Value: "shard02"}})
			}
			return cursor("config.collections", bson.D{{Key: "_id", Value: "ycsb.usertable"}}, bson.D{{Key: "_id", Value: "config.system.sessions"}})
		})
		return
	}
	f.answer("find", cursor("local.oplog.rs", bson.D{{Key: "ts", Value: bson.Timestamp{T: 1767175199, I: 7}}}))
}

// seriesName names a value as in the golden files, with braces even without labels.
func seriesName(v *engine.Value) string {
	if len(v.Labels) == 0 {
		return v.Name() + "{}"
	}
	return v.Name()
}

// describe prints two samples of a server as lines that can be compared.
func describe(first, second *engine.Status) string {
	var b strings.Builder
	for _, s := range []*engine.Status{first, second} {
		position := "none"
		if s.Position != nil {
			position = s.Position.String()
		}
		lag := "unknown"
		if s.CoarseLagSeconds.Known {
			lag = fmt.Sprint(s.CoarseLagSeconds.Value)
		}
		fmt.Fprintf(&b, "version %s flavour %s role %q uptime %v position %s replicating %v own lag %s delay %v\n",
			s.Version, s.Flavour, s.Role, s.Uptime, position, s.Replicating, lag, s.Delay)
		for _, m := range s.Missing {
			fmt.Fprintf(&b, "missing %s\n", m)
		}
	}
	lines := map[string]string{}
	for _, v := range first.Values {
		lines[seriesName(&v)] = fmt.Sprint(v.V)
	}
	for _, v := range second.Values {
		id := seriesName(&v)
		if _, ok := lines[id]; !ok {
			lines[id] = "absent"
		}
		lines[id] += fmt.Sprintf(" %v", v.V)
	}
	ids := make([]string, 0, len(lines))
	for id := range lines {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		fmt.Fprintf(&b, "%s %s\n", id, lines[id])
	}
	return b.String()
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", path, diff)
	}
}

// Two samples ten seconds apart for every version and role. The answers are composed, see
// testdata/README.md.
func TestComposedAnswers(t *testing.T) {
	roles := []string{"standalone", "pss-primary", "pss-secondary", "psa-primary", "psa-secondary", "psa-arbiter", "mongos", "shard-primary"}
	for _, version := range []string{"4.4", "6.0", "7.0", "8.0"} {
		for _, role := range roles {
			t.Run(version+"/"+role, func(t *testing.T) {
				f := newFake(t)
				p := openFake(t, f)
				serve(t, f, 1, composed, version, role)
				first := mustProbe(t, p)
				second := first
				if role != "shard-primary" {
					serve(t, f, 2, composed, version, role)
					second = mustProbe(t, p)
					checkRates(t, first, second)
				}
				compareGolden(t, version+"-"+role+".txt", describe(first, second))
			})
		}
	}
}

// checkRates fails if a counter goes back or has a value in only one of two samples.
func checkRates(t *testing.T, first, second *engine.Status) {
	t.Helper()
	if len(first.Values) != len(second.Values) {
		t.Errorf("%d values, then %d", len(first.Values), len(second.Values))
	}
	for _, v := range second.Values {
		before, ok := first.Get(v.Metric, v.Labels...)
		if !ok {
			t.Errorf("%s is missing in the first sample", seriesName(&v))
		}
		if v.Metric.Kind == measure.Counter && v.V < before {
			t.Errorf("counter %s goes from %v to %v", seriesName(&v), before, v.V)
		}
	}
}

// A member under load has a value for every measure of MongoDB.
func TestMeasures(t *testing.T) {
	f := newFake(t)
	p := openFake(t, f)
	serve(t, f, 1, composed, "8.0", "pss-primary")
	first := mustProbe(t, p)
	serve(t, f, 2, composed, "8.0", "pss-primary")
	second := mustProbe(t, p)
	enginetest.Measures(t, first, second, "queries", "commits", "rollbacks", "connections", "threads_running", "server_latency", "flow_control",
		"process_cpu", "server_memory", "cluster_size", "queued_operations", "write_conflicts", "cache_dirty", "cache_evictions", "checkpoint_duration",
		"cache_limit")
}

// TestUnshardedCollection guards that the load of an unsharded collection counts for the shard that
// contains it. The answers are composed.
func TestUnshardedCollection(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "mongos")
	f.answer("listCollections", cursor("ycsb.$cmd.listCollections", bson.D{{Key: "name", Value: "usertable"}, {Key: "type", Value: "collection"}},
		bson.D{{Key: "name", Value: "system.views"}, {Key: "type", Value: "collection"}}, bson.D{{Key: "name", Value: "loose"}, {Key: "type", Value: "collection"}}))
	f.answerFunc("aggregate", func(cmd bson.Raw) bson.D {
		if of, _ := cmd.Lookup("aggregate").StringValueOK(); of != "loose" {
			return cursor("x")
		}
		return cursor("ycsb.loose", bson.D{{Key: "shard", Value: "shard02"}, {Key: "latencyStats", Value: bson.D{
			{Key: "reads", Value: bson.D{{Key: "latency", Value: int64(5_000_000)}, {Key: "ops", Value: int64(70)}}}}}})
	})
	s := mustProbe(t, openFake(t, f))
	enginetest.Want(t, s, 1, databasePrimary, "ycsb", "shard02")
	enginetest.Absent(t, s, databasePrimary, "config", "config")
	enginetest.Want(t, s, 70, shardOperations, "shard02", "ycsb.loose", "reads")
	stats := 0
	for _, cmd := range f.all("aggregate") {
		if of, _ := cmd.Lookup("aggregate").StringValueOK(); of == "usertable" {
			stats++
		}
		if of, _ := cmd.Lookup("aggregate").StringValueOK(); of == "system.views" {
			t.Error("asked for the server's own collection")
		}
	}
	if stats != 1 {
		t.Errorf("the statistics of a sharded collection were asked for %d times", stats)
	}
}
