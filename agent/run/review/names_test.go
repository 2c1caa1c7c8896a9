package review

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	_ "github.com/benchwatch/benchwatch/agent/model/engine/registry" // declares the measures of all engines
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// TestEachNameIsOneMeasure guards that what a user can name in --abort-when, --fail-if,
// --measure and JSON is one measure: no id is declared twice, also in different scopes,
// and no name of a condition or of a detail is another measure's.
func TestEachNameIsOneMeasure(t *testing.T) {
	ids := map[string]*measure.Measure{}
	for _, scope := range []measure.Scope{measure.Run, measure.Server, measure.Host, measure.Cluster} {
		for _, m := range measure.All(scope) {
			if other := ids[m.ID]; other != nil {
				t.Errorf("%s is %q of a %s and %q of a %s", m.ID, other.Title, other.Scope, m.Title, m.Scope)
			}
			ids[m.ID] = m
		}
	}
	if len(ids) < 100 {
		t.Fatalf("only %d measures", len(ids))
	}

	names := map[string]string{}
	add := func(name, title string, of *measure.Measure) {
		if other, known := names[name]; known {
			t.Errorf("%s is %q and %q", name, other, title)
		}
		if isStatistic(name) {
			t.Errorf("%s is %q and a statistic of the latency", name, title)
		}
		if m := ids[name]; m != nil && of != nil && m != of {
			t.Errorf("%s is %q and the id of %q", name, title, m.Title)
		}
		names[name] = title
	}
	for _, m := range conditionMeasures() {
		add(m.Condition, m.Name, m.Of)
		if !conditionName.MatchString(m.Condition) {
			t.Errorf("no condition can name %q by %s", m.Name, m.Condition)
		}
	}
	row := Row{Machines: []Machine{{Values: []Value{}}}}
	for _, m := range append(detailMeasures([]Row{row}), busiest("cpu", ""), busiest("generator cpu", "generator")) {
		add(underscored(m.Name), m.Name, m.Of)
		if other := ids[underscored(m.Name)]; other != nil {
			t.Errorf("%s is %q and the id of %q", underscored(m.Name), m.Name, other.Title)
		}
	}
}

// TestNameWithSlash guards that conditions name a measure by its id if its short name has characters
// that no condition can contain.
func TestNameWithSlash(t *testing.T) {
	tool.QueueLength.Short = "queued/s"
	t.Cleanup(func() { tool.QueueLength.Short = "" })
	row := Row{}
	row.Values.Set(tool.QueueLength, series.Some(7.0))
	c, err := ParseCondition("queue_length>5")
	if err != nil {
		t.Fatal(err)
	}
	if text, met := c.Met(&row); !met || text != "7" {
		t.Errorf("%q, %v", text, met)
	}
	if _, err := ParseCondition("queued/s>5"); err == nil {
		t.Error("a condition with a slash was parsed")
	}
}
