package histogram

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The range of a quantile contains the value with that rank for any buckets, merged layouts
// included.
func TestQuantileHasTheValue(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for range 50 {
		var values []float64
		var all []*Histogram
		for _, width := range []float64{0.001, 0.0037, 0.02} {
			var buckets []Bucket
			for range 200 {
				v := random.ExpFloat64() * 0.05
				low := math.Floor(v/width) * width
				values = append(values, v)
				buckets = append(buckets, Bucket{low, low + width, 1})
			}
			all = append(all, New(buckets...))
		}
		h := Merge(all...)
		slices.Sort(values)
		for _, q := range []float64{0, 0.01, 0.5, 0.95, 0.99, 0.999, 1} {
			rank := max(1, int(math.Floor(q*float64(len(values))+0.5)))
			r, ok := h.Quantile(q)
			if v := values[rank-1]; !ok || v < r.Low || v > r.High {
				t.Errorf("p%v: %v is not within %v", q*100, v, r)
			}
		}
		if h.Count() != uint64(len(values)) {
			t.Errorf("%d of %d values", h.Count(), len(values))
		}
	}
}

func TestEmpty(t *testing.T) {
	var h *Histogram
	if _, ok := h.Quantile(0.5); ok || h.Count() != 0 || len(h.Buckets()) != 0 || Merge(nil, New(Bucket{1, 2, 0})).Count() != 0 {
		t.Error("nothing has a value")
	}
}

func TestCountUpTo(t *testing.T) {
	h := New(Bucket{0.001, 0.002, 3}, Bucket{0.002, 0.004, 2}, Bucket{0.5, math.Inf(1), 1})
	for _, c := range []struct {
		bound float64
		want  uint64
	}{{0.001, 0}, {0.002, 3}, {0.003, 3}, {0.004, 5}, {100, 5}, {math.Inf(1), 6}} {
		if got := h.CountUpTo(c.bound); got != c.want {
			t.Errorf("%d values up to %v, want %d", got, c.bound, c.want)
		}
	}
}
