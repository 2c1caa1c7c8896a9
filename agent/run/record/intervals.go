package record

import (
	"math"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/stall"
)

// Intervals are a tool's interval reports: thinned for drawing, in the columns that
// are drawn, and summed up.
type Intervals struct {
	// A row is the end of an interval, or lies within a gap between two.
	series.Thinned[ingest.Column]
	// N is how many intervals there are, Last the end of the last one.
	N    int
	Last float64
	// Lengths are the lengths of the intervals. Distances are the distances between the ends of consecutive intervals
	// of one start of the tool, each at the end of the first interval.
	Lengths, Distances series.Tally
	// Throughput are the rates of transactions, and Latencies the latencies by their
	// columns, after the warm-up; Queries are the rates of statements.
	Throughput, Queries series.Levels
	Latencies           map[ingest.Column]*series.Levels
	// Warmup is when the tool warmed up. QuietWarmup is set if it did so before its
	// clock began.
	Warmup      []series.Span
	QuietWarmup bool
	// Distributions are the histograms of the intervals by operation, if the tool prints them.
	Distributions map[string]*histogram.OverTime
	// Misplaced counts reports that have no place on the axis.
	Misplaced int
	// Stalls are the dips after the warm-up.
	Stalls stall.Detector

	watched     stall.Watched
	watchedPart int
	step        float64 // the usual length so far
	part        int     // of the last interval
}

// maxWarmups bounds the stretches of warm-up, whatever is in a file.
const maxWarmups = 1000

func newIntervals() Intervals {
	v := Intervals{Lengths: series.NewTally(true), Distances: series.NewTally(true),
		Latencies: map[ingest.Column]*series.Levels{}, step: series.Unknown()}
	v.ToolEnd = math.Inf(1)
	v.Sorted = func(c ingest.Column) bool { return c.Measure == tool.HeadlineLatency }
	return v
}

// Of returns the columns of a measure, in the order in which they were first seen.
func (v *Intervals) Of(m *measure.Measure) []ingest.Column { return ingest.ColumnsOf(v.Keys(), m) }

// add adds rows. Those outside of a part of the axis are not drawn.
func (v *Intervals) add(rows *ingest.Intervals, part series.Span) {
	v.QuietWarmup, v.Misplaced, v.Distributions = rows.QuietWarmup, rows.Misplaced, rows.Distributions
	var columns []int
	var values [][]float64
	for _, key := range rows.Keys() {
		if key.Measure != nil {
			columns, values = append(columns, v.Column(key)), append(values, rows.Values(key))
		}
	}
	lengths := rows.Values(ingest.Column{Kind: ingest.Length})
	queries, throughput := rows.Rate(tool.Query), rows.Rate(tool.Transaction)
	var latencies [][]float64
	var levels []*series.Levels
	for _, c := range rows.Of(tool.HeadlineLatency) {
		if v.Latencies[c] == nil {
			v.Latencies[c] = &series.Levels{}
		}
		latencies, levels = append(latencies, rows.Values(c)), append(levels, v.Latencies[c])
	}
	v.watch(rows)
	for i, elapsed := range rows.Elapsed {
		length := series.Unknown()
		if lengths != nil {
			length = lengths[i]
		}
		v.sum(elapsed, length, rows.Part[i], rows.Warmup[i])
		addLevel(&v.Queries, elapsed, length, queries, i)
		if !rows.Warmup[i] {
			addLevel(&v.Throughput, elapsed, length, throughput, i)
			for j, level := range levels {
				addLevel(level, elapsed, length, latencies[j], i)
			}
		}
		if elapsed < part.From || elapsed > part.To {
			continue
		}
		if n := len(v.Elapsed); n > 0 {
			for _, missed := range series.Breaks([]float64{v.Elapsed[n-1], elapsed}, v.step) {
				v.Row(missed)
			}
		}
		if v.Row(elapsed) {
			for j, column := range columns {
				v.SetAt(column, values[j][i])
			}
		}
	}
	v.Dropped += rows.Dropped
	rows.Dropped = 0
}

// watch looks for dips.
func (v *Intervals) watch(rows *ingest.Intervals) {
	throughput, lengths := rows.Rate(tool.Transaction), rows.Values(ingest.Column{Kind: ingest.Length})
	if throughput == nil {
		return
	}
	if !v.watched.IsChosen() {
		v.watched.Choose(headlineOf(rows))
	}
	var latency []float64
	if v.watched.Quantile > 0 {
		latency = rows.Values(ingest.LatencyOf(v.watched.Operation, v.watched.Stat))
	}
	for i, elapsed := range rows.Elapsed {
		if rows.Warmup[i] {
			continue
		}
		if rows.Part[i] != v.watchedPart {
			v.Stalls.Reset()
			v.watchedPart = rows.Part[i]
		}
		one := stall.Interval{From: series.Unknown(), To: elapsed, Rate: throughput[i], Latency: series.Unknown(), Quantile: v.watched.Quantile}
		if lengths != nil {
			one.From = elapsed - lengths[i]
		}
		if latency != nil {
			one.Latency = latency[i]
		}
		v.Stalls.Add(one)
	}
}

// headlineOf returns the headline latency of the intervals, chosen by their means.
func headlineOf(rows *ingest.Intervals) series.Optional[tool.Latency] {
	var all []tool.Latency
	for _, c := range rows.Of(tool.HeadlineLatency) {
		sum, n := 0.0, 0.0
		for _, x := range rows.Values(c) {
			if series.IsKnown(x) {
				sum, n = sum+x, n+1
			}
		}
		all = append(all, tool.Latency{Operation: c.Operation, Stat: c.Stat, Seconds: sum / n})
	}
	return tool.Headline(all, nil)
}

// addLevel adds a value of a column, which may be nil.
func addLevel(l *series.Levels, elapsed, length float64, values []float64, row int) {
	if values != nil && series.IsKnown(values[row]) && !math.IsInf(values[row], 0) {
		l.Add(elapsed-length, elapsed, values[row])
	}
}

// sum adds what is summed up of an interval beside its values.
func (v *Intervals) sum(elapsed, length float64, part int, warmup bool) {
	before := 0.0
	if v.N > 0 {
		before = v.Last
	}
	if v.N > 0 && part == v.part {
		v.Distances.Add(before, elapsed-before)
	}
	v.N, v.Last, v.part = v.N+1, elapsed, part
	v.Lengths.Add(elapsed, length)
	if v.N < 64 || v.N%256 == 0 { // it hardly changes
		v.step = v.Lengths.Median()
	}
	if !warmup {
		return
	}
	if n := len(v.Warmup); n > 0 && v.Warmup[n-1].To >= before {
		v.Warmup[n-1].To = elapsed
	} else if n < maxWarmups {
		v.Warmup = append(v.Warmup, series.Span{From: before, To: elapsed})
	}
}
