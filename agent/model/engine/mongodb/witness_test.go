package mongodb

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// locks is what an operation locks, as $currentOp has it.
func locks(modes ...string) bson.E {
	d := bson.D{}
	for i := 0; i+1 < len(modes); i += 2 {
		d = append(d, bson.E{Key: modes[i], Value: modes[i+1]})
	}
	return bson.E{Key: "locks", Value: d}
}

func op(connection int64, name, ns string, waits bool, more ...bson.E) bson.D {
	d := bson.D{{Key: "op", Value: name}, {Key: "ns", Value: ns}, {Key: "waitingForLock", Value: waits}, {Key: "client", Value: "10.0.0.5:4711"},
		{Key: "microsecs_running", Value: int64(2_500_000)}}
	if connection > 0 {
		d = append(d, bson.E{Key: "connectionId", Value: connection})
	}
	return append(d, more...)
}

// TestLockers: operations that wait for a lock are below the one that has it. The first case is what mongod 6.0.5 answers
// while fsyncLock has the lock.
func TestLockers(t *testing.T) {
	for name, c := range map[string]struct {
		operations   []bson.D
		reason, text string
	}{
		"fsyncLock": {[]bson.D{
			op(0, "none", "", false, bson.E{Key: "desc", Value: "fsyncLockWorker"}, locks("ReplicationStateTransition", "w", "Global", "R")),
			op(3, "update", "x.y", true, locks("Global", "w")), op(4, "update", "x.y", true, locks("Global", "w")),
		}, "lock of fsyncLock", "2 of 2 clients waited for the lock of fsyncLock that session fsyncLockWorker (10.0.0.5, for 2.5 s) held"},
		"an index of a collection": {[]bson.D{
			op(9, "command", "x.y", false, bson.E{Key: "command", Value: "createIndexes"}, locks("Global", "w", "Database", "w", "Collection", "W")),
			op(8, "command", "x.z", false, bson.E{Key: "command", Value: "drop"}, locks("Global", "w", "Database", "w", "Collection", "W")),
			op(3, "query", "x.y", true, locks("Global", "r", "Database", "r", "Collection", "r")), op(4, "query", "x.y", true, locks("Global", "r", "Database", "r", "Collection", "r")),
		}, "lock", "2 of 2 clients waited for the lock that session conn9 (createIndexes x.y, 10.0.0.5, for 2.5 s) held"},
		"an open transaction before it": {[]bson.D{
			op(7, "", "x.y", false, bson.E{Key: "type", Value: "idleSession"}, bson.E{Key: "transaction", Value: bson.D{{Key: "timeOpenMicros", Value: int64(9e6)}}}, locks("Global", "w", "Database", "w", "Collection", "w")),
			op(9, "command", "x.y", true, bson.E{Key: "command", Value: "drop"}, locks("Global", "w", "Database", "w", "Collection", "W")),
			op(3, "query", "x.y", true, locks("Global", "r", "Database", "r", "Collection", "r")),
		}, "lock", "2 of 2 clients waited for the lock behind session conn9 (drop x.y, 10.0.0.5, for 2.5 s), which waited for session conn7 (idle after x.y, 10.0.0.5, for 2.5 s, in a transaction of 9.0 s)"},
		"a hidden holder": {[]bson.D{op(3, "update", "x.y", true, locks("Global", "w")), op(4, "update", "x.y", true, locks("Global", "w"))},
			"lock", "2 of 2 clients waited for a lock on m1; who held it is not visible"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			serve(t, f, 1, composed, "8.0", "standalone")
			waiting := group(2, bson.E{Key: "op", Value: "update"}, bson.E{Key: "lock", Value: true})
			f.answerFunc("aggregate", func(cmd bson.Raw) bson.D {
				if strings.Contains(cmd.String(), "timeOpenMicros") {
					return cursor("admin.$cmd.aggregate", c.operations...)
				}
				return cursor("admin.$cmd.aggregate", waiting)
			})
			p := openFake(t, f)
			var w engine.Witness = p
			a, err := w.Testify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			a.Target, a.Engine, a.At = "m1", "mongodb", time.Unix(1, 0)
			if got := evidence.Explain(2, 5, []evidence.Moment{{Answers: []evidence.Answer{*a}}}); got.Reason != c.reason || got.Text != c.text {
				t.Errorf("%s: %s", got.Reason, got.Text)
			}
		})
	}
}
