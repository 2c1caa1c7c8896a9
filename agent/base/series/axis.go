package series

import (
	"math"
	"slices"
	"sort"
)

// Union merges two rising axes. If both are equal, which is usual for two servers, it returns the
// first.
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

// Spread moves values from their own axis to a larger one that contains all instants of own. Rows
// that own lacks are unknown. It returns values itself if the axes have the same length or values
// is nil.
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

// maxBreaks limits how many instants Breaks returns. More do not improve the drawing of a gap.
const maxBreaks = 1000

// Breaks returns the instants missing on an axis: one for each step between two rows that are more
// than one and a half steps apart. A line over the [Union] of both, with its values [Spread], has
// gaps there.
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

// Step returns the median distance between rows of an axis, unknown if it has fewer than two rows.
func Step(axis []float64) float64 {
	var steps []float64
	for i := 1; i < len(axis); i++ {
		steps = append(steps, axis[i]-axis[i-1])
	}
	return Median(steps)
}

// Span is a part of an axis, in seconds.
type Span struct{ From, To float64 }

// Bucket is a range of rows, from Begin to End excluded, that is drawn as one.
type Bucket struct{ Begin, End int }

// Buckets groups the rows of an axis for drawing. The axis is divided into pieces of the given
// width that start at from; all rows in one piece are a bucket. Empty pieces have no bucket. If
// width is not positive, each row is a bucket.
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

// Extremes returns the rows of a bucket with the smallest and the largest value, the earlier row
// first. A line reduced to these rows still shows every peak. Both are the same row if all values
// are equal, and -1 if no value is known.
func Extremes(values []float64, b Bucket) (first, second int) {
	low, high := -1, -1
	for i := b.Begin; i < b.End; i++ {
		switch v := values[i]; {
		case low < 0 && IsKnown(v):
			low, high = i, i
		case low < 0:
		case v < values[low]:
			low = i
		case v > values[high]:
			high = i
		}
	}
	return min(low, high), max(low, high)
}

// Running returns the rows (end excluded) from 0 on a run's axis to the tool's end. toolEnd is +Inf
// while the tool is running.
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
