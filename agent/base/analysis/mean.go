package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

const (
	// fewestValues is the number of values below which their dependence is unknown.
	fewestValues = 16
	// mostWaves and fewestWaves bound the cosines from which an error is estimated.
	mostWaves, fewestWaves = 8, 4
	// mostBias bounds the factor by which measured dependence may make a variance look too small.
	mostBias = 2
	// hiddenDependence is the dependence of neighbouring seconds that is always allowed for, since fast noise hides
	// slow waves in short series. In nine of ten public runs it is smaller (below 0.9).
	hiddenDependence = 0.95
	// pieces is the number of parts of a series whose means depend on each other if it has
	// slow waves under a fast noise.
	pieces = 30
)

// Mean is the mean of consecutive values that may depend on each other. Its standard error has
// Freedom degrees of freedom. It allows for slow waves that noise may hide in so few values;
// Shown is the error without them.
type Mean struct {
	Value, Error, Freedom, Shown float64
}

// AsShown returns the mean with the error that the values show.
func (m Mean) AsShown() Mean {
	m.Error = m.Shown
	return m
}

// NewMean returns the mean of values in the order of time, one for each interval of so many seconds.
// It returns false if there are too few of them, fewer than 16 or too few for their dependence, to
// know its error.
//
// The error comes from the slowest waves of the values, the squares of 8 cosine coefficients at most, as the
// equal-weighted cosine estimator with Student's distribution does (Müller: A theory of robust long-run variance
// estimation, Journal of Econometrics 141, 2007; Lazarus, Lewis, Stock, Watson: HAR inference, Journal of Business &
// Economic Statistics 36, 2018). The first wave is left out, since a trend causes it without making a mean uncertain.
// The variance that these waves lack in an autoregressive process is added, for the dependence of the values, or for
// 0.95 from second to second if that is more. If more than half is lacking for the dependence of the values, there are
// too few of them.
func NewMean(values []float64, seconds float64) (Mean, bool) {
	n := len(values)
	if n < fewestValues {
		return Mean{}, false
	}
	measured := upperDependence(values)
	if shareInWaves(measured, n, fewestWaves)*mostBias < 1 {
		return Mean{}, false
	}
	assumed := max(measured, math.Pow(hiddenDependence, seconds))
	waves := fewestWaves
	for waves < min(mostWaves, n/4) && shareInWaves(assumed, n, waves+1)*mostBias >= 1 {
		waves++
	}
	m := mean(values)
	variance := 0.0
	for j := 2; j <= waves+1; j++ {
		c := 0.0
		for i, v := range values {
			c += (v - m) * math.Cos(math.Pi*float64(j)*(float64(i)+0.5)/float64(n))
		}
		variance += 2 * c * c / float64(n)
	}
	variance /= float64(waves * n)
	return Mean{
		Value: m, Freedom: float64(waves),
		Error: math.Sqrt(variance / shareInWaves(assumed, n, waves)),
		Shown: math.Sqrt(variance / shareInWaves(measured, n, waves)),
	}, true
}

// shareInWaves returns how large the variance of the mean of n values appears in the waves from the
// second on, as a share of the true one, for an autoregressive process with dependence r.
func shareInWaves(r float64, n, waves int) float64 {
	if r >= 1 {
		return 0
	}
	sum := 0.0
	for j := 2; j <= waves+1; j++ {
		sum += (1 - r) * (1 - r) / (1 - 2*r*math.Cos(math.Pi*float64(j)/float64(n)) + r*r)
	}
	return sum / float64(waves) / (1 - 2*r*(1-math.Pow(r, float64(n)))/(float64(n)*(1-r*r)))
}

