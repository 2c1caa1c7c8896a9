package compare

import (
	"math"

	"github.com/aclements/go-moremath/mathx"
	"github.com/aclements/go-moremath/stats"
)

// Separation is what repeated values of several groups allow to conclude about their order. The values are compared as
// logarithms, with one spread for all groups: two repeats alone show too little of it.
type Separation struct {
	// Factor is by how much the values of one group differ at most: the largest divided by the smallest.
	Factor float64
	// P is the probability of differences between the groups at least as large if all were equal: analysis of variance.
	// It is unknown if no group has repeats.
	P float64

	deviation, freedom float64
	noise              float64
	repeats            []float64
	means              []float64
}

const (
	// proven is the probability of an order by chance below which it stands out.
	proven = 0.05
	// least is the share of the largest value below which values count as equal: 0 has no logarithm.
	least = 1e-3
)

// Separate compares the values of groups. Each must have one. noise is a factor by which values may differ for
// a known reason, 1 without one. It counts only without repeats, which show the spread themselves.
func Separate(groups []Spread, noise float64) Separation {
	s := Separation{Factor: 1, P: math.NaN(), noise: max(1, noise)}
	largest := 0.0
	for _, g := range groups {
		largest = max(largest, g.Max)
	}
	within, between, all, n := 0.0, 0.0, 0.0, 0.0
	for _, g := range groups {
		mean, size := 0.0, float64(g.N)
		for _, v := range g.values {
			mean += math.Log(max(v, least*largest)) / size
		}
		for _, v := range g.values {
			d := math.Log(max(v, least*largest)) - mean
			within += d * d
		}
		if g.N > 1 && largest > 0 {
			s.Factor = max(s.Factor, g.Max/max(g.Min, least*largest))
		}
		s.means, s.repeats = append(s.means, mean), append(s.repeats, size)
		all, n = all+mean*size, n+size
	}
	for i, mean := range s.means {
		between += s.repeats[i] * (mean - all/n) * (mean - all/n)
	}
	if s.freedom = n - float64(len(groups)); s.freedom <= 0 || len(groups) < 2 {
		return s
	}
	s.deviation = math.Sqrt(within / s.freedom)
	of := float64(len(groups) - 1)
	switch f := between / of / (within / s.freedom); {
	case within == 0 && between == 0:
		s.P = 1
	case within == 0:
		s.P = 0
	default:
		s.P = mathx.BetaInc(s.freedom/(s.freedom+of*f), s.freedom/2, of/2)
	}
	return s
}

// IsRepeated reports whether groups have repeats, so that their spread is known.
func (s *Separation) IsRepeated() bool { return s.freedom > 0 }

// HasOrder reports whether an order of the groups stands out from their spread.
func (s *Separation) HasOrder() bool {
	if s.IsRepeated() {
		return s.P <= proven
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, m := range s.means {
		low, high = min(low, m), max(high, m)
	}
	return s.noise <= 1 || high-low > math.Log(s.noise)
}

// Apart reports whether two groups differ by more than their spread.
func (s *Separation) Apart(i, j int) bool {
	d := math.Abs(s.means[i] - s.means[j])
	if !s.IsRepeated() {
		return d > math.Log(s.noise)
	}
	width := s.deviation * math.Sqrt(1/s.repeats[i]+1/s.repeats[j])
	if width == 0 {
		return d > 0
	}
	return 2*stats.TDist{V: s.freedom}.CDF(-d/width) <= proven
}

// mostRepeats is how many repeats are worth a proposal.
const mostRepeats = 20

// Repeats returns how many repeats may show the largest difference that was seen; 0 if that takes too many.
func (s *Separation) Repeats() int {
	low, high, now := math.Inf(1), math.Inf(-1), 0.0
	for i, m := range s.means {
		low, high, now = min(low, m), max(high, m), max(now, s.repeats[i])
	}
	for n := now + 1; n <= mostRepeats; n++ {
		t := (high - low) / (s.deviation * math.Sqrt(2/n))
		chance := 2 * stats.TDist{V: (n - 1) * float64(len(s.means))}.CDF(-t) * float64(len(s.means))
		if chance <= proven {
			return int(n)
		}
	}
	return 0
}
