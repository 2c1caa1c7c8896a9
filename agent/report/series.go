package report

import (
	"math"
	"slices"
)

// Points are the values of one line at places on an axis. NaN is a gap.
type Points struct{ X, Y []float64 }

// buckets is into how many pieces a line is cut for drawing: about one for two
// pixels.
const buckets = 440

// thin returns at most two points for each of n equal pieces of the axis from x0
// to x1: the smallest and the largest, in their order. What stands out in a
// long run stays to be seen. A piece without a value is a gap.
func (p Points) thin(x0, x1 float64, n int) Points {
	if len(p.X) <= 2*n {
		return p
	}
	var out Points
	width := (x1 - x0) / float64(n)
	for i := 0; i < len(p.X); {
		piece := math.Floor((p.X[i] - x0) / width)
		low, high := -1, -1
		first := i
		for ; i < len(p.X) && math.Floor((p.X[i]-x0)/width) == piece; i++ {
			if math.IsNaN(p.Y[i]) {
				continue
			}
			if low < 0 || p.Y[i] < p.Y[low] {
				low = i
			}
			if high < 0 || p.Y[i] > p.Y[high] {
				high = i
			}
		}
		switch {
		case low < 0:
			out.add(p.X[first], math.NaN())
		case low == high:
			out.add(p.X[low], p.Y[low])
		default:
			a, b := min(low, high), max(low, high)
			out.add(p.X[a], p.Y[a])
			out.add(p.X[b], p.Y[b])
		}
	}
	return out
}

func (p *Points) add(x, y float64) {
	p.X, p.Y = append(p.X, x), append(p.Y, y)
}

// finite returns the values that are there.
func finite(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// mean of the values that are there; NaN of none.
func mean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sum += v
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// median of the values that are there; NaN of none.
func median(values []float64) float64 {
	v := finite(values)
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// largest returns the place of the largest value; false of none.
func largest(values []float64) (int, bool) {
	at := -1
	for i, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) && (at < 0 || v > values[at]) {
			at = i
		}
	}
	return at, at >= 0
}

// some reports whether any value is there.
func some(values []float64) bool {
	_, ok := largest(values)
	return ok
}

// scaled returns values times factor.
func scaled(values []float64, factor float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v * factor
	}
	return out
}
