package tool

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// given is a parser that emits one report for each line.
type given struct{ report Report }

func (g *given) Parse(_ Line, emit func(*Report)) Verdict {
	r := g.report.Clone()
	emit(r)
	return Reported
}

func (*given) Close(func(*Report)) {}

func throughFront(r Report) (got *Report, v Verdict) {
	t := Tool{NewParser: func(Description) Parser { return &given{r} }}
	v = t.NewFront(Description{}).Parser().Parse(Line{Text: []byte("x")}, func(r *Report) { got = r.Clone() })
	return got, v
}

func TestImpossibleNumbers(t *testing.T) {
	// A difference of two unsigned counters that is negative, as sysbench 0.5 prints it after a checkpoint.
	got, v := throughFront(Report{Kind: Interval, Rates: []Rate{{Transaction, 18446842801212211200}, {Read, 5}}, Latencies: []Latency{{Transaction, "p95", 0.06}}})
	if got != nil || v != Malformed {
		t.Errorf("interval with an impossible rate: %+v, %v", got, v)
	}
	got, v = throughFront(Report{Kind: Summary, Rates: []Rate{{Transaction, 5}, {Read, math.NaN()}}, Counts: []Count{{Transaction, 10}, {Read, math.MaxUint64 - 3}}})
	if d := cmp.Diff([]Rate{{Transaction, 5}}, got.Rates); d != "" || v != Malformed || got.Count(Read).Known {
		t.Errorf("summary: %+v, %v", got, v)
	}
	got, v = throughFront(Report{Kind: Summary, Latencies: []Latency{
		{Transaction, "min", 0.004}, {Transaction, "avg", 0.005}, {Transaction, "p95", 0}, {Transaction, "p99", 0.001}, {Transaction, "p50", 0.0039},
		{Read, "p95", 0.001}, {Read, "max", math.Inf(1)},
	}})
	if d := cmp.Diff([]Latency{{Transaction, "min", 0.004}, {Transaction, "avg", 0.005}, {Transaction, "p50", 0.0039}, {Read, "p95", 0.001}}, got.Latencies); d != "" || v != Malformed {
		t.Errorf("latencies, %v:\n%s", v, d)
	}
}

func TestThroughput(t *testing.T) {
	for name, test := range map[string]struct {
		report Report
		want   series.Optional[float64]
	}{
		"printed":               {Report{Kind: Interval, Rates: []Rate{{Transaction, 7}, {Read, 5}}}, series.Some(7.0)},
		"a count over its time": {Report{Kind: Summary, ElapsedSeconds: series.Some(2.0), Rates: []Rate{{Read, 9}}, Counts: []Count{{Transaction, 10}}}, series.Some(5.0)},
		"counts of operations": {Report{Kind: Summary, ElapsedSeconds: series.Some(2.0), Rates: []Rate{{Read, 2.6}, {"update", 2.6}},
			Counts: []Count{{Read, 5}, {"update", 5}, {"update_error", 3}, {ErrorCount, 3}}}, series.Some(5.0)},
		"rates of operations":         {Report{Kind: Interval, Rates: []Rate{{Read, 2}, {Write, 3}, {"read_byte", 99}, {"write_byte", 0}, {Query, 50}, {"cleanup", 1}}}, series.Some(5.0)},
		"reads known only in bytes":   {Report{Kind: Interval, Rates: []Rate{{"read_byte", 99}, {"fsync", 3}}}, series.Optional[float64]{}},
		"nothing":                     {Report{Kind: Interval}, series.Optional[float64]{}},
		"a histogram has no rate":     {Report{Kind: Histogram, Counts: []Count{{Read, 1}}}, series.Optional[float64]{}},
		"a count without a time":      {Report{Kind: Summary, Counts: []Count{{Transaction, 10}}}, series.Optional[float64]{}},
		"intended latencies are none": {Report{Kind: Interval, Rates: []Rate{{"read", 5}, {"intended_read", 5}}}, series.Some(5.0)},
	} {
		got, _ := throughFront(test.report)
		if got.Rate(Transaction) != test.want {
			t.Errorf("%s: %v, want %v", name, got.Rate(Transaction), test.want)
		}
	}
}
