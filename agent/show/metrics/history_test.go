package metrics

import (
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Levels over months are series with the facts of their kind of runs, and a level that
// never changed has no change.
func TestLevels(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	facts := func(threads string) []rundir.Fact {
		return []rundir.Fact{{Name: "tool", Value: "sysbench"}, {Name: "workload", Value: "w"}, {Name: "threads", Value: threads}, {Name: "verb", Value: "run"}, {Name: "team", Value: ""}}
	}
	levels := []history.Level{
		{Measure: "p95", Facts: facts("4"), Last: 0.002, Started: at, Mean: 0.0015, Runs: 9, Since: at.Add(-time.Hour), Change: series.Some(-0.25)},
		{Measure: "p95", Facts: facts("8"), Last: 0.003, Started: at, Mean: 0.003, Runs: 1, Since: at},
	}
	exposed := scrapeLive(t, Sources{Levels: func() ([]history.Level, int) { return levels, 7 }}, at)
	kind := func(name, threads string) string {
		return prefix + "history_" + name + `{measure="p95",team="",threads="` + threads + `",tool="sysbench",verb="run",workload="w"}`
	}
	for name, want := range map[string]float64{
		kind("value", "4"): 0.002, kind("run_timestamp_seconds", "4"): 1_800_000_000, kind("level", "4"): 0.0015, kind("level_runs", "4"): 9,
		kind("level_start_timestamp_seconds", "4"): 1_799_996_400, kind("level_change_ratio", "4"): -0.25, kind("level", "8"): 0.003, prefix + "history_dropped_series{}": 7,
	} {
		if got, ok := exposed[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if _, ok := exposed[kind("level_change_ratio", "8")]; ok {
		t.Error("a level that did not change has a change")
	}
	if len(scrapeLive(t, Sources{Levels: func() ([]history.Level, int) { return nil, 0 }}, at)) != 0 {
		t.Error("series without tracked measures")
	}
}
