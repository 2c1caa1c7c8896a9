package histogram

import (
	"math"
	"slices"
)

// BinsPerDecade is the number of bins for each factor of ten, in an OverTime and in drawings: the
// bounds of a bin differ by 10 %.
const BinsPerDecade = 24

// Bin returns the bin that contains the middle of a bucket. A bucket without an upper bound belongs
// to the bin of its lower bound.
func Bin(b Bucket) int {
	high := b.High
	if math.IsInf(high, 1) {
		high = b.Low
	}
	low := max(b.Low, high/2)
	return int(math.Floor(math.Log10(max(math.Sqrt(low*high), 1e-9)) * BinsPerDecade))
}

// BinBounds returns the bounds of a bin in seconds.
func BinBounds(bin int) (low, high float64) {
	return math.Pow(10, float64(bin)/BinsPerDecade), math.Pow(10, float64(bin+1)/BinsPerDecade)
}

// maxSlices bounds the slices of an OverTime.
const maxSlices = 120

// OverTime is a distribution over time. Its memory is bounded: when it has too many slices, it
// joins them in pairs. The zero value is empty.
type OverTime struct {
	Slices []Slice
	// joined is the number of intervals in a full slice, whole the number in the last slice.
	joined, whole int
}

// Slice counts the values from one time to another, in seconds, by bin.
type Slice struct {
	From, To float64
	N        uint64
	Bins     map[int]uint64
}

// Add adds the values of one interval. Intervals are added in the order in which they end.
func (o *OverTime) Add(from, to float64, h *Histogram) {
	if o.joined == 0 {
		o.joined = 1
	}
	if n := len(o.Slices); n == 0 || o.whole >= o.joined || from > o.Slices[n-1].To+(to-from)/2 {
		if n == maxSlices {
			o.halve()
		}
		o.Slices = append(o.Slices, Slice{From: from, To: to, Bins: map[int]uint64{}})
		o.whole = 0
	}
	last := &o.Slices[len(o.Slices)-1]
	last.To = max(last.To, to)
	o.whole++
	for _, b := range h.Buckets() {
		last.Bins[Bin(b)] += b.N
		last.N += b.N
	}
}

// halve joins the slices in pairs.
func (o *OverTime) halve() {
	half := o.Slices[:0]
	for i := 0; i < len(o.Slices); i += 2 {
		s := o.Slices[i]
		if i+1 < len(o.Slices) {
			next := o.Slices[i+1]
			s.To, s.N = next.To, s.N+next.N
			for bin, n := range next.Bins {
				s.Bins[bin] += n
			}
		}
		half = append(half, s)
	}
	clear(o.Slices[len(half):])
	o.Slices = slices.Clip(half)
	o.joined *= 2
	o.whole = o.joined
}
