package analysis

import (
	"math"
	"math/rand/v2"
	"testing"
)

// waves returns values around a level, of which each depends on the previous one.
func waves(random *rand.Rand, n int, level, noise, dependence float64) []float64 {
	values, state := make([]float64, n), 0.0
	for i := range values {
		state = dependence*state + math.Sqrt(1-dependence*dependence)*random.NormFloat64()
		values[i] = level + noise*state
	}
	return values
}

// The mean of the batches is as uncertain as the batches say: of 400 series around
// the same level, the interval of 95 % of their batches has the level in about 95 %
// of the cases, however much the values depend on their neighbours.
func TestBatchesKnowTheirSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for _, dependence := range []float64{0, 0.5, 0.9} {
		within, known := 0, 0
		for range 400 {
			b := Batches(waves(random, 1800, 1000, 100, dependence))
			if b == nil {
				continue
			}
			known++
			m, squares := mean(b), 0.0
			for _, v := range b {
				squares += (v - m) * (v - m)
			}
			n := float64(len(b))
			if math.Abs(m-1000) <= 2.1*math.Sqrt(squares/(n-1)/n) {
				within++
			}
		}
		if share := float64(within) / float64(known); share < 0.91 || known < 360 {
			t.Errorf("dependence %v: %d of 400 have batches, of these %.3f have the level within their interval", dependence, known, share)
		}
	}
}

func TestBatchesOfTooLittle(t *testing.T) {
	trend := make([]float64, 300)
	for i := range trend {
		trend[i] = float64(i)
	}
	for name, values := range map[string][]float64{"none": nil, "seven": {1, 2, 1, 2, 1, 2, 1}, "a trend": trend} {
		if b := Batches(values); b != nil {
			t.Errorf("%s: %d batches", name, len(b))
		}
	}
	if b := Batches(make([]float64, 8)); len(b) != 8 {
		t.Errorf("eight equal values: %d batches", len(b))
	}
}

// The stalls and the spread of single seconds do not hide the level of a run with a trend.
func TestEighths(t *testing.T) {
	run := func(from float64) (values []float64) {
		for i := range 900 {
			v := from - float64(i)/5 + float64(i%7)*40 // down by 180, spread by 240
			if i%10 == 0 {
				v = 0
			}
			values = append(values, v)
		}
		return values
	}
	low, high, ok := Eighths(run(600))
	other, _, _ := Eighths(run(1000))
	if !ok || low < 520 || high > 730 || low >= high || other <= high {
		t.Errorf("%v to %v, %v; the other from %v", low, high, ok, other)
	}
	if _, _, ok := Eighths(make([]float64, 39)); ok {
		t.Error("39 values have eighths of five")
	}
}
