package group

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// summary returns a summary of these latencies.
func summary(latencies []float64, seconds float64) *tool.Report {
	r := &tool.Report{Kind: tool.Summary, ElapsedSeconds: series.Some(seconds)}
	r.AddCount(tool.Transaction, uint64(len(latencies)))
	r.AddRate(tool.Transaction, float64(len(latencies))/seconds)
	low, high, sum := math.Inf(1), 0.0, 0.0
	for _, l := range latencies {
		low, high, sum = min(low, l), max(high, l), sum+l
	}
	if len(latencies) > 0 {
		r.AddLatency(tool.Transaction, "min", low)
		r.AddLatency(tool.Transaction, "avg", sum/float64(len(latencies)))
		r.AddLatency(tool.Transaction, "max", high)
		r.AddLatency(tool.Transaction, "p95", high)
	}
	return r
}

// The group's count, minimum, mean and maximum are what a single generator would have reported for
// all operations. The order of the reports does not matter.
func TestCombineSummaries(t *testing.T) {
	for range 500 {
		var all []float64
		var parts []*tool.Report
		for range 1 + rand.IntN(6) {
			var own []float64
			for range rand.IntN(50) {
				own = append(own, rand.ExpFloat64())
			}
			all = append(all, own...)
			parts = append(parts, summary(own, 10))
		}
		if len(all) == 0 {
			continue
		}
		got, want := Combine(parts), summary(all, 10)
		rand.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		near := cmpopts.EquateApprox(1e-12, 1e-12)
		if d := cmp.Diff(got, Combine(parts), near); d != "" {
			t.Fatal(d)
		}
		for _, stat := range []string{"min", "avg", "max"} {
			if d := cmp.Diff(want.Latency(tool.Transaction, stat), got.Latency(tool.Transaction, stat), near); d != "" {
				t.Fatal(stat, d)
			}
		}
		if d := cmp.Diff(want.Rates, got.Rates, near); d != "" || !cmp.Equal(want.Counts, got.Counts) {
			t.Fatal(d, got.Counts)
		}
	}
}

func TestPercentilesAreTheWorst(t *testing.T) {
	got := Combine([]*tool.Report{summary([]float64{1, 2}, 1), summary([]float64{7}, 1)})
	if got.Latency(tool.Transaction, "p95").Known || got.Latency(tool.Transaction, tool.Worst("p95")).Value != 7 {
		t.Errorf("%v", got.Latencies)
	}
	if l := got.Headline(); l.Value.Stat != "p95_worst" || tool.StatName(l.Value.Stat) != "worst generator's p95" {
		t.Errorf("headline %v", l)
	}
	// The combination of one report is the report.
	got = Combine([]*tool.Report{summary([]float64{1, 2}, 1)})
	if !got.Latency(tool.Transaction, "p95").Known {
		t.Errorf("%v", got.Latencies)
	}
}

func TestSplitReadsWhatWasAppended(t *testing.T) {
	for _, text := range []string{"", "x", "[ 1s ] thds: 4", "3> nested"} {
		line := AppendLine(nil, 12, Stderr, []byte(text))
		n, mark, got, ok := Split(line[:len(line)-1])
		if !ok || n != 12 || mark != Stderr || string(got) != text {
			t.Errorf("%q: %d %c %q %v", line, n, mark, got, ok)
		}
	}
	for _, bad := range []string{"", ">", "> x", "0> x", "-1> x", "+1> x", "1 > x", "1>x", "9999999> x"} {
		if _, _, _, ok := Split([]byte(bad)); ok {
			t.Errorf("%q is no line of the journal", bad)
		}
	}
}
