package analysis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// simulations is how many pairs of series each cell of the tables has: BENCHWATCH_SIMULATIONS, as
// make simulations sets it, or few.
func simulations(t *testing.T, few int) int {
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

// waves returns values around a level; each depends on the previous one.
func waves(random *rand.Rand, n int, level, noise, dependence float64) []float64 {
	values, state := make([]float64, n), random.NormFloat64()
	for i := range values {
		if i > 0 {
			state = dependence*state + math.Sqrt(1-dependence*dependence)*random.NormFloat64()
		}
		values[i] = level + noise*state
	}
	return values
}

// processes generate series without a difference.
var processes = []struct {
	name string
	draw func(random *rand.Rand, n int, dependence float64) []float64
}{
	{"normal noise", func(r *rand.Rand, n int, d float64) []float64 { return waves(r, n, 1000, 40, d) }},
	{"heavy tails, as of latencies", func(r *rand.Rand, n int, d float64) []float64 {
		values := waves(r, n, 0, 0.5, d)
		for i, v := range values {
			values[i] = math.Exp(v)
		}
		return values
	}},
}

// Pairs of series of the same process differ at the 1 % level in 1 % of the cases at most, for
// each length and dependence; a test that can't hold that says that the series are too short.
func TestMeansOfTheSameProcess(t *testing.T) {
	repeat := simulations(t, 100)
	for _, p := range processes {
		all, wrong, wrongTypical := 0, 0, 0
		for _, n := range []int{60, 120, 300, 600, 900} {
			line := fmt.Sprintf("%s, n=%d:", p.name, n)
			for _, dependence := range []float64{0, 0.28, 0.53, 0.83, 0.9, 0.95} {
				random := rand.New(rand.NewPCG(uint64(n), uint64(100*dependence)))
				unknown, different, typical := 0, 0, 0
				for range repeat {
					a, b := p.draw(random, n, dependence), p.draw(random, n, dependence)
					before, okA := NewMean(a)
					after, okB := NewMean(b)
					if !okA || !okB {
						unknown++
					} else if CompareMeans(before, after, 1).Both() <= 0.01 {
						different++
					}
					if sides, ok := CompareTypical(a, b); ok && sides.Both() <= 0.01 {
						typical++
					}
				}
				line += fmt.Sprintf("  %.2f: %.2f, %.2f, ? %.0f", dependence, inPercent(different, repeat), inPercent(typical, repeat), inPercent(unknown, repeat))
				checkLevel(t, line, different, repeat, 4.5) // one of many lines
				checkLevel(t, line, typical, repeat, 4.5)
				all, wrong, wrongTypical = all+repeat, wrong+different, wrongTypical+typical
			}
			t.Log(line)
		}
		checkLevel(t, p.name, wrong, all, 3)
		checkLevel(t, p.name+", typical", wrongTypical, all, 3)
	}
	t.Log("dependence: means called different, typical values called different, too short to tell, in percent")
}

func inPercent(n, of int) float64 { return 100 * float64(n) / float64(of) }

// checkLevel fails if so many of all pairs are not to be expected at the 1 % level, with so many
// standard errors.
func checkLevel(t *testing.T, what string, n, all int, errors float64) {
	t.Helper()
	if most := 0.01*float64(all) + errors*math.Sqrt(0.01*0.99*float64(all)); float64(n) > most {
		t.Errorf("%s: %d of %d differ", what, n, all)
	}
}

func TestMeansOfTooLittle(t *testing.T) {
	steps := make([]float64, 100)
	for i := range steps {
		steps[i] = float64(i / 50)
	}
	for name, values := range map[string][]float64{"none": nil, "fifteen": make([]float64, 15), "two levels": steps} {
		if m, ok := NewMean(values); ok {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m, ok := NewMean(make([]float64, 16)); !ok || m.Error != 0 {
		t.Errorf("sixteen equal values: %+v", m)
	}
}

// The bounds of a ratio have the truth in 99 % of the cases.
func TestRatioBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	outside, repeat := 0, simulations(t, 200)
	for range repeat {
		a, okA := NewMean(waves(random, 300, 1000, 40, 0.5))
		b, okB := NewMean(waves(random, 300, 900, 40, 0.5))
		if !okA || !okB {
			continue // by chance too dependent
		}
		low, high, ok := RatioBounds(a, b, 0.005)
		if !ok || low >= high {
			t.Fatalf("%v to %v, %v", low, high, ok)
		}
		if low > 0.9 || high < 0.9 {
			outside++
		}
	}
	checkLevel(t, "bounds", outside, repeat, 3)
	if _, _, ok := RatioBounds(Mean{0, 0, 8}, Mean{1, 0, 8}, 0.005); ok {
		t.Error("a ratio to 0 has bounds")
	}
}

func TestCompareRanks(t *testing.T) {
	low, high := []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}
	if s := CompareRanks(low, high); math.Abs(s.Higher-1.0/70) > 1e-9 || math.Abs(s.Both()-2.0/70) > 1e-9 || s.Lower != 1 {
		t.Errorf("%+v", s)
	}
	if s := CompareRanks([]float64{1, 1}, []float64{1, 1}); s.Both() != 1 {
		t.Errorf("%+v", s)
	}
}

func TestSlowValues(t *testing.T) {
	values := []float64{0, 0, 100, 100, 50, 100, 100, 100, 100, 0}
	got := SlowValues(values, 75, 100)
	if got.Count != 4 || got.Times != 3 || got.Longest != 2 || math.Abs(got.Lost-0.35) > 1e-9 || math.Abs(got.Level-0.125) > 1e-9 {
		t.Errorf("%+v", got)
	}
	steady, noisy := []float64{100, 101, 99, 100}, []float64{100, 180, 20, 60, 140, 100, 130, 70}
	if a, b := SlowBound(steady), SlowBound(steady, noisy); a != 0.75 || b != 0.1 {
		t.Errorf("%v and %v", a, b)
	}
}

// Series of the same process, however dependent, are apart in one of a thousand pairs at most; other
// levels are.
func TestApart(t *testing.T) {
	repeat := simulations(t, 200)
	all, apart := 0, 0
	for _, n := range []int{60, 120, 300, 600} {
		for _, dependence := range []float64{0.83, 0.9, 0.95} {
			random := rand.New(rand.NewPCG(uint64(n), uint64(100*dependence)))
			for range repeat {
				a, b := waves(random, n, 1000, 40, dependence), waves(random, n, 1000, 40, dependence)
				all++
				if _, ok := Apart(a, b); ok {
					apart++
				}
			}
		}
	}
	t.Logf("%d of %d are apart", apart, all)
	if most := 0.001*float64(all) + 3*math.Sqrt(0.001*float64(all)); float64(apart) > most {
		t.Errorf("%d of %d are apart", apart, all)
	}
	random := rand.New(rand.NewPCG(1, 2))
	a, b := waves(random, 300, 1000, 20, 0.95), waves(random, 300, 500, 20, 0.95)
	if isLower, ok := Apart(a, b); !ok || !isLower {
		t.Errorf("half of it: %v, %v", isLower, ok)
	}
	if isLower, ok := Apart(b, a); !ok || isLower {
		t.Errorf("twice of it: %v, %v", isLower, ok)
	}
	if _, ok := Apart(a[:39], b); ok {
		t.Error("39 values have eighths")
	}
}