// upperDependence returns how much a value depends on its predecessor, from 0 to 1. It rather overestimates. Slow waves
// under a fast noise only show in the means of pieces.
func upperDependence(values []float64) float64 {
	r := dependenceBeyondTrend(values, 1)
	if len(values) < 2*pieces {
		return r
	}
	n := len(values)
	means := make([]float64, pieces)
	for i := range means {
		means[i] = mean(values[i*n/pieces : (i+1)*n/pieces])
	}
	slow := dependenceBeyondTrend(means, 0.5)
	return max(r, math.Pow(slow, pieces/float64(n)))
}

// dependenceBeyondTrend returns the first autocorrelation of the residuals around a straight line, corrected for its
// bias (Kendall, Biometrika 41, 1954), plus errors times its standard error, from 0 to 1. A trend is no dependence.
func dependenceBeyondTrend(values []float64, errors float64) float64 {
	n := float64(len(values))
	residual := beyondTrend(values)
	variance, neighbours := 0.0, 0.0
	for i := range values {
		variance += residual(i) * residual(i)
		if i > 0 {
			neighbours += residual(i) * residual(i-1)
		}
	}
	if variance == 0 {
		return 0
	}
	r := neighbours / variance
	r = min(max(r+(2+4*r)/n, 0), 1)
	return min(r+errors*math.Sqrt((1-r*r)/n), 1)
}

// beyondTrend returns the residual of each value around a straight line.
func beyondTrend(values []float64) func(i int) float64 {
	n := float64(len(values))
	m, slope, squares := mean(values), 0.0, 0.0
	for i, v := range values {
		t := float64(i) - (n-1)/2
		slope += t * (v - m)
		squares += t * t
	}
	slope /= squares
	return func(i int) float64 { return values[i] - m - slope*(float64(i)-(n-1)/2) }
}

// aroundLine returns the sum of the squared deviations from a straight line.
func aroundLine(values []float64) float64 {
	residual, sum := beyondTrend(values), 0.0
	for i := range values {
		sum += residual(i) * residual(i)
	}
	return sum
}

// Sides are the probabilities of a difference at least as large in each direction if there were
// none: Lower is small if the second values are lower than the first.
type Sides struct{ Lower, Higher float64 }

// Both is the probability of a difference at least as large in either direction.
func (s Sides) Both() float64 { return min(1, 2*min(s.Lower, s.Higher)) }

// Either combines two tests of the same values.
func (s Sides) Either(other Sides) Sides {
	return Sides{min(1, 2*min(s.Lower, other.Lower)), min(1, 2*min(s.Higher, other.Higher))}
}

// CompareMeans tests whether after differs from before multiplied by factor: Welch's test.
func CompareMeans(before, after Mean, factor float64) Sides {
	a, b := before.Error*before.Error*factor*factor, after.Error*after.Error
	d := after.Value - before.Value*factor
	if a+b == 0 {
		switch {
		case d < 0:
			return Sides{0, 1}
		case d > 0:
			return Sides{1, 0}
		}
		return Sides{1, 1}
	}
	t := stats.TDist{V: freedom(before, after, factor)}
	return Sides{t.CDF(d / math.Sqrt(a+b)), t.CDF(-d / math.Sqrt(a+b))}
}

// freedom are Welch's degrees of freedom.
func freedom(before, after Mean, factor float64) float64 {
	a, b := before.Error*before.Error*factor*factor, after.Error*after.Error
	return (a + b) * (a + b) / (a*a/before.Freedom + b*b/after.Freedom)
}

// RatioBounds returns the bounds of the ratio of the means; the ratio is beyond each bound with the
// probability level. It returns false if before may be 0.
func RatioBounds(before, after Mean, level float64) (low, high float64, ok bool) {
	bound := func(proven func(Sides) bool, from, to float64) float64 {
		for range 60 {
			middle := (from + to) / 2
			if proven(CompareMeans(before, after, middle)) {
				from = middle
			} else {
				to = middle
			}
		}
		return from
	}
	ratio := after.Value / before.Value
	if before.Value <= 0 || after.Value <= 0 || CompareMeans(before, after, 0).Higher > level ||
		CompareMeans(before, after, 10*ratio).Lower > level {
		return 0, 0, false
	}
	low = bound(func(s Sides) bool { return s.Higher <= level }, 0, ratio)
	high = bound(func(s Sides) bool { return s.Lower <= level }, 10*ratio, ratio)
	return low, high, true
}

