package tool

import (
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// Headline returns the one latency that lists, alerts and verdicts use; it is unknown if no latency
// qualifies.
//
// The operation is [Transaction] or, if the tool printed no latency for it, [NewOrder]; otherwise
// it is the slowest operation for which hadTraffic returns true (nil: any operation), excluding
// those that [NotWork] names and the statements of a transaction.
//
// The statistic is the first of [HeadlineStats] that the tool printed; otherwise the highest
// percentile below p99; otherwise the mean. The statistic is chosen before the slowest operation,
// so that only equal statistics are compared. Higher percentiles, the minimum and the maximum never
// qualify: they depend on too few operations.
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

// Traffic returns a function that reports whether an operation had traffic: neither its rate nor
// its count is 0. An unknown rate or count counts as traffic.
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

// Headline returns the headline latency of an interval or a summary; see the function [Headline].
func (r *Report) Headline() series.Optional[Latency] {
	return Headline(r.Latencies, Traffic(r.Rates, r.Counts))
}

// HeadlineStats are the preferred statistics of the headline latency, the best one first. The page
// draws their lines first.
var HeadlineStats = []string{"p95", Worst("p95"), "p99", Worst("p99")}

// NotWork names operations that are not the benchmark's work, either completely or after the last
// underscore: read_failed, insert_error, read_not_found.
var NotWork = []string{"cleanup", "failed", "error", "not_found"}

// StatementOperation begins the name of an operation that is one statement of a transaction, perhaps after the name of
// its script. The latency of a part says nothing about the transaction.
const StatementOperation = "statement_"

const otherOperation = 1

// operationRank is higher for preferred operations and 0 for operations that never make the
// headline.
func operationRank(operation string) int {
	switch operation {
	case Transaction:
		return 3
	case NewOrder:
		return 2
	}
	for _, end := range NotWork {
		if name, ok := strings.CutSuffix(operation, end); ok && (name == "" || name[len(name)-1] == '_') {
			return 0
		}
	}
	if at := strings.Index(operation, StatementOperation); at == 0 || at > 0 && operation[at-1] == '_' {
		return 0
	}
	return otherOperation
}

// statRank is higher for preferred statistics and 0 for statistics that never make the headline.
// Percentiles below p99 rank by their number.
func statRank(stat string) float64 {
	if i := slices.Index(HeadlineStats, stat); i >= 0 {
		return float64(200 + len(HeadlineStats) - i)
	}
	if stat == "avg" {
		return 1
	}
	percent, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSuffix(stat, worst), "p"), 64)
	if err != nil || stat[0] != 'p' || !(percent > 0 && percent < 99) {
		return 0
	}
	return 100 + percent
}

// worst ends the name of the largest percentile among several generators.
const worst = "_worst"

// Worst returns the name of a group's statistic: the largest value of stat among its generators,
// since percentiles cannot be combined otherwise.
func Worst(stat string) string { return stat + worst }

// SplitWorst is the inverse of Worst: it returns stat, and whether it is the largest value among
// generators.
func SplitWorst(stat string) (of string, isWorst bool) { return strings.CutSuffix(stat, worst) }

// StatName returns a statistic's name for people: "p95", "worst generator's p95".
func StatName(stat string) string {
	if of, isWorst := SplitWorst(stat); isWorst {
		return "worst generator's " + of
	}
	return stat
}
