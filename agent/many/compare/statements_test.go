package compare

import (
	"bytes"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// TestCompareStatements guards that statements are compared by their time per transaction,
// the largest difference first, and only if all groups have them.
func TestCompareStatements(t *testing.T) {
	row := func(tps float64, all ...engine.Statement) review.Row {
		r := review.Row{DurationSeconds: 60, Values: tool.Values{{Measure: tool.Throughput, Value: tps}}, Executed: review.StatementsOf(recorded.Counted(record.ServerStatements{Target: "n1", Statements: all}))}
		return r
	}
	groups := []Group{
		{Name: "a", Runs: []review.Row{row(10, recorded.Statement("SELECT a", 5900, 5.9), recorded.Statement("COMMIT", 590, 5.9))}},
		{Name: "b", Runs: []review.Row{row(20, recorded.Statement("SELECT a", 11800, 11.8), recorded.Statement("COMMIT", 1180, 1.18), recorded.Statement("UPDATE b", 1180, 1.18))}},
	}
	c := Comparison{Groups: []string{"a", "b"}, Statements: compareStatements(groups)}
	if len(c.Statements) != 3 || c.Statements[0].Text != "COMMIT" || c.Statements[2].Text != "SELECT a" {
		t.Fatalf("%+v", c.Statements)
	}
	var b bytes.Buffer
	if err := c.StatementTable().Text(&b); err != nil {
		t.Fatal(err)
	}
	want := "COMMIT        10.00      1.00       -9.00  10.00 → 1.00  2.00 → 2.00"
	if !strings.Contains(b.String(), want) {
		t.Errorf("\n%s", b.String())
	}
	groups[1].Runs[0].Executed = nil
	if compareStatements(groups) != nil {
		t.Error("compared with a run without statements")
	}
}

// TestPaidNotes guards that a comparison names the statement that made transactions slower, and
// why if it reads other rows; and none where all statements changed a little.
func TestPaidNotes(t *testing.T) {
	statement := func(text string, executions, seconds, rows, scans float64) engine.Statement {
		s := recorded.Statement(text, executions, seconds)
		s.RowsExamined, s.FullScans = rows, scans
		return s
	}
	compared := func(after ...engine.Statement) []string {
		row := func(all ...engine.Statement) review.Row {
			return review.Row{DurationSeconds: 60, Values: tool.Values{{Measure: tool.Throughput, Value: 10.}}, Executed: review.StatementsOf(recorded.Counted(record.ServerStatements{Target: "n1", Statements: all}))}
		}
		groups := []Group{
			{Name: "a", Runs: []review.Row{row(statement("SELECT a", 590, 0.59, 590, 0), statement("UPDATE b", 590, 0.59, 590, 0))}},
			{Name: "b", Runs: []review.Row{row(after...)}},
		}
		c := Comparison{Groups: []string{"a", "b"}, Statements: compareStatements(groups)}
		return c.paidNotes()
	}
	for _, c := range []struct {
		after []engine.Statement
		want  string
	}{
		{[]engine.Statement{statement("SELECT a", 590, 59, 59e6, 590), statement("UPDATE b", 590, 0.649, 590, 0)},
			"b spent 99.10 ms more in statements per transaction than a, of which 99.00 ms in SELECT a, which read 100000 rows instead of 1.00, now without an index"},
		{[]engine.Statement{statement("SELECT a", 590, 0.59, 590, 0), statement("UPDATE b", 590, 0.295, 590, 0)},
			"b spent 0.50 ms less in statements per transaction than a, of which 0.50 ms in UPDATE b"},
		{[]engine.Statement{statement("SELECT a", 590, 0.6, 590, 0), statement("UPDATE b", 590, 0.58, 590, 0)}, ""},
		// One that got faster did not make it slower.
		{[]engine.Statement{statement("SELECT a", 590, 0.295, 590, 0), statement("UPDATE b", 590, 1.77, 590, 0)},
			"b spent 1.50 ms more in statements per transaction than a, of which 2.00 ms in UPDATE b"},
	} {
		if got := strings.Join(compared(c.after...), "\n"); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
