package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/internal/simulation"
)

// runSimulator makes runs whose true difference is known.
type runSimulator struct {
	*rand.Rand
	simulation.Process
	n         int
	cv        float64
	isLatency bool // lognormal
}

const simulatedLevel = 1000

// run returns the values of one run: an autoregressive process of order 1 around a level.
func (s *runSimulator) run() []float64 {
	values := s.Values(s.Rand, s.n)
	for i, v := range values {
		if s.isLatency {
			values[i] = simulatedLevel * math.Exp(s.cv*v)
		} else {
			values[i] = simulatedLevel * (1 + s.cv*v)
		}
	}
	return values
}

// phases multiplies length of every period values by factor, from a random one on.
func (s *runSimulator) phases(values []float64, length, period int, factor float64) []float64 {
	start := s.IntN(period)
	for i := range values {
		if (i+start)%period < length {
			values[i] *= factor
		}
	}
	return values
}

// event multiplies one stretch of values at a random place by factor.
func (s *runSimulator) event(values []float64, length int, factor float64) []float64 {
	start := s.IntN(len(values) - length + 1)
	for i := range length {
		values[start+i] *= factor
	}
	return values
}

// trend multiplies values by a factor that goes from 1 to last.
func trend(values []float64, last float64) []float64 {
	for i := range values {
		values[i] *= 1 + (last-1)*float64(i)/float64(len(values)-1)
	}
	return values
}

// step multiplies the second half of values by a factor.
func step(values []float64, factor float64) []float64 {
	times(values[len(values)/2:], factor)
	return values
}

// regressions lower the throughput of 600 seconds.
var regressions = []struct {
	name string
	make func(*runSimulator) []float64
}{
	{"evenly, -5 %", func(s *runSimulator) []float64 { return times(s.run(), 0.95) }},
	{"evenly, -10 %", func(s *runSimulator) []float64 { return times(s.run(), 0.90) }},
	{"4 s of 50 at 0", func(s *runSimulator) []float64 { return s.phases(s.run(), 4, 50, 0) }},
	{"10 s of 100 at 0", func(s *runSimulator) []float64 { return s.phases(s.run(), 10, 100, 0) }},
	{"one stall of 60 s", func(s *runSimulator) []float64 { return s.event(s.run(), 60, 0) }},
	{"half speed, 12 s a minute", func(s *runSimulator) []float64 { return s.phases(s.run(), 12, 60, 0.5) }},
	{"six slow phases of 20 s", func(s *runSimulator) []float64 {
		values := s.run()
		for i := range 6 { // one in each sixth, at random
			copy(values[i*100:], s.event(values[i*100:(i+1)*100], 20, 0.5))
		}
		return values
	}},
	{"one slow phase of 200 s", func(s *runSimulator) []float64 { return s.event(s.run(), 200, 0.7) }},
	{"the second half at 80 %", func(s *runSimulator) []float64 { return step(s.run(), 0.8) }},
	{"a trend to -20 %", func(s *runSimulator) []float64 { return trend(s.run(), 0.8) }},
}

func times(values []float64, factor float64) []float64 {
	for i := range values {
		values[i] *= factor
	}
	return values
}

// checked compares two runs and applies a limit.
func checked(t *testing.T, before, after Group, text string) (Sample, ConditionResult) {
	t.Helper()
	limit, err := review.ParseRelative(text)
	if err != nil {
		t.Fatal(err)
	}
	groups := []Group{before, after}
	c := Compare(groups, []string{"via"})
	c.Check([]*review.Condition{limit}, groups)
	for _, l := range c.Lines {
		if l.Measure == limit.Name() {
			return l.Samples[1], c.Conditions[0]
		}
	}
	t.Fatalf("no %s in %+v", limit.Name(), c.Lines)
	return Sample{}, ConditionResult{}
}

// Regressions of two single runs of 600 s are found and break a limit of 3 %, whatever their
// shape, if the seconds depend on each other as in three of four public runs: regressions of
// 8 % and more in nine of ten pairs. None is called alike or held.
func TestRegressionsOfSingleRuns(t *testing.T) {
	repeat := simulation.Repeats(t, 10)
	for _, phi := range []float64{0.3, 0.8} {
		for _, r := range regressions {
			s := &runSimulator{Rand: rand.New(rand.NewPCG(1, 2)), n: 600, Process: simulation.Process{Dependence: phi}, cv: 0.04}
			verdicts, results := map[Verdict]int{}, map[Result]int{}
			for range repeat {
				sample, limit := checked(t, single("before", s.run()), single("after", r.make(s)), "tps<-3%")
				verdicts[sample.Verdict]++
				results[limit.Result]++
			}
			line := fmt.Sprintf("%s, phi %.1f: %v, %v", r.name, phi, verdicts, results)
			t.Log(line)
			if verdicts[RunsAlike] > 0 || results[Held] > 0 || 10*(verdicts[RunsDiffer]+verdicts[RunsStall]) < 9*repeat {
				t.Errorf("not found: %s", line)
			}
			if r.name != regressions[0].name && 10*results[Broken] < 9*repeat {
				t.Errorf("not broken: %s", line)
			}
		}
	}
}

