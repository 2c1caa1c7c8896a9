package tool

import (
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/series"
)

// Headline returns the one latency that a list, an alert or a verdict looks at;
// it is unknown if none qualifies.
//
// The operation is [Transaction]; if the tool printed no latency of it,
// [NewOrder]; otherwise the slowest of the operations for which hadTraffic
// returns true (nil means all), leaving out those that are no work of the
// benchmark: cleanup, and failed or missed operations (read_failed,
// insert_error, read_not_found).
//
// The statistic is the p95; otherwise the p99; otherwise the highest percentile
// of those printed; otherwise the mean. It is chosen before the slowest
// operation, so that only equal statistics are compared. The minimum and the
// maximum never qualify.
//
// The recording rules run:benchwatch_run_latency_seconds:headline and
// run:benchwatch_run_summary_latency_seconds:headline choose in the same way.
func Headline(latencies []Latency, hadTraffic func(operation string) bool) series.Optional[Latency] {
	var best Latency
	bestOperation, bestStat := 0, 0.0
	for _, l := range latencies {
		operation, stat := operationRank(l.Operation), statRank(l.Stat)
		switch {
		case operation == 0 || stat == 0 || !series.IsKnown(l.Seconds) || operation < bestOperation:
			continue
		case operation == otherOperation && hadTraffic != nil && !hadTraffic(l.Operation):
			continue
		case operation == bestOperation && (stat < bestStat || stat == bestStat && l.Seconds <= best.Seconds):
			continue
		}
		best, bestOperation, bestStat = l, operation, stat
	}
	return series.Optional[Latency]{Value: best, Known: bestOperation > 0}
}

// Traffic returns a function that reports whether an operation had traffic: its
// rate and its count are unknown or above 0.
func Traffic(rates []Rate, counts []Count) func(operation string) bool {
	return func(operation string) bool {
		for _, r := range rates {
			if r.Operation == operation && r.PerSecond == 0 {
				return false
			}
		}
		for _, c := range counts {
			if c.Operation == operation && c.N == 0 {
				return false
			}
		}
		return true
	}
}

// Headline returns the headline latency of an interval or a summary, see
// [Headline].
func (r *Report) Headline() series.Optional[Latency] {
	return Headline(r.Latencies, Traffic(r.Rates, r.Counts))
}

const otherOperation = 1

// operationRank is higher for operations that go first, 0 for those that never
// make the headline.
func operationRank(operation string) int {
	switch operation {
	case Transaction:
		return 3
	case NewOrder:
		return 2
	}
	switch operation[strings.LastIndexByte(operation, '_')+1:] {
	case "cleanup", "failed", "error":
		return 0
	case "found":
		if strings.HasSuffix(operation, "_not_found") {
			return 0
		}
	}
	return otherOperation
}

// statRank is higher for statistics that go first, 0 for those that never make
// the headline. Percentiles other than p95 and p99 rank by their number.
func statRank(stat string) float64 {
	switch stat {
	case "p95":
		return 202
	case "p99":
		return 201
	case "avg":
		return 1
	}
	percent, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSuffix(stat, worst), "p"), 64)
	if err != nil || stat[0] != 'p' || !(percent > 0 && percent <= 100) {
		return 0
	}
	return 100 + percent
}

// worst ends the name of a percentile that is the largest of several generators'.
const worst = "_worst"

// Worst returns the name of a statistic that is the largest of several generators', each
// of which reports stat: percentiles can't be combined in another way.
func Worst(stat string) string { return stat + worst }

// StatName returns the name of a statistic for people: "p95", "worst generator's p95".
func StatName(stat string) string {
	if of, ok := strings.CutSuffix(stat, worst); ok {
		return "worst generator's " + of
	}
	return stat
}