// CompareTypical tests whether the values after are typically lower or higher than those before:
// the means of their common ranks, which single outliers do not move. Each value is of an interval
// of so many seconds. It returns false if there are too few values.
func CompareTypical(before, after []float64, seconds float64) (Sides, bool) {
	ranks := commonRanks(before, after)
	a, okA := NewMean(ranks[:len(before)], seconds)
	b, okB := NewMean(ranks[len(before):], seconds)
	if !okA || !okB {
		return Sides{}, false
	}
	return CompareMeans(a, b, 1), true
}

const (
	// eighths is how many parts of a series are compared as levels; each needs fewestInEighth
	// values.
	eighths, fewestInEighth = 8, 5
	// manyValues is the number of values above which half of their spread must lie between series that are apart; with
	// fewer values, all of their spread. An autoregressive process of up to 0.95 is then apart from itself in one of a
	// thousand pairs (TestApart).
	manyValues, gapOfMany, gapOfFew = 120, 0.5, 1
	// fewestApart values are apart if the middle half of one series is above farApart times the
	// other's: slow waves of few seconds are not as large.
	fewestApart, farApart = 8, 3
)

// Apart reports whether the level of one series is below the level of the other over their whole
// length, however much the values depend on each other: the means of its eighths are all below
// the other's, by at least half of how much they vary, or the middle half of its values is below a
// third of the other's. isLower is set if after is below.
func Apart(before, after []float64) (isLower, ok bool) {
	n := min(len(before), len(after))
	if n < fewestApart {
		return false, false
	}
	lowBefore, highBefore := quartiles(before)
	lowAfter, highAfter := quartiles(after)
	isLower = highAfter < lowBefore
	if isLower && highAfter*farApart < lowBefore || highBefore*farApart < lowAfter {
		return isLower, true
	}
	if n < eighths*fewestInEighth {
		return false, false
	}
	lowBefore, highBefore = levels(before, eighths)
	lowAfter, highAfter = levels(after, eighths)
	gap := gapOfFew * max(highBefore-lowBefore, highAfter-lowAfter)
	if n >= manyValues {
		gap *= gapOfMany
	}
	isLower = highAfter < lowBefore
	return isLower, isLower && lowBefore-highAfter >= gap || highBefore < lowAfter && lowAfter-highBefore >= gap
}

// quartiles returns the values that a quarter of all are below and above.
func quartiles(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/4], sorted[len(sorted)-1-len(sorted)/4]
}

// levels returns the least and the greatest mean of n pieces.
func levels(values []float64, n int) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range n {
		m := mean(values[i*len(values)/n : (i+1)*len(values)/n])
		low, high = min(low, m), max(high, m)
	}
	return low, high
}

