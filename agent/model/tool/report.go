// Package tool is the model of a benchmark tool: how its command line is read and
// what its output means. A [Tool] describes a command line as a [Description], and
// its [Parser] turns lines of output into reports; everything downstream works with
// a [Report], whichever tool it came from. The measures of a run, and the rule by
// which one latency stands for a run, are declared here, too.
//
// The package has no part in files, processes or Prometheus. Each tool is one
// package below this one and one line in package registry.
package tool

import (
	"math"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Kind is what a Report is about.
type Kind string

const (
	// Start: a run begins. Tool, Version, Workload and Threads are set as far
	// as the output names them.
	Start Kind = "start"
	// Interval: what happened since the previous interval.
	Interval Kind = "interval"
	// Summary: the tool's own totals. With Checkpoint they end nothing.
	Summary Kind = "summary"
	// Histogram: how the latencies of one operation are distributed.
	Histogram Kind = "histogram"
	// Error: the tool printed that something failed.
	Error Kind = "error"
)

// Phase is whether an interval counts.
type Phase string

const (
	// Warmup intervals load the server but are left out of the tool's summary.
	Warmup Phase = "warmup"
	// Measure is the phase that the summary is about.
	Measure Phase = "measure"
)

// Operation names that every tool uses for the same thing. Others are
// lower-case with underscores, singular.
const (
	// Transaction is the tool's own unit of work: sysbench's event, YCSB's
	// operation, a TPC-C transaction of any kind.
	Transaction = "transaction"
	Query       = "query"
	Read        = "read"
	Write       = "write"
	Other       = "other"
	// ScheduleLag is how late the transactions of an open loop began. A latency of it shows
	// that the others count from when a transaction was due.
	ScheduleLag = "schedule_lag"
	// NewOrder is the transaction by which TPC-C measures throughput and latency.
	NewOrder = "new_order"
	// IntendedPrefix begins the names of YCSB's operations whose latencies count
	// from when an operation was due, not from when it began.
	IntendedPrefix = "intended_"
)

// Names of the counts that are no operations.
const (
	ErrorCount     = "error"
	ReconnectCount = "reconnect"
)

// Rate is operations per second of one operation.
type Rate struct {
	Operation string
	PerSecond float64
}

// Count is a whole number of operations, as the tool printed it.
type Count struct {
	Operation string
	N         uint64
}

// Latency is one statistic of one operation's latency, in seconds. Stat is
// min, avg, max or a percentile as p95, p99.9.
type Latency struct {
	Operation string
	Stat      string
	Seconds   float64
}

// Bucket is one row of a tool's histogram.
type Bucket struct {
	// Bound is the bucket's upper bound in seconds as the tool prints it, +Inf for a
	// bucket without one. sysbench prints the middle instead.
	Bound float64
	// Bucket has the bounds between which the values are.
	histogram.Bucket
}

// Report is one thing that a parser recognised. Values are in base units and
// as printed: what the tool did not print is absent. A parser reuses the memory
// of its reports, so a consumer copies what it keeps (see Clone).
type Report struct {
	Kind Kind
	// Run counts the runs in one output, from 1: people append many to a file.
	Run int

	Tool     string // Start only
	Version  string // Start only, as in the tool's banner, else empty
	Workload string // Start only, when the output names it
	// Command is the tool's own verb (load, run …); Start only, when the output
	// names it.
	Command string

	// Began is when the run began by the wall clock, as far as the output shows that; of a
	// Start or an Interval, and zero in others.
	Began time.Time

	Threads series.Optional[int]
	// TargetRate is the operations per second that an open loop asks for; Start only, 0 if
	// the output shows none.
	TargetRate int
	// Phase of an Interval, or with which a Start begins.
	Phase Phase

	// ElapsedSeconds is the tool's own clock; IntervalSeconds the length of the
	// interval that Rates and Counts are about.
	ElapsedSeconds  series.Optional[float64]
	IntervalSeconds series.Optional[float64]

	Checkpoint bool // Summary only

	Rates     []Rate
	Counts    []Count // of the interval, or of the run in a Summary
	Latencies []Latency
	// Within is how long the ranges are in which latencies lie that are upper bounds of a
	// histogram's buckets, by the same operation and statistic, in seconds.
	Within []Latency

	// Values are the numbers of an Interval or a Summary that are about no operation.
	Values Values

	// Operation is what a Histogram is about, Buckets its rows, in the order of their
	// bounds. Cumulative: it is of the run, or since the last checkpoint; else of one
	// interval.
	Operation  string
	Cumulative bool
	Buckets    []Bucket

	// Estimated is how many generators of a group printed no summary; what the Summary
	// has of them is computed from their intervals.
	Estimated int

	// Message of an Error, or the reason why a Summary is of a failed run.
	Message string
	// Failed is true if the tool's own output shows that the run failed, whatever
	// its exit status (YCSB and the TPC-C tools exit 0 for nearly everything).
	Failed bool
}

// Reset empties r for reuse; the slices keep their memory.
func (r *Report) Reset(kind Kind, run int) {
	*r = Report{
		Kind: kind, Run: run, Rates: r.Rates[:0], Counts: r.Counts[:0], Latencies: r.Latencies[:0], Within: r.Within[:0],
		Values: r.Values[:0], Buckets: r.Buckets[:0],
	}
}

// ResetError empties r for reuse as an Error of a run.
func (r *Report) ResetError(run int, message string, failed bool) {
	r.Reset(Error, run)
	r.Message, r.Failed = message, failed
}

// AddRate appends a rate.
func (r *Report) AddRate(operation string, perSecond float64) {
	r.Rates = append(r.Rates, Rate{operation, perSecond})
}

// AddCount appends a count.
func (r *Report) AddCount(operation string, n uint64) {
	r.Counts = append(r.Counts, Count{operation, n})
}

// AddLatency appends a latency in seconds.
func (r *Report) AddLatency(operation, stat string, seconds float64) {
	r.Latencies = append(r.Latencies, Latency{operation, stat, seconds})
}

// AddPercentiles adds those of an operation that HdrHistogram's logs have: the upper bound of
// the bucket in which each lies, and at most the highest latency, in seconds.
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

// AddRange appends the upper bound of the range in which a latency lies, and how long that is.
func (r *Report) AddRange(operation, stat string, v histogram.Range) {
	r.AddLatency(operation, stat, v.High)
	r.Within = append(r.Within, Latency{operation, stat, math.Round(v.Width()*1e9) / 1e9})
}

// AddBuckets adds the buckets of a histogram, whose upper bounds are the tool's own numbers.
func (r *Report) AddBuckets(h *histogram.Histogram) {
	for _, b := range h.Buckets() {
		r.Buckets = append(r.Buckets, Bucket{Bound: b.High, Bucket: b})
	}
}

// Distribution returns the buckets of a Histogram.
func (r *Report) Distribution() *histogram.Histogram {
	buckets := make([]histogram.Bucket, len(r.Buckets))
	for i, b := range r.Buckets {
		buckets[i] = b.Bucket
	}
	return histogram.New(buckets...)
}

// Rate returns the rate of an operation, unknown if the tool printed none.
func (r *Report) Rate(operation string) series.Optional[float64] {
	for _, v := range r.Rates {
		if v.Operation == operation {
			return series.Some(v.PerSecond)
		}
	}
	return series.Optional[float64]{}
}

// Count returns the count of an operation, unknown if the tool printed none.
func (r *Report) Count(operation string) series.Optional[uint64] {
	for _, v := range r.Counts {
		if v.Operation == operation {
			return series.Some(v.N)
		}
	}
	return series.Optional[uint64]{}
}

// Latency returns one latency in seconds, unknown if the tool did not print it.
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

// CopyFrom makes r a copy of another report that does not share memory with it. The slices of r
// keep their memory.
func (r *Report) CopyFrom(from *Report) {
	to := *r
	*r = *from
	r.Rates = append(to.Rates[:0], from.Rates...)
	r.Counts = append(to.Counts[:0], from.Counts...)
	r.Latencies = append(to.Latencies[:0], from.Latencies...)
	r.Within = append(to.Within[:0], from.Within...)
	r.Values = append(to.Values[:0], from.Values...)
	r.Buckets = append(to.Buckets[:0], from.Buckets...)
}
