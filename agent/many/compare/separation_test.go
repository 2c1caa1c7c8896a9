package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSeparateChance guards that an order by chance is rare, and that one of a fifth is found with three repeats.
func TestSeparateChance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const trials = 2000
	draw := func(mean, spread float64, n int) Spread {
		values := make([]float64, n)
		for i := range values {
			values[i] = mean * math.Exp(spread*r.NormFloat64())
		}
		return NewSpread(values)
	}
	for _, repeats := range []int{2, 3, 8} {
		equal, found := 0, 0
		for range trials {
			var same, rising []Spread
			for i := range 5 {
				same = append(same, draw(1000, 0.4, repeats))
				rising = append(rising, draw(1000*(1+0.2*float64(i)), 0.05, repeats))
			}
			if s := Separate(same, 1); s.HasOrder() {
				equal++
			}
			if s := Separate(rising, 1); s.HasOrder() && s.Apart(0, 4) {
				found++
			}
		}
		if share := float64(equal) / trials; share > 0.07 {
			t.Errorf("%d repeats: an order by chance in %.1f %% of the sweeps", repeats, share*100)
		}
		if share := float64(found) / trials; share < 0.95 {
			t.Errorf("%d repeats: an order found in %.1f %% of the sweeps", repeats, share*100)
		}
	}
}

// TestSeparateEdges guards groups without repeats, and equal ones.
func TestSeparateEdges(t *testing.T) {
	one := func(values ...float64) (all []Spread) {
		for _, v := range values {
			all = append(all, NewSpread([]float64{v}))
		}
		return all
	}
	if s := Separate(one(100, 200), 1); s.IsRepeated() || !s.HasOrder() || s.Repeats() != 0 && s.Repeats() < 2 {
		t.Errorf("%+v", s)
	}
	if s := Separate(one(100, 200), 2.5); s.HasOrder() || s.Apart(0, 1) {
		t.Errorf("an order within what other programs took: %+v", s)
	}
	same := []Spread{NewSpread([]float64{5, 5}), NewSpread([]float64{5, 5})}
	if s := Separate(same, 1); s.HasOrder() || s.Apart(0, 1) || s.Factor != 1 {
		t.Errorf("%+v", s)
	}
	exact := []Spread{NewSpread([]float64{5, 5}), NewSpread([]float64{6, 6})}
	if s := Separate(exact, 1); !s.HasOrder() || !s.Apart(0, 1) {
		t.Errorf("%+v", s)
	}
	stopped := []Spread{NewSpread([]float64{0, 0}), NewSpread([]float64{900, 1000})}
	if s := Separate(stopped, 1); !s.HasOrder() || math.IsNaN(s.P) || math.IsInf(s.Factor, 0) {
		t.Errorf("%+v", s)
	}
}
