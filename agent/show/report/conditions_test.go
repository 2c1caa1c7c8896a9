package report

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// Any measure of servers and machines can be named by its id: the largest value counts, in
// a bound, as a change between groups, over time and in a figure.
func TestConditionsOfAnyMeasure(t *testing.T) {
	with := func(name string, busy float64) compare.Group {
		g := group(name, 4, 100, 101, 102, 103)
		for i := range g.Runs {
			noise := 1 + float64(i)/100
			g.Runs[i].Machines = []review.Machine{{Values: []review.Value{{Measure: host.Busy, Value: busy / 2}}}, {Values: []review.Value{{Measure: host.Busy, Value: busy * noise}}}}
			g.Runs[i].Servers = []review.Server{{Values: []review.Value{{Measure: engine.RunningThreads, Value: 7 * noise}}}}
		}
		return g
	}
	groups := []compare.Group{with("a", 0.5), with("b", 0.6)}
	for text, want := range map[string]compare.Result{
		"cpu_busy>+5%": compare.Broken, "cpu_busy>+50%": compare.Held, "cpu_busy>55%": compare.Broken, "cpu_busy>70%": compare.Held, "threads_running>7": compare.Unclear,
		"cpu_iowait>1%": compare.Unclear, "cpu_iowait>+1%": compare.Unclear,
	} {
		limit, err := review.ParseRelative(text)
		if err != nil {
			t.Fatal(err)
		}
		c := compare.Compare(groups, nil)
		c.Check([]*review.Condition{limit}, groups)
		if got := c.Conditions[0]; got.Result != want {
			t.Errorf("%s: %s (%s), want %s", text, got.Result, got.Reason, want)
		}
	}
	if m, err := review.MeasureNamed(groups[0].Runs, "cpu_busy"); err != nil || m.Value(&groups[0].Runs[0]) != 0.5 {
		t.Errorf("%v, %v", m.Name, err)
	}
	trend, err := history.NewTrend(groups[1].Runs, history.TrendOptions{Measure: "threads_running", By: history.KindFacts})
	if err != nil || len(trend.Series) != 1 || trend.Series[0].Runs[0].Value != 7 {
		t.Errorf("%+v, %v", trend, err)
	}
}
