// Package group combines the generators of a group into one run: the journal with the output of all
// of them, and the sum of their reports. It does not use files or processes.
package group

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Combine returns the combination of the reports of several generators: all are intervals of the
// same time, or all are summaries. Their order does not matter.
//
// Counts are added, and so are the rates of intervals. The rate of a summary is the sum of the
// counts divided by the longest duration; without counts the rates are added. Minimum and maximum
// are exact, and so is the mean, which is weighted by the number of operations. Percentiles can't
// be combined: the largest one is kept under the name of [tool.Worst]. A value that one of the
// generators does not report is left out, unless this generator had no such operation.
func Combine(reports []*tool.Report) tool.Report {
	if len(reports) == 0 {
		return tool.Report{}
	}
	if len(reports) == 1 {
		return *reports[0].Clone()
	}
	sum := tool.Report{Kind: reports[0].Kind, Run: 1, Phase: tool.Measure}
	sum.ElapsedSeconds = largest(reports, func(r *tool.Report) series.Optional[float64] { return r.ElapsedSeconds })
	sum.IntervalSeconds = largest(reports, func(r *tool.Report) series.Optional[float64] { return r.IntervalSeconds })
	sum.Threads = threads(reports)
	for _, n := range tool.Numbers() {
		sum.Values.Set(n.Measure, joined(reports, n))
	}
	for _, r := range reports {
		if r.Phase == tool.Warmup {
			sum.Phase = tool.Warmup
		}
	}
	for _, operation := range names(reports) {
		addOperation(&sum, operation, reports)
	}
	return sum
}

