package ingest

import (
	"cmp"
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// CopyRow appends a row of other intervals, at another place on the axis.
func (v *Intervals) CopyRow(from *Intervals, row int, elapsed float64) {
	if !v.Row(elapsed) {
		return
	}
	for _, key := range from.Keys() {
		v.Set(key, from.At(key, row))
	}
	v.Warmup, v.Part = append(v.Warmup, from.Warmup[row]), append(v.Part, from.Part[row])
}

// Excerpt returns the state at the end of a run that has only the intervals v, which are a part of the run whole. Its
// summary has their means, and the minimum and maximum of latencies. Percentiles are unknown.
func (v *Intervals) Excerpt(meta rundir.Meta, whole *Snapshot, countsFailures bool) Snapshot {
	s := Snapshot{Meta: meta, Phase: Over, Threads: whole.Threads, IntervalSeconds: whole.IntervalSeconds}
	if len(v.Elapsed) == 0 {
		return s
	}
	s.Summary = &Summary{Parts: 1, Threads: whole.Threads}
	lengths := v.Values(Column{Kind: Length})
	length, seconds := func(int) float64 { return 1 }, series.Unknown()
	if lengths != nil && !slices.ContainsFunc(lengths, math.IsNaN) {
		length, seconds = func(row int) float64 { return lengths[row] }, 0
		for _, l := range lengths {
			seconds += l
		}
		s.Summary.ElapsedSeconds = series.Some(seconds)
	}
	mean := func(values []float64) float64 {
		sum, weight := 0.0, 0.0
		for i, value := range values {
			if series.IsKnown(value) {
				sum, weight = sum+value*length(i), weight+length(i)
			}
		}
		return sum / weight // unknown without a value
	}
	errors := 0.0
	for _, key := range v.Keys() {
		value := mean(v.Values(key))
		switch {
		case key.Measure == nil || !series.IsKnown(value):
		case key.Measure == tool.Throughput:
			s.Summary.Rates = append(s.Summary.Rates, tool.Rate{Operation: key.Operation, PerSecond: value})
			if series.IsKnown(seconds) {
				s.Summary.Counts = append(s.Summary.Counts, tool.Count{Operation: key.Operation, N: uint64(math.Round(value * seconds))})
			}
		case key.Measure == tool.HeadlineLatency:
			known := slices.DeleteFunc(slices.Clone(v.Values(key)), math.IsNaN)
			switch key.Stat {
			case "min":
				value = slices.Min(known)
			case "max":
				value = slices.Max(known)
			case "avg":
			default: // percentiles have no mean
				continue
			}
			s.Summary.Latencies = append(s.Summary.Latencies, tool.Latency{Operation: key.Operation, Stat: key.Stat, Seconds: value})
		case key.Measure == tool.ErrorRate && series.IsKnown(seconds):
			errors = value * seconds
			s.Summary.Counts = append(s.Summary.Counts, tool.Count{Operation: tool.ErrorCount, N: uint64(math.Round(errors))})
		}
	}
	slices.SortStableFunc(s.Summary.Counts, func(a, b tool.Count) int { return cmp.Compare(a.Operation, b.Operation) })
	s.FailedShare = tool.FailedShare(errors, series.Number(s.Summary.Report().Count(tool.Transaction)), countsFailures)
	return s
}
