package tool

import (
	"math"
	"slices"
	"strings"
)

const (
	// mostPerSecond is a rate that no machine reaches. sysbench prints larger ones when an unsigned difference of two
	// counters is negative (akopytov/sysbench#14).
	mostPerSecond = 1e13
	// mostCount is half of what 64 bits count.
	mostCount = 1 << 62
	// roundedDown is how much a percentile can be below the minimum, because tools round it to a bucket of a histogram.
	roundedDown = 0.9
)

// dropImpossible removes numbers that no run can have: rates and counts that are the result of an overflow, latencies
// that are no number, percentiles of 0 and those below the minimum. damaged: something was removed that makes the line
// unreliable. kept is false for an interval that must not be used at all, since its numbers come from one difference.
func (r *Report) dropImpossible() (kept, damaged bool) {
	if r.isPossible() {
		return true, false
	}
	impossible := func(v float64) bool { return !(v >= 0 && v <= mostPerSecond) }
	rates, counts := len(r.Rates), len(r.Counts)
	r.Rates = slices.DeleteFunc(r.Rates, func(v Rate) bool { return impossible(v.PerSecond) })
	r.Counts = slices.DeleteFunc(r.Counts, func(v Count) bool { return v.N >= mostCount })
	damaged = len(r.Rates) < rates || len(r.Counts) < counts
	if damaged && r.Kind == Interval {
		return false, true
	}
	latencies := len(r.Latencies)
	r.Latencies = slices.DeleteFunc(r.Latencies, func(l Latency) bool {
		return !(l.Seconds >= 0) || math.IsInf(l.Seconds, 0)
	})
	damaged = damaged || len(r.Latencies) < latencies
	r.Latencies = slices.DeleteFunc(r.Latencies, func(l Latency) bool {
		if !strings.HasPrefix(l.Stat, "p") {
			return false
		}
		if l.Seconds == 0 {
			return true // printed by tools that could not compute it, or rounded: unknown either way
		}
		least := r.Latency(l.Operation, "min")
		return least.Known && l.Seconds < roundedDown*least.Value
	})
	return true, damaged
}

// isPossible reports quickly that nothing has to be removed, as in nearly all reports.
func (r *Report) isPossible() bool {
	for i := range r.Rates {
		if v := r.Rates[i].PerSecond; !(v >= 0 && v <= mostPerSecond) {
			return false
		}
	}
	for i := range r.Counts {
		if r.Counts[i].N >= mostCount {
			return false
		}
	}
	percentiles, least := false, false
	for i := range r.Latencies {
		l := &r.Latencies[i]
		if !(l.Seconds >= 0 && l.Seconds <= math.MaxFloat64) {
			return false
		}
		if strings.HasPrefix(l.Stat, "p") {
			if percentiles = true; l.Seconds == 0 {
				return false
			}
		}
		least = least || l.Stat == "min"
	}
	return !percentiles || !least
}
