package review

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
)

// Distribution is how the latencies of one operation are distributed, from the tool's
// own histogram.
type Distribution struct {
	Operation string `json:"operation"`
	// Count is the number of values in the histogram, Of the number of operations in the run.
	Count uint64                   `json:"count"`
	Of    series.Optional[float64] `json:"operations,omitzero"`
	// Percentiles are known within the bounds of a bucket.
	Percentiles []Percentile `json:"percentiles"`
	Buckets     []Bucket     `json:"buckets"`

	Histogram *histogram.Histogram `json:"-"`
}

// Percentile is a percentile of latencies with the bounds between which it lies.
type Percentile struct {
	Stat string  `json:"stat"`
	Low  float64 `json:"low_seconds"`
	// High is absent if the bucket has no upper bound.
	High series.Optional[float64] `json:"high_seconds,omitzero"`
}

// Bucket counts latencies between two bounds.
type Bucket struct {
	Low  float64                  `json:"low_seconds"`
	High series.Optional[float64] `json:"high_seconds,omitzero"`
	N    uint64                   `json:"count"`
}

type distributionStat struct {
	name  string
	share float64
}

var distributionStats = []distributionStat{{"p50", .5}, {"p75", .75}, {"p90", .9}, {"p95", .95}, {"p99", .99}, {"p99.9", .999}, {"p99.99", .9999}, {"max", 1}}

func bounded(v float64) series.Optional[float64] {
	if math.IsInf(v, 0) {
		return series.Optional[float64]{}
	}
	return series.Some(v)
}

// distributions returns the distributions of a summary.
func distributions(s *ingest.Summary) []Distribution {
	if s == nil {
		return nil
	}
	var all []Distribution
	for _, d := range s.Histograms {
		if d.Count() == 0 {
			continue
		}
		one := newDistribution(d.Operation, d.Histogram)
		if n := s.Report().Count(d.Operation); n.Known {
			one.Of = series.Some(float64(n.Value))
		}
		all = append(all, one)
	}
	return all
}

func newDistribution(name string, h *histogram.Histogram) Distribution {
	d := Distribution{Operation: name, Count: h.Count(), Percentiles: percentiles(h, distributionStats), Histogram: h}
	for _, b := range h.Buckets() {
		d.Buckets = append(d.Buckets, Bucket{b.Low, bounded(b.High), b.N})
	}
	return d
}

// percentiles returns the percentiles for which there are enough values: with too few, a percentile would be the
// maximum.
func percentiles(h *histogram.Histogram, stats []distributionStat) []Percentile {
	var all []Percentile
	for _, p := range stats {
		if r, ok := h.Quantile(p.share); ok && (p.share == 1 || float64(h.Count())*(1-p.share) >= 1) {
			all = append(all, Percentile{p.name, r.Low, bounded(r.High)})
		}
	}
	return all
}

// DistributionTable has a row for each percentile.
func DistributionTable(all []Distribution) *table.Table {
	t := table.New(table.Named("operation", "percentile", "at least ms", "at most ms", "known within")...)
	for i := range all {
		for _, p := range all[i].Percentiles {
			within := table.Cell{}
			if p.High.Known {
				within = table.Text(table.Milliseconds.Signed(p.High.Value - p.Low))
				if p.Low > 0 {
					within = table.Text(table.Milliseconds.Signed(p.High.Value-p.Low) + ", " + ratioText(p.High.Value-p.Low, p.Low))
				}
			}
			t.Add(table.Text(all[i].Operation), table.Text(p.Stat),
				table.Number(p.Low, table.Milliseconds), table.Optional(p.High, table.Milliseconds), within)
		}
	}
	return t
}

// DistributionNotes name what the histograms do not cover.
func DistributionNotes(all []Distribution) []string {
	var notes []string
	for i := range all {
		// sysbench counts an event that ends while it prints in one of the two only.
		if d := &all[i]; d.Of.Known && math.Abs(d.Of.Value-float64(d.Count)) > 0.01*d.Of.Value {
			notes = append(notes, fmt.Sprintf(
				"the histogram of %s counts %s of %s operations: the tool reset its counts at a checkpoint, or logged a "+
					"sample", d.Operation, table.Count.Format(float64(d.Count)), table.Count.Format(d.Of.Value)))
		}
	}
	return notes
}

// DistributionTable returns their percentiles, with notes on what they do not cover.
func (r *Run) DistributionTable() (*table.Table, []string) {
	all := r.AllDistributions()
	return DistributionTable(all), DistributionNotes(all)
}

// AllDistributions returns the distributions of the tool and of the servers.
func (r *Run) AllDistributions() []Distribution {
	if r.Statements == nil || r.Statements.Distribution == nil {
		return r.Distributions
	}
	return append(slices.Clone(r.Distributions), *r.Statements.Distribution)
}

// ratioText prints a width as a share of a value.
func ratioText(width, of float64) string { return table.Digits.Format(100*width/of) + " %" }
