package analysis

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// The parameters of Levels. Windows of this many values overlap by half. A candidate is a change if Student's test of
// the levels on both sides is below weak, and remains one if it is below strong once its weaker neighbours are gone.
// The share noisy of pure noise series is taken for series with changes.
const (
	window       = 50
	weak, strong = 0.01, 0.001
	noisy        = 0.0075
	shuffles     = 399
)

// Levels divides values that do not depend on their predecessors, such as those of runs
// over months, where their mean changes. Without a change there is one part. The same
// values always give the same parts.
//
// The search is E-divisive with the energy statistic (Matteson and James: A nonparametric
// approach for multiple change point analysis of multivariate data, JASA 109, 2014) in
// windows, with Student's test for each piece and a merging of weak changes, as in Hunter
// and Apache Otava (Fleming et al.: Hunter, ICPE 2023,
// https://doi.org/10.1145/3578244.3583719). Student's test takes the best of many places in
// noise for a change too often, so a permutation test decides first whether the series
// has any change at all.
//
// Values of one run depend on each other: [Parts] is for these.
func Levels(values []float64) []Part {
	changes := mergeWeak(values, splitWindows(values))
	if len(changes) > 0 && isNoise(values) {
		changes = nil
	}
	var parts []Part
	begin := 0
	for _, c := range append(slices.Clone(changes), len(values)) {
		if c > begin {
			parts = append(parts, Part{begin, c, mean(values[begin:c])})
		}
		begin = c
	}
	return parts
}

// splitWindows returns the weak changes, in the order of time.
func splitWindows(values []float64) []int {
	var changes []int
	for start := 0; start < len(values); {
		end := min(start+window, len(values))
		found := divide(values[start:end])
		last := 0
		for _, c := range found {
			last = max(last, start+c)
			if !slices.Contains(changes, start+c) {
				changes = append(changes, start+c)
			}
		}
		start = max(last, start+window/2)
	}
	slices.Sort(changes)
	return changes
}

// piece is values[begin:end] with the best place to divide it.
type piece struct {
	begin, end, at int
	energy         float64
}

func newPiece(values []float64, begin, end int) piece {
	p := piece{begin: begin, end: end, at: -1, energy: math.Inf(-1)}
	if end-begin >= 2 {
		p.at, p.energy = candidate(values[begin:end])
		p.at += begin
	}
	return p
}

// divide is E-divisive within a window: the best candidate of all pieces, as long as it is
// significant.
func divide(values []float64) []int {
	pieces := []piece{newPiece(values, 0, len(values))}
	var changes []int
	for {
		best := 0
		for i := range pieces {
			if pieces[i].energy > pieces[best].energy {
				best = i
			}
		}
		p := pieces[best]
		if p.at < 0 || !(student(values[p.begin:p.at], values[p.at:p.end]) <= weak) {
			return changes
		}
		changes = append(changes, p.at)
		pieces[best] = newPiece(values, p.begin, p.at)
		pieces = append(pieces, newPiece(values, p.at, p.end))
	}
}

// candidate returns the place that maximises the energy statistic of the values before it
// and those after it up to some place, and its value.
func candidate(values []float64) (at int, most float64) {
	n := len(values)
	// before[t] is the sum of the distances of all pairs in values[:t]. after[t] is the sum in values[t:end], for the
	// current end.
	before := make([]float64, n+1)
	for t := 1; t <= n; t++ {
		sum := 0.0
		for i := range t - 1 {
			sum += math.Abs(values[i] - values[t-1])
		}
		before[t] = before[t-1] + sum
	}
	after := make([]float64, n+1)
	at, most = 1, math.Inf(-1)
	for end := 2; end <= n; end++ {
		// The distances of the new value to the values from t on.
		sum := 0.0
		for t := end - 2; t >= 0; t-- {
			sum += math.Abs(values[t] - values[end-1])
			after[t] += sum
		}
		for t := 1; t < end; t++ {
			left, right, total := float64(t), float64(end-t), float64(end)
			between := before[end] - before[t] - after[t]
			q := 2 / total * between
			if t > 1 {
				q -= 2 * right / total / (left - 1) * before[t]
			}
			if end-t > 1 {
				q -= 2 * left / total / (right - 1) * after[t]
			}
			if q > most || q == most && t < at {
				at, most = t, q
			}
		}
	}
	return at, most
}

