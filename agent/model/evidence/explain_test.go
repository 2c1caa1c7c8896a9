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
		"another holder at the end": {moments(answer(RowLock, 4, "1<9", "2<9", "3<9"), answer(RowLock, 4, "1<9", "2<9"), answer(RowLock, 4, "1<4", "2<4", "3<4")),
			"row lock", "3 of 4 clients waited for the row lock that session 9 held"},
		"likely":  {moments(likely), "metadata lock", "2 of 4 clients waited for the metadata lock that session 9 held: most likely, as the server does not list who holds it"},
		"a cycle": {moments(answer(RowLock, 2, "1<2", "2<1")), "row lock", "2 of 4 clients waited for a row lock on n1; who held it is not visible"},
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

// TestExplainedPart: what explains most of the clients' waiting counts, over the seconds of the stall that the looks show.
func TestExplainedPart(t *testing.T) {
	locked, calm := answer(RowLock, 4, "1<9", "2<9", "3<9", "4<9"), Answer{Target: "n1", Engine: "x", Active: 4}
	behind := answer(RowLock, 4, "1<9", "2<9")
	behind.Block("9", "8", MetadataLock, "t")
	behind.Block("3", "8", MetadataLock, "t")
	behind.Block("4", "8", MetadataLock, "t")
	behind.Wait(MetadataLock, 3)
	committing := answer(RowLock, 4, "1<9", "2<9", "3<9")
	committing.Session("9").Waits = &Wait{Kind: Committing}
	committing.Wait(Committing, 1)
	idle := Answer{Target: "n1", Engine: "x", Connected: 6}
	replica := Answer{Target: "n2", Engine: "x", Error: "no answer within 0.9 s"}
	pool := idle
	pool.Connected = 0
	look := func(seconds float64, answers ...Answer) Moment { return Moment{Answers: answers, Seconds: seconds} }
	for name, c := range map[string]struct {
		moments []Moment
		reason  string
	}{
		"one look of a short stall":             {[]Moment{look(1, locked), look(0, calm), look(0, calm)}, "row lock"},
		"most seconds":                          {[]Moment{look(1.2, locked), look(1, calm)}, "row lock"},
		"few seconds":                           {[]Moment{look(0.4, locked), look(1, calm)}, Unknown},
		"half of the clients, all of the time":  {[]Moment{look(1, answer(RowLock, 4, "1<9", "2<9"))}, "row lock"},
		"half of the clients, half of the time": {[]Moment{look(1, answer(RowLock, 4, "1<9", "2<9")), look(1, calm)}, Unknown},
		"two kinds that one session holds up":   {[]Moment{look(1, behind)}, "metadata lock"},
		"rows of a session that commits":        {[]Moment{look(1, committing)}, "commit"},
		"a replica that is not waited for":      {[]Moment{look(1, locked, replica)}, "row lock"},
		"the only server with clients":          {[]Moment{look(1, Answer{Target: "n1", Engine: "x"}, replica)}, "server did not answer"},
		"no client at the server":               {[]Moment{look(1, idle), look(1, idle)}, "outside of the servers"},
		"a pool may have a queue":               {[]Moment{look(1, pool)}, Unknown},
		"another server does not answer":        {[]Moment{look(1, idle, replica)}, "server did not answer"},
	} {
		if got := Explain(4, 5, c.moments); got.Reason != c.reason {
			t.Errorf("%s: %s: %s, expected %s", name, got.Reason, got.Text, c.reason)
		}
	}
}

func TestTree(t *testing.T) {
	a := answer(RowLock, 9, "2<1", "3<2", "4<2", "5<2", "6<2")
	want := "session 1\n  session 2, waits for row lock t\n    session 3, waits for row lock t\n    session 4, waits for row lock t\n    2 more wait for it"
	if got := strings.Join(a.Tree(2), "\n"); got != want {
		t.Errorf("%s", got)
	}
}
