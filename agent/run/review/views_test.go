package review

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	_ "github.com/benchwatch/benchwatch/agent/model/engine/registry" // declares the causes of all engines
	"github.com/benchwatch/benchwatch/agent/model/measure"
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
