package tool

import (
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// The measures of a run, as far as its tool reports them.
var (
	Throughput = measure.New(measure.Measure{
		ID: "transactions", Title: "Throughput", Short: "tps", Note: "operations per second, as the tool reports them",
		Unit: measure.PerSecond, Scope: measure.Run, Summary: measure.Mean, Rank: 100,
	})
	QueryRate = measure.New(measure.Measure{
		ID: "queries", Title: "Queries", Short: "qps", Note: "statements per second, as the tool reports them",
		Unit: measure.PerSecond, Scope: measure.Run, Summary: measure.Mean, ChartOf: Throughput, Rank: 110,
	})
	TpmC = measure.New(measure.Measure{
		ID: "tpmc", Title: "tpmC", Short: "tpmC", Note: "New-Order transactions of TPC-C per minute",
		Unit: measure.PerMinute, Scope: measure.Run, Summary: measure.Mean, NoChart: true, Rank: 120,
	})
	// HeadlineLatency is the latency that Headline returns. Its statistic differs
	// between tools.
	HeadlineLatency = measure.New(measure.Measure{
		ID: "latency", Title: "Latency", Short: "latency", Note: "of each interval, as the tool reports it",
		Unit: measure.Seconds, Scope: measure.Run, Summary: measure.Median, Rank: 200,
	})
	Errors = measure.New(measure.Measure{
		ID: "errors", Title: "Errors", Short: "errors", Note: "errors that the tool counted and ignored",
		Unit: measure.Count, Scope: measure.Run, Summary: measure.Last, NoChart: true, Rank: 300,
	})
	ErrorRate = measure.New(measure.Measure{
		ID: "errors_per_second", Title: "Errors per second", Note: "errors that the tool counted and ignored",
		Unit: measure.PerSecond, Scope: measure.Run, Summary: measure.Mean, Rank: 310,
	})
	Reconnects = measure.New(measure.Measure{
		ID: "reconnects", Title: "Reconnects", Note: "connections that the tool opened again",
		Unit: measure.Count, Scope: measure.Run, Summary: measure.Last, NoChart: true, Rank: 320,
	})
	ReconnectRate = measure.New(measure.Measure{
		ID: "reconnects_per_second", Title: "Reconnects per second", Note: "connections that the tool opened again",
		Unit: measure.PerSecond, Scope: measure.Run, Summary: measure.Mean, ChartOf: ErrorRate, Rank: 330,
	})
	QueueLength = measure.New(measure.Measure{
		ID: "queue_length", Title: "Queue", Note: "events that wait for a thread of the tool, at a fixed rate of events",
		Unit: measure.Count, Scope: measure.Run, Summary: measure.Max, Rank: 400,
	})
	Concurrency = measure.New(measure.Measure{
		ID: "concurrency", Title: "Concurrency", Note: "threads of the tool that execute an event, at a fixed rate of events",
		Unit: measure.Count, Scope: measure.Run, Summary: measure.Mean, ChartOf: QueueLength, Rank: 410,
	})
	Threads = measure.New(measure.Measure{
		ID: "threads", Title: "Threads", Note: "threads of the tool",
		Unit: measure.Count, Scope: measure.Run, Summary: measure.Last, NoChart: true, Rank: 420,
	})
	Generators = measure.New(measure.Measure{
		ID: "generators", Title: "Generators", Note: "generators of the group that reported the interval; without one that still runs the group has no other values",
		Unit: measure.Count, Scope: measure.Run, Summary: measure.Mean, Rank: 430,
	})
)

// Value returns what r reports of a measure of a run; it is unknown if r does
// not report it or the measure is of another scope. Errors and Reconnects are
// those of the interval or, in a Summary, of the run.
func (r *Report) Value(m *measure.Measure) series.Optional[float64] {
	switch m {
	case Throughput:
		return r.Rate(Transaction)
	case QueryRate:
		return r.Rate(Query)
	case TpmC:
		return r.TpmC
	case HeadlineLatency:
		l := r.Headline()
		return series.Optional[float64]{Value: l.Value.Seconds, Known: l.Known}
	case Errors:
		return series.Of(series.Number(r.Count(ErrorCount)))
	case ErrorRate:
		return r.ErrorsPerSecond
	case Reconnects:
		return series.Of(series.Number(r.Count(ReconnectCount)))
	case ReconnectRate:
		return r.ReconnectsPerSecond
	case QueueLength:
		return series.Of(series.Number(r.QueueLength))
	case Concurrency:
		return series.Of(series.Number(r.Concurrency))
	case Threads:
		return series.Of(series.Number(r.Threads))
	case Generators:
		return series.Of(series.Number(r.Generators))
	}
	return series.Optional[float64]{}
}
