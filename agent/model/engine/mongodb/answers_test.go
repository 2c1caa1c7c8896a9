package mongodb

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
)

// The type of a number differs between versions.
func TestNumbersOfAnyType(t *testing.T) {
	decimal, err := bson.ParseDecimal128("9007199254740992.5")
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "standalone")
	status := fixture(t, composed, "8.0", "standalone", "serverStatus-1.json")
	for op, n := range map[string]any{
		"insert": int32(7), "query": int64(1) << 53, "update": 2.5, "delete": decimal, "getmore": "42",
		"command": math.NaN(), "words": "many", "nothing": nil,
	} {
		status = with(status, bson.Null{}, "opcounters", op)
		if n != nil {
			status = with(status, n, "opcounters", op)
		}
	}
	status = with(status, int32(1), "flowControl", "isLagged")
	status = with(status, int32(80), "flowControl", "targetRateLimit")
	f.answer("serverStatus", status)
	s := mustProbe(t, openFake(t, f))
	enginetest.Want(t, s, 7, engine.OperationsTotal, "insert")
	enginetest.Want(t, s, 1<<53, engine.OperationsTotal, "query")
	enginetest.Want(t, s, 2.5, engine.OperationsTotal, "update")
	enginetest.Want(t, s, 9007199254740992, engine.OperationsTotal, "delete")
	enginetest.Want(t, s, 42, engine.OperationsTotal, "getmore")
	for _, op := range []string{"command", "words", "nothing", "deprecated"} {
		enginetest.Absent(t, s, engine.OperationsTotal, op)
	}
	enginetest.Want(t, s, 1, flowControlLagged)
	enginetest.Want(t, s, 80, flowControlTarget)
}

// TestMirroredReads guards that a secondary's queries leave out what the primary mirrors to it, never
// decrease while the server is up, and begin again with it, however long it has been up by then.
func TestMirroredReads(t *testing.T) {
	full := fixture(t, composed, "7.0", "pss-secondary", "serverStatus-1.json")
	f := newFake(t)
	serve(t, f, 1, composed, "7.0", "pss-secondary")
	p := openFake(t, f)
	for _, c := range []struct {
		name                       string
		uptime, queries, processed int64
		restarted                  bool
		want                       float64
	}{
		{"clients' and mirrored", 100, 1000, 400, false, 600},
		{"mirrored", 101, 1200, 600, false, 600},
		{"counted as mirrored before it is counted as a query", 102, 1200, 605, false, 600},
		{"clients'", 103, 1260, 610, false, 650},
		{"restarted two years ago", 104, 500, 490, true, 10},
	} {
		total := c.queries + int64(p.queries) // the server counts the agent's, too
		if c.restarted {
			p.started, total = p.started.AddDate(-2, 0, 0), c.queries
		}
		status := with(full, bson.D{{Key: "find", Value: bson.D{{Key: "total", Value: total}}}}, "metrics", "commands")
		status = with(status, c.uptime*1000, "uptimeMillis")
		f.answer("serverStatus", with(status, c.processed, "mirroredReads", "processedAsSecondary"))
		if got, _ := mustProbe(t, p).Get(engine.QueriesTotal); got != c.want {
			t.Errorf("%s: %v queries, want %v", c.name, got, c.want)
		}
	}
	if cmd := f.last("serverStatus"); cmd.Lookup("mirroredReads").AsInt64() != 1 {
		t.Errorf("serverStatus does not ask for mirrored reads: %s", cmd)
	}
}

// If a section is missing, its metrics are unknown, never 0.
func TestEverySectionOptional(t *testing.T) {
	full := fixture(t, composed, "8.0", "pss-primary", "serverStatus-1.json")
	for _, e := range full {
		f := newFake(t)
		serve(t, f, 1, composed, "8.0", "pss-primary")
		f.answer("serverStatus", with(full, nil, e.Key))
		s := mustProbe(t, openFake(t, f))
		if s.Role != "primary" || s.Position == nil {
			t.Errorf("without %s: role %q, position %v", e.Key, s.Role, s.Position)
		}
	}
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "standalone")
	f.answer("serverStatus", bson.D{})
	s := mustProbe(t, openFake(t, f))
	if len(s.Values) != 1 || // apart from the agent's own statements
		s.Role != "standalone" {
		t.Errorf("an empty answer gives role %q and %v", s.Role, s.Values)
	}
}

