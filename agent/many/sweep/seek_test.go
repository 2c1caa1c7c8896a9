package sweep

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// searching runs a search in which holds reports whether a value is within the conditions. Each step is decided from
// the stored state alone.
func searching(t *testing.T, k Seek, repeat int, holds func(value int) bool) (*Found, int) {
	t.Helper()
	s := &Sweep{Sets: []Set{{Name: "rate"}}, Repeat: repeat, Seek: &k}
	steps := 0
	for s.Extend() {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		s = &Sweep{}
		if err := json.Unmarshal(data, s); err != nil {
			t.Fatal(err)
		}
		if steps++; steps > 200 {
			t.Fatal("the search does not end")
		}
		step := s.Next()
		value, _ := strconv.Atoi(step.Values["rate"])
		step.State, step.Judgement = Done, Beyond
		if holds(value) {
			step.Judgement = Within
		}
	}
	return s.seekResult(), steps
}

func TestSeekFindsTheLimit(t *testing.T) {
	for _, limit := range []int{1, 2, 99, 100, 101, 137, 1000, 1023, 87654} {
		f, steps := searching(t, Seek{From: 1, Precision: 0.05, SubjectTo: []string{"p99<20ms"}}, 1, func(v int) bool { return v <= limit })
		if f.Value > limit || f.Beyond <= limit || f.Beyond-f.Value > 1 && float64(f.Beyond) > 1.05*float64(f.Value) {
			t.Errorf("limit %d: %d to %d", limit, f.Value, f.Beyond)
		}
		if steps > 26 {
			t.Errorf("limit %d: %d steps", limit, steps)
		}
	}
}

func TestSeekAtItsBounds(t *testing.T) {
	if f, steps := searching(t, Seek{From: 100, Precision: 0.05}, 1, func(int) bool { return false }); f.Value != 0 || steps != 1 {
		t.Errorf("nothing holds: %+v after %d steps", f, steps)
	}
	if f, steps := searching(t, Seek{From: 100, To: 500, Precision: 0.05}, 1, func(int) bool { return true }); f.Value != 500 || steps != 4 || f.Beyond != 0 {
		t.Errorf("all hold: %+v after %d steps", f, steps)
	}
}

// If chance decides, repeats find a value near the limit, and the search ends.
func TestSeekWithNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	for range 100 {
		f, _ := searching(t, Seek{From: 100, Precision: 0.05}, 3, func(v int) bool { return float64(v)*(1+0.03*random.NormFloat64()) <= 1000 })
		if f.Value < 850 || f.Value > 1150 {
			t.Errorf("%d to %d", f.Value, f.Beyond)
		}
	}
}

func TestSeekJudges(t *testing.T) {
	conditions, err := ParseSubjectTo("p99 < 20ms, errors < 0.1%,")
	if err != nil || len(conditions) != 2 {
		t.Fatal(conditions, err)
	}
	k := Seek{SubjectTo: conditions}
	row := func(tps, p99, failed float64) review.Row {
		return review.Row{DurationSeconds: 10, Values: tool.Values{{Measure: tool.Throughput, Value: tps}}, Latency: map[string]float64{"p99": p99}, FailedShare: series.Some(failed)}
	}
	for name, c := range map[string]struct {
		row  review.Row
		want Judgement
		text string
	}{
		"within":       {row(999, 0.019, 0.0005), Within, "p99 < 20ms: 19.00 ms, errors < 0.1%: 0.05 %"},
		"slow":         {row(999, 0.021, 0), Beyond, "p99 < 20ms: 21.00 ms, errors < 0.1%: 0 %"},
		"errors":       {row(999, 0.001, 0.01), Beyond, "p99 < 20ms: 1.00 ms, errors < 0.1%: 1 %"},
		"by chance":    {row(975, 0.001, 0), Within, "p99 < 20ms: 1.00 ms, errors < 0.1%: 0 %"},
		"falls behind": {row(900, 0.001, 0), Beyond, "p99 < 20ms: 1.00 ms, errors < 0.1%: 0 %, 900.00 of 1000 tps reached"},
	} {
		step := Step{}
		if err := k.setJudgement(&step, &c.row, 1000); err != nil || step.Judgement != c.want || step.Reason != c.text {
			t.Errorf("%s: %s: %q, %v", name, step.Judgement, step.Reason, err)
		}
	}
	unknown := review.Row{Values: tool.Values{{Measure: tool.Throughput, Value: 1.0}}}
	if err := k.setJudgement(&Step{}, &unknown, 0); err == nil {
		t.Error("an unknown value is judged")
	}
	for _, bad := range []string{"", ",", "p99", "p99<20", "speed<1"} {
		if c, err := ParseSubjectTo(bad); err == nil {
			t.Errorf("%q is read as %v", bad, c)
		}
	}
	for _, bad := range []Seek{{From: 0, Precision: 0.1}, {From: 10, To: 5, Precision: 0.1}, {From: 10, Precision: 0}} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
