package sweep

import (
	"errors"
	"fmt"
	"math"
)

// Point is the throughput at a number of threads.
type Point struct {
	Threads    float64 `json:"threads"`
	Throughput float64 `json:"throughput"`
}

// USL is a fit of the Universal Scalability Law (Gunther, "Guerrilla Capacity
// Planning", 2007):
//
//	X(N) = γN / (1 + σ(N−1) + κN(N−1))
//
// γ is the throughput of one thread, σ the share of the work that is serial
// (contention), κ the cost of keeping the threads coherent (crosstalk).
type USL struct {
	Gamma float64 `json:"gamma"`
	Sigma float64 `json:"sigma"`
	Kappa float64 `json:"kappa"`
	// R2 is the share of the throughput's variance that the fit explains.
	R2 float64 `json:"r2"`
}

// fewestPoints is the minimum for a meaningful fit of three parameters: one point more than
// parameters.
const fewestPoints = 4

// Fit returns the law with the best fit by least squares and no negative parameter. The error says
// why the points do not allow a fit.
func Fit(points []Point) (USL, error) {
	counts := map[float64]bool{}
	for _, p := range points {
		if !(p.Threads >= 1) || !(p.Throughput > 0) || math.IsInf(p.Threads, 0) || math.IsInf(p.Throughput, 0) {
			return USL{}, errors.New("a point has no throughput")
		}
		counts[p.Threads] = true
	}
	if len(counts) < fewestPoints {
		return USL{}, fmt.Errorf("%d different numbers of threads: at least %d are needed to fit three parameters",
			len(counts), fewestPoints)
	}
	total := variance(points)
	if total == 0 {
		return USL{}, errors.New("throughput is the same at every number of threads")
	}
	u := search(points)
	u.R2 = 1 - residual(points, u)/total
	return u, nil
}

// variance returns the sum of squares around the mean throughput.
func variance(points []Point) float64 {
	mean, sum := 0.0, 0.0
	for _, p := range points {
		mean += p.Throughput / float64(len(points))
	}
	for _, p := range points {
		sum += (p.Throughput - mean) * (p.Throughput - mean)
	}
	return sum
}

// At returns the throughput that the law predicts.
func (u *USL) At(threads float64) float64 { return u.Gamma * shape(threads, u.Sigma, u.Kappa) }

// Peak returns the number of threads with the highest throughput; false if the law has no peak
// because throughput grows towards a limit.
func (u *USL) Peak() (float64, bool) {
	if u.Kappa <= 0 || u.Sigma >= 1 {
		return 0, false
	}
	return math.Sqrt((1 - u.Sigma) / u.Kappa), true
}

func shape(n, sigma, kappa float64) float64 {
	return n / (1 + sigma*(n-1) + kappa*n*(n-1))
}

// solve finds γ for given σ and κ; the law is linear in γ.
func solve(points []Point, sigma, kappa float64) USL {
	top, bottom := 0.0, 0.0
	for _, p := range points {
		f := shape(p.Threads, sigma, kappa)
		top += p.Throughput * f
		bottom += f * f
	}
	return USL{Gamma: top / bottom, Sigma: sigma, Kappa: kappa}
}

func residual(points []Point, u USL) float64 {
	sum := 0.0
	for _, p := range points {
		d := p.Throughput - u.At(p.Threads)
		sum += d * d
	}
	return sum
}

// search finds the best σ for each κ, and the best κ. Two nested searches of one parameter each
// can't diverge, unlike a gradient.
func search(points []Point) USL {
	sigmaFor := func(kappa float64) float64 {
		return minimize(logarithmic(1e-6, 10), func(sigma float64) float64 { return residual(points, solve(points, sigma, kappa)) })
	}
	kappa := minimize(logarithmic(1e-10, 10), func(kappa float64) float64 {
		return residual(points, solve(points, sigmaFor(kappa), kappa))
	})
	return solve(points, sigmaFor(kappa), kappa)
}

// minimize returns where f is smallest: the best point of a grid, refined between its neighbours by
// golden section.
func minimize(grid []float64, f func(float64) float64) float64 {
	at, least := 0, math.Inf(1)
	for i, x := range grid {
		if v := f(x); v < least {
			at, least = i, v
		}
	}
	low, high := grid[max(0, at-1)], grid[min(len(grid)-1, at+1)]
	ratio := (math.Sqrt(5) - 1) / 2
	a, b := high-ratio*(high-low), low+ratio*(high-low)
	fa, fb := f(a), f(b)
	for range 60 {
		if fa < fb {
			high, b, fb = b, a, fa
			a = high - ratio*(high-low)
			fa = f(a)
		} else {
			low, a, fa = a, b, fb
			b = low + ratio*(high-low)
			fb = f(b)
		}
	}
	if middle := (low + high) / 2; f(middle) < least {
		return middle
	}
	return grid[at]
}

// logarithmic returns 0 and values from low to high, five per decade.
func logarithmic(low, high float64) []float64 {
	values := []float64{0}
	for v := low; v <= high*1.001; v *= math.Pow(10, 0.2) {
		values = append(values, v)
	}
	return values
}
