package ab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func twoArms(seed uint64) *Plan {
	return &Plan{
		Arms: []Arm{{Name: "a", Values: map[string]string{"host": "db1"}}, {Name: "b", Values: map[string]string{"host": "db2"}}},
		Seed: seed, Measure: "tps", Limit: 0.05, MaxSeconds: 3600,
	}
}

// Both blocks of each pair follow a block of the same arm, the time of a round does not depend on the order, both orders
// are about equally frequent, and the order depends on the seed only.
func TestOrder(t *testing.T) {
	orders := map[string]int{}
	for seed := range uint64(20) {
		p := twoArms(seed)
		s := &sweep.Sweep{}
		for range 12 {
			p.Extend(s)
		}
		again := &sweep.Sweep{}
		for range 12 {
			twoArms(seed).Extend(again)
		}
		order := ""
		for i := range s.Steps {
			step := &s.Steps[i]
			arm := step.Values["arm"]
			if arm != again.Steps[i].Values["arm"] {
				t.Fatalf("seed %d: the order differs", seed)
			}
			if want := map[string]string{"a": "db1", "b": "db2", Control: "db1"}[arm]; step.Values["host"] != want {
				t.Errorf("block of %s has %v", arm, step.Values)
			}
			step.State, step.Measured = sweep.Done, map[string]float64{"tps": 1}
			if i == 0 && !step.Warmup {
				t.Error("the first block counts, which follows nothing")
			}
			order += arm[:1]
		}
		blocks := Blocks(s)
		for i := range blocks {
			if isLead := i%(1+BlocksOfRound) == 0; isLead != (blocks[i].Round < 0) {
				t.Errorf("seed %d: block %d is in round %d", seed, i, blocks[i].Round)
			}
		}
		for _, arm := range []string{"b", Control} {
			pairs := p.pairs(blocks, arm)
			if want := map[string]int{"b": 16, Control: 8}[arm]; len(pairs) != want {
				t.Errorf("%d pairs of %s, want %d", len(pairs), arm, want)
			}
			for _, pair := range pairs {
				if pair[0].Arm != "a" || pair[1].Arm != arm {
					t.Errorf("a pair of %s and %s", pair[0].Arm, pair[1].Arm)
				}
			}
		}
		for i := 1; i < len(blocks); i++ {
			if blocks[i].Round < 0 || positionInRound(blocks, i) > 0 {
				continue
			}
			for _, first := range []int{i, i + 2} { // of a pair, whose second block follows the first
				before, x, y := p.alias(blocks[first-1].Arm), p.alias(blocks[first].Arm), p.alias(blocks[first+1].Arm)
				if before != x {
					t.Errorf("seed %d: of the pair %s %s the first follows %s, the second %s", seed, x, y, before, x)
				}
			}
		}
		orders[order]++
	}
	if len(orders) < 15 {
		t.Errorf("20 seeds have %d orders", len(orders))
	}
}

func positionInRound(blocks []Block, i int) int {
	n := 0
	for j := i - 1; j >= 0 && blocks[j].Round == blocks[i].Round; j-- {
		n++
	}
	return n
}

// What a block of the second arm takes from the next one, whichever that is, does not move the ratio.
func TestCarryOver(t *testing.T) {
	for _, effect := range []float64{1, 0.95} {
		sum, n := 0.0, 0
		for seed := range uint64(40) {
			one := newTrial(&machine{dependence: 0.3}, seed, effect)
			one.carryOver = 0.1
			one.run(func() bool { return len(one.blocks) < 60 })
			e := one.plan.Compare(one.blocks, "tps")
			sum += math.Log(e.Arms[0].Ratio.Value / effect)
			n++
			if e.Control.Verdict == Different {
				t.Errorf("seed %d: a differs from itself: %s", seed, e.Control.text())
			}
		}
		if bias := sum / float64(n); math.Abs(bias) > 0.004 {
			t.Errorf("effect %g: the ratio is off by %.2f %% on average", effect, 100*bias)
		}
	}
}

