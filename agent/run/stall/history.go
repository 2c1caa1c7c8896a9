package stall

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// history is the last values of the usual intervals, also in order.
type history struct {
	values, sorted []float64
	next           int
}

func (h *history) n() int { return len(h.values) }

// add adds a value, in the place of the oldest one if there are enough.
func (h *history) add(v float64) {
	if len(h.values) == window {
		i, _ := slices.BinarySearch(h.sorted, h.values[h.next])
		h.sorted = slices.Delete(h.sorted, i, i+1)
		h.values[h.next] = v
		h.next = (h.next + 1) % window
	} else {
		h.values = append(h.values, v)
	}
	i, _ := slices.BinarySearch(h.sorted, v)
	h.sorted = slices.Insert(h.sorted, i, v)
}

// median is unknown without values.
func (h *history) median() float64 {
	n := len(h.sorted)
	if n == 0 {
		return series.Unknown()
	}
	return (h.sorted[(n-1)/2] + h.sorted[n/2]) / 2
}

// deviation bounds the standard deviation from above, by the median distance from the median, which dips do not change.
// The fewer values there are, the less is known.
func (h *history) deviation() float64 {
	median := h.median()
	distances := make([]float64, 0, window)
	for _, v := range h.sorted {
		distances = append(distances, max(v-median, median-v))
	}
	slices.Sort(distances)
	n := len(distances)
	if n == 0 {
		return series.Unknown()
	}
	return 1.4826 * (1 + 4/float64(n)) * (distances[(n-1)/2] + distances[n/2]) / 2
}