// Two runs of the same process differ in 1 % of the pairs at most, and break a limit of 3 % in no
// more, whatever their length and dependence; latencies too, whose tail is heavy, and slow waves
// under a fast noise.
func TestSingleRunsOfTheSameProcess(t *testing.T) {
	repeat := simulation.Repeats(t, 3)
	for _, p := range []struct {
		name      string
		isLatency bool
		noise     float64
	}{{"throughput", false, 0}, {"p95", true, 0}, {"throughput under noise", false, 1}} {
		cv, limit, simulate := 0.04, "tps<-3%", single
		if p.isLatency {
			cv, limit, simulate = 0.3, "p95>+3%", singleLatency
		}
		all, different, broken := 0, 0, 0
		for _, n := range []int{60, 120, 300, 600, 900} {
			line := fmt.Sprintf("%s, n=%d:", p.name, n)
			for _, phi := range []float64{0, 0.28, 0.53, 0.83, 0.9, 0.95} {
				s := &runSimulator{Rand: rand.New(rand.NewPCG(uint64(n), uint64(100*phi))), n: n, Process: simulation.Process{Dependence: phi, Noise: p.noise}, cv: cv, isLatency: p.isLatency}
				found, short := 0, 0
				for range repeat {
					sample, result := checked(t, simulate("before", s.run()), simulate("after", s.run()), limit)
					switch sample.Verdict {
					case RunsDiffer, RunsApart, RunsStall:
						found++
					case TooShort:
						short++
					}
					if result.Result == Broken {
						broken++
					}
				}
				line += fmt.Sprintf("  %.2f: %.2f, ? %.0f", phi, simulation.Percent(found, repeat), simulation.Percent(short, repeat))
				simulation.CheckShare(t, line, found, repeat, 0.01, 4.5) // one of many lines
				all, different = all+repeat, different+found
			}
			t.Log(line)
		}
		t.Logf("%s: of %d pairs %d differ, %d break a limit", p.name, all, different, broken)
		simulation.CheckShare(t, p.name+", different", different, all, 0.01, 3)
		simulation.CheckShare(t, p.name+", broken", broken, all, 0.01, 3)
	}
	t.Log("dependence: called different, too short to tell, in percent")
}

// A tail that grows is found: the p99 of each interval by 10 %, or of some intervals.
func TestTailsOfSingleRuns(t *testing.T) {
	repeat := simulation.Repeats(t, 10)
	for name, slower := range map[string]func(*runSimulator) []float64{
		"each by 10 %":       func(s *runSimulator) []float64 { return times(s.run(), 1.1) },
		"12 s a minute by 3": func(s *runSimulator) []float64 { return s.phases(s.run(), 12, 60, 3) },
	} {
		for _, phi := range []float64{0, 0.5, 0.8} {
			s := &runSimulator{Rand: rand.New(rand.NewPCG(600, uint64(100*phi))), n: 600, Process: simulation.Process{Dependence: phi}, cv: 0.1, isLatency: true}
			found := map[Verdict]int{}
			for range repeat {
				sample, result := checked(t, singleLatency("before", s.run()), singleLatency("after", slower(s)), "p95>+3%")
				found[sample.Verdict]++
				if sample.Ratio.Value > 1.03 && result.Result == Held {
					t.Errorf("held: %+v", result)
				}
			}
			t.Logf("%s, phi %.1f: %v", name, phi, found)
			if 10*found[RunsDiffer] < 9*repeat || found[RunsAlike] > 0 {
				t.Errorf("%s, phi %.1f: %v", name, phi, found)
			}
		}
	}
}

// The words name what makes up a difference.
func TestShapes(t *testing.T) {
	s := &runSimulator{Rand: rand.New(rand.NewPCG(1, 2)), n: 600, Process: simulation.Process{Dependence: 0.3}, cv: 0.04}
	for _, c := range []struct {
		name          string
		before, after []float64
		kind          ShapeKind
		want          string
	}{
		{"stalls", s.run(), s.phases(s.run(), 4, 50, 0), Stalls, "48 s of 600 s stand still, "},
		{"one stall", s.run(), s.event(s.run(), 60, 0), Stalls, "one stall of at least 60 s at "},
		{"a stall of the baseline", s.event(s.run(), 60, 0), s.run(), Stalls, " in the baseline; the other seconds are alike"},
		{"slow phases", s.run(), s.phases(s.run(), 12, 60, 0.5), SlowPhases, "120 s of 600 s run at 50 %, 1"},
		{"evenly", s.run(), times(s.run(), 0.9), Even, "evenly over the run"},
		{"one slow phase", s.run(), s.event(s.run(), 200, 0.7), SlowPhases, "one slow phase of 2"},
		{"the second half", s.run(), step(s.run(), 0.8), SlowPhases, "at 80 %; the other seconds are alike"},
		{"fast seconds only", s.run(), s.phases(s.run(), 30, 60, 0.8), Uneven, "the slower half of the seconds by -1"},
		{"a trend", s.run(), trend(s.run(), 0.8), Drift, "the run changes by -1"},
		{"stalls and evenly", s.run(), times(s.phases(s.run(), 6, 50, 0), 0.93), Stalls, "the other seconds differ by -"},
	} {
		sample, limit := checked(t, single("before", c.before), single("after", c.after), "tps<-3%")
		if sample.Shape == nil || sample.Shape.Kind != c.kind || !strings.Contains(sample.shapeText(), c.want) {
			t.Errorf("%s: %q, %+v", c.name, sample.shapeText(), sample.Shape)
		}
		if !strings.Contains(limit.Reason, c.want) {
			t.Errorf("%s: %s", c.name, limit.Reason)
		}
	}
	// The typical second differs, the mean does not: most seconds are faster, some are stalls.
	sample, _ := checked(t, single("before", s.run()), single("after", times(s.phases(s.run(), 4, 50, 0), 1.087)), "tps<-3%")
	if want := "the typical interval differs by +"; !strings.Contains(sample.shapeText(), want) {
		t.Errorf("%q, %+v", sample.shapeText(), sample.Shape)
	}
}
