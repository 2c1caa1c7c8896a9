// Package tool models a benchmark tool: how its command line is read and what its output means. A
// [Tool] turns a command line into a [Description], and its [Parser] turns lines of output into
// reports; everything downstream uses a [Report], whichever tool it came from. The package also
// declares the measures of a run and the rule that selects one latency to represent a run.
//
// The package does not use files, processes or Prometheus. Each tool is one package below this one
// and one line in package registry.
package tool

import (
	"math"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Kind is the kind of a Report.
type Kind string

const (
	// Start: a run begins. Tool, Version, Workload and Threads are set if the output names them.
	Start Kind = "start"
	// Interval: what happened since the previous interval.
	Interval Kind = "interval"
	// Summary: the tool's own totals. A Summary with Checkpoint does not end the run.
	Summary Kind = "summary"
	// Histogram: the latency distribution of one operation.
	Histogram Kind = "histogram"
	// Error: the tool printed an error.
	Error Kind = "error"
)

// Phase is whether the summary includes an interval.
type Phase string

const (
	// Warmup intervals load the server, but the tool's summary excludes them.
	Warmup Phase = "warmup"
	// Measure is the phase that the summary covers.
	Measure Phase = "measure"
)

// Operation names that all tools share. Others are in lower case with underscores, singular.
const (
	// Transaction is the tool's own unit of work: sysbench's event, YCSB's
	// operation, a TPC-C transaction of any kind.
	Transaction = "transaction"
	Query       = "query"
	Read        = "read"
	Write       = "write"
	Other       = "other"
	// ScheduleLag is how late transactions of an open loop began. Its presence shows that the other
	// latencies count from the time at which a transaction was due.
	ScheduleLag = "schedule_lag"
	// NewOrder is the transaction that defines TPC-C's throughput and latency.
	NewOrder = "new_order"
	// IntendedPrefix begins YCSB's operations whose latencies count from the time at which an
	// operation was due instead of its start.
	IntendedPrefix = "intended_"
)

// Names of counts that are not operations.
const (
	ErrorCount     = "error"
	ReconnectCount = "reconnect"
)

// Rate is the rate of one operation in operations per second.
type Rate struct {
	Operation string
	PerSecond float64
}

// Count is the number of operations of one kind as the tool printed it.
type Count struct {
	Operation string
	N         uint64
}

// Latency is one statistic of an operation's latency, in seconds. Stat is min, avg, max or a
// percentile such as p95 or p99.9.
type Latency struct {
	Operation string
	Stat      string
	Seconds   float64
}

// Bucket is one row of a tool's histogram.
type Bucket struct {
	// Bound is the upper bound in seconds as the tool prints it, +Inf if there is none. sysbench
	// prints the middle of the bucket instead.
	Bound float64
	// Bucket has the bounds of the values.
	histogram.Bucket
}

// Report is one finding of a parser. Values are in base units and as printed: what the tool did not
// print is absent. A parser reuses the memory of its reports, so a consumer has to copy what it
// keeps (see Clone).
type Report struct {
	Kind Kind
	// Run counts the runs in one output from 1, since people append many runs to a file.
	Run int

	Tool     string // Start only
	Version  string // Start only, as in the tool's banner; otherwise empty
	Workload string // Start only, if the output names it
	// Command is the tool's own verb (load, run …); Start only, if the output names it.
	Command string

	// Began is the wall-clock time at which the run began, in a Start or an Interval if the output
	// shows it; otherwise zero.
	Began time.Time

	// Files is the common part of the names of the files that the tool wrote about the run, as Tool.SideFile returns it, if
	// the output shows it.
	Files string

	// Labels are facts of the run that its lines since the previous report show.
	Labels []Label

	Threads series.Optional[int]
	// TargetRate is the requested rate of an open loop in operations per second; Start only, 0 if
	// the output shows none.
	TargetRate int
	// Phase of an Interval, or the first phase after a Start.
	Phase Phase

	// ElapsedSeconds is the tool's own clock. IntervalSeconds is the length of the interval that
	// Rates and Counts cover or, in a Start, of the intervals that follow, if the output shows it only there.
	ElapsedSeconds  series.Optional[float64]
	IntervalSeconds series.Optional[float64]

	Checkpoint bool // Summary only

	Rates     []Rate
	Counts    []Count // of the interval; in a Summary, of the run
	Latencies []Latency
	// Within are the widths in seconds of the ranges that contain latencies, for latencies that are
	// upper bounds of a histogram's buckets; same operation and statistic.
	Within []Latency

	// Values are the numbers of an Interval or a Summary that do not belong to an operation.
	Values Values

	// Operation is the operation of a Histogram, Buckets are its rows in the order of their bounds.
	// Cumulative: it covers the run, or the time since the last checkpoint; otherwise one interval.
	Operation  string
	Cumulative bool
	Buckets    []Bucket

	// Estimated is the number of generators in a group that printed no summary. Their part of the
	// Summary is computed from their intervals.
	Estimated int

	// Message of an Error, or the reason why the run in a Summary failed.
	Message string
	// Failed: the tool's own output shows that the run failed, whatever the exit status (YCSB and
	// the TPC-C tools exit with 0 in nearly every case).
	Failed bool
}

// Reset empties r for reuse; the slices keep their memory.
func (r *Report) Reset(kind Kind, run int) {
	rates, counts, latencies, within, values, buckets := r.Rates[:0],
		r.Counts[:0], r.Latencies[:0], r.Within[:0], r.Values[:0], r.Buckets[:0]
	*r = Report{} // a literal with all fields would be built elsewhere and copied
	r.Kind, r.Run = kind, run
	r.Rates, r.Counts, r.Latencies, r.Within, r.Values, r.Buckets = rates, counts, latencies, within, values, buckets
}

// ResetError empties r and makes it an Error of a run.
func (r *Report) ResetError(run int, message string, failed bool) {
	r.Reset(Error, run)
	r.Message, r.Failed = message, failed
}

// AddRate appends the rate of an operation.
func (r *Report) AddRate(operation string, perSecond float64) {
	r.Rates = append(r.Rates, Rate{operation, perSecond})
}

// AddCount appends a count.
func (r *Report) AddCount(operation string, n uint64) {
	r.Counts = append(r.Counts, Count{operation, n})
}

// AddCountOver appends a count and, unless the time in seconds is 0, which means unknown, its rate.
func (r *Report) AddCountOver(operation string, n uint64, seconds float64) {
	r.AddCount(operation, n)
	if seconds > 0 {
		r.AddKnownRate(operation, series.Some(float64(n)/seconds))
	}
}

// AddKnownRate appends a rate if it is known. The rates of ErrorCount and ReconnectCount become the numbers ErrorRate and
// ReconnectRate.
func (r *Report) AddKnownRate(operation string, perSecond series.Optional[float64]) {
	switch {
	case operation == ErrorCount:
		r.Values.Set(ErrorRate, perSecond)
	case operation == ReconnectCount:
		r.Values.Set(ReconnectRate, perSecond)
	case perSecond.Known:
		r.AddRate(operation, perSecond.Value)
	}
}

// AddKnownCount appends a count if it is known.
func (r *Report) AddKnownCount(operation string, n series.Optional[uint64]) {
	if n.Known {
		r.AddCount(operation, n.Value)
	}
}

// AddKnownLatency appends a latency in seconds if it is known.
func (r *Report) AddKnownLatency(operation, stat string, seconds series.Optional[float64]) {
	if seconds.Known {
		r.AddLatency(operation, stat, seconds.Value)
	}
}

// AddLatency appends a latency in seconds.
func (r *Report) AddLatency(operation, stat string, seconds float64) {
	r.Latencies = append(r.Latencies, Latency{})
	l := &r.Latencies[len(r.Latencies)-1] // set in place, which is faster than a copy
	l.Operation, l.Stat, l.Seconds = operation, stat, seconds
}

// AddPercentiles adds the percentiles that HdrHistogram's logs have: the upper bound of each
// percentile's bucket, limited to the highest latency, in seconds.
func (r *Report) AddPercentiles(operation string, h *histogram.Histogram, highest float64) {
	for _, p := range []struct {
		stat  string
		share float64
	}{{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}} {
		if v, ok := h.Quantile(p.share); ok {
			v.High = min(v.High, highest)
			r.AddRange(operation, p.stat, v)
		}
	}
}

// AddRange appends the upper bound and the width of the range that contains a latency.
func (r *Report) AddRange(operation, stat string, v histogram.Range) {
	r.AddLatency(operation, stat, v.High)
	r.Within = append(r.Within, Latency{operation, stat, math.Round(v.Width()*1e9) / 1e9})
}

// AddBuckets adds the buckets of a histogram. Their upper bounds are the tool's own numbers.
func (r *Report) AddBuckets(h *histogram.Histogram) {
	for _, b := range h.Buckets() {
		r.Buckets = append(r.Buckets, Bucket{Bound: b.High, Bucket: b})
	}
}

// Distribution returns the buckets of a Histogram as a histogram.Histogram.
func (r *Report) Distribution() *histogram.Histogram {
	buckets := make([]histogram.Bucket, len(r.Buckets))
	for i, b := range r.Buckets {
		buckets[i] = b.Bucket
	}
	return histogram.New(buckets...)
}

// Rate returns the rate of an operation; unknown if the tool printed none.
func (r *Report) Rate(operation string) series.Optional[float64] {
	for _, v := range r.Rates {
		if v.Operation == operation {
			return series.Some(v.PerSecond)
		}
	}
	return series.Optional[float64]{}
}

// Count returns the count of an operation; unknown if the tool printed none.
func (r *Report) Count(operation string) series.Optional[uint64] {
	for _, v := range r.Counts {
		if v.Operation == operation {
			return series.Some(v.N)
		}
	}
	return series.Optional[uint64]{}
}

// Latency returns one latency in seconds; unknown if the tool did not print it.
func (r *Report) Latency(operation, stat string) series.Optional[float64] {
	for _, v := range r.Latencies {
		if v.Operation == operation && v.Stat == stat {
			return series.Some(v.Seconds)
		}
	}
	return series.Optional[float64]{}
}

// Set sets the value of a measure that is a [Number].
func (r *Report) Set(m *measure.Measure, v float64) { r.Values.Set(m, series.Some(v)) }

// Clone returns a copy that does not share memory with r.
func (r *Report) Clone() *Report {
	c := &Report{}
	c.CopyFrom(r)
	return c
}

// CopyFrom makes r a copy of another report without sharing memory. The slices of r keep their
// memory.
func (r *Report) CopyFrom(from *Report) {
	rates, counts, latencies := append(r.Rates[:0], from.Rates...),
		append(r.Counts[:0], from.Counts...), append(r.Latencies[:0], from.Latencies...)
	within, values, buckets := append(r.Within[:0], from.Within...),
		append(r.Values[:0], from.Values...), append(r.Buckets[:0], from.Buckets...)
	*r = *from
	r.Rates, r.Counts, r.Latencies, r.Within, r.Values, r.Buckets = rates, counts, latencies, within, values, buckets
}
