package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func set(t *testing.T, text string) Set {
	t.Helper()
	s, err := ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func describe(sets []Set, steps []Step) string {
	words := make([]string, len(steps))
	for i, s := range steps {
		words[i] = Describe(sets, s.Values)
		if s.Warmup {
			words[i] += " warm-up"
		}
	}
	return strings.Join(words, "; ")
}

// TestPlan guards the steps: all combinations, round by round.
func TestPlan(t *testing.T) {
	sets := []Set{set(t, "threads=1, 2"), set(t, "mode=a,b")}
	steps, err := Plan(sets, 2, Given, true)
	if err != nil {
		t.Fatal(err)
	}
	round := "threads=1 mode=a; threads=1 mode=b; threads=2 mode=a; threads=2 mode=b"
	if got := describe(sets, steps); got != "threads=1 mode=a warm-up; "+round+"; "+round {
		t.Error(got)
	}
	for i, s := range steps {
		if s.Number != i+1 || s.State != Pending {
			t.Errorf("step %+v", s)
		}
	}
	if _, err := Plan([]Set{set(t, "threads=1,2,3,4,5")}, 1_000_000_000, Given, false); err == nil {
		t.Error("five billion steps")
	}
}

// TestRandomOrder guards that each round has every combination once.
func TestRandomOrder(t *testing.T) {
	sets := []Set{set(t, "threads=1,2,3,4,5,6,7,8,9,10,11,12")}
	steps, err := Plan(sets, 3, Random, false)
	if err != nil {
		t.Fatal(err)
	}
	given, _ := Plan(sets, 3, Given, false)
	if describe(sets, steps) == describe(sets, given) {
		t.Error("the order is the one given")
	}
	for round := range slices.Chunk(steps, 12) {
		words := strings.Split(describe(sets, round), "; ")
		slices.Sort(words)
		if len(slices.Compact(words)) != 12 {
			t.Errorf("round %v", words)
		}
	}
}

// TestSkip guards that only combinations with more threads and otherwise equal values are skipped,
// in any order.
func TestSkip(t *testing.T) {
	s := &Sweep{Sets: []Set{set(t, "threads=16,4,8"), set(t, "mode=a,b")}}
	s.Steps, _ = Plan(s.Sets, 2, Given, true)
	met := &s.Steps[slices.IndexFunc(s.Steps, func(x Step) bool { return !x.Warmup && Describe(s.Sets, x.Values) == "threads=8 mode=a" })]
	met.State = Done
	if n := s.Skip(met, "p95"); n != 2 {
		t.Errorf("%d steps skipped", n)
	}
	for _, step := range s.Steps {
		skipped := !step.Warmup && step.Values["threads"] == "16" && step.Values["mode"] == "a"
		if (step.State == Skipped) != skipped {
			t.Errorf("step %+v", step)
		}
	}
}

// TestSweepOnDisk guards the state of a sweep after a restart.
func TestSweepOnDisk(t *testing.T) {
	data := t.TempDir()
	s := &Sweep{ID: "s", CreatedAt: time.Now().UTC(), Sets: []Set{set(t, "threads=1,2")}, Repeat: 1, Commands: Commands{Command: []string{"x", "{threads}"}}}
	s.Steps, _ = Plan(s.Sets, 1, Given, false)
	if err := create(data, s); err != nil {
		t.Fatal(err)
	}
	if err := create(data, s); err == nil {
		t.Error("one id twice")
	}
	release, err := s.Claim()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(data, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Claim(); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("claimed twice: %v", err)
	}
	release()
	step := again.Next()
	again.NewAttempt(step)
	if step.RunID != "s-001" || step.State != Running {
		t.Errorf("step %+v", step)
	}
	if err := again.Save(); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(data); err != nil || s.Next().RunID != "s-001" {
		t.Errorf("%v: %+v", err, s.Steps)
	}
	s.NewAttempt(s.Next())
	if id := s.Next().RunID; id != "s-001-try2" {
		t.Errorf("second attempt %s", id)
	}
	if ids, err := List(data); err != nil || len(ids) != 1 {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestLeft(t *testing.T) {
	s := &Sweep{CooldownSeconds: 5}
	s.Steps = []Step{{State: Done, Seconds: 10}, {State: Failed, Seconds: 20}, {State: Skipped}, {State: Pending}, {State: Pending}}
	if got := s.Left(0); got != 35*time.Second {
		t.Errorf("%v left", got)
	}
	s.Steps = s.Steps[3:]
	if got := s.Left(time.Minute); got != 125*time.Second {
		t.Errorf("%v left before the first step", got)
	}
}

// measured returns the result of a sweep over threads with these throughputs.
func measured(t *testing.T, repeat int, tps map[int]float64) Result {
	t.Helper()
	var values []string
	for n := range tps {
		values = append(values, fmt.Sprint(n))
	}
	slices.SortFunc(values, func(a, b string) int { return len(a)*10 + strings.Compare(a, b) - len(b)*10 })
	s := &Sweep{ID: "s", Sets: []Set{set(t, "threads="+strings.Join(values, ","))}}
	s.Steps, _ = Plan(s.Sets, repeat, Given, false)
	rows := map[string]review.Row{}
	for i := range s.Steps {
		step := &s.Steps[i]
		s.NewAttempt(step)
		step.State = Done
		var n int
		fmt.Sscan(step.Values["threads"], &n)
		v := tps[n] + float64(step.Repeat)
		rows[step.RunID] = review.Row{Values: tool.Values{{Measure: tool.Throughput, Value: v}}, Latency: map[string]float64{"p95": float64(n) / 1000}}
	}
	return s.Results(rows, compare.ByMedian)
}

// TestAdvice guards the sentences about the number of threads.
func TestAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		tps    map[int]float64
		repeat int
		want   []string
	}{
		"past its peak": {map[int]float64{1: 100, 2: 195, 4: 370, 8: 660, 16: 1000, 32: 1040, 64: 700}, 3,
			[]string{"best: 32 threads, 1042.00 tps, p95 32.00 ms", "knee: 16 threads: 96 % of the best throughput with 50 % of its threads, p95 16.00 ms", "it predicts a peak of"}},
		"growing":  {map[int]float64{1: 100, 2: 200, 4: 400, 8: 800}, 1, []string{"no knee", "one run each", "neither contention nor crosstalk"}},
		"falling":  {map[int]float64{1: 12788, 2: 11424, 4: 11087, 8: 9000, 16: 8000, 32: 6900, 64: 5607, 128: 4429}, 1, []string{"best: 1 thread,", "predicts that one thread is best"}},
		"too few":  {map[int]float64{1: 100, 8: 300, 64: 200}, 1, []string{"no fit of the Universal Scalability Law: 3 different numbers of threads"}},
		"nonsense": {map[int]float64{1: 100, 2: 900, 4: 50, 8: 700, 16: 20}, 1, []string{"the law does not fit these points"}},
		"overlap":  {map[int]float64{1: 100, 2: 101, 4: 50, 8: 20}, 3, []string{"can't be distinguished from it: 1 thread", "knee: 1 thread:"}},
	} {
		r := measured(t, c.repeat, c.tps)
		if len(r.Advice) != 1 {
			t.Fatalf("%s: %+v", name, r.Advice)
		}
		all := strings.Join(r.Advice[0].Lines, "\n")
		for _, want := range c.want {
			if !strings.Contains(all, want) {
				t.Errorf("%s: missing %q in\n%s", name, want, all)
			}
		}
	}
}

// TestCreateIsWhole guards that a sweep whose creation was interrupted can't be found, and that an
// unreadable one does not hide earlier ones.
func TestCreateIsWhole(t *testing.T) {
	data := t.TempDir()
	if _, _, err := Last(data, false); !errors.Is(err, ErrNone) {
		t.Errorf("of nothing: %v", err)
	}
	s := &Sweep{ID: "a", Sets: []Set{set(t, "threads=1,2")}}
	s.Steps, _ = Plan(s.Sets, 1, Given, false)
	if err := create(data, s); err != nil {
		t.Fatal(err)
	}
	// The state can't be written, so no folder is left.
	broken := &Sweep{ID: "b", Sets: s.Sets, Steps: []Step{{Seconds: math.NaN()}}}
	if err := create(data, broken); err == nil {
		t.Error("a sweep that is no JSON")
	}
	if entries, err := os.ReadDir(Root(data)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := os.Mkdir(filepath.Join(Root(data), "c"), 0o755); err != nil { // as version 0.1 left it
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // the newest one belongs to another user
		theirs := filepath.Join(Root(data), "zz-theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o755), os.Chown(theirs, 47600, 47600)); err != nil {
			t.Fatal(err)
		}
	}
	last, skipped, err := Last(data, false)
	if err != nil || last.ID != "a" || len(skipped) != 1 || !errors.Is(skipped[0], fs.ErrNotExist) {
		t.Errorf("%+v, %v, %v", last, skipped, err)
	}
	if err := create(data, s); !errors.Is(err, fs.ErrExist) {
		t.Errorf("one id twice: %v", err)
	}
}

// TestCreateRemovesAbandoned guards that the next creation removes what a killed one left, but not
// a creation in progress.
func TestCreateRemovesAbandoned(t *testing.T) {
	data := t.TempDir()
	old, fresh := filepath.Join(Root(data), ".new-1"), filepath.Join(Root(data), ".new-2")
	for _, folder := range []string{old, fresh} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	killed := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(old, killed, killed); err != nil {
		t.Fatal(err)
	}
	s := &Sweep{CreatedAt: time.Now(), Sets: []Set{set(t, "threads=1")}}
	s.Steps, _ = Plan(s.Sets, 1, Given, false)
	if err := Create(data, "sweep", s); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the abandoned folder: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error(err)
	}
}

// TestNoOrder guards that a sweep concludes nothing from runs whose repeats differ as much as its combinations, and says
// first what disturbed them.
func TestNoOrder(t *testing.T) {
	// Two repeats each, measured beside other programs that took a varying part of two cores.
	tps := map[string][]float64{"1": {5120, 2210}, "2": {9020, 4480}, "4": {3986, 14246}, "8": {12904, 6120}, "16": {7411, 11290}}
	others := map[string][]float64{"1": {0.05, 0.52}, "2": {0.09, 0.44}, "4": {0.6, 0.06}, "8": {0.1, 0.41}, "16": {0.38, 0.2}}
	for repeat := 1; repeat <= 2; repeat++ {
		s := &Sweep{ID: "s", Sets: []Set{set(t, "threads=1,2,4,8,16")}}
		s.Steps, _ = Plan(s.Sets, repeat, Given, false)
		rows := map[string]review.Row{}
		for i := range s.Steps {
			step := &s.Steps[i]
			s.NewAttempt(step)
			step.State = Done
			n := step.Values["threads"]
			rows[step.RunID] = review.Row{DurationSeconds: 10, Values: tool.Values{{Measure: tool.Throughput, Value: tps[n][step.Repeat-1]}},
				Machines: []review.Machine{{Machine: rundir.Machine{Host: "vm"}, Cores: 2,
					Values: []review.Value{{Measure: host.OthersCPU, Value: others[n][step.Repeat-1] * 20}}}}}
		}
		r := s.Results(rows, compare.ByMedian)
		switch a := r.Advice[0]; repeat {
		case 1: // the best is more than what other programs took above the worst
			if a.Best == nil || r.Disturbed() != "other programs took 5 to 60 % of the CPU of vm" || a.Knee != nil {
				t.Errorf("%+v", a)
			}
		case 2:
			if a.Best != nil || a.Knee != nil || a.USL != nil {
				t.Errorf("a conclusion from noise: %+v", a)
			}
			want := "no difference found among 1 to 16 threads: other programs took 5 to 60 % of the CPU of vm, repeats differ by a factor of 3.6; repeat on a quiet machine, or --repeat 6"
			if r.Conclusion() != want {
				t.Errorf("have %q, want %q", r.Conclusion(), want)
			}
		}
	}
}
