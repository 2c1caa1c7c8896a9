// Package histogram merges the latency histograms that benchmark tools print and computes only what
// they prove. A bucket gives the bounds of its values; the package never assumes that a value is
// known more exactly.
package histogram

import (
	"cmp"
	"math"
	"slices"
)

// Bucket counts values from Low to High, both included, in seconds. High is +Inf if
// the values have no upper bound.
type Bucket struct {
	Low, High float64
	N         uint64
}

// Histogram is a distribution of latencies. Its buckets may overlap if histograms of
// different layouts were merged. The zero value is empty.
type Histogram struct {
	// buckets are in the order of Low, then High, and differ in one of these.
	buckets []Bucket
}

// New returns a histogram of these buckets, in any order. It drops empty buckets.
func New(buckets ...Bucket) *Histogram {
	h := &Histogram{}
	h.add(buckets)
	return h
}

// Merge returns a histogram of the values of several histograms. It skips nil. The result is exact:
// it adds equal buckets and keeps the others as they are.
func Merge(all ...*Histogram) *Histogram {
	var buckets []Bucket
	for _, h := range all {
		if h != nil {
			buckets = append(buckets, h.buckets...)
		}
	}
	return New(buckets...)
}

func (h *Histogram) add(buckets []Bucket) {
	all := append(slices.Clone(h.buckets), buckets...)
	slices.SortFunc(all, func(a, b Bucket) int { return cmp.Or(cmp.Compare(a.Low, b.Low), cmp.Compare(a.High, b.High)) })
	h.buckets = all[:0]
	for _, b := range all {
		n := len(h.buckets)
		switch {
		case b.N == 0:
		case n > 0 && h.buckets[n-1].Low == b.Low && h.buckets[n-1].High == b.High:
			h.buckets[n-1].N += b.N
		default:
			h.buckets = append(h.buckets, b)
		}
	}
}

// Buckets returns the buckets with values, in the order of their bounds. The caller
// must not change them.
func (h *Histogram) Buckets() []Bucket {
	if h == nil {
		return nil
	}
	return h.buckets
}

// Count returns the number of values, 0 if h is nil.
func (h *Histogram) Count() uint64 {
	n := uint64(0)
	for _, b := range h.Buckets() {
		n += b.N
	}
	return n
}

// Equal reports whether two histograms have the same buckets.
func (h *Histogram) Equal(o *Histogram) bool { return slices.Equal(h.Buckets(), o.Buckets()) }

// Range bounds a value: it lies between Low and High, both included.
type Range struct{ Low, High float64 }

// Width returns the length of the range; +Inf if there is no upper bound.
func (r Range) Width() float64 { return r.High - r.Low }

// Quantile returns the range of the smallest value that a share q (0 to 1) of all values does not
// exceed; ok is false if the histogram is empty. The rank is rounded as in HdrHistogram and
// sysbench.
//
// Low is the lower bound with this rank among all lower bounds, High the upper bound with this rank
// among all upper bounds. This holds where buckets overlap, too.
func (h *Histogram) Quantile(q float64) (r Range, ok bool) {
	n := h.Count()
	if n == 0 {
		return Range{}, false
	}
	rank := uint64(max(1, math.Floor(min(max(q, 0), 1)*float64(n)+0.5)))
	return Range{h.ranked(rank, func(b Bucket) float64 { return b.Low }, true),
		h.ranked(rank, func(b Bucket) float64 { return b.High }, false)}, true
}

// ranked returns the bound with the given rank, starting at 1. The buckets are sorted by their
// lower bounds; they are sorted by their upper bounds only if they do not overlap.
func (h *Histogram) ranked(rank uint64, bound func(Bucket) float64, sorted bool) float64 {
	all := h.buckets
	if !sorted && !slices.IsSortedFunc(all, func(a, b Bucket) int { return cmp.Compare(bound(a), bound(b)) }) {
		all = slices.Clone(all)
		slices.SortFunc(all, func(a, b Bucket) int { return cmp.Compare(bound(a), bound(b)) })
	}
	seen := uint64(0)
	for _, b := range all {
		if seen += b.N; seen >= rank {
			return bound(b)
		}
	}
	return bound(all[len(all)-1])
}

// CountUpTo returns how many values are certainly at or below a bound: the values of buckets that
// end there or below.
func (h *Histogram) CountUpTo(bound float64) uint64 {
	n := uint64(0)
	for _, b := range h.Buckets() {
		if b.High <= bound*(1+1e-9) {
			n += b.N
		}
	}
	return n
}

// Ladder are the upper bounds of all exposed histograms, in seconds: six for each factor of ten,
// from 10 µs to 100 s. Every run has the same bounds, so histograms of several runs can be added.
var Ladder = ladder()

func ladder() []float64 {
	var bounds []float64
	for exponent := -5; exponent < 2; exponent++ {
		for _, digits := range []float64{1, 1.5, 2, 3, 5, 7} {
			v := digits * math.Pow10(exponent)
			bounds = append(bounds, math.Round(v*1e9)/1e9)
		}
	}
	return append(bounds, 100)
}
