package tool_test

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Every measure of a run has a value in a complete report and none in an empty one.
func TestValueOfEachMeasure(t *testing.T) {
	r := &tool.Report{Kind: tool.Interval, Threads: series.Some(1)}
	want := map[string]float64{"threads": 1, "transactions": 7, "qps": 8, "errors": 9, "reconnects": 10, "latency": 11,
		"read_rate": 3, "write_rate": 4, "fsync_rate": 5}
	for i, n := range tool.Numbers() {
		want[n.ID] = float64(20 + i)
		r.Set(n.Measure, want[n.ID])
	}
	r.AddRate("transaction", 7)
	r.AddRate("query", 8)
	r.AddCount("error", 9)
	r.AddCount("reconnect", 10)
	r.AddLatency("transaction", "avg", 11)
	all := measure.All(measure.Run)
	if len(all) != len(want) {
		t.Errorf("%d measures, want %d", len(all), len(want))
	}
	files := &tool.Report{Kind: tool.Summary, Rates: []tool.Rate{{Operation: "read", PerSecond: 3}, {Operation: "write", PerSecond: 4}, {Operation: "fsync", PerSecond: 5}}}
	for _, m := range all {
		of := r
		if m == tool.ReadRate || m == tool.WriteRate || m == tool.SyncRate { // of tools that print no queries
			of = files
		}
		if got := of.Value(m); got != series.Some(want[m.ID]) {
			t.Errorf("%s: %v, want %v", m.ID, got, want[m.ID])
		}
		if got := (&tool.Report{}).Value(m); got.Known {
			t.Errorf("%s of an empty report: %v", m.ID, got)
		}
	}
	if got := r.Value(&measure.Measure{ID: "transactions", Scope: measure.Server}); got.Known {
		t.Errorf("measure of another scope: %v", got)
	}
}