// commonRanks returns the ranks of both among all of them; equal values have their mean rank.
func commonRanks(before, after []float64) []float64 {
	all := slices.Concat(before, after)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case all[i] < all[j]:
			return -1
		case all[i] > all[j]:
			return 1
		}
		return 0
	})
	ranks := make([]float64, len(all))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && all[order[j]] == all[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			ranks[order[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	return ranks
}

// CompareRanks is the Mann-Whitney U test of independent values, exact for small numbers.
func CompareRanks(before, after []float64) Sides {
	side := func(alternative stats.LocationHypothesis) float64 {
		result, err := stats.MannWhitneyUTest(after, before, alternative)
		if err != nil { // all are equal, or there are none
			return 1
		}
		return result.P
	}
	return Sides{side(stats.LocationLess), side(stats.LocationGreater)}
}

// Slow sums up the slow values of a run, such as the seconds in which it stands still.
type Slow struct {
	Count int // of values
	Times int // stretches of consecutive ones
	// Longest is the length of the longest stretch in values, which begins at value From.
	Longest, From int
	// Lost is how much of the typical sum of all values these are below it, as a share.
	Lost float64
	// Level is their mean as a share of the typical value.
	Level float64
}

// SumSlow sums up the slow values, which are below the typical one.
func SumSlow(values []float64, isSlow []bool, typical float64) Slow {
	s, length := Slow{}, 0
	for i, v := range values {
		if !isSlow[i] {
			length = 0
			continue
		}
		if length++; length == 1 {
			s.Times++
		}
		if length > s.Longest {
			s.Longest, s.From = length, i+1-length
		}
		s.Count++
		s.Lost += (typical - v) / typical / float64(len(values))
		s.Level += v / typical
	}
	if s.Count > 0 {
		s.Level /= float64(s.Count)
	}
	return s
}

// Below marks the values below a bound.
func Below(values []float64, bound float64) []bool {
	isSlow := make([]bool, len(values))
	for i, v := range values {
		isSlow[i] = v < bound
	}
	return isSlow
}

const (
	// leastSlower is by how much the level of a slow phase is lower, as a share.
	leastSlower = 0.05
	// leastFast and leastSlowPart are the shares of the values that must be outside and in slow phases.
	leastFast, leastSlowPart = 0.25, 0.125
	// phaseGap is the distance between slow phases and the rest, in terms of how much the levels of
	// their eighths vary: slow waves have no such distance.
	phaseGap = 1
)

// SlowPhases marks the values of slow phases: stretches at a level that is lower than the rest by more
// than slow waves are, over their whole length, and that no straight line explains better. It returns
// false without any.
func SlowPhases(values []float64) (isSlow []bool, ok bool) {
	if len(values) < 2*eighths*fewestInEighth {
		return nil, false
	}
	if low, high := levels(values, 2*eighths); low > high*(1-leastSlower) {
		return nil, false // the search for parts takes longer
	}
	parts := Parts(values, leastSlower)
	top := slices.MaxFunc(parts, func(a, b Part) int { return cmp.Compare(a.Mean, b.Mean) }).Mean
	var fast, slow []float64
	isSlow = make([]bool, len(values))
	for _, p := range parts {
		if p.Mean >= top*(1-leastSlower) {
			fast = append(fast, values[p.Begin:p.End]...)
			continue
		}
		slow = append(slow, values[p.Begin:p.End]...)
		for i := p.Begin; i < p.End; i++ {
			isSlow[i] = true
		}
	}
	n := float64(len(values))
	if float64(len(fast)) < leastFast*n || float64(len(slow)) < leastSlowPart*n || min(len(fast), len(slow)) < eighths*fewestInEighth {
		return nil, false
	}
	lowFast, highFast := levels(fast, eighths)
	lowSlow, highSlow := levels(slow, eighths)
	if lowFast-highSlow < phaseGap*max(highFast-lowFast, highSlow-lowSlow) || deviation(fast)+deviation(slow) > aroundLine(values) {
		return nil, false
	}
	return isSlow, true
}

const (
	// slowest and leastSlow bound the share of the typical value below which a value is slow;
	// between them it is outliers standard deviations of the noise below.
	leastSlow, slowest, outliers = 0.75, 0.1, 4
)

// SlowBound returns the share of the typical value below which a value of these series is slow rather than noise: 75 %,
// less if the values vary more, at least 10 %.
func SlowBound(series ...[]float64) float64 {
	bound := leastSlow
	for _, values := range series {
		bound = min(bound, 1-outliers*relativeNoise(values))
	}
	return max(bound, slowest)
}

// relativeNoise is the median deviation from the median as the standard deviation of normal
// noise, and as a share of the median.
func relativeNoise(values []float64) float64 {
	typical := series.Median(values)
	deviations := make([]float64, len(values))
	for i, v := range values {
		deviations[i] = math.Abs(v - typical)
	}
	return 1.4826 * series.Median(deviations) / typical
}
