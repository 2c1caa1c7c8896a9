package review

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// measureByID finds a measure of an engine, which are not exported.
func measureByID(t *testing.T, id string) *measure.Measure {
	t.Helper()
	for _, m := range measure.All(measure.Server) {
		if m.ID == id {
			return m
		}
	}
	t.Fatalf("no measure %s", id)
	return nil
}

// TestServerMeasures guards the columns of servers in tables of several runs: the
// worst value of all servers, and none if a server's drain was given up.
func TestServerMeasures(t *testing.T) {
	writeSets := measureByID(t, "write_sets")
	rows := []Row{
		{Values: tool.Values{{Measure: tool.Throughput, Value: 100.0}, {Measure: tool.Errors, Value: 0.0}}, Servers: []Server{
			{Target: "n1", Values: []Value{{Measure: engine.QueryRate, Value: 900}, {Measure: writeSets, Value: 50}, {Measure: engine.FlowControl, Value: 0.125}}},
			{Target: "n2", DrainSeconds: series.Some(2.0),
				Values: []Value{{Measure: writeSets, Value: 49}, {Measure: engine.FlowControl, Value: 0.25}, {Measure: engine.LagSeconds, Value: 1.5}}},
		}},
		{Values: tool.Values{{Measure: tool.Throughput, Value: 90.0}}, Latency: map[string]float64{"p95": 0.002}, Servers: []Server{
			{Target: "n1", Values: []Value{{Measure: engine.QueryRate, Value: 700}}},
			{Target: "n2", DrainSeconds: series.Some(300.0), DrainTimedOut: true},
		}},
	}
	values := func(r *Row) map[string]float64 {
		found := map[string]float64{}
		for _, m := range Measures(rows) {
			if v := m.Value(r); series.IsKnown(v) {
				found[m.Field] = v
			}
		}
		return found
	}
	want := []map[string]float64{
		{"transactions_per_second": 100, "errors": 0, "n1_write_sets_per_second": 50, "n2_write_sets_per_second": 49, "flow_control_ratio": 0.25, "worst_lag_seconds": 1.5, "drain_seconds": 2},
		{"transactions_per_second": 90, "latency_p95_seconds": 0.002, "n1_queries_per_second": 700},
	}
	for i := range rows {
		if d := cmp.Diff(want[i], values(&rows[i])); d != "" {
			t.Errorf("run %d: %s", i, d)
		}
	}
	many := Row{}
	for i := range serverColumns + 1 {
		many.Servers = append(many.Servers, Server{Target: string(rune('a' + i)), Values: []Value{{Measure: engine.QueryRate, Value: 1}, {Measure: engine.LagSeconds, Value: float64(i)}}})
	}
	if got := Measures([]Row{many}); len(got) != 1 || got[0].Name != "worst lag" {
		t.Errorf("of many servers: %v", got)
	}
}
