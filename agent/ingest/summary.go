package ingest

import (
	"slices"
	"sort"

	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// add returns the sum of m, which may be nil, and one more summary.
func (m *Summary) add(r *tool.Report) *Summary {
	elapsed := r.ElapsedSeconds
	if r.IntervalSeconds.Known { // since the last checkpoint, as the counts are
		elapsed = r.IntervalSeconds
	}
	next := &Summary{
		Parts:          1,
		ElapsedSeconds: elapsed,
		Threads:        r.Threads,
		Rates:          slices.Clone(r.Rates),
		Counts:         slices.Clone(r.Counts),
		Latencies:      slices.Clone(r.Latencies),
		TpmC:           r.TpmC,
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
			if _, printed := rateOf(next.Rates, c.Operation); printed {
				sum.Rates = append(sum.Rates, tool.Rate{Operation: c.Operation, PerSecond: float64(c.N) / e.Value})
			}
		}
	}
	sum.Latencies = addLatencies(m, next)
	return sum
}

// Rate returns the operations per second of op.
func (m *Summary) Rate(op string) (float64, bool) { return rateOf(m.Rates, op) }

// Count returns the number of operations of op.
func (m *Summary) Count(op string) (uint64, bool) {
	for _, c := range m.Counts {
		if c.Operation == op {
			return c.N, true
		}
	}
	return 0, false
}

// Latency returns one statistic of op's latency in seconds.
func (m *Summary) Latency(op, stat string) (float64, bool) {
	for _, l := range m.Latencies {
		if l.Operation == op && l.Stat == stat {
			return l.Seconds, true
		}
	}
	return 0, false
}

func rateOf(rates []tool.Rate, op string) (float64, bool) {
	for _, r := range rates {
		if r.Operation == op {
			return r.PerSecond, true
		}
	}
	return 0, false
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

// addLatencies joins what can be joined: the smallest minimum, the largest
// maximum, the mean weighted by the number of operations.
func addLatencies(a, b *Summary) []tool.Latency {
	var sum []tool.Latency
	for _, l := range b.Latencies {
		before, ok := a.Latency(l.Operation, l.Stat)
		if !ok {
			continue
		}
		switch l.Stat {
		case "min":
			l.Seconds = min(l.Seconds, before)
		case "max":
			l.Seconds = max(l.Seconds, before)
		case "avg":
			na, okA := a.Count(l.Operation)
			nb, okB := b.Count(l.Operation)
			if !okA || !okB || na+nb == 0 {
				continue
			}
			l.Seconds = (before*float64(na) + l.Seconds*float64(nb)) / float64(na+nb)
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
