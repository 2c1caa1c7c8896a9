package ingest

import (
	"math"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Kind is what a column without a measure holds.
type Kind string

// The kinds of columns without a measure. Totals are per operation.
const (
	// Length is the interval's own length in seconds.
	Length Kind = "length"

	// Counters since the start, at the end of each row, as the live metrics show them; only with Totals. Lines are
	// counted by the parser's verdict, which takes the place of the operation.
	OperationsTotal Kind = "operations_total"
	ErrorsTotal     Kind = "errors_total"
	ReconnectsTotal Kind = "reconnects_total"
	MessagesTotal   Kind = "messages_total"
	LinesTotal      Kind = "lines_total"
)

// Column names one column of intervals: a measure, or a Kind.
type Column struct {
	// Measure is nil for a column with a Kind. tool.Throughput has a column per operation, and
	// tool.HeadlineLatency one per operation and statistic. Threads are the last reported ones, in
	// the interval or before it.
	Measure *measure.Measure
	Kind    Kind
	// Operation is empty for a measure without operations; only latencies have a Stat.
	Operation, Stat string
}

// RateOf names the column of an operation's rate, in operations per second.
func RateOf(operation string) Column {
	return Column{Measure: tool.Throughput, Operation: operation}
}

// LatencyOf names the column of one statistic of an operation's latency, in seconds.
func LatencyOf(operation, stat string) Column {
	return Column{Measure: tool.HeadlineLatency, Operation: operation, Stat: stat}
}

// Intervals are a tool's interval reports as columns, one row per report. A value that a report
// does not have is unknown.
type Intervals struct {
	// Full, if not nil, is called when there are blockRows rows; they are dropped afterwards.
	Full func()
	// Totals adds the columns of counters.
	Totals bool

	// Elapsed is the end of each interval.
	series.Table[Column]
	Warmup []bool
	// Part numbers the runs within one output, from 1. Each restarts the tool's clock; its rows
	// follow the previous part.
	Part []int

	// QuietWarmup: the tool warmed up before its clock started, without reporting on it.
	QuietWarmup bool

	// Misplaced counts reports that were left out because their time is unknown or before the
	// previous report.
	Misplaced int

	// Distributions are the histograms of intervals by operation, at most maxDistributions, if the
	// tool prints them.
	Distributions map[string]*histogram.OverTime

	axis       axis
	places     []place    // of the values of the last report
	operations []string   // the counted operations, sorted
	totals     []*counter // of the operations
	counters   []int      // the columns of counterColumns
	fresh      bool       // the line that completed the last row is not counted yet
}

// Rate returns the rates of an operation, nil if the tool never reported any.
func (v *Intervals) Rate(operation string) []float64 {
	return v.Values(RateOf(operation))
}

// Of returns the columns of a measure, in the order in which they were first seen.
func (v *Intervals) Of(m *measure.Measure) []Column { return ColumnsOf(v.Keys(), m) }

// ColumnsOf returns the columns of a measure.
func ColumnsOf(all []Column, m *measure.Measure) []Column {
	var columns []Column
	for _, c := range all {
		if c.Measure == m {
			columns = append(columns, c)
		}
	}
	return columns
}

// blockRows is the maximum number of rows of Intervals with Full.
const blockRows = 1024

// add appends an interval; it ignores other reports. v may be nil.
func (v *Intervals) add(r *tool.Report, s *state) {
	if v != nil && r.Kind == tool.Start && r.Phase == tool.Warmup && !v.axis.placed {
		v.QuietWarmup = true
	}
	if v != nil && r.Kind == tool.Histogram && !r.Cumulative {
		v.addDistribution(r)
	}
	if v == nil || r.Kind != tool.Interval {
		return
	}
	elapsed, ok := v.axis.place(r)
	if ok && v.Full != nil && len(v.Elapsed) >= blockRows {
		v.Full()
		v.Keep(0)
		v.Warmup, v.Part = v.Warmup[:0], v.Part[:0]
	}
	if !ok || !v.Row(elapsed) {
		v.Misplaced++
		return
	}
	v.Warmup = append(v.Warmup, r.Phase == tool.Warmup)
	v.Part = append(v.Part, r.Run)
	at := 0 // the place of a value in the report
	for _, x := range r.Rates {
		at = v.set(at, RateOf(x.Operation), x.PerSecond)
	}
	for _, x := range r.Latencies {
		at = v.set(at, LatencyOf(x.Operation, x.Stat), x.Seconds)
	}
	at = v.set(at, Column{Kind: Length}, series.Number(r.IntervalSeconds))
	at = v.set(at, Column{Measure: tool.Threads}, series.Number(s.threads))
	for _, x := range r.Values {
		at = v.set(at, Column{Measure: x.Measure}, x.Value)
	}
	if !v.Totals {
		return
	}
	if len(v.operations) != len(s.totals) {
		v.operations, v.totals = sortedKeys(s.totals), nil
		for _, operation := range v.operations {
			v.totals = append(v.totals, s.totals[operation])
		}
	}
	for i, operation := range v.operations {
		at = v.set(at, Column{Kind: OperationsTotal, Operation: operation}, v.totals[i].value())
	}
	v.fresh = true
	v.setCounters(s)
}

// place is the column of a value.
type place struct {
	key    Column
	column int
}

// set is Set for a report's value, and returns the place of the next one. The values of all reports are in about
// the same order, so the column is usually that of the previous report's value at this place.
func (v *Intervals) set(at int, key Column, x float64) int {
	if !series.IsKnown(x) {
		return at
	}
	if at == len(v.places) || v.places[at].key != key {
		v.places = append(v.places[:at], place{key, v.Column(key)})
	}
	v.SetAt(v.places[at].column, x)
	return at + 1
}

// maxDistributions bounds the operations whose distribution over time is kept.
const maxDistributions = 8

// addDistribution adds the histogram of one interval.
func (v *Intervals) addDistribution(r *tool.Report) {
	o := v.Distributions[r.Operation]
	if !r.ElapsedSeconds.Known || !r.IntervalSeconds.Known || o == nil && len(v.Distributions) >= maxDistributions {
		return
	}
	if o == nil {
		o = &histogram.OverTime{}
		if v.Distributions == nil {
			v.Distributions = map[string]*histogram.OverTime{}
		}
		v.Distributions[r.Operation] = o
	}
	end := v.axis.offsetOf(r) + r.ElapsedSeconds.Value
	o.Add(end-r.IntervalSeconds.Value, end, r.Distribution())
}

// count brings the last row's counters up to date with the line that completed
// it.
func (v *Intervals) count(s *state) {
	if v != nil && v.fresh {
		v.fresh = false
		v.setCounters(s)
	}
}

// counterColumns are the counters of errors, reconnects, messages and lines.
var counterColumns = []Column{
	{Kind: ErrorsTotal}, {Kind: ReconnectsTotal}, {Kind: MessagesTotal},
	{Kind: LinesTotal, Operation: "report"}, {Kind: LinesTotal, Operation: "ignored"}, {Kind: LinesTotal, Operation: "malformed"},
}

func (v *Intervals) setCounters(s *state) {
	if v.counters == nil {
		for _, c := range counterColumns {
			v.counters = append(v.counters, v.Column(c))
		}
	}
	for i, n := range [...]float64{
		s.errors.value(), s.reconnects.value(), float64(s.messageCount),
		float64(s.lines.Reported), float64(s.lines.Ignored), float64(s.lines.Malformed),
	} {
		v.ReplaceAt(v.counters[i], n)
	}
}

// axis places the interval reports of one output on one time axis. Each run in the output resets
// the tool's clock.
type axis struct {
	placed       bool // any report
	part         int
	last, offset float64
}

// offsetOf returns the position on the axis at which the clock of the report's run is 0.
func (a *axis) offsetOf(r *tool.Report) float64 {
	if a.placed && r.Run != a.part {
		return a.last
	}
	return a.offset
}

// place returns where a report's interval ends on the axis; false if unknown or before the previous
// report.
func (a *axis) place(r *tool.Report) (float64, bool) {
	a.offset = a.offsetOf(r)
	at := 0.0
	switch {
	case r.ElapsedSeconds.Known:
		at = a.offset + r.ElapsedSeconds.Value
	case r.IntervalSeconds.Known:
		at = a.last + r.IntervalSeconds.Value
	default:
		return 0, false
	}
	if a.placed && at == a.last && r.IntervalSeconds.Known {
		at += r.IntervalSeconds.Value // printed in whole seconds, as in YCSB's last line
	}
	if !(at >= a.last) || math.IsInf(at, 0) {
		return 0, false
	}
	a.placed, a.part, a.last = true, r.Run, at
	return at, true
}
