package tool

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Measures of a run that follow from its operations and threads.
var (
	Throughput = measure.New(measure.Measure{
		ID: "transactions", Title: "Throughput", Short: "tps", Note: "operations per second, as the tool reports them",
		Unit: measure.PerSecond, Scope: measure.Run, Summary: measure.Mean, MoreIsBetter: true, EvenZero: true, Rank: 100,
	})
	QueryRate = measure.New(measure.Measure{
		ID: "qps", Noun: "queries", Title: "Queries", Short: "qps", Note: "statements per second, as the tool reports them",
		Unit: measure.PerSecond, Scope: measure.Run, Summary: measure.Mean, ChartOf: Throughput, MoreIsBetter: true, Rank: 110,
	})
	// Operations of tools that print no queries: files, documents.
	ReadRate  = operationRate("read_rate", "Reads", "reads", 112)
	WriteRate = operationRate("write_rate", "Writes", "writes", 114)
	SyncRate  = operationRate("fsync_rate", "Fsyncs", "fsyncs", 116)
	// HeadlineLatency is the latency that Headline chooses. Its statistic differs between tools.
	HeadlineLatency = measure.New(measure.Measure{
		ID: "latency", Title: "Latency", Short: "latency", Note: "of each interval, as the tool reports it",
		Unit: measure.Seconds, Scope: measure.Run, Summary: measure.Median, Rank: 200,
	})
	Errors = measure.New(measure.Measure{
		ID: "errors", Title: "Errors", Short: "errors", Note: "errors that the tool counted and ignored",
		Unit: measure.Count, Scope: measure.Run, Summary: measure.Last, NoChart: true, Rank: 300,
	})
	Reconnects = measure.New(measure.Measure{
		ID: "reconnects", Title: "Reconnects", Note: "connections that the tool opened again",
		Unit: measure.Count, Scope: measure.Run, Summary: measure.Last, NoChart: true, Rank: 320,
	})
	Threads = measure.New(measure.Measure{
		ID: "threads", Title: "Threads", Note: "threads of the tool",
		Unit: measure.Count, Scope: measure.Run, Summary: measure.Last, NoChart: true, Rank: 420,
	})
)

// operationRate returns the rate of an operation; unknown if the tool prints queries and the operation is one kind of them.
func (r *Report) operationRate(operation string) series.Optional[float64] {
	if r.Rate(Query).Known {
		return series.Optional[float64]{}
	}
	return r.Rate(operation)
}

func operationRate(id, title, short string, rank int) *measure.Measure {
	return measure.New(measure.Measure{
		ID: id, Noun: short, Title: title, Short: short, Note: short + " per second, as the tool reports them",
		Unit: measure.PerSecond, Scope: measure.Run, Summary: measure.Mean, NoChart: true, MoreIsBetter: true, Rank: rank,
	})
}

// Numbers that a tool prints for an interval or a run in addition to its operations. To appear in
// everything that benchwatch prints, a number only has to be declared here and set by a parser.
var (
	ErrorRate = declare(Number{}, measure.Measure{
		ID: "errors_per_second", Title: "Errors per second", Note: "errors that the tool counted and ignored",
		Unit: measure.PerSecond, Summary: measure.Mean, Rank: 310,
	})
	ReconnectRate = declare(Number{}, measure.Measure{
		ID: "reconnects_per_second", Title: "Reconnects per second", Note: "connections that the tool opened again",
		Unit: measure.PerSecond, Summary: measure.Mean, ChartOf: ErrorRate, Rank: 330,
	})
	QueueLength = declare(Number{Live: metric("run_queue_length", "Events waiting for a thread (open-loop runs).")}, measure.Measure{
		ID: "queue_length", Title: "Queue", Note: "events that wait for a thread of the tool, at a fixed rate of events",
		Unit: measure.Count, Summary: measure.Max, Rank: 400,
	})
	Concurrency = declare(Number{Live: metric("run_concurrency", "Threads of the tool that execute an event (open-loop runs).")}, measure.Measure{
		ID: "concurrency", Title: "Concurrency", Note: "threads of the tool that execute an event, at a fixed rate of events",
		Unit: measure.Count, Summary: measure.Mean, ChartOf: QueueLength, Rank: 410,
	})
	TpmC = declare(Number{AtEnd: true, Final: metric("run_summary_tpmc", "TPC-C's New-Order transactions per minute.")}, measure.Measure{
		ID: "tpmc", Title: "tpmC", Short: "tpmC", Note: "New-Order transactions of TPC-C per minute",
		Unit: measure.PerMinute, Summary: measure.Mean, NoChart: true, MoreIsBetter: true, Rank: 120,
	})
	NOPM = declare(Number{AtEnd: true, Final: metric("run_summary_nopm", "HammerDB's new orders per minute (TPROC-C).")}, measure.Measure{
		ID: "nopm", Title: "NOPM", Short: "NOPM", Note: "new orders of TPROC-C per minute, as HammerDB counts them in the database",
		Unit: measure.PerMinute, Summary: measure.Mean, NoChart: true, MoreIsBetter: true, Rank: 122,
	})
	TPM = declare(Number{AtEnd: true, Final: metric("run_summary_tpm",
		"HammerDB's TPM: commits and rollbacks of the server per minute, also those of other clients.")}, measure.Measure{
		ID: "tpm", Title: "TPM", Short: "TPM", Note: "commits and rollbacks per minute that HammerDB read from the server, also those of other clients",
		Unit: measure.PerMinute, Summary: measure.Mean, NoChart: true, MoreIsBetter: true, Rank: 124,
	})
	QueryMean = declare(Number{AtEnd: true, Combine: slices.Max[[]float64], Final: metric("run_summary_query_geometric_mean_seconds",
		"Geometric mean of the times of TPROC-H's queries that returned rows.")}, measure.Measure{
		ID: "query_geometric_mean_seconds", Title: "Geometric mean of queries", Short: "geo. mean",
		Note: "geometric mean of the times of TPROC-H's queries that returned rows",
		Unit: measure.Seconds, Summary: measure.Last, NoChart: true, Rank: 126,
	})
	Generators = declare(Number{OfGroup: true, Live: metric("run_generators_reporting",
		"Generators of a group that reported its last interval; if a running generator did not, the group has no "+
			"rates and latencies.")}, measure.Measure{
		ID: "generators", Title: "Generators", Note: "generators of the group that reported the interval; if a running generator did not, the group has no other " +
			"values",
		Unit: measure.Count, Summary: measure.Mean, Rank: 430,
	})
)

// Value returns the value of a measure in r; it is unknown if r does not report it or the measure
// has another scope. Errors and Reconnects are values of the interval or, in a Summary, of the run.
func (r *Report) Value(m *measure.Measure) series.Optional[float64] {
	switch m {
	case Throughput:
		return r.Rate(Transaction)
	case QueryRate:
		return r.Rate(Query)
	case ReadRate:
		return r.operationRate(Read)
	case WriteRate:
		return r.operationRate(Write)
	case SyncRate:
		return r.operationRate("fsync")
	case HeadlineLatency:
		l := r.Headline()
		return series.Optional[float64]{Value: l.Value.Seconds, Known: l.Known}
	case Errors:
		return series.Of(series.Number(r.Count(ErrorCount)))
	case Reconnects:
		return series.Of(series.Number(r.Count(ReconnectCount)))
	case Threads:
		return series.Of(series.Number(r.Threads))
	}
	return r.Values.Of(m)
}
