package analysis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/benchwatch/benchwatch/internal/simulation"
)

// waves returns values around a level; each depends on the previous one.
func waves(random *rand.Rand, n int, level, noise, dependence float64) []float64 {
	values := simulation.Process{Dependence: dependence}.Values(random, n)
	for i, v := range values {
		values[i] = level + noise*v
	}
	return values
}

// processes generate series without a difference.
var processes = []struct {
	name         string
	noise        float64 // over the waves
	isHeavy      bool
	dependencies []float64
}{
	{"normal noise", 0, false, []float64{0, 0.28, 0.53, 0.83, 0.9, 0.95}},
	{"heavy tails, as of latencies", 0, true, []float64{0, 0.28, 0.53, 0.83, 0.9, 0.95}},
	{"waves under as much noise", 1, false, []float64{0.53, 0.83, 0.9, 0.95}},
	{"waves under twice as much noise", 2, false, []float64{0.53, 0.83, 0.9, 0.95}},
	{"heavy tails, waves under as much noise", 1, true, []float64{0.53, 0.83, 0.9, 0.95}},
}

// Pairs of series of the same process differ at the 1 % level in 1 % of the cases at most, for each length and
// dependence; a test that can't guarantee this reports that the series are too short.
func TestMeansOfTheSameProcess(t *testing.T) {
	repeat := simulation.Repeats(t, 25)
	for _, p := range processes {
		all, wrong, wrongTypical := 0, 0, 0
		for _, n := range []int{60, 120, 300, 600, 900} {
			line := fmt.Sprintf("%s, n=%d:", p.name, n)
			for _, dependence := range p.dependencies {
				random := rand.New(rand.NewPCG(uint64(n), uint64(100*dependence)))
				draw := func() []float64 {
					values := simulation.Process{Dependence: dependence, Noise: p.noise}.Values(random, n)
					for i, v := range values {
						if p.isHeavy {
							values[i] = math.Exp(v / 2)
						}
					}
					return values
				}
				unknown, different, typical := 0, 0, 0
				for range repeat {
					a, b := draw(), draw()
					before, okA := NewMean(a, 1)
					after, okB := NewMean(b, 1)
					if !okA || !okB {
						unknown++
					} else if CompareMeans(before, after, 1).Both() <= 0.01 {
						different++
					}
					if sides, ok := CompareTypical(a, b, 1); ok && sides.Both() <= 0.01 {
						typical++
					}
				}
				line += fmt.Sprintf("  %.2f: %.2f, %.2f, ? %.0f", dependence, simulation.Percent(different, repeat), simulation.Percent(typical, repeat), simulation.Percent(unknown, repeat))
				simulation.CheckShare(t, line, different, repeat, 0.01, 4.5) // one of many lines
				simulation.CheckShare(t, line, typical, repeat, 0.01, 4.5)
				all, wrong, wrongTypical = all+repeat, wrong+different, wrongTypical+typical
			}
			t.Log(line)
		}
		simulation.CheckShare(t, p.name, wrong, all, 0.01, 3)
		simulation.CheckShare(t, p.name+", typical", wrongTypical, all, 0.01, 3)
	}
	t.Log("dependence: means called different, typical values called different, too short to tell, in percent")
}

