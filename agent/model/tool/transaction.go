package tool

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// bytesSuffix ends the names of operations that count bytes.
const bytesSuffix = "byte"

// completeTransaction adds the rate of [Transaction], which is the headline throughput of a run, to a report of a tool
// that does not print it: the printed count over the time that it covers or, without a count, the sum of the operations
// that are the benchmark's work. It is unknown if one of these operations has a volume in bytes but no rate.
func (r *Report) completeTransaction() {
	if r.Kind != Interval && r.Kind != Summary || r.Rate(Transaction).Known {
		return
	}
	seconds := r.IntervalSeconds
	if !seconds.Known && r.Kind == Summary {
		seconds = r.ElapsedSeconds
	}
	n := r.Count(Transaction)
	if !n.Known {
		sum, known := 0.0, false
		for _, rate := range r.Rates {
			operation, isVolume := strings.CutSuffix(rate.Operation, "_"+bytesSuffix)
			if isVolume && rate.PerSecond > 0 && !r.Rate(operation).Known {
				return
			}
			if isWork(rate.Operation) {
				sum, known = sum+rate.PerSecond, true
			}
		}
		for _, count := range r.Counts {
			if isWork(count.Operation) {
				n = series.Some(n.Value + count.N)
			}
		}
		r.AddKnownCount(Transaction, n)
		if !n.Known || !seconds.Known {
			r.AddKnownRate(Transaction, series.Optional[float64]{Value: sum, Known: known})
			return
		}
	}
	if seconds.Known && seconds.Value > 0 {
		r.AddRate(Transaction, float64(n.Value)/seconds.Value)
	}
}

// isWork reports whether executing an operation is the benchmark's work, so that its rate is part of the throughput.
func isWork(operation string) bool {
	switch operation {
	case Query, Other, ScheduleLag, ErrorCount, ReconnectCount, bytesSuffix:
		return false
	}
	return operationRank(operation) > 0 && !strings.HasSuffix(operation, "_"+bytesSuffix) && !strings.HasPrefix(operation, IntendedPrefix)
}
