// Package analysis distinguishes changes in values from noise, within a series and between series. It does no I/O.
package analysis

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// minPart is the least number of values in a part: a stall of a few intervals is not a change of the level.
	minPart = 5
	// maxPoints bounds the points that the search compares. For a longer run, these are the means of groups of values.
	maxPoints = 240
	// fewValues is the number below which only parts that do not overlap are distinguished.
	fewValues = 20
	// alpha is the level of the test, permutations how often it shuffles.
	alpha        = 0.01
	permutations = 499
)

// Part is values[Begin:End], a stretch of one level, with its Mean.
type Part struct {
	Begin, End int
	Mean       float64
}

// Parts divides values, in the order of time and all known, where their mean changes by more than chance explains and
// by more than the share least of the level before. Without a change there is one part. The same values always give the
// same parts.
//
// This is circular binary segmentation: the stretch that differs most from the rest is a part of its own if a
// permutation test says so; its pieces are divided again (Olshen, Venkatraman, Lucito, Wigler: Circular binary
// segmentation for the analysis of array-based DNA copy number data, Biostatistics 5, 2004). Values of neighbouring
// seconds depend on each other, and shuffling them would take each wave for a change. Therefore the residuals are
// shuffled: what is left of each value after prediction from its predecessor (Robbins, Gallagher, Lund, Aue: Mean shift
// testing in correlated data, Journal of Time Series Analysis 32, 2011).
//
// Fewer than 20 values are two parts if all values of one are above all of the other: for each
// place with five values on both sides, this has a probability of 1 % at most in all if the
// values come in any order.
func Parts(values []float64, least float64) []Part {
	if len(values) < fewValues {
		return merge(values, separated(values), least)
	}
	width := (len(values) + maxPoints - 1) / maxPoints
	points := groupMeans(values, max(1, width))
	s := search{points: points, lag: 1, random: rand.New(rand.NewPCG(1, 2))}
	if width > 1 { // the mean of a group follows from the previous one more than from the one before that
		s.lag = 2
	}
	s.divide(0, len(points))
	cuts := []int{0}
	slices.Sort(s.cuts)
	for _, c := range s.cuts {
		cuts = append(cuts, c*width)
	}
	cuts = append(cuts, len(values))
	if width > 1 {
		for i := 1; i < len(cuts)-1; i++ {
			cuts[i] = refine(values, cuts[i-1], cuts[i], cuts[i+1], width)
		}
	}
	return merge(values, cuts, least)
}

// separated returns the bounds of two parts of few values that do not overlap; if there are no such
// parts, the bounds of all values.
func separated(values []float64) []int {
	for k := minPart; k <= len(values)-minPart; k++ {
		a, b := values[:k], values[k:]
		if slices.Max(a) < slices.Min(b) || slices.Max(b) < slices.Min(a) {
			return []int{0, k, len(values)}
		}
	}
	return []int{0, len(values)}
}

// groupMeans returns the means of groups of values; the last group may be smaller.
func groupMeans(values []float64, width int) []float64 {
	var means []float64
	for group := range slices.Chunk(values, width) {
		means = append(means, mean(group))
	}
	return means
}

type search struct {
	points []float64
	lag    int // from which the dependence is estimated
	random *rand.Rand
	cuts   []int
}

// divide finds the changes within points[begin:end].
func (s *search) divide(begin, end int) {
	points := s.points[begin:end]
	if len(points) < 2*minPart {
		return
	}
	from, to, _ := odd(points)
	if !s.significant(points, from, to) {
		return
	}
	inner := []int{0}
	for _, c := range []int{from, to} {
		if c > 0 && c < len(points) {
			s.cuts = append(s.cuts, begin+c)
			inner = append(inner, c)
		}
	}
	inner = append(inner, len(points))
	for i := range inner[1:] {
		s.divide(begin+inner[i], begin+inner[i+1])
	}
}

// odd returns the stretch [from, to) whose mean differs most from the mean of the rest,
// and the sum of squares that the difference explains. No piece is shorter than
// minPart.
func odd(points []float64) (from, to int, most float64) {
	n := len(points)
	sums := make([]float64, n+1)
	for i, v := range points {
		sums[i+1] = sums[i] + v
	}
	total := sums[n] / float64(n)
	for i := 0; i <= n-minPart; i++ {
		if i > 0 && i < minPart {
			continue
		}
		for j := i + minPart; j <= n; j++ {
			k := j - i
			if k > n-minPart || j < n && j > n-minPart {
				continue
			}
			d := sums[j] - sums[i] - float64(k)*total
			if t := d * d * float64(n) / (float64(k) * float64(n-k)); t > most {
				from, to, most = i, j, t
			}
		}
	}
	return from, to, most
}

