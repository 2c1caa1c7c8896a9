package ingest

import (
	"slices"
	"sort"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// add returns the sum of m, which may be nil, and one more summary.
func (m *Summary) add(r *tool.Report) *Summary {
	elapsed := r.ElapsedSeconds
	if r.IntervalSeconds.Known { // since the last checkpoint, like the counts
		elapsed = r.IntervalSeconds
	}
	next := &Summary{
		Parts:          1,
		ElapsedSeconds: elapsed,
		Threads:        r.Threads,
		Rates:          slices.Clone(r.Rates),
		Counts:         slices.Clone(r.Counts),
		Latencies:      slices.Clone(r.Latencies),
		Values:         slices.Clone(r.Values),
		Estimated:      r.Estimated,
	}
	if m == nil {
		return next
	}
	sum := &Summary{Parts: m.Parts + 1, Threads: next.Threads}
	if m.ElapsedSeconds.Known && next.ElapsedSeconds.Known {
		sum.ElapsedSeconds = series.Some(m.ElapsedSeconds.Value + next.ElapsedSeconds.Value)
	}
	sum.Counts = addCounts(m.Counts, next.Counts)
	if e := sum.ElapsedSeconds; e.Known && e.Value > 0 {
		for _, c := range sum.Counts {
			if r.Rate(c.Operation).Known {
				sum.Rates = append(sum.Rates, tool.Rate{Operation: c.Operation, PerSecond: float64(c.N) / e.Value})
			}
		}
	}
	sum.Latencies = addLatencies(m, next)
	return sum
}

// Report returns the values as a report, whose methods look up single values.
func (m *Summary) Report() *tool.Report {
	return &tool.Report{
		Kind: tool.Summary, ElapsedSeconds: m.ElapsedSeconds, Threads: m.Threads,
		Rates: m.Rates, Counts: m.Counts, Latencies: m.Latencies, Values: m.Values,
	}
}

func addCounts(a, b []tool.Count) []tool.Count {
	sum := slices.Clone(a)
	for _, c := range b {
		i := slices.IndexFunc(sum, func(x tool.Count) bool { return x.Operation == c.Operation })
		if i < 0 {
			sum = append(sum, c)
		} else {
			sum[i].N += c.N
		}
	}
	return sum
}

// addLatencies combines the statistics that can be combined: the lowest minimum, the highest
// maximum, and the mean weighted by the number of operations.
func addLatencies(a, b *Summary) []tool.Latency {
	var sum []tool.Latency
	ra, rb := a.Report(), b.Report()
	for _, l := range b.Latencies {
		before := ra.Latency(l.Operation, l.Stat)
		if !before.Known {
			continue
		}
		switch l.Stat {
		case "min":
			l.Seconds = min(l.Seconds, before.Value)
		case "max":
			l.Seconds = max(l.Seconds, before.Value)
		case "avg":
			na, nb := ra.Count(l.Operation), rb.Count(l.Operation)
			n := na.Value + nb.Value
			if !na.Known || !nb.Known || n == 0 {
				continue
			}
			l.Seconds = (before.Value*float64(na.Value) + l.Seconds*float64(nb.Value)) / float64(n)
		default:
			continue
		}
		sum = append(sum, l)
	}
	return sum
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
