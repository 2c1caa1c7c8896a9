package review

import (
	"bytes"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// TestStatements guards that the servers' statements are added up, that proxies do not count twice, that a percentile
// covers all servers or is absent, and that a server without known statements is named.
func TestStatements(t *testing.T) {
	all := StatementsOf(recorded.Counted(
		record.ServerStatements{Target: "n1", Questions: series.Some(1000.0), Statements: []engine.Statement{
			recorded.Statement("SELECT a", 600, 3, 590, 10), recorded.Statement("COMMIT", 300, 5, 300), {Digest: engine.DigestPrepared, StatementCounts: engine.StatementCounts{Executions: 50, Seconds: 2}},
		}, Rest: &engine.StatementCounts{Executions: 50, Seconds: 1}, RestKinds: 5, Latency: engine.LatencyBuckets{{Low: 0, High: 0.001, N: 900}}},
		record.ServerStatements{Target: "n2", Statements: []engine.Statement{recorded.Statement("SELECT a", 400, 9, 0, 0, 400), recorded.Statement("COMMIT", 100, 1)}},
		record.ServerStatements{Target: "proxy", Statements: []engine.Statement{recorded.Statement("SELECT a", 1e6, 1e6)}},
		record.ServerStatements{Target: "foreign", Statements: []engine.Statement{recorded.Statement("SELECT a", 1e6, 1e6)}},
	))
	if all.Total.Executions != 1500 || all.Total.Seconds != 21 || len(all.Kinds) != 3 || all.Distribution == nil || all.Distribution.Count != 900 {
		t.Fatalf("%+v", all)
	}
	first := &all.Kinds[0]
	if first.Text != "SELECT a" || first.Executions != 1000 || first.Seconds != 12 || first.MeanSeconds != 0.012 || len(first.Percentiles) != 2 || first.Percentiles[0].High.Value != 0.003 {
		t.Errorf("%+v", first)
	}
	if second := &all.Kinds[1]; second.Text != "COMMIT" || second.Percentiles != nil {
		t.Errorf("n2 has no histogram of it: %+v", second)
	}
	var b bytes.Buffer
	if err := statementTable(all, 2).Text(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "(all others)    100      14") {
		t.Errorf("\n%s", text)
	}
	notes := strings.Join(StatementNotes(all), "\n")
	if !strings.Contains(notes, "n1 counted 1000 executions from 0:01 to 1:00, 100 %") || !strings.Contains(notes, "the true ones are lower by at most 33 %") {
		t.Errorf("%s", notes)
	}
	reset := engine.ErrStatementsReset.Error()
	all = StatementsOf(recorded.Counted(record.ServerStatements{Target: "n1", Error: reset}, record.ServerStatements{Target: "n2", Error: reset}))
	if t2 := statementTable(all, 10); len(t2.Rows) != 0 || !strings.Contains(strings.Join(StatementNotes(all), ""), "the statements of n1 and n2 are not known: the server's counters") {
		t.Errorf("%v %v", t2.Rows, StatementNotes(all))
	}
	if StatementsOf(recorded.Counted()) != nil {
		t.Error("statements of a run without")
	}
}

// TestLimitNamesStatement guards that a finding about the servers names the statement that took
// most of the time, and no other finding does.
func TestLimitNamesStatement(t *testing.T) {
	verdict := func(share float64, of engine.Statement) string {
		v := &limits.Verdict{Findings: []limits.LimitFinding{{Limit: cause.RowLocks, Evidence: "x"}, {Limit: cause.RoundTrip, Evidence: "y"}}}
		kind := newStatementKind(&of)
		kind.Share, kind.MeanSeconds, kind.StatementCounts = share, 0.008, of.StatementCounts
		nameStatement(v, &Statements{Kinds: []StatementKind{kind}}, 50)
		return v.Findings[0].Evidence + " " + v.Findings[1].Evidence
	}
	update := recorded.Statement("UPDATE a", 1000, 8)
	if got, want := verdict(0.7, update), "x; 70 % of the statements' time in the servers was in UPDATE a, 8.00 ms on average y"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, got := range []string{verdict(0.1, update), verdict(0.9, engine.Statement{Digest: engine.DigestPrepared}), verdict(0.9, engine.Statement{}), verdict(0.9, recorded.Statement("UPDATE a", 40, 8))} {
		if got != "x y" {
			t.Error(got)
		}
	}
}
