package engine

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestBehindMember guards that a member which lags is only blamed for pauses that it requested, while it lagged.
func TestBehindMember(t *testing.T) {
	for name, c := range map[string]struct {
		limit     cause.Limit
		lag, sent []float64
		own, all  float64 // requested pauses; all < 0: no server counts them
		want      string
	}{
		"a secondary":                      {cause.Replication, []float64{0, 5, 0}, nil, 0, -1, "n2 was up to 5 s behind"},
		"a fast secondary":                 {cause.Replication, []float64{0, 0.2, 0}, nil, 0, -1, ""},
		"it asked while it lagged":         {cause.FlowControl, []float64{0, 3, 9}, []float64{0, 4, 0}, 240, 252, "n2 was up to 3 s behind"},
		"it lagged later, without pauses":  {cause.FlowControl, []float64{0, 0.1, 13}, []float64{0, 4, 0}, 240, 252, ""},
		"another one asked":                {cause.FlowControl, []float64{0, 0, 13}, []float64{0, 1, 1}, 12, 252, ""},
		"waits for the order of a cluster": {cause.Replication, []float64{0, 0, 13}, []float64{0, 0, 4}, 240, 252, ""},
	} {
		r := &causetest.Record{Over: map[*measure.Measure][]float64{LagSeconds: c.lag, FlowControlSent: c.sent}}
		if c.all >= 0 {
			r.Grown = map[*measure.Measure]float64{FlowControlSent: c.own}
			r.Together = map[*measure.Measure]float64{FlowControlSent: c.all}
		}
		found, _ := BehindMember(&cause.View{Target: "n2", Limit: c.limit, Record: r})
		if found.Evidence != c.want {
			t.Errorf("%s: %q, want %q", name, found.Evidence, c.want)
		}
	}
}
