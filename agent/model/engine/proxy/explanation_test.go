package proxy

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestQueueCauses guards which cause comes first: what takes the connections away, before the limit that is then reached.
func TestQueueCauses(t *testing.T) {
	unknown := []float64{}
	for name, c := range map[string]struct {
		up, limit, open, queue, in, queries []float64
		want                                string
	}{
		"a limit":                  {[]float64{2}, []float64{8}, []float64{7.5}, []float64{4}, unknown, unknown, "limit of connections to servers"},
		"one server down":          {[]float64{1}, []float64{4}, []float64{3.9}, []float64{4}, unknown, unknown, "servers not in use"},
		"far more than one misses": {[]float64{1}, []float64{4}, []float64{4}, []float64{40}, unknown, unknown, "limit of connections to servers"},
		"idle transactions":        {[]float64{2}, []float64{4}, []float64{4}, []float64{4}, []float64{4}, []float64{0.4}, ""},
		"room left":                {[]float64{2}, []float64{8}, []float64{4}, []float64{4}, unknown, unknown, ""},
	} {
		v := &cause.View{Limit: cause.ProxyQueue, Target: "px", Seconds: 10, Record: &causetest.Record{Over: map[*measure.Measure][]float64{
			BackendsUp: c.up, Listed: {2}, Limit: c.limit, Connections: c.open, Queue: c.queue, InTransactions: c.in, InQueries: c.queries,
		}}}
		first, part := "", 0.6 // of a cause that the engine declares
		for _, one := range Causes(Setting{Name: "maxconn"}) {
			if found, is := one.Find(v); is && found.Part > part {
				first, part = one.Name, found.Part
			}
		}
		if first != c.want {
			t.Errorf("%s: %q, want %q", name, first, c.want)
		}
	}
}
