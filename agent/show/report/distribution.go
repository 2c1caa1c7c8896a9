package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// maxDistributions bounds the lines of a plot.
const maxDistributions = colours

// DistributionPlots returns the percentile curve, and a bucket chart of each operation.
func DistributionPlots(all []review.Distribution) []*Plot {
	all = all[:min(len(all), maxDistributions)]
	if len(all) == 0 {
		return nil
	}
	curve := &Plot{
		Title: "Latency by percentile", Unit: "ms, upper bound of the bucket, both axes logarithmic",
		X: Axis{Title: "percentile"}, Y: Axis{Log: true},
	}
	most := uint64(0)
	for i := range all {
		curve.Lines = append(curve.Lines, PlotLine{Name: all[i].Operation, Points: curvePoints(all[i].Histogram)})
		most = max(most, all[i].Count)
	}
	curve.X.Ticks = []Tick{{0, "0 %"}, {share(0.5), "50 %"}}
	for p, nines := 0.9, ""; 1/(1-p) <= float64(most)*1.01 && len(nines) < 8; {
		curve.X.Ticks = append(curve.X.Ticks, Tick{share(p), percentName(nines)})
		nines += "9"
		p = 1 - math.Pow(10, -float64(len(nines)+1))
	}
	plots := []*Plot{curve}
	for i := range all {
		plots = append(plots, bucketPlot(&all[i]))
	}
	return plots
}

// percentName returns 90 %, 99 %, 99.9 % and so on.
func percentName(nines string) string {
	switch len(nines) {
	case 0:
		return "90 %"
	case 1:
		return "99 %"
	}
	return "99." + strings.TrimPrefix(nines, "9") + " %"
}

// share is the place of a share of the values on the axis.
func share(p float64) float64 { return -math.Log10(1 - p) }

// curvePoints are steps from bucket to bucket.
func curvePoints(h *histogram.Histogram) []Point {
	n, seen := float64(h.Count()), uint64(0)
	var points []Point
	add := func(x, y float64) { points = append(points, Point{X: x, Y: y, Low: y, High: y}) }
	from := 0.0
	for _, b := range h.Buckets() {
		seen += b.N
		to := share(min(float64(seen)/n, 1-0.5/n))
		high := b.High
		if math.IsInf(high, 1) {
			high = b.Low
		}
		// Steps that no drawing shows are left out.
		if high = max(high*1e3, 1e-6); len(points) == 0 || to-from > 0.002 || seen == uint64(n) {
			add(from, high)
			add(to, high)
			from = to
		}
	}
	return points
}

// bucketPlot counts in bins of one ratio, each bucket where its middle is.
func bucketPlot(d *review.Distribution) *Plot {
	bins := map[int]uint64{}
	for _, b := range d.Histogram.Buckets() {
		bins[histogram.Bin(b)] += b.N
	}
	line := PlotLine{Bars: true}
	for bin, n := range bins {
		y := 100 * float64(n) / float64(d.Count)
		low, high := histogram.BinBounds(bin)
		line.Points = append(line.Points, Point{
			X: low * 1e3, Width: high * 1e3, Y: y, Low: y, High: y,
		})
	}
	sortPoints(line.Points)
	return &Plot{Title: "Distribution of " + d.Operation, Unit: "% of the operations in each bar; bars differ by 10 %",
		X: Axis{Title: "latency, ms", Log: true}, Lines: []PlotLine{line}}
}

// DistributionPlots returns the drawings of all distributions of the run, the tool's and the
// servers'.
func (r *Report) DistributionPlots() []*Plot {
	return append(DistributionPlots(r.AllDistributions()), r.HeatMaps()...)
}

// HeatMaps show how the distributions changed over time, if the tool prints a histogram of each interval; none for a
// run with a single slice of time.
func (r *Report) HeatMaps() []*Plot {
	var plots []*Plot
	for _, operation := range slices.Sorted(maps.Keys(r.OverTime)) {
		if p := heatMap(operation, r.OverTime[operation]); p != nil {
			plots = append(plots, p)
		}
	}
	return plots
}

// heatMap draws a distribution over time: the strength of a cell is the square root of its
// share of the fullest one, so that few values are seen beside many.
func heatMap(operation string, o *histogram.OverTime) *Plot {
	if len(o.Slices) < 2 {
		return nil
	}
	// Slices need not be equally long: what is compared are values per second.
	most, longest := 0.0, 0.0
	for _, s := range o.Slices {
		longest = max(longest, s.To-s.From)
		for _, n := range s.Bins {
			if s.To > s.From {
				most = max(most, float64(n)/(s.To-s.From))
			}
		}
	}
	p := &Plot{Title: "Latency of " + operation + " over time",
		Unit: "ms, logarithmic", X: Axis{Title: "elapsed seconds"}, Y: Axis{Log: true}}
	for _, s := range o.Slices {
		for _, bin := range slices.Sorted(maps.Keys(s.Bins)) {
			if n := s.Bins[bin]; n > 0 && s.To > s.From {
				low, high := histogram.BinBounds(bin)
				p.Cells = append(p.Cells,
					PlotCell{s.From, low * 1e3, s.To, high * 1e3, 0.05 + 0.95*math.Sqrt(float64(n)/(s.To-s.From)/most)})
			}
		}
	}
	if len(p.Cells) == 0 {
		return nil
	}
	p.Notes = []string{fmt.Sprintf("the strongest cell has %s values per second, a column is up to %s long; a value is drawn where the middle of its bucket is",
		table.Digits.Format(most), table.Duration(longest))}
	return p
}