// Recorded answers of a server that only implements the protocol.
func TestFerretDB(t *testing.T) {
	const dir = "recorded-ferretdb-1.24.2-sqlite"
	f := newFake(t)
	f.answer("hello", fixture(t, dir, "hello.json"))
	f.answer("serverStatus", fixture(t, dir, "serverStatus.json"))
	s := mustProbe(t, openFake(t, f))
	if s.Version != "7.0.42" || s.Role != "standalone" || s.Uptime != 37758*time.Millisecond || s.Position != nil {
		t.Errorf("got %+v", s)
	}
	enginetest.Want(t, s, 4, engine.QueriesTotal)
	enginetest.Absent(t, s, engine.Connections)
	if n := f.commands()["replSetGetStatus"]; n != 0 {
		t.Errorf("replSetGetStatus was asked %d times of a server without a set", n)
	}
}

// hello does not exist before 4.4.2.
func TestOnlyIsMaster(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "4.4", "pss-secondary")
	hello := fixture(t, composed, "4.4", "pss-secondary", "hello.json")
	hello = with(with(hello, nil, "isWritablePrimary"), false, "ismaster")
	f.answerFunc("hello", func(cmd bson.Raw) bson.D {
		if first, _ := cmd.IndexErr(0); first.Key() == "hello" {
			return bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "no such command: 'hello'"}, {Key: "code", Value: int32(59)}}
		}
		return hello
	})
	if s := mustProbe(t, openFake(t, f)); s.Role != "secondary" {
		t.Errorf("role %q", s.Role)
	}
}

// Without any rights the sample has the values of hello, which every user may call, renewed at each
// tick, and the missing rights are named.
func TestNoRights(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "pss-secondary")
	for _, c := range []string{"serverStatus", "replSetGetStatus", "find"} {
		f.answer(c, fixture(t, composed, "8.0", "errors", "unauthorized.json"))
	}
	f.answer("buildInfo", fixture(t, "recorded-ferretdb-1.24.2-sqlite", "buildInfo.json"))
	p := openFake(t, f)
	s := mustProbe(t, p)
	if s.Version != "7.0.42" || s.Role != "secondary" || s.Position == nil || s.Position.Scalar() != 1767261599 || !s.Replicating {
		t.Errorf("got %+v", s)
	}
	slices.Sort(s.Missing)
	if len(s.Missing) != 3 || !strings.HasPrefix(s.Missing[0], "find on local.oplog.rs") ||
		!strings.HasPrefix(s.Missing[1], "replSetGetStatus") || !strings.HasPrefix(s.Missing[2], "serverStatus") {
		t.Errorf("missing %q", s.Missing)
	}

	hello := fixture(t, composed, "8.0", "pss-secondary", "hello.json")
	hello = with(hello, bson.DateTime(1767261603250), "lastWrite", "lastWriteDate")
	f.answer("hello", with(hello, bson.Timestamp{T: 1767261603, I: 5}, "lastWrite", "opTime", "ts"))
	if s = mustProbe(t, p); s.Position.Scalar() != 1767261603.25 || len(s.Missing) != 3 {
		t.Errorf("position %v, missing %q", s.Position, s.Missing)
	}
	if n := f.commands(); n["serverStatus"] != 1 || n["replSetGetStatus"] != 1 {
		t.Errorf("refused commands are sent each tick: %v", n)
	}
}

func TestMongosWithoutRights(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "mongos")
	p := openFake(t, f)
	enginetest.Want(t, mustProbe(t, p), 3, shardCount)
	for _, c := range []string{"serverStatus", "listShards", "balancerStatus", "find", "aggregate"} {
		f.answer(c, fixture(t, composed, "8.0", "errors", "unauthorized.json"))
	}
	delete(p.slow, "shards round") // ten seconds later
	s := mustProbe(t, p)
	if s.Role != "router" || len(s.Missing) == 0 {
		t.Errorf("got %+v", s)
	}
	for what, a := range p.slow { // and half a minute later
		a.until = time.Now().Add(-time.Second)
		p.slow[what] = a
	}
	enginetest.Absent(t, mustProbe(t, p), shardCount)
}

