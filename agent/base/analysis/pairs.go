package analysis

import "math"

// effect is the standard deviation of the differences that [PairBounds] is most sensitive to, as a
// multiple of the noise of a pair. It changes how soon a difference is found, not the error rate.
const effect = 2

// Bounds are the mean of paired differences and an interval that contains the true mean. Low and High
// are infinite while the pairs are too few.
type Bounds struct {
	Mean, Low, High float64
	// Noise is the standard deviation of a pair. It is unknown with fewer than two.
	Noise float64
	N     int
}

// PairBounds bounds the mean of differences in the order of time with an error probability of alpha
// for all lengths of the series together: it may be computed after each pair, and the series may end
// when it is narrow enough.
//
// It is the confidence sequence of a t-test whose effect size has a normal distribution: the means at
// which its Bayes factor, a martingale, stays below 1/alpha (Wang and Ramdas: Anytime-valid t-tests
// and confidence sequences for Gaussian means with unknown variance, Sequential Analysis 44, 2025;
// Pérez-Ortiz, Lardy, de Heide, Grünwald: E-statistics, group invariance and anytime-valid testing,
// Annals of Statistics 52, 2024).
//
// Two consecutive differences are from one round. What the differences of a round have in common, such as a wave as
// long as a round, counts as noise: the variance is at least the variance of the rounds.
func PairBounds(differences []float64, alpha float64) Bounds {
	b := Bounds{Mean: mean(differences), Low: math.Inf(-1), High: math.Inf(1), Noise: math.NaN(), N: len(differences)}
	if b.N < 2 {
		return b
	}
	b.Noise = pairNoise(differences)
	if width := PairWidth(b.N, b.Noise, alpha); !math.IsInf(width, 1) {
		b.Low, b.High = b.Mean-width, b.Mean+width
	}
	return b
}

// PairWidth returns half of the width of the interval for n differences with this standard deviation;
// infinite if they are too few.
func PairWidth(n int, noise, alpha float64) float64 {
	k := 1 + float64(n)*effect*effect
	r := math.Pow(k/(alpha*alpha), 1/float64(n))
	if n < 2 || r >= k {
		return math.Inf(1)
	}
	t := math.Sqrt(float64(n-1) * (r - 1) / (1 - r/k))
	return t * noise / math.Sqrt(float64(n))
}

// pairNoise returns the standard deviation of a difference, from the differences or from the means
// of rounds, whichever is larger.
func pairNoise(differences []float64) float64 {
	variance := func(values []float64) float64 {
		m, sum := mean(values), 0.0
		for _, v := range values {
			sum += (v - m) * (v - m)
		}
		return sum / float64(len(values)-1)
	}
	v := variance(differences)
	rounds := make([]float64, len(differences)/2)
	for i := range rounds {
		rounds[i] = (differences[2*i] + differences[2*i+1]) / 2
	}
	if len(rounds) > 1 {
		v = max(v, 2*variance(rounds))
	}
	return math.Sqrt(v)
}
