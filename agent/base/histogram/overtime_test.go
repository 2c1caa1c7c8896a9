package histogram

import (
	"testing"
)

// However long a run is, each value is counted once, in a slice of its time.
func TestOverTime(t *testing.T) {
	for _, intervals := range []int{1, 119, 120, 121, 1000, 10_000} {
		var o OverTime
		total := uint64(0)
		for i := range intervals {
			n := uint64(i%5 + 1)
			o.Add(float64(i), float64(i+1), New(Bucket{0.001, 0.0011, n}, Bucket{0.1, 0.11, 1}))
			total += n + 1
		}
		if len(o.Slices) > maxSlices || len(o.Slices) < min(intervals, maxSlices/2) {
			t.Errorf("%d intervals: %d slices", intervals, len(o.Slices))
		}
		seen, at := uint64(0), 0.0
		for _, s := range o.Slices {
			if s.From != at || s.To <= s.From || len(s.Bins) != 2 {
				t.Fatalf("%d intervals: slice %+v after %v", intervals, s, at)
			}
			sum := uint64(0)
			for bin, n := range s.Bins {
				if low, high := BinBounds(bin); !(low < 0.0011 && high > 0.001) && !(low < 0.11 && high > 0.1) {
					t.Errorf("bin from %v to %v", low, high)
				}
				sum += n
			}
			if sum != s.N {
				t.Errorf("%d of %d values", sum, s.N)
			}
			seen, at = seen+s.N, s.To
		}
		if seen != total || at != float64(intervals) {
			t.Errorf("%d intervals: %d of %d values until %v", intervals, seen, total, at)
		}
	}
	// Intervals that were not recorded leave a gap.
	var o OverTime
	for i := range 1000 {
		o.Add(float64(i), float64(i+1), New(Bucket{0.001, 0.0011, 1}))
	}
	o.Add(5000, 5001, New(Bucket{0.001, 0.0011, 1}))
	if last := o.Slices[len(o.Slices)-1]; last.From != 5000 || last.N != 1 {
		t.Errorf("after a gap: %+v", last)
	}
}
