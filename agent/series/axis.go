package series

import (
	"math"
	"slices"
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
// has all of them; unknown elsewhere. If the axes are equal it returns values.
func Spread(axis, own, values []float64) []float64 {
	if len(axis) == len(own) {
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

// Span is a stretch of an axis, in seconds.
type Span struct{ From, To float64 }

// Spans returns the stretches of an axis whose rows are marked. A row is about
// the time since the previous one, the first about that since 0: the warm-up of
// a run, whose intervals end at the axis' instants.
func Spans(axis []float64, marked []bool) []Span {
	var spans []Span
	for i, is := range marked {
		if !is {
			continue
		}
		from := 0.0
		if i > 0 {
			from = axis[i-1]
		}
		if n := len(spans); n > 0 && spans[n-1].To >= from {
			spans[n-1].To = axis[i]
		} else {
			spans = append(spans, Span{from, axis[i]})
		}
	}
	return spans
}

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

// Stats are what a column's known values come to.
type Stats struct {
	Count         int
	Sum, Min, Max float64
	// MaxAt is the row of the first largest value, -1 if there is none.
	MaxAt int
}

// StatsOf returns the statistics of the finite values. Without any, Min and Max
// are unknown.
func StatsOf(values []float64) Stats {
	s := Stats{Min: Unknown(), Max: Unknown(), MaxAt: -1}
	for i, v := range values {
		if !IsKnown(v) || math.IsInf(v, 0) {
			continue
		}
		if s.Count == 0 || v < s.Min {
			s.Min = v
		}
		if s.Count == 0 || v > s.Max {
			s.Max, s.MaxAt = v, i
		}
		s.Count++
		s.Sum += v
	}
	return s
}

// Mean returns the mean of the values, unknown if there are none.
func (s Stats) Mean() float64 {
	if s.Count == 0 {
		return Unknown()
	}
	return s.Sum / float64(s.Count)
}

// AnyKnown reports whether a column holds any value.
func AnyKnown(values []float64) bool { return slices.ContainsFunc(values, IsKnown) }
