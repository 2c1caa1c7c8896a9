package sessions

import (
	"database/sql"
	"math"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestHolderName guards that a holder is named by its user and a verb: the values and passwords of statements stay on
// the server.
func TestHolderName(t *testing.T) {
	for _, c := range []struct{ user, command, verb, want string }{
		{"root", "Sleep", "", "root (idle in a transaction)"},
		{"app", "Query", "UPDATE users SET password = 'geheim' WHER", "app (UPDATE)"},
		{"dba", "Query", "alter table t force", "dba (ALTER TABLE)"},
		{"dba", "Query", "/* x */", "dba (X)"},
		{"a\x1b[31m", "Query", "", "a [31m"},
	} {
		row := mysql.NewRow([]string{"user", "command", "verb"}, []sql.NullString{{String: c.user, Valid: true}, {String: c.command, Valid: true}, {String: c.verb, Valid: c.verb != ""}})
		if got := holderName(row); got != c.want {
			t.Errorf("have %q, want %q", got, c.want)
		}
	}
}

// TestSums guards that a new holder begins with 0, so that its first seconds count as an increase, and that their number
// is limited.
func TestSums(t *testing.T) {
	var s sums
	s.add("a", 4)
	var first, second engine.Status
	s.set(&first, mysql.LocksHeldSeconds)
	s.add("a", 2)
	s.set(&second, mysql.LocksHeldSeconds)
	enginetest.Want(t, &first, 0, mysql.LocksHeldSeconds, "a")
	enginetest.Want(t, &second, 4, mysql.LocksHeldSeconds, "a")
	for i := range 3 * mostHolders {
		s.add(string(rune('b'+i)), 1)
	}
	if len(s.seconds) > mostHolders+1 {
		t.Errorf("%d holders", len(s.seconds))
	}
}

// TestHeld guards the causes of what sessions hold.
func TestHeld(t *testing.T) {
	view := func(grown map[*measure.Measure]float64, over map[*measure.Measure][]float64) *cause.View {
		return &cause.View{Limit: cause.RowLocks, Share: 0.8, Seconds: 20, Threads: 4, Record: &causetest.Record{Grown: grown, Over: over,
			By: map[*measure.Measure]map[string]float64{mysql.LocksHeld: {"root (idle in a transaction)": 40}, mysql.SnapshotHeld: {"root (idle in a transaction)": 12}}}}
	}
	found, is := holder(view(nil, map[*measure.Measure][]float64{engine.RowLockSessions: {2, 3, 3}}))
	if !is || math.Abs(found.Part-0.75) > 0.01 || found.Of != "root (idle in a transaction)" {
		t.Errorf("%v %+v", is, found)
	}
	growing := map[*measure.Measure][]float64{mysql.HistoryList: {900, 1100, 2000, 3000, 4000, 5000}, engine.QueryRate: {300, 280, 200, 150, 110, 90}}
	if found, is := keptVersions(view(nil, growing)); !is || found.Part < 0.6 {
		t.Errorf("%v %+v", is, found)
	}
	growing[engine.QueryRate] = []float64{300, 300, 300, 300, 300, 295}
	if found, is := keptVersions(view(nil, growing)); is {
		t.Errorf("the throughput did not fall: %+v", found)
	}
}