// A comparison ends when it is decided, when its time is over, or when an arm fails again and again; a
// block without a result loses its pair, and is counted.
func TestCourse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	run := func(p *Plan, value func(arm string, number int) float64) (*sweep.Sweep, string) {
		s := &sweep.Sweep{ID: "x"}
		p.Extend(s)
		for step := s.Next(); step != nil; step = s.Next() {
			step.State, step.Seconds = sweep.Done, 10
			var row *review.Row
			if v := value(step.Values["arm"], step.Number); v > 0 {
				row = &review.Row{}
				row.Values.Set(tool.Throughput, series.Some(v*(1+0.02*random.NormFloat64())))
			} else {
				step.State, step.Reason = sweep.Failed, "it broke"
			}
			p.Judge(s, step, row)
			if s.Next() == nil {
				p.Extend(s)
			}
		}
		return s, p.Over(Blocks(s))
	}
	same := func(string, int) float64 { return 1000 }
	slower := func(arm string, _ int) float64 { return map[string]float64{"a": 1000, Control: 1000, "b": 900}[arm] }
	for _, c := range []struct {
		name    string
		plan    func(*Plan)
		value   func(string, int) float64
		over    string
		verdict Verdict
	}{
		{"slower", func(*Plan) {}, slower, "decided", Different},
		{"the same", func(*Plan) {}, same, "decided", Equivalent},
		{"out of time", func(p *Plan) { p.MaxSeconds = 100 }, same, "the time of 1m40s is over", Undecided},
		{"a broken arm", func(*Plan) {}, func(arm string, _ int) float64 { return map[string]float64{"a": 1, Control: 1}[arm] }, "b failed 2 times in a row: it broke", Undecided},
		{"a limit that is not reached", func(p *Plan) { p.FailIf = []string{"tps<-20%"} }, slower, "decided", Different},
		{"without control", func(p *Plan) { p.NoControl = true }, slower, "decided", Different},
		{"lost blocks", func(*Plan) {}, func(arm string, n int) float64 {
			if n%9 == 0 {
				return 0
			}
			return slower(arm, n)
		}, "decided", Different},
	} {
		p := twoArms(3)
		c.plan(p)
		s, over := run(p, c.value)
		r := p.Result("x", Blocks(s), nil)
		if over != c.over || r.Verdict != c.verdict {
			t.Errorf("%s: %q, %s: %v", c.name, over, r.Verdict, r.Summary)
		}
		if c.name == "lost blocks" && (!strings.Contains(strings.Join(r.Trust, "\n"), "3 pairs lost") || len(r.Failures()) != 3) {
			t.Errorf("lost blocks are not reported: %+v", r.Trust)
		}
		if c.name == "out of time" && !strings.Contains(r.Summary[0], " of the 6 pairs that a verdict needs: make --max-time longer") {
			t.Errorf("what is missing is not said: %s", r.Summary[0])
		}
		if len(p.FailIf) > 0 && r.Check(Blocks(s))[0].Result != "held" {
			t.Errorf("%s: %+v", c.name, r.Comparison.Conditions)
		}
		t.Logf("%s: %s; %d blocks", c.name, r.Summary[0], len(s.Steps))
	}
}

// What happened to blocks of one arm is said.
func TestIncidents(t *testing.T) {
	p := twoArms(1)
	s := &sweep.Sweep{ID: "x"}
	for range len(p.cycle()) {
		p.Extend(s)
	}
	rows := map[int]review.Row{}
	for i := range s.Steps {
		step := &s.Steps[i]
		step.State, step.RunID, step.Measured = sweep.Done, fmt.Sprint(i), map[string]float64{"tps": 1}
		row := review.Row{ID: step.RunID}
		if step.Values["arm"] == "b" {
			row.FailedShare = series.Some(0.02)
			row.ClockSteps = []rundir.ClockStep{{Seconds: -30}}
			row.Servers = []review.Server{{Target: "db1", Restarts: 1}}
		}
		if !step.Warmup {
			rows[i] = row
		}
	}
	text := strings.Join(p.Result("x", Blocks(s), rows).Trust, "\n")
	for _, want := range []string{"the clock was set by -30 s during ", "do not fail equally often, which is part of the result: a 0 %, b 2 %", "db1 restarted in 4 blocks of b"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said:\n%s", want, text)
		}
	}
}
