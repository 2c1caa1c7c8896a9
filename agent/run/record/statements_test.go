package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
)

func statementReading(second int, all ...engine.Statement) *engine.StatementReading {
	return &engine.StatementReading{
		At: historyStart.Add(time.Duration(second) * time.Second), UptimeSeconds: float64(1000 + second),
		Questions: series.Some(float64(10 * second)), Statements: all,
	}
}

func statement(digest, text string, executions, seconds float64) engine.Statement {
	return engine.Statement{Schema: "sbtest", Digest: digest, Text: text, FirstSeen: 5, StatementCounts: engine.StatementCounts{Executions: executions, Seconds: seconds}}
}

// TestStatementsAreRecorded guards that the record has the statements executed between the two readings, even if the
// agent was restarted in between, that secrets are blanked, and that a damaged line does not affect others.
func TestStatementsAreRecorded(t *testing.T) {
	dir := recorded(t, "", nil)
	if _, err := ReadStatementsBegin(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	begun := map[string]StatementsBegun{
		"n1": {Engine: "mysql", Cluster: "c", Reading: statementReading(1, statement("a", "", 100, 1))},
		"n2": {Engine: "mysql", Error: "a right is missing"},
		"n3": {Engine: "mysql", Reading: statementReading(1)},
	}
	if err := WriteStatementsBegin(dir, begun); err != nil {
		t.Fatal(err)
	}
	read, err := ReadStatementsBegin(dir)
	if diff := cmp.Diff(begun, read); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	all := []engine.Statement{statement("a", "SELECT ?", 160, 4), statement("b", "SET PASSWORD = 'hunter22'", 1, 9), statement("c", "", 7, 0.5)}
	for i := range 60 {
		all = append(all, statement(fmt.Sprint("s", i), "SELECT "+strings.Repeat("x", i), 1, 0.01))
	}
	lines := []ServerStatements{}
	for name, end := range map[string]engine.StatementsAnswer{
		"n1": {StatementReading: statementReading(61, all...)}, "n2": {}, "n3": {Err: errors.New("connect with password=hunter22: refused")},
	} {
		b := read[name]
		lines = append(lines, NewServerStatements(name, &b, end))
	}
	if err := WriteStatements(dir, lines); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadStatementsBegin(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was kept of the begin is still there: %v", err)
	}
	text, err := os.ReadFile(dir.Path(StatementsFile))
	if err != nil || strings.Contains(string(text), "hunter22") {
		t.Errorf("%v\n%s", err, text)
	}
	write(t, dir.Path(StatementsFile), "{\nnull\n"+string(text)+`{"target":"n1","err`)
	got, err := ReadStatements(dir)
	if err != nil || len(got) != 3 || got[1].Error != "a right is missing" || !strings.HasPrefix(got[2].Error, "connect with password=") {
		t.Fatalf("%v %+v", err, got)
	}
	n1 := &got[0]
	if total := n1.Total(); total.Executions != 128 || n1.Questions.Value != 600 || n1.To.Sub(n1.From) != time.Minute || len(n1.Statements) != 50 || n1.RestKinds != 13 {
		t.Errorf("%+v", n1)
	}
	if s := n1.Statements[1]; s.Text != "SELECT ?" || s.Executions != 60 || s.Seconds != 3 {
		t.Errorf("%+v", s)
	}
}

// FuzzStatements: any content of a file of statements is read in bounded memory, and never ends the reading.
func FuzzStatements(f *testing.F) {
	f.Add([]byte(`{"target":"n1","statements":[{"text":"SELECT ?","executions":1,"seconds":2,"latency":[[0,1,3],[1,null,2]]}],"rest":{"executions":-1}}` + "\n{}\nnull\n[]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := recorded(t, "", nil)
		write(t, dir.Path(StatementsFile), string(data))
		all, err := ReadStatements(dir)
		if err != nil && len(data) < LongestStatus {
			t.Fatal(err)
		}
		for i := range all {
			if all[i].Target == "" || i > 0 && all[i-1].Target >= all[i].Target || len(all[i].Statements) > keptStatements+2 {
				t.Errorf("%+v", all)
			}
		}
	})
}