func TestMeansOfTooLittle(t *testing.T) {
	steps := make([]float64, 100)
	for i := range steps {
		steps[i] = float64(i / 50)
	}
	for name, values := range map[string][]float64{"none": nil, "fifteen": make([]float64, 15), "two levels": steps} {
		if m, ok := NewMean(values, 1); ok {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m, ok := NewMean(make([]float64, 16), 1); !ok || m.Error != 0 {
		t.Errorf("sixteen equal values: %+v", m)
	}
}

// An error allows for slow waves that noise may hide in few seconds; the longer the intervals, the
// less of a wave is left from one to the next.
func TestErrorsAllowForHiddenWaves(t *testing.T) {
	values := waves(rand.New(rand.NewPCG(1, 2)), 60, 1000, 40, 0)
	last := math.Inf(1)
	for _, seconds := range []float64{1, 10, 60} {
		m, ok := NewMean(values, seconds)
		if !ok || m.Error >= last || m.Error < m.Shown || m.AsShown().Error != m.Shown {
			t.Errorf("%v s: %+v", seconds, m)
		}
		last = m.Error
	}
	short, _ := NewMean(values, 1)
	if long, _ := NewMean(values, 60); short.Error < 2*short.Shown || long.Error > 1.5*long.Shown {
		t.Errorf("60 values of 1 s %+v, of 60 s %+v", short, long)
	}
}

// The bounds of a ratio have the truth in 99 % of the cases.
func TestRatioBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	outside, repeat := 0, simulation.Repeats(t, 200)
	for range repeat {
		a, okA := NewMean(waves(random, 300, 1000, 40, 0.5), 1)
		b, okB := NewMean(waves(random, 300, 900, 40, 0.5), 1)
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
	simulation.CheckShare(t, "bounds", outside, repeat, 0.01, 3)
	if _, _, ok := RatioBounds(Mean{Freedom: 8}, Mean{Value: 1, Freedom: 8}, 0.005); ok {
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
	got := SumSlow(values, Below(values, 75), 100)
	if got.Count != 4 || got.Times != 3 || got.Longest != 2 || got.From != 0 || math.Abs(got.Lost-0.35) > 1e-9 || math.Abs(got.Level-0.125) > 1e-9 {
		t.Errorf("%+v", got)
	}
	steady, noisy := []float64{100, 101, 99, 100}, []float64{100, 180, 20, 60, 140, 100, 130, 70}
	if a, b := SlowBound(steady), SlowBound(steady, noisy); a != 0.75 || b != 0.1 {
		t.Errorf("%v and %v", a, b)
	}
}

// A slow phase is found at its place; waves, a trend and a stall are not slow phases.
func TestSlowPhases(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	run := func(n int, p simulation.Process, cv float64, level func(i int) float64) []float64 {
		values := p.Values(random, n)
		for i, v := range values {
			values[i] = 1000 * (1 + cv*v) * level(i)
		}
		return values
	}
	phase := func(i int) float64 { return []float64{1, 0.75}[btoi(i >= 200 && i < 350)] }
	isSlow, ok := SlowPhases(run(600, simulation.Process{Dependence: 0.8}, 0.04, phase))
	if !ok {
		t.Fatal("no phase is found")
	}
	if s := SumSlow(make([]float64, 600), isSlow, 1); s.Times != 1 || max(s.From-200, 200-s.From, s.Longest-150, 150-s.Longest) > 12 {
		t.Errorf("%+v", s)
	}
	for name, level := range map[string]func(i int) float64{
		"a trend": func(i int) float64 { return 1 - 0.2*float64(i)/600 },
		"a stall": func(i int) float64 { return []float64{1, 0}[btoi(i >= 200 && i < 230)] },
	} {
		if _, ok := SlowPhases(run(600, simulation.Process{Dependence: 0.3}, 0.04, level)); ok {
			t.Errorf("%s is taken for a slow phase", name)
		}
	}
	repeat, found, all := simulation.Repeats(t, 3), 0, 0
	for _, n := range []int{60, 120, 300, 600, 900} {
		for _, p := range []simulation.Process{{Dependence: 0.5}, {Dependence: 0.8}, {Dependence: 0.95}, {Dependence: 0.8, Noise: 1}, {Dependence: 0.95, Noise: 1}} {
			for range repeat {
				all++
				if _, ok := SlowPhases(run(n, p, 0.1, func(int) float64 { return 1 })); ok {
					found++
				}
			}
		}
	}
	t.Logf("%d of %d series without a phase have one", found, all)
	simulation.CheckShare(t, "waves taken for phases", found, all, 0.002, 3)
}

// Series of the same process, however dependent, are apart in one of a thousand pairs at most; other
// levels are.
func TestApart(t *testing.T) {
	repeat := simulation.Repeats(t, 200)
	all, apart := 0, 0
	for _, n := range []int{8, 15, 30, 60, 120, 300, 600} {
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
	simulation.CheckShare(t, "apart", apart, all, 0.001, 3)
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
	// Few seconds are apart only if the levels are far from each other, whatever single ones do.
	low, high := []float64{170, 166, 29, 201, 161, 296, 209, 203}, []float64{178, 1005, 585, 1216, 1279, 1286, 1783, 1649}
	if isLower, ok := Apart(low, high); !ok || isLower {
		t.Errorf("%v, %v: %v, %v", low, high, isLower, ok)
	}
	if isLower, ok := Apart(high, low); !ok || !isLower {
		t.Errorf("%v, %v: %v, %v", high, low, isLower, ok)
	}
	if _, ok := Apart(low[1:], high); ok {
		t.Error("seven values are apart")
	}
	if _, ok := Apart([]float64{100, 101, 99, 100, 102, 98, 100, 101}, []float64{200, 202, 199, 200, 201, 203, 200, 198}); ok {
		t.Error("eight values are apart by a factor of 2")
	}
}
