package web

import (
	"math"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Kinds of series about the run itself. Rates are by operation, latencies by
// operation and statistic; the others are of nobody.
const (
	rate        = "rate"
	latency     = "latency"
	errorRate   = "errors"
	reconnects  = "reconnects"
	queueLength = "queue_length"
	concurrency = "concurrency"
	threads     = "threads"
)

// intervalTable is all that the tool reported. Reports that end at the same
// instant are one row: the first counts.
func intervalTable(v *ingest.Intervals) table {
	t := table{x: v.Elapsed}
	for _, c := range v.Keys() {
		switch c.Kind {
		case ingest.Rate, ingest.Latency, ingest.Errors, ingest.Reconnects, ingest.QueueLength, ingest.Concurrency, ingest.Threads:
			t.column(name{string(c.Kind), c.Operation, c.Stat}, v.Values(c))
		}
	}
	return t
}

// intervalRow is one report as it is read.
func intervalRow(r *tool.Report) []cell {
	var cells []cell
	for _, v := range r.Rates {
		cells = append(cells, cell{name{rate, v.Operation, ""}, v.PerSecond})
	}
	for _, v := range r.Latencies {
		cells = append(cells, cell{name{latency, v.Operation, v.Stat}, v.Seconds})
	}
	number := func(kind string, v float64, known bool) {
		if known && !math.IsNaN(v) {
			cells = append(cells, cell{name{kind, "", ""}, v})
		}
	}
	number(errorRate, r.ErrorsPerSecond.Value, r.ErrorsPerSecond.Known)
	number(reconnects, r.ReconnectsPerSecond.Value, r.ReconnectsPerSecond.Known)
	number(queueLength, float64(r.QueueLength.Value), r.QueueLength.Known)
	number(concurrency, float64(r.Concurrency.Value), r.Concurrency.Known)
	number(threads, float64(r.Threads.Value), r.Threads.Known)
	return cells
}

// span is a stretch of a run in seconds on its axis.
type span [2]float64

// warmups are the stretches whose intervals the tool's summary leaves out.
func warmups(v *ingest.Intervals) []span {
	spans := []span{}
	for _, s := range series.Spans(v.Elapsed, v.Warmup) {
		spans = append(spans, span{s.From, s.To})
	}
	return spans
}
