package evidence

import (
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// answer is a server with sessions that wait: "3<2" is session 3, waiting for 2.
func answer(kind Kind, active int, waits ...string) Answer {
	a := Answer{Target: "n1", Engine: "x", Active: active}
	for _, w := range waits {
		id, by, _ := strings.Cut(w, "<")
		a.Block(id, by, kind, "t")
	}
	a.Wait(kind, len(waits))
	return a
}

func moments(answers ...Answer) (all []Moment) {
	for i, a := range answers {
		a.At = time.Unix(int64(i), 0)
		all = append(all, Moment{At: a.At, Answers: []Answer{a}})
	}
	return all
}

func TestExplain(t *testing.T) {
	idle := answer(MetadataLock, 4, "1<9", "2<9", "3<9", "9<8")
	*idle.Session("9") = Session{ID: "9", Statement: "ALTER TABLE t ADD c INT", User: "app", Host: "10.0.0.5", Seconds: series.Some(9.0), Waits: idle.Session("9").Waits}
	*idle.Session("8") = Session{ID: "8", Idle: true, Transaction: series.Some(20.0)}
	likely := answer(MetadataLock, 4, "1<9", "2<9")
	likely.Session("1").Waits.Likely = true
	hidden := Answer{Target: "n1", Engine: "x", Active: 4, Missing: []string{"a right"}}
	hidden.Wait(BackupLock, 4)
	acknowledging := Answer{Target: "n1", Engine: "x", Active: 4}
	acknowledging.Wait(Acknowledging, 4)
	failed := Answer{Target: "n1", Engine: "x", Error: "no answer within 0.9 s"}
	for name, c := range map[string]struct {
		moments      []Moment
		reason, text string
	}{
		"nothing":    {nil, Unknown, "nothing was captured"},
		"calm":       {moments(Answer{Target: "n1", Active: 4}), Unknown, "not explained by what was captured"},
		"few wait":   {moments(answer(RowLock, 4, "1<9")), Unknown, "not explained by what was captured"},
		"one holder": {moments(answer(RowLock, 4, "1<9", "2<9", "3<9")), "row lock", "3 of 4 clients waited for the row lock that session 9 held"},
		"a chain":    {moments(idle), "metadata lock", "4 of 4 clients waited for the metadata lock behind session 9 (ALTER TABLE t ADD c INT, app@10.0.0.5, for 9.0 s), which waited for session 8 (idle, in a transaction of 20.0 s)"},
		"a queue":    {moments(answer(RowLock, 4, "1<9", "2<1", "2<9", "3<2", "3<1", "3<9")), "row lock", "4 of 4 clients waited for the row lock that session 9 held"},
		"likely":     {moments(likely), "metadata lock", "2 of 4 clients waited for the metadata lock that session 9 held: most likely, as the server does not list who holds it"},
		"a cycle":    {moments(answer(RowLock, 2, "1<2", "2<1")), "row lock", "2 of 4 clients waited for a row lock on n1; who held it is not visible"},
		"a part of the stall": {moments(answer(RowLock, 4, "1<9", "2<9", "3<9"), Answer{Target: "n1", Engine: "x"}, Answer{Target: "n1", Engine: "x"}, Answer{Target: "n1", Engine: "x"}, Answer{Target: "n1", Engine: "x"}),
			Unknown, "not explained by what was captured"},
		"a hidden holder":   {moments(hidden), "backup lock", "4 of 4 clients waited for a backup lock on n1; who held it is not visible (missing: a right)"},
		"an absent replica": {moments(acknowledging), "acknowledgement of a replica", "4 of 4 clients waited for the acknowledgement of a replica on n1"},
		"no answer":         {moments(failed, failed), "server did not answer", "n1 did not answer: no answer within 0.9 s"},
		"a hot row": {moments(answer(RowLock, 4, "1<2", "3<2", "4<2"), answer(RowLock, 4, "2<1", "3<1", "4<1"), answer(RowLock, 4, "1<3", "2<3", "4<3")), "row lock",
			"3 of 4 clients waited for the row lock of t, one after the other: another session held it at each look, last session 3"},
		"hostile": {moments(answer("a\x1b[31m lock", 4, "1<\x1b]0;x\a", "2<\x1b]0;x\a")), "a\x1b[31m lock", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Explain(4, 5, c.moments)
			if got.Reason != c.reason || c.text != "" && got.Text != c.text {
				t.Errorf("%s: %q", got.Reason, got.Text)
			}
			for _, line := range got.Tree {
				if strings.ContainsAny(line, "\x1b\a") {
					t.Errorf("%q", line)
				}
			}
		})
	}
}

func TestTree(t *testing.T) {
	a := answer(RowLock, 9, "2<1", "3<2", "4<2", "5<2", "6<2")
	want := "session 1\n  session 2, waits for row lock t\n    session 3, waits for row lock t\n    session 4, waits for row lock t\n    2 more wait for it"
	if got := strings.Join(a.Tree(2), "\n"); got != want {
		t.Errorf("%s", got)
	}
}
