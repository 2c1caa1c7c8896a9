package review

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	_ "github.com/benchwatch/benchwatch/agent/model/engine/registry" // declares the causes of all engines
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// asked is a cause.Record of random numbers that notes what is asked of a measure and is never known.
type asked struct {
	t     *testing.T
	r     *rand.Rand
	scope measure.Scope
	cause string
}

func (a *asked) number() float64 {
	switch a.r.IntN(5) {
	case 0:
		return series.Unknown()
	case 1:
		return a.r.Float64()
	case 2:
		return a.r.Float64() * 50
	}
	return a.r.Float64() * 1e6
}

// overTime fails the test if a measure has no values over time.
func (a *asked) overTime(m *measure.Measure) {
	if m.Summary == measure.Cost || !slices.Contains(measure.All(a.scope), m) {
		a.t.Errorf("%s asks for the values of %q over time, which has only an increase", a.cause, m.ID)
	}
}

// grown fails the test if no increase of a measure is computed.
func (a *asked) grown(m *measure.Measure) {
	if m.Summary != measure.Cost && m.Summary != measure.Increase {
		a.t.Errorf("%s asks for the increase of %q, which is never computed", a.cause, m.ID)
	}
}

func (a *asked) Values(m *measure.Measure) []float64 {
	a.overTime(m)
	return []float64{a.number(), a.number(), a.number(), a.number(), a.number(), a.number()}
}

func (a *asked) Tally(m *measure.Measure) series.Tally {
	a.overTime(m)
	t := series.NewTally(true)
	for i := range 3 {
		t.Add(float64(i), a.number())
	}
	return t
}

func (a *asked) Increase(m *measure.Measure) float64 { a.grown(m); return a.number() }
func (a *asked) Cluster(m *measure.Measure) float64  { a.grown(m); return a.number() }

func (a *asked) IncreaseBy(m *measure.Measure, _ string) map[string]float64 {
	a.grown(m)
	return map[string]float64{"one": a.number(), "two": a.number()}
}

func (a *asked) Setting(string) string { return []string{"", "ON", "1", "16777216"}[a.r.IntN(4)] }

// TestCausesAskWhatIsKnown guards that no cause asks for a number that is never computed, such as the increase of a gauge:
// it would be silent for ever.
func TestCausesAskWhatIsKnown(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		for _, d := range cause.All() {
			a := &asked{t: t, r: r, scope: measure.Server, cause: d.Name}
			if d.Engine == "" {
				a.scope = measure.Host
			}
			v := &cause.View{Limit: d.Of[r.IntN(len(d.Of))], Share: r.Float64(), Target: "db1", Engine: d.Engine, Record: a, Tool: "tool",
				Seconds: 20, Threads: 8, Throughput: 1000 * r.Float64(), Statements: 10 * r.Float64(), ServerCores: 2 * r.Float64(), ForeignShare: 0,
				CPU: cause.CPUUse{Tool: r.Float64(), Servers: r.Float64()}}
			for _, class := range []string{engine.Running, engine.RowLock, engine.Commit, engine.Latch, engine.Disk} {
				v.States = append(v.States, cause.StateSessions{Class: class, Name: "a state", Sessions: 2 * r.Float64()})
			}
			d.Find(v)
		}
		if t.Failed() {
			return
		}
	}
}

// TestStatementsThatExplainNothing guards that statistics of statements that are missing, incomplete or not of the run
// lead to fewer causes, never to wrong ones. A run of one minute by 2 clients has 118 s of their time.
func TestStatementsThatExplainNothing(t *testing.T) {
	scan := func(executions, seconds float64) engine.Statement {
		s := recorded.Statement("SELECT a FROM t WHERE b = ?", executions, seconds)
		s.FullScans, s.RowsExamined, s.RowsSent = executions, 20000*executions, executions
		return s
	}
	evicted := scan(1000, 60)
	evicted.Digest, evicted.Text = "", ""
	prepared := scan(1000, 60)
	prepared.Digest, prepared.Text = engine.DigestPrepared, ""
	cut := scan(1000, 60)
	cut.Text = "SELECT " + strings.Repeat("c, ", 2000)
	many := []engine.Statement{scan(1000, 60)}
	for i := range 10_000 {
		many = append(many, recorded.Statement(fmt.Sprintf("SELECT %d", i), 1, 0.001))
	}
	for name, c := range map[string]struct {
		of   record.ServerStatements
		want bool
	}{
		"a scan":                     {record.ServerStatements{Statements: []engine.Statement{scan(1000, 60)}}, true},
		"10,000 digests":             {record.ServerStatements{Statements: many}, true},
		"a text that is cut":         {record.ServerStatements{Statements: []engine.Statement{cut}}, true},
		"no statistics":              {record.ServerStatements{Error: "statements: performance_schema is off on the server"}, false},
		"statistics that were reset": {record.ServerStatements{Error: engine.ErrStatementsReset.Error(), Statements: []engine.Statement{scan(1000, 60)}}, false},
		"evicted digests":            {record.ServerStatements{Statements: []engine.Statement{evicted}}, false},
		"prepared, without texts":    {record.ServerStatements{Statements: []engine.Statement{prepared}}, false},
		"short statements":           {record.ServerStatements{Statements: []engine.Statement{scan(1000, 6)}}, false},
		"others' statements, too":    {record.ServerStatements{Statements: []engine.Statement{scan(1000, 600)}}, false},
		"a statement of few others":  {record.ServerStatements{Statements: []engine.Statement{recorded.Statement("SELECT a", 1000, 40), scan(5, 50)}}, false},
		"reset, and then new":        {record.ServerStatements{Statements: []engine.Statement{scan(1000, 60)}, Questions: series.Some(5000.0)}, false},
		"all of the statements":      {record.ServerStatements{Statements: []engine.Statement{scan(1000, 60)}, Questions: series.Some(1010.0)}, true},
	} {
		c.of.Target = "n1"
		v := &cause.View{Limit: cause.ServerCPU, Share: 0.8, Target: "n1", Engine: "mysql", Seconds: 60, Threads: 2, Throughput: 20, ServerCores: 1.5,
			Record: &asked{t: t, r: rand.New(rand.NewPCG(1, 1)), scope: measure.Server, cause: name}}
		v.Executed, v.InStatements = executedOf(recorded.Counted(c.of), "n1", 2, 1000.0/60)
		top, share := v.TopOf(func(s *cause.Statement) bool { return s.Per(s.FullScans) >= 0.5 })
		if (top != nil) != c.want || c.want && share < 0.8 {
			t.Errorf("%s: %+v with %.2f of the time", name, top, share)
		}
		if top != nil && len(top.Text) > 2*longestStatement {
			t.Errorf("%s: a text of %d bytes in a sentence", name, len(top.Text))
		}
	}
}

// TestStatementsOfNoTime guards that readings of one moment, as clocks that were set leave them, are no statistics.
func TestStatementsOfNoTime(t *testing.T) {
	h := recorded.Counted(record.ServerStatements{Target: "n1", Statements: []engine.Statement{recorded.Statement("SELECT a", 1000, 60)}})
	for _, back := range []time.Duration{0, time.Hour} {
		h.Statements[0].To = h.Statements[0].From.Add(-back)
		if all, share := executedOf(h, "n1", 2, 1000.0/60); all != nil || series.IsKnown(share) {
			t.Errorf("%v back: %v %v", back, all, share)
		}
	}
}
