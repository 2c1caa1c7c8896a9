package series

import (
	"math"
	"slices"
	"sort"
)

// Union merges two rising axes. If they are equal, as those of two servers mostly
// are, it returns the first.
func Union(a, b []float64) []float64 {
	if len(b) == 0 || slices.Equal(a, b) {
		return a
	}
	merged := make([]float64, 0, max(len(a), len(b)))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			merged, a = append(merged, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			merged, b = append(merged, b[0]), b[1:]
		default:
			merged, a, b = append(merged, a[0]), a[1:], b[1:]
		}
	}
	return merged
}

// Spread returns values, which lie at the instants of own, at those of axis, which
// has all of them; unknown elsewhere. If the axes are equal, or there are no values,
// it returns values.
func Spread(axis, own, values []float64) []float64 {
	if len(axis) == len(own) || values == nil {
		return values
	}
	wide := make([]float64, len(axis))
	j := 0
	for i := range axis {
		wide[i] = Unknown()
		if j < len(own) && own[j] == axis[i] {
			wide[i] = values[j]
			j++
		}
	}
	return wide
}

// maxBreaks bounds the instants that Breaks returns: a gap is drawn no better with
// more.
const maxBreaks = 1000

// Breaks returns the instants that an axis lacks: those a step after another
// between two rows that are more than one and a half steps apart. A line over
// [Union] of both, with its values [Spread], has gaps there.
func Breaks(axis []float64, step float64) []float64 {
	var breaks []float64
	if !(step > 0) {
		return nil
	}
	for i := 1; i < len(axis); i++ {
		for at := axis[i-1] + step; axis[i]-at > step/2 && len(breaks) < maxBreaks; at += step {
			breaks = append(breaks, at)
		}
	}
	return breaks
}

// Step returns the usual distance of an axis' rows, unknown of one with fewer than
// two rows.
func Step(axis []float64) float64 {
	var steps []float64
	for i := 1; i < len(axis); i++ {
		steps = append(steps, axis[i]-axis[i-1])
	}
	return Median(steps)
}

// Span is a stretch of an axis, in seconds.
type Span struct{ From, To float64 }

// Bucket is the rows from Begin to End, End excluded, that are drawn as one.
type Bucket struct{ Begin, End int }

// Buckets groups the rows of an axis for drawing: those that lie in the same
// piece of the given width, counted from an instant, are one bucket. Pieces
// without a row have none. There is one bucket a row if width is not positive.
func Buckets(axis []float64, from, width float64) []Bucket {
	var buckets []Bucket
	piece := 0.0
	for i, x := range axis {
		at := math.Floor((x - from) / width)
		if n := len(buckets); n > 0 && at == piece && width > 0 {
			buckets[n-1].End = i + 1
		} else {
			buckets = append(buckets, Bucket{i, i + 1})
		}
		piece = at
	}
	return buckets
}

// Extremes returns the rows of a bucket with the smallest and the largest value,
// the earlier one first: a line thinned to them shows all that stands out. Both
// are the same row if they are equal, and -1 if no value is known.
func Extremes(values []float64, b Bucket) (first, second int) {
	low, high := -1, -1
	for i := b.Begin; i < b.End; i++ {
		v := values[i]
		if !IsKnown(v) {
			continue
		}
		if low < 0 || v < values[low] {
			low = i
		}
		if high < 0 || v > values[high] {
			high = i
		}
	}
	return min(low, high), max(low, high)
}

// Running returns the rows from begin to end, end excluded, that lie between 0 on a
// run's axis and the tool's end; +Inf if that is to come.
func Running(axis []float64, toolEnd float64) (begin, end int) {
	begin = sort.SearchFloat64s(axis, 0)
	end = sort.Search(len(axis), func(i int) bool { return axis[i] > toolEnd })
	return begin, max(begin, end)
}

// Median returns the median of the finite values, unknown if there are none.
func Median(values []float64) float64 {
	v := slices.DeleteFunc(slices.Clone(values), func(x float64) bool { return !IsKnown(x) || math.IsInf(x, 0) })
	if len(v) == 0 {
		return Unknown()
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// AnyKnown reports whether a column holds any value.
func AnyKnown(values []float64) bool { return slices.ContainsFunc(values, IsKnown) }
