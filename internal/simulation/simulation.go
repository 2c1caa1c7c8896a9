// Package simulation generates series with known properties, for tests of verdicts. The tests have
// fixed seeds; BENCHWATCH_SIMULATIONS, set by make simulations, repeats them more often.
package simulation

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Asked reports whether make simulations runs the test.
func Asked() bool { return os.Getenv("BENCHWATCH_SIMULATIONS") != "" }

// Repeats returns how many times to simulate each case: BENCHWATCH_SIMULATIONS, or few.
func Repeats(t testing.TB, few int) int {
	t.Helper()
	text := os.Getenv("BENCHWATCH_SIMULATIONS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Process generates values around 0 with standard deviation 1.
type Process struct {
	// Dependence is the autocorrelation of neighbours, of order 1.
	Dependence float64
	// Noise is the standard deviation of additional independent noise, as a multiple of the
	// standard deviation of these waves.
	Noise float64
}

// Values returns n consecutive values.
func (p Process) Values(random *rand.Rand, n int) []float64 {
	values, wave, scale := make([]float64, n), random.NormFloat64(), 1/math.Sqrt(1+p.Noise*p.Noise)
	for i := range values {
		if i > 0 {
			wave = p.Dependence*wave + math.Sqrt(1-p.Dependence*p.Dependence)*random.NormFloat64()
		}
		values[i] = wave
		if p.Noise > 0 {
			values[i] = scale * (wave + p.Noise*random.NormFloat64())
		}
	}
	return values
}

// CheckShare fails if found is a larger part of all than this share can give by chance, within so
// many standard errors.
func CheckShare(t testing.TB, what string, found, all int, share, errors float64) {
	t.Helper()
	n := float64(all)
	if most := share*n + errors*math.Sqrt(share*(1-share)*n); float64(found) > most {
		t.Errorf("%s: %d of %d, more than %.1f", what, found, all, most)
	}
}

// Percent returns n of all in percent.
func Percent(n, all int) float64 { return 100 * float64(n) / float64(all) }
