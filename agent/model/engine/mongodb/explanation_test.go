package mongodb

import (
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestQueriesWithoutIndex guards that documents examined are a cause only far beyond those returned, and only as far
// as their time explains the servers' CPU.
func TestQueriesWithoutIndex(t *testing.T) {
	for name, c := range map[string]struct {
		examined, returned, foreign float64
		want                        bool
	}{
		"scans":       {40e6, 2000, 0, true},
		"an index":    {2000, 2000, 0, false},
		"all of them": {40e6, 40e6, 0, false}, // a large result
		"other load":  {40e6, 2000, 0.6, false},
	} {
		v := &cause.View{Seconds: 20, Threads: 4, Throughput: 100, ServerCores: 1, ForeignShare: c.foreign, Record: &causetest.Record{
			Over: map[*measure.Measure][]float64{engine.QueryRate: {100, 100}}, Grown: map[*measure.Measure]float64{examined: c.examined, returned: c.returned, scans: 2000},
		}}
		found, is := withoutIndex(v)
		if is != c.want || is && (found.Part != 1 || !strings.Contains(found.Evidence, "2000 queries read a whole collection")) {
			t.Errorf("%s: %v %+v", name, is, found)
		}
	}
}
