package report

import (
	"math"
	"strings"
	"testing"
)

// TestServerMeasures guards what tables of several runs say of the servers: the worst
// of them, and nothing where somebody's value is not known.
func TestServerMeasures(t *testing.T) {
	rows := []Row{
		{TPS: ptr(100), Errors: ptr(0), Servers: []Server{
			{Target: "n1", QueriesPerSecond: ptr(900), WriteSetsPerSecond: ptr(50), FlowControlShare: ptr(0.125)},
			{Target: "n2", WriteSetsPerSecond: ptr(49), FlowControlShare: ptr(0.25), WorstLagSeconds: ptr(1.5), DrainSeconds: ptr(2)},
		}},
		{TPS: ptr(90), Latency: map[string]float64{"p95": 0.002}, Servers: []Server{
			{Target: "n1", QueriesPerSecond: ptr(700)},
			{Target: "n2", DrainSeconds: ptr(300), DrainTimedOut: true},
		}},
	}
	values := func(r *Row) map[string]float64 {
		found := map[string]float64{}
		for _, m := range Measures(rows) {
			if v, ok := m.Value(r); ok {
				found[strings.TrimSpace(m.Name+" "+m.Unit)] = v
			}
		}
		return found
	}
	want := []map[string]float64{
		{"tps /s": 100, "n1 write sets /s": 50, "n2 write sets /s": 49, "flow control %": 25, "worst lag s": 1.5, "drain s": 2},
		{"tps /s": 90, "p95 ms": 2, "n1 queries /s": 700},
	}
	for i := range rows {
		got := values(&rows[i])
		for name, v := range want[i] {
			if g, ok := got[name]; !ok || math.Abs(g-v) > 1e-9 {
				t.Errorf("run %d: %s is %v, want %v", i, name, got[name], v)
			}
		}
		if len(got) != len(want[i]) {
			t.Errorf("run %d has %v, want %v", i, got, want[i])
		}
	}
	many := Row{}
	for i := range serverColumns + 1 {
		many.Servers = append(many.Servers, Server{Target: string(rune('a' + i)), QueriesPerSecond: ptr(1), WorstLagSeconds: ptr(float64(i))})
	}
	if got := Measures([]Row{many}); len(got) != 1 || got[0].Name != "worst lag" {
		t.Errorf("of many servers: %v", got)
	}
}