// student returns the p value of Student's test of two levels. As in Otava the deviations
// are the values' own, not estimates.
func student(a, b []float64) float64 {
	n, m := float64(len(a)), float64(len(b))
	if n+m <= 2 {
		return 1
	}
	va, vb := deviation(a)/n, deviation(b)/m
	pooled := ((n-1)*va + (m-1)*vb) / (n + m - 2)
	t := (mean(a) - mean(b)) / math.Sqrt(pooled*(1/n+1/m))
	switch {
	case math.IsInf(t, 0):
		return 0
	case math.IsNaN(t):
		return 1
	}
	return 2 * stats.TDist{V: n + m - 2}.CDF(-math.Abs(t))
}

// around returns the places of the neighbours of a change.
func around(values []float64, changes []int, i int) (begin, end int) {
	end = len(values)
	if i > 0 {
		begin = changes[i-1]
	}
	if i+1 < len(changes) {
		end = changes[i+1]
	}
	return begin, end
}

// mergeWeak removes the weakest change until all are significant. As in Hunter and Otava
// (merge in otava/analysis.py, 0.8) those after a removed change are tested again, and the
// one before it is not: it was significant up to the place that has been removed.
func mergeWeak(values []float64, changes []int) []int {
	p := make([]float64, len(changes))
	judge := func(i int) {
		if i >= 0 && i < len(changes) {
			begin, end := around(values, changes, i)
			p[i] = student(values[begin:changes[i]], values[changes[i]:end])
		}
	}
	for i := range changes {
		judge(i)
	}
	for len(changes) > 0 {
		weakest := 0
		for i := range p {
			if p[i] > p[weakest] {
				weakest = i
			}
		}
		if p[weakest] < strong {
			break
		}
		changes, p = slices.Delete(changes, weakest, weakest+1), slices.Delete(p, weakest, weakest+1)
		judge(weakest)
		judge(weakest + 1)
	}
	return changes
}

// isNoise reports whether shuffled values have steps as pronounced as these values. It is a permutation test of all
// places and many lengths at once, so at most the share noisy of the series without changes seems to have one.
func isNoise(values []float64) bool {
	random := rand.New(rand.NewPCG(1, uint64(len(values))))
	seen := steepest(values)
	v := slices.Clone(values)
	exceeded := 0
	for range shuffles {
		random.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
		if steepest(v) >= seen {
			if exceeded++; float64(exceeded+1) > noisy*(shuffles+1) {
				return true
			}
		}
	}
	return false
}

// steepest returns the largest difference between the means of neighbouring stretches of equal lengths: a moving sum at
// several scales, in units of the differences between neighbouring values. These differences are smaller where values
// keep a level for some time than where they are shuffled.
func steepest(values []float64) float64 {
	n := len(values)
	sums, differences := make([]float64, n+1), 0.0
	for i, v := range values {
		sums[i+1] = sums[i] + v
		if i > 0 {
			differences += (v - values[i-1]) * (v - values[i-1])
		}
	}
	most := 0.0
	for width := 4; width <= n/2; width *= 2 {
		widest := 0.0
		for i := width; i+width <= n; i++ {
			widest = max(widest, math.Abs(2*sums[i]-sums[i-width]-sums[i+width]))
		}
		most = max(most, widest/math.Sqrt(float64(width)))
	}
	if differences == 0 {
		return 0
	}
	return most / math.Sqrt(differences)
}