// names returns the operations of the reports: transactions first, the others sorted by name.
func names(reports []*tool.Report) []string {
	var all []string
	for _, r := range reports {
		for _, v := range r.Rates {
			all = append(all, v.Operation)
		}
		for _, v := range r.Counts {
			all = append(all, v.Operation)
		}
		for _, v := range r.Latencies {
			all = append(all, v.Operation)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == tool.Transaction:
			return -1
		case b == tool.Transaction:
			return 1
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(all)
}

// addOperation adds the reports' values of an operation to sum.
func addOperation(sum *tool.Report, operation string, reports []*tool.Report) {
	var n uint64
	rate, counted, rated, timed := 0.0, true, true, false
	var busy []*tool.Report // reports with the operation
	for _, r := range reports {
		c, v := r.Count(operation), r.Rate(operation)
		n, rate = n+c.Value, rate+v.Value
		if !c.Known && !v.Known && !hasLatency(r, operation) {
			continue // it did not have the operation
		}
		counted, rated, timed = counted && c.Known, rated && v.Known, timed || v.Known
		if !(c.Known && c.Value == 0) && !(!c.Known && v.Known && v.Value == 0) {
			busy = append(busy, r)
		}
	}
	if counted {
		sum.AddCount(operation, n)
	}
	seconds := sum.ElapsedSeconds
	switch {
	case !timed:
	case sum.Kind == tool.Summary && counted && seconds.Known && seconds.Value > 0:
		sum.AddRate(operation, float64(n)/seconds.Value)
	case rated:
		sum.AddRate(operation, rate)
	}
	if len(busy) > 0 {
		addLatencies(sum, operation, busy)
	}
}

func hasLatency(r *tool.Report, operation string) bool {
	return slices.ContainsFunc(r.Latencies, func(l tool.Latency) bool { return l.Operation == operation })
}

// addLatencies adds the statistics that all reports have.
func addLatencies(sum *tool.Report, operation string, reports []*tool.Report) {
	for _, first := range reports[0].Latencies {
		if first.Operation != operation || slices.ContainsFunc(sum.Latencies, func(l tool.Latency) bool {
			return l.Operation == operation && (l.Stat == first.Stat || l.Stat == tool.Worst(first.Stat))
		}) {
			continue
		}
		low, high, weighted, weight, known := math.Inf(1), math.Inf(-1), 0.0, 0.0, true
		for _, r := range reports {
			l, w := r.Latency(operation, first.Stat), operationsOf(r, operation)
			known = known && l.Known
			low, high = min(low, l.Value), max(high, l.Value)
			weighted, weight = weighted+l.Value*w, weight+w
		}
		switch {
		case !known:
		case first.Stat == "min":
			sum.AddLatency(operation, first.Stat, low)
		case first.Stat == "max":
			sum.AddLatency(operation, first.Stat, high)
		case first.Stat == "avg":
			if mean := weighted / weight; series.IsKnown(mean) && !math.IsInf(mean, 0) {
				sum.AddLatency(operation, first.Stat, min(high, max(low, mean))) // rounding must not leave the range
			}
		case len(reports) == 1: // only one generator had the operation
			sum.AddLatency(operation, first.Stat, high)
		default:
			sum.AddLatency(operation, tool.Worst(first.Stat), high)
		}
	}
}

// operationsOf returns the number of operations in a report, unknown if it is not reported.
func operationsOf(r *tool.Report, operation string) float64 {
	if c := r.Count(operation); c.Known {
		return float64(c.Value)
	}
	seconds := r.IntervalSeconds
	if r.Kind == tool.Summary {
		seconds = r.ElapsedSeconds
	}
	return series.Number(r.Rate(operation)) * series.Number(seconds)
}

// Follow joins a generator's interval with its next one.
func Follow(r, next *tool.Report) tool.Report {
	sum := Combine([]*tool.Report{r, next})
	sum.Threads = next.Threads
	a, b := series.Number(r.IntervalSeconds), series.Number(next.IntervalSeconds)
	mean := func(x, y series.Optional[float64]) series.Optional[float64] {
		return series.Of((series.Number(x)*a + series.Number(y)*b) / (a + b))
	}
	sum.IntervalSeconds = series.Of(a + b)
	for _, n := range tool.Numbers() {
		v := next.Value(n.Measure)
		if n.Unit == measure.PerSecond {
			v = mean(r.Value(n.Measure), v)
		}
		sum.Values.Set(n.Measure, v)
	}
	sum.Rates = nil
	for _, operation := range names([]*tool.Report{r, next}) {
		if v := mean(r.Rate(operation), next.Rate(operation)); v.Known {
			sum.AddRate(operation, v.Value)
		}
	}
	for i := range sum.Latencies {
		sum.Latencies[i].Stat, _ = tool.SplitWorst(sum.Latencies[i].Stat)
	}
	return sum
}

func largest(reports []*tool.Report, of func(*tool.Report) series.Optional[float64]) series.Optional[float64] {
	most := series.Optional[float64]{}
	for _, r := range reports {
		v := of(r)
		if !v.Known {
			return v
		}
		most = series.Some(max(most.Value, v.Value))
	}
	return most
}

// joined returns a number of the group, which is unknown if it is unknown for one of the
// generators.
func joined(reports []*tool.Report, n *tool.Number) series.Optional[float64] {
	values := make([]float64, len(reports))
	for i, r := range reports {
		v := r.Value(n.Measure)
		if !v.Known {
			return v
		}
		values[i] = v.Value
	}
	return series.Some(n.Joined(values))
}

// threads returns the sum of the threads, which is unknown if they are unknown for one of the
// generators.
func threads(reports []*tool.Report) series.Optional[int] {
	sum := 0
	for _, r := range reports {
		if !r.Threads.Known {
			return r.Threads
		}
		sum += r.Threads.Value
	}
	return series.Some(sum)
}

// Mark is the kind of a line in a group's journal. The journal is the output of a group: the output
// of its generators, line by line in the order of arrival, each line with the number of its
// generator and a mark:
//
//	2> [ 1s ] thds: 4 tps: …   standard output
//	2! FATAL: …                standard error
//	2# start 0.004             its tool started this many seconds after the group
//	2# late                    it has not reported for long: the others don't wait for it
//	2# end                     its output is complete
type Mark byte

// The marks of a line.
const (
	Stdout  Mark = '>'
	Stderr  Mark = '!'
	Control Mark = '#'
)

// Texts of a line with the mark Control. Start is followed by seconds.
const (
	Start = "start"
	Late  = "late"
	End   = "end"
)

// AppendLine appends a line of the journal.
func AppendLine(dst []byte, generator int, mark Mark, text []byte) []byte {
	dst = strconv.AppendInt(dst, int64(generator), 10)
	dst = append(dst, byte(mark), ' ')
	dst = append(dst, text...)
	return append(dst, '\n')
}

// AppendStart appends the line for the start of a generator's tool.
func AppendStart(dst []byte, generator int, seconds float64) []byte {
	return AppendLine(dst, generator, Control, strconv.AppendFloat([]byte(Start+" "), seconds, 'f', 6, 64))
}

// Split splits a line of the journal; ok is false if it is not valid.
func Split(line []byte) (generator int, mark Mark, text []byte, ok bool) {
	at := bytes.IndexAny(line, ">!#")
	if at < 1 || at > 6 || at+1 >= len(line) || line[at+1] != ' ' {
		return 0, 0, nil, false
	}
	n, err := strconv.Atoi(string(line[:at]))
	if err != nil || n < 1 || line[0] == '+' {
		return 0, 0, nil, false
	}
	return n, Mark(line[at]), line[at+2:], true
}
