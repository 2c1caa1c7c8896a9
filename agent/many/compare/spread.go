package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Spread summarises values: median, mean, smallest and largest. N is 0 without values.
type Spread struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`

	values []float64
}

// NewSpread summarises the known values.
func NewSpread(values []float64) Spread {
	v := slices.DeleteFunc(slices.Clone(values), func(x float64) bool { return !series.IsKnown(x) || math.IsInf(x, 0) })
	n := len(v)
	if n == 0 {
		return Spread{}
	}
	mean := 0.0
	for _, x := range v {
		mean += x / float64(n)
	}
	return Spread{N: n, Median: series.Median(v), Mean: mean, Min: slices.Min(v), Max: slices.Max(v), values: v}
}

// Text formats the average in a unit, with the extremes if there are several values.
func (s Spread) Text(u table.Unit, a Average) string {
	if s.N < 2 {
		return u.Format(s.Median)
	}
	return fmt.Sprintf("%s [%s … %s]", u.Format(s.Average(a)), u.Format(s.Min), u.Format(s.Max))
}

// Average is how several values are represented by one.
type Average string

// The averages. The median is the default, since one odd run does not move it.
const (
	ByMedian Average = "median"
	ByMean   Average = "mean"
)

// Note explains the cells of a table with several runs.
func (a Average) Note() string { return string(a) + " [smallest … largest] of the runs" }

// Average returns the median or the mean.
func (s Spread) Average(a Average) float64 {
	if a == ByMean {
		return s.Mean
	}
	return s.Median
}