// An arbiter has no users: the driver must not try to log in.
func TestArbiterWithUser(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "7.0", "psa-arbiter")
	for _, c := range []string{"serverStatus", "replSetGetStatus"} {
		f.answer(c, fixture(t, composed, "8.0", "errors", "requires-authentication.json"))
	}
	p := openFake(t, f, withUser)
	s := mustProbe(t, p)
	if s.Role != "arbiter" || s.Position != nil || s.Replicating {
		t.Errorf("got %+v", s)
	}
	enginetest.Want(t, s, 7, setState)
	if n := f.commands()["saslStart"]; n != 0 {
		t.Errorf("tried to log in %d times", n)
	}
	for _, cmd := range f.all("serverStatus") {
		if _, err := cmd.LookupErr("oplog"); err == nil {
			t.Error("asked an arbiter for its oplog")
		}
	}
	for _, m := range s.Missing {
		if !strings.Contains(m, "holds no users") {
			t.Errorf("missing %q", m)
		}
	}

	// If the same address becomes a member that accepts logins, the agent logs in.
	f.answer("hello", fixture(t, composed, "7.0", "pss-secondary", "hello.json"))
	f.refuse("saslStart", 18, "AuthenticationFailed", "Authentication failed.")
	mustProbe(t, p)
	probeError(t, p, "login refused")
}

// The cost of a tick for the server, as documented.
func TestCommandsPerTick(t *testing.T) {
	cases := map[string]map[string]int{
		"standalone":    {"serverStatus": 1, "aggregate": 1, "ping": 1},
		"pss-secondary": {"serverStatus": 1, "aggregate": 1, "ping": 1, "replSetGetStatus": 1},
		"mongos":        {"serverStatus": 1, "aggregate": 1, "ping": 1},
	}
	for role, want := range cases {
		t.Run(role, func(t *testing.T) {
			f := newFake(t)
			serve(t, f, 1, composed, "8.0", role)
			f.answer("ping", bson.D{})
			if role != "mongos" {
				f.answer("aggregate", cursor("admin.$cmd.aggregate"))
			}
			p := openFake(t, f)
			mustProbe(t, p)
			before := f.commands()
			mustProbe(t, p)
			for command, n := range f.commands() {
				if command != "hello" && n-before[command] != want[command] {
					t.Errorf("%s was sent %d times, not %d", command, n-before[command], want[command])
				}
			}
			if n := f.Connections(); n > 3 {
				t.Errorf("%d connections", n)
			}
			cmd := f.last("serverStatus")
			if n, err := cmd.LookupErr("locks"); err != nil || n.AsInt64() != 0 {
				t.Errorf("serverStatus does not leave out its locks: %s", cmd)
			}
		})
	}
}

// serverStatus shows the ends of the oplog without an additional right.
func TestOplogWindowFromServerStatus(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "8.0", "pss-primary")
	status := fixture(t, composed, "8.0", "pss-primary", "serverStatus-1.json")
	status = with(status, bson.Timestamp{T: 1767261599, I: 1}, "oplog", "latestOptime")
	status = with(status, bson.Timestamp{T: 1767258000, I: 1}, "oplog", "earliestOptime")
	f.answer("serverStatus", status)
	s := mustProbe(t, openFake(t, f))
	enginetest.Want(t, s, 3599, oplogWindow)
	if n := f.commands()["find"]; n != 0 {
		t.Errorf("the oplog was read %d times", n)
	}
}

func FuzzAnswers(f *testing.F) {
	for _, path := range [][]string{
		{composed, "8.0", "pss-primary", "serverStatus-1.json"},
		{composed, "7.0", "mongos", "serverStatus-1.json"},
		{composed, "8.0", "pss-secondary", "replSetGetStatus-1.json"},
		{composed, "4.4", "psa-arbiter", "hello.json"},
		{composed, "8.0", "mongos", "listShards.json"},
	} {
		raw, err := bson.Marshal(fixture(f, path...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := document(raw)
		var s engine.Status
		readServerStatus(&s, d)
		g := readGreeting(d)
		applyGreeting(&s, &g)
		readReplicaSet(&s, d)
		readShards(&s, d)
		readBalancer(&s, d)
		readChunks(&s, []document{d})
		readLoad(&s, "a.b", []document{d})
		readDatabases(&s, []document{d})
		stateOf(d)
		readTop(d)
		for _, v := range s.Values {
			if math.IsNaN(v.V) || math.IsInf(v.V, 0) {
				t.Errorf("%s is %v", v.Metric.Name, v.V)
			}
		}
	})
}

// The cost of decoding one tick of a replica set member.
func BenchmarkDecode(b *testing.B) {
	status, err1 := bson.Marshal(fixture(b, composed, "8.0", "pss-primary", "serverStatus-1.json"))
	set, err2 := bson.Marshal(fixture(b, composed, "8.0", "pss-primary", "replSetGetStatus-1.json"))
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	b.ReportAllocs()
	for b.Loop() {
		var s engine.Status
		readServerStatus(&s, document(status))
		readReplicaSet(&s, document(set))
	}
}
