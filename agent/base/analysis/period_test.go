package analysis

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestPeriodicDips(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	for _, period := range []int{10, 30, 61} {
		values := noise(random, 600, 1000, 40, 0.3)
		for i := 7; i < len(values); i += period {
			at := min(i+random.IntN(2), len(values)-1)
			values[at] *= 0.6
		}
		d, ok := PeriodicDips(values)
		if !ok || math.Abs(d.Period-float64(period)) > 1 || d.Depth < 0.3 || d.Depth > 0.55 {
			t.Errorf("every %d: %+v, %v", period, d, ok)
		}
	}
}

// At most 1 % of 400 series with stalls at random times seem to be periodic, and no series of noise.
func TestStallsByChanceHaveNoPeriod(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	found := 0
	for range 400 {
		values := noise(random, 600, 1000, 40, 0.3)
		if _, ok := PeriodicDips(values); ok {
			t.Error("noise has a period")
		}
		for i := range values {
			if random.IntN(40) == 0 {
				values[i] *= 0.3
			}
		}
		if _, ok := PeriodicDips(values); ok {
			found++
		}
	}
	if found > 4 {
		t.Errorf("%d of 400 series with stalls by chance seem to be periodic", found)
	}
}
