package review

import (
	"cmp"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// IntervalValues are what the intervals of one run show of a measure.
type IntervalValues struct {
	Values  []float64
	Seconds float64 // of an interval
	// IsQuantile is set for percentiles and extremes: their mean over the intervals is not the value of the run.
	IsQuantile bool
}

// intervalValuesOf returns the intervals' values of the throughput, of the queries and of each statistic of
// the headline latency.
func (r *Row) intervalValuesOf(v *record.Intervals) map[string]IntervalValues {
	all := map[string]IntervalValues{}
	usual := v.Lengths.Median()
	for field, levels := range map[string]*series.Levels{tool.Throughput.Field(): &v.Throughput, tool.QueryRate.Field(): &v.Queries} {
		rates := IntervalValues{Seconds: usual}
		for _, l := range levels.All(usual) {
			rates.Values = append(rates.Values, l.Mean)
			rates.Seconds = usual * float64(l.N)
		}
		all[field] = rates
	}
	operation := cmp.Or(r.LatencyOperation, tool.Transaction)
	for c, levels := range v.Latencies {
		if c.Operation != operation {
			continue
		}
		w := IntervalValues{Seconds: usual, IsQuantile: c.Stat != "avg"}
		for _, l := range levels.All(0) {
			w.Values = append(w.Values, l.Some)
			w.Seconds = usual * float64(l.N)
		}
		all[LatencyField(r.LatencyOperation, c.Stat)] = w
	}
	return all
}

// Scaled returns w in another unit.
func (w IntervalValues) Scaled(factor float64) IntervalValues {
	w.Values = series.Scaled(w.Values, factor)
	return w
}