// significant reports whether the stretch [from, to) differs from the rest more than
// the oddest stretch of noise does. The noise is what the two levels and the
// predecessors leave of the values, shuffled; a change itself is not in it.
func (s *search) significant(points []float64, from, to int) bool {
	if from == to {
		return false
	}
	r := dependence(points, s.lag, from, to)
	var innovations []float64
	var sides [2][]float64
	for i := 1; i < len(points); i++ {
		if i == from || i == to {
			continue // its predecessor has another level
		}
		v, side := points[i]-r*points[i-1], 0
		if i > from && i < to {
			side = 1
		}
		innovations, sides[side] = append(innovations, v), append(sides[side], v)
	}
	_, _, seen := odd(innovations)
	var noise []float64
	for _, side := range sides {
		level := mean(side)
		for _, v := range side {
			noise = append(noise, v-level)
		}
	}
	seen /= deviation(innovations) - seen
	total := deviation(noise)
	exceeded := 0
	for range permutations {
		s.random.Shuffle(len(noise), func(i, j int) { noise[i], noise[j] = noise[j], noise[i] })
		if _, _, t := odd(noise); t/(total-t) >= seen {
			exceeded++
		}
		if float64(exceeded+1) > alpha*(permutations+1) {
			return false
		}
	}
	return true
}

// deviation returns the sum of the squared deviations from the mean.
func deviation(values []float64) float64 {
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return sum
}

// dependence estimates by how much a value follows from its predecessor, from 0 to 0.95: in an autoregressive series of
// order 1 with the coefficient r, the squares of differences between values twice lag apart are on average 1+r^lag
// times those between values lag apart. Differences across the edges of [from, to), which may be a change, are left
// out. The estimate's error is added, because an estimate that is too small takes waves for changes.
func dependence(values []float64, lag, from, to int) float64 {
	one, two := squares(values, lag, from, to), squares(values, 2*lag, from, to)
	if one == 0 {
		return 0
	}
	r := math.Pow(min(max(two/one-1, 0), 1), 1/float64(lag))
	return min(r+float64(lag)*math.Sqrt((1-r*r)/float64(len(values))), 0.95)
}

// squares returns the mean square of the differences between values that are lag
// apart, both within [from, to) or both outside of it.
func squares(values []float64, lag, from, to int) float64 {
	sum, n := 0.0, 0.0
	for i := lag; i < len(values); i++ {
		if (i >= from) == (i-lag >= from) && (i >= to) == (i-lag >= to) {
			d := values[i] - values[i-lag]
			sum, n = sum+d*d, n+1
		}
	}
	return sum / n
}

// refine returns the place between two other cuts at which a change is most pronounced, at most width away from where
// it was found.
func refine(values []float64, begin, at, end, width int) int {
	best, most := at, -1.0
	for c := max(begin+1, at-width); c <= min(end-1, at+width); c++ {
		a, b := values[begin:c], values[c:end]
		d := mean(a) - mean(b)
		if t := d * d * float64(len(a)) * float64(len(b)) / float64(len(a)+len(b)); t > most {
			best, most = c, t
		}
	}
	return best
}

// merge joins neighbours whose levels differ by less than the share least, the most
// similar first.
func merge(values []float64, cuts []int, least float64) []Part {
	var parts []Part
	for i := range cuts[1:] {
		if cuts[i] < cuts[i+1] {
			parts = append(parts, Part{cuts[i], cuts[i+1], mean(values[cuts[i]:cuts[i+1]])})
		}
	}
	for len(parts) > 1 {
		closest, smallest := 0, math.Inf(1)
		for i := range parts[1:] {
			if d := math.Abs(parts[i+1].Mean-parts[i].Mean) / max(math.Abs(parts[i].Mean), 1e-300); d < smallest {
				closest, smallest = i, d
			}
		}
		if smallest > least {
			break
		}
		joined := Part{Begin: parts[closest].Begin, End: parts[closest+1].End}
		joined.Mean = mean(values[joined.Begin:joined.End])
		parts = slices.Replace(parts, closest, closest+2, joined)
	}
	return parts
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
