package analysis

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// noise returns a steady series: normal, each value following from its predecessor.
func noise(random *rand.Rand, n int, level, deviation, dependence float64) []float64 {
	values := make([]float64, n)
	x := random.NormFloat64()
	for i := range values {
		values[i] = level + deviation*x
		x = dependence*x + math.Sqrt(1-dependence*dependence)*random.NormFloat64()
	}
	return values
}

// A steady noisy run has no change: of 200 runs of each kind at most 5 % may seem to
// have one.
func TestNoiseIsNoChange(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, c := range []struct {
		name  string
		value func(n int) []float64
	}{
		{"independent", func(n int) []float64 { return noise(random, n, 1000, 200, 0) }},
		{"waves", func(n int) []float64 { return noise(random, n, 1000, 100, 0.5) }},
		{"skewed", func(n int) []float64 {
			v := noise(random, n, 0, 0.5, 0.3)
			for i := range v {
				v[i] = 1000 * math.Exp(-math.Abs(v[i]))
			}
			return v
		}},
		{"stalls", func(n int) []float64 {
			v := noise(random, n, 1000, 50, 0.2)
			for i := range v {
				if random.IntN(20) == 0 {
					v[i] = 0
				}
			}
			return v
		}},
	} {
		for _, n := range []int{30, 60, 500} {
			found := 0
			for range 200 {
				if len(Parts(c.value(n), 0.05)) > 1 {
					found++
				}
			}
			if found > 10 {
				t.Errorf("%s, %d values: %d of 200 series seem to change", c.name, n, found)
			}
		}
	}
}

func TestChangesAreFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	steps := func(n int, level func(i int) float64, deviation, dependence float64) []float64 {
		v := noise(random, n, 0, deviation, dependence)
		for i := range v {
			v[i] += level(i)
		}
		return v
	}
	for _, c := range []struct {
		name   string
		values []float64
		want   []int // where parts begin
		off    int
	}{
		{"a drop at 15 of 60", steps(60, func(i int) float64 { return []float64{1700, 650}[btoi(i >= 15)] }, 60, 0.2), []int{0, 15}, 0},
		{"a slow start", steps(60, func(i int) float64 { return []float64{500, 1700}[btoi(i >= 8)] }, 60, 0.2), []int{0, 8}, 0},
		{"a dip in the middle", steps(60, func(i int) float64 { return []float64{1000, 400}[btoi(i >= 25 && i < 32)] }, 40, 0.2), []int{0, 25, 32}, 0},
		{"no noise at all", steps(40, func(i int) float64 { return []float64{10, 20}[btoi(i >= 20)] }, 0, 0), []int{0, 20}, 0},
		{"an hour", steps(3600, func(i int) float64 { return []float64{1000, 800}[btoi(i >= 1234)] }, 100, 0.3), []int{0, 1234}, 3},
		{"a drop of waves", steps(600, func(i int) float64 { return []float64{1000, 800}[btoi(i >= 300)] }, 40, 0.8), []int{0, 300}, 9},
		{"less than the least change", steps(600, func(i int) float64 { return []float64{1000, 970}[btoi(i >= 300)] }, 10, 0), []int{0}, 0},
		{"constant", slices.Repeat([]float64{7}, 60), []int{0}, 0},
		{"zeros, then values", steps(60, func(i int) float64 { return []float64{0, 500}[btoi(i >= 30)] }, 0, 0), []int{0, 30}, 0},
		{"a few values", []float64{1, 2, 9}, []int{0}, 0},
	} {
		parts := Parts(c.values, 0.05)
		same := len(parts) == len(c.want)
		for i := 0; same && i < len(parts); i++ {
			same = max(parts[i].Begin-c.want[i], c.want[i]-parts[i].Begin) <= c.off
		}
		if !same {
			t.Errorf("%s: %v, want parts from %v", c.name, parts, c.want)
		}
		if again := Parts(c.values, 0.05); !slices.Equal(parts, again) {
			t.Errorf("%s: %v, then %v", c.name, parts, again)
		}
		for i, p := range parts {
			if sum := mean(c.values[p.Begin:p.End]); p.Mean != sum || p.Begin >= p.End || i > 0 && p.Begin != parts[i-1].End {
				t.Errorf("%s: part %v of mean %v", c.name, p, sum)
			}
		}
	}
	if parts := Parts(nil, 0.05); len(parts) != 0 {
		t.Errorf("of nothing: %v", parts)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
