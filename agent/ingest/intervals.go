package ingest

import (
	"math"

	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// maxSeries bounds the series that one run's output or one server's answers can
// make, whatever is in the files.
const MaxSeries = 1024

// Intervals are a tool's interval reports as columns of equal length, one row a
// report. What a report did not say is NaN.
type Intervals struct {
	// Elapsed is the end of each interval in seconds on the history's axis. It
	// never falls.
	Elapsed []float64
	// Length is the length of each interval in seconds.
	Length []float64
	Warmup []bool
	// Part counts the runs within one output, from 1. Each starts the tool's
	// clock anew; its rows are put behind those of the part before.
	Part []int

	// Threads are those told last, in the report or before it.
	Threads, QueueLength, Concurrency    []float64
	ErrorsPerSecond, ReconnectsPerSecond []float64

	// Rates are operations per second and Latencies seconds, in the order in
	// which they were first seen.
	Rates, Latencies []OperationSeries
	// Totals are operations since the start, as of each row: what the live
	// run_operations_total shows. Sums are the other counters.
	Totals []OperationSeries
	Sums   []Sums

	// QuietWarmup: the tool warmed up before its clock began and told nothing of
	// that time.
	QuietWarmup bool

	// Misplaced counts reports that were left out because their time lies
	// before the report in front of them or is not told.
	Misplaced int
	// Dropped counts values left out because there are too many series.
	Dropped int

	axis  axis
	fresh bool // the line that completed the last row is not counted yet
	index map[seriesKey]int
}

// OperationSeries is one value of one operation over all rows. Stat is empty
// but for latencies.
type OperationSeries struct {
	Operation, Stat string
	Values          []float64
}

// Sums count since the start.
type Sums struct {
	Errors, Reconnects, Messages float64
	Lines                        Lines
}

type seriesKey struct {
	kind            byte
	operation, stat string
}

// Rate returns the rates of an operation, nil if the tool never told any.
func (v *Intervals) Rate(operation string) []float64 { return v.find('r', operation, "") }

// Latency returns one statistic of an operation's latency in seconds, nil if
// the tool never told any.
func (v *Intervals) Latency(operation, stat string) []float64 {
	return v.find('l', operation, stat)
}

// Total returns an operation's count since the start, nil if there is none.
func (v *Intervals) Total(operation string) []float64 { return v.find('t', operation, "") }

func (v *Intervals) find(kind byte, operation, stat string) []float64 {
	i, ok := v.index[seriesKey{kind, operation, stat}]
	if !ok {
		return nil
	}
	return (*v.list(kind))[i].Values
}

func (v *Intervals) list(kind byte) *[]OperationSeries {
	switch kind {
	case 'r':
		return &v.Rates
	case 'l':
		return &v.Latencies
	default:
		return &v.Totals
	}
}

// add appends an interval; other reports change nothing. A nil v takes none.
func (v *Intervals) add(r *tool.Report, s *state) {
	if v != nil && r.Kind == tool.Start && r.Phase == tool.Warmup && len(v.Elapsed) == 0 {
		v.QuietWarmup = true
	}
	if v == nil || r.Kind != tool.Interval {
		return
	}
	elapsed, ok := v.axis.place(r)
	if !ok {
		v.Misplaced++
		return
	}
	v.Elapsed = append(v.Elapsed, elapsed)
	v.Length = append(v.Length, known(r.IntervalSeconds))
	v.Warmup = append(v.Warmup, r.Phase == tool.Warmup)
	v.Part = append(v.Part, r.Run)
	v.Threads = append(v.Threads, whole(s.threads))
	v.QueueLength = append(v.QueueLength, whole(r.QueueLength))
	v.Concurrency = append(v.Concurrency, whole(r.Concurrency))
	v.ErrorsPerSecond = append(v.ErrorsPerSecond, known(r.ErrorsPerSecond))
	v.ReconnectsPerSecond = append(v.ReconnectsPerSecond, known(r.ReconnectsPerSecond))
	for _, x := range r.Rates {
		v.set('r', x.Operation, "", x.PerSecond)
	}
	for _, x := range r.Latencies {
		v.set('l', x.Operation, x.Stat, x.Seconds)
	}
	if len(v.Totals) != len(s.totals) {
		for _, operation := range sortedKeys(s.totals) {
			v.set('t', operation, "", s.totals[operation])
		}
	} else {
		for i := range v.Totals {
			v.set('t', v.Totals[i].Operation, "", s.totals[v.Totals[i].Operation])
		}
	}
	v.fill()
	v.Sums = append(v.Sums, s.sums())
	v.fresh = true
}

// axis puts the interval reports of one output behind each other. Each run in
// it starts the tool's clock anew.
type axis struct {
	placed       bool // any report
	part         int
	last, offset float64
}

// place is where a report's interval ends on the axis; false if that can't be
// told or lies before the report in front of it.
func (a *axis) place(r *tool.Report) (float64, bool) {
	if a.placed && r.Run != a.part {
		a.offset = a.last
	}
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
		at += r.IntervalSeconds.Value // told in whole seconds, as YCSB's last line is
	}
	if !(at >= a.last) || math.IsInf(at, 0) {
		return 0, false
	}
	a.placed, a.part, a.last = true, r.Run, at
	return at, true
}

// count brings the last row's counters up to date with the line that completed
// it.
func (v *Intervals) count(s *state) {
	if v != nil && v.fresh {
		v.Sums[len(v.Sums)-1] = s.sums()
		v.fresh = false
	}
}

// set puts a value into the last row.
func (v *Intervals) set(kind byte, operation, stat string, value float64) {
	key := seriesKey{kind, operation, stat}
	list := v.list(kind)
	i, ok := v.index[key]
	if !ok {
		if len(v.index) >= MaxSeries {
			v.Dropped++
			return
		}
		if v.index == nil {
			v.index = map[seriesKey]int{}
		}
		i = len(*list)
		v.index[key] = i
		*list = append(*list, OperationSeries{Operation: operation, Stat: stat})
	}
	series := &(*list)[i]
	if len(series.Values) == len(v.Elapsed) {
		return // said twice: the first counts, as everywhere
	}
	series.Values = append(Pad(series.Values, len(v.Elapsed)-1), value)
}

// fill ends the last row: every column is as long as the others.
func (v *Intervals) fill() {
	for _, list := range []*[]OperationSeries{&v.Rates, &v.Latencies, &v.Totals} {
		for i := range *list {
			(*list)[i].Values = Pad((*list)[i].Values, len(v.Elapsed))
		}
	}
}

// pad makes values n long with NaN.
func Pad(values []float64, n int) []float64 {
	for len(values) < n {
		values = append(values, math.NaN())
	}
	return values
}

func known(v series.Optional[float64]) float64 {
	if !v.Known {
		return math.NaN()
	}
	return v.Value
}

func whole(v series.Optional[int]) float64 {
	if !v.Known {
		return math.NaN()
	}
	return float64(v.Value)
}

// sums are the counters now.
func (s *state) sums() Sums {
	return Sums{Errors: s.errors, Reconnects: s.reconnects, Messages: float64(s.messageCount), Lines: s.lines}
}
