package stall

import (
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Watched is the latency of a run whose rise is a dip: the same operation and statistic from the first interval that has
// a headline latency on.
type Watched struct {
	tool.Latency
	Quantile float64
	known    bool
}

// Choose takes the headline latency if none was chosen yet.
func (w *Watched) Choose(headline series.Optional[tool.Latency]) {
	if w.known || !headline.Known {
		return
	}
	w.known, w.Latency = true, headline.Value
	percent, ok := strings.CutPrefix(w.Stat, "p")
	q, err := strconv.ParseFloat(percent, 64)
	if ok && err == nil && q > 0 && q < 100 {
		w.Quantile = q / 100
	}
}

// IsChosen reports whether a latency was chosen.
func (w *Watched) IsChosen() bool { return w.known }

// Value returns the value of the chosen latency among others, unknown if it is not there or no percentile.
func (w *Watched) Value(all []tool.Latency) float64 {
	for _, l := range all {
		if w.Quantile > 0 && l.Operation == w.Operation && l.Stat == w.Stat {
			return l.Seconds
		}
	}
	return series.Unknown()
}

// Follow adds an interval that ends at elapsed seconds on the run's axis. It reports whether a dip is in progress.
func (d *Detector) Follow(w *Watched, elapsed float64, r *tool.Report) bool {
	w.Choose(r.Headline())
	i := Interval{From: series.Unknown(), To: elapsed, Rate: series.Unknown(), Latency: w.Value(r.Latencies), Quantile: w.Quantile}
	if r.IntervalSeconds.Known {
		i.From = elapsed - r.IntervalSeconds.Value
	}
	for _, rate := range r.Rates {
		if rate.Operation == tool.Transaction {
			i.Rate = rate.PerSecond
		}
	}
	return d.Add(i)
}
