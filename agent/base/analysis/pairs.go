package analysis

import "math"

// effect is the standard deviation of the differences that [PairBounds] is most sensitive to, as a
// multiple of the noise of a pair. It changes how soon a difference is found, not the error rate.
const effect = 1

// Bounds are the mean of paired differences and an interval that contains the true mean. Low and High
// are infinite while the pairs are too few.
type Bounds struct {
	Mean, Low, High float64
	// Noise is the standard deviation of a pair, as known from so many Independent differences. It is unknown with
	// fewer than two pairs.
	Noise, Independent float64
	N                  int
}

// FewestPairs are needed for an interval: with fewer, a machine that only knows two levels shows the same difference
// in all rounds too often.
const FewestPairs = 6

// PairBounds bounds the mean of differences in the order of time with an error probability of alpha
// for all lengths of the series together: it may be computed after each pair, and the series may end
// when it is narrow enough. null are differences of the same kind whose true mean is 0; they only help to estimate the
// noise.
//
// It is the confidence sequence of a t-test whose effect size has a normal distribution: the means at
// which its Bayes factor, a martingale, stays below 1/alpha (Wang and Ramdas: Anytime-valid t-tests
// and confidence sequences for Gaussian means with unknown variance, Sequential Analysis 44, 2025;
// Pérez-Ortiz, Lardy, de Heide, Grünwald: E-statistics, group invariance and anytime-valid testing,
// Annals of Statistics 52, 2024, whose group of scales also covers the null differences).
//
// The theorem needs independent differences with equal noise. Where the data look different, the interval gets wider: if
// the differences vary more than null, their own variance counts. Two consecutive differences are from one round. What
// they have in common, such as a wave as long as a round, counts as noise, and they count as less than two.
func PairBounds(differences, null []float64, alpha float64) Bounds {
	b := Bounds{Mean: mean(differences), Low: math.Inf(-1), High: math.Inf(1), Noise: math.NaN(), N: len(differences)}
	if b.N < 2 {
		return b
	}
	b.Noise, b.Independent = pairNoise(differences, null)
	if width := PairWidth(b.N, b.Independent, b.Noise, alpha); !math.IsInf(width, 1) {
		b.Low, b.High = b.Mean-width, b.Mean+width
	}
	return b
}

// PairWidth returns half of the width of the interval for n differences with this standard deviation, which is known
// from so many independent differences; infinite if they are too few.
func PairWidth(n int, independent, noise, alpha float64) float64 {
	k := 1 + float64(n)*effect*effect
	r := math.Pow(k/(alpha*alpha), 1/independent)
	if n < FewestPairs || r >= k {
		return math.Inf(1)
	}
	t := math.Sqrt((independent - 1) * (r - 1) / (1 - r/k))
	return t * noise / math.Sqrt(float64(n))
}

// pairNoise returns the standard deviation of a difference, and from how many independent differences it is known.
func pairNoise(differences, null []float64) (noise, independent float64) {
	sum, n := squaredDistances(differences, mean(differences)), float64(len(differences))
	all := n + float64(len(null))
	variance := max(sum/(n-1), (sum+squaredDistances(null, 0))/(all-1))
	rounds, others := halves(differences), halves(null)
	if len(rounds) > 1 {
		sum := squaredDistances(rounds, mean(rounds)) + squaredDistances(others, 0)
		if ofRounds := 2 * sum / float64(len(rounds)+len(others)-1); ofRounds > variance {
			return math.Sqrt(ofRounds), all * variance / ofRounds
		}
	}
	return math.Sqrt(variance), all
}

// squaredDistances returns the sum of the squared distances from a center.
func squaredDistances(values []float64, center float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += (v - center) * (v - center)
	}
	return sum
}

// halves returns the means of every two consecutive values.
func halves(values []float64) []float64 {
	means := make([]float64, len(values)/2)
	for i := range means {
		means[i] = (values[2*i] + values[2*i+1]) / 2
	}
	return means
}
