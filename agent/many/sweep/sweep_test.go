package sweep

import (
	"bytes"
	"encoding/json"
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

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/host"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
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

// TestSkip guards that only combinations with more threads and otherwise the same
// values are skipped, in whatever order they come.
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

// measured makes a sweep over threads with these throughputs.
func measured(t *testing.T, repeat int, tps map[int]float64) Result {
	t.Helper()
	var values []string
	for n := range tps {
		values = append(values, fmt.Sprint(n))
	}
	slices.SortFunc(values, func(a, b string) int { return len(a)*10 + strings.Compare(a, b) - len(b)*10 })
	s := &Sweep{ID: "s", Sets: []Set{set(t, "threads="+strings.Join(values, ","))}}
	s.Steps, _ = Plan(s.Sets, repeat, Given, false)
	rows := map[string]report.Row{}
	for i := range s.Steps {
		step := &s.Steps[i]
		s.NewAttempt(step)
		step.State = Done
		var n int
		fmt.Sscan(step.Values["threads"], &n)
		v := tps[n] + float64(step.Repeat)
		rows[step.RunID] = report.Row{TPS: series.Some(v), Latency: map[string]float64{"p95": float64(n) / 1000}}
	}
	return s.Results(rows, report.ByMedian)
}

// TestAdvice guards the sentences about the number of threads.
func TestAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		tps    map[int]float64
		repeat int
		want   []string
	}{
		"past its peak": {map[int]float64{1: 100, 2: 195, 4: 370, 8: 660, 16: 1000, 32: 1040, 64: 700}, 3,
			[]string{"best: 32 threads, 1042.00 tps, p95 32.00 ms", "knee: 16 threads: 96.2 % of the best throughput with 50 % of its threads, p95 16.00 ms", "it predicts a peak of"}},
		"growing":  {map[int]float64{1: 100, 2: 200, 4: 400, 8: 800}, 1, []string{"no knee", "one run each", "neither contention nor crosstalk"}},
		"falling":  {map[int]float64{1: 12788, 2: 11424, 4: 11087, 8: 9000, 16: 8000, 32: 6900, 64: 5607, 128: 4429}, 1, []string{"best: 1 thread,", "by it one thread is best"}},
		"too few":  {map[int]float64{1: 100, 8: 300, 64: 200}, 1, []string{"no fit of the Universal Scalability Law: 3 different numbers of threads"}},
		"nonsense": {map[int]float64{1: 100, 2: 900, 4: 50, 8: 700, 16: 20}, 1, []string{"the law does not fit these points"}},
		"overlap":  {map[int]float64{1: 100, 2: 101, 4: 50, 8: 20}, 3, []string{"its runs overlap with those at 1 thread", "knee: 1 thread:"}},
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

func TestResultFormats(t *testing.T) {
	r := measured(t, 2, map[int]float64{1: 100, 2: 190})
	var text, markdown, csv, data bytes.Buffer
	for _, err := range []error{r.Text(&text), r.Markdown(&markdown), r.CSV(&csv), table.JSON(&data, r)} {
		if err != nil {
			t.Error(err)
		}
	}
	for want, in := range map[string]string{
		"2           2  191.50 [191.00 … 192.00]    2.00": text.String(),
		"| 2 | 2 | 191.50 \\[191.00 … 192.00\\]":          markdown.String(),
		"\n2,done,2,191.5,191,192,0.002\n":                csv.String(),
	} {
		if !strings.Contains(in, want) {
			t.Errorf("missing %q in\n%s", want, in)
		}
	}
	if !json.Valid(data.Bytes()) {
		t.Error(data.String())
	}
}

// TestSharedAdvice guards that advice for every combination is written once.
func TestSharedAdvice(t *testing.T) {
	r := Result{
		sets: []Set{{Name: "via"}},
		Advice: []Advice{
			{Others: map[string]string{"via": "direct"}, Lines: []string{"best: 8 threads", "one run each", "no knee"}},
			{Others: map[string]string{"via": "proxy"}, Lines: []string{"best: 4 threads", "one run each"}},
		},
	}
	var text, markdown bytes.Buffer
	if err := errors.Join(r.Text(&text), r.Markdown(&markdown)); err != nil {
		t.Fatal(err)
	}
	want := "via=direct\nbest: 8 threads\nno knee\n\nvia=proxy\nbest: 4 threads\n\nall combinations\none run each\n"
	if !strings.HasSuffix(text.String(), want) {
		t.Errorf("have %q, want at its end %q", text.String(), want)
	}
	if n := strings.Count(markdown.String(), "one run each"); n != 1 {
		t.Errorf("written %d times in\n%s", n, markdown.String())
	}
}

// TestServersInResults guards that a sweep's table has tpmC and what was observed of
// the servers, and that data is in base units.
func TestServersInResults(t *testing.T) {
	s := &Sweep{Sets: []Set{set(t, "fc_limit=16,256")}, Steps: []Step{
		{Values: map[string]string{"fc_limit": "16"}, State: Done, RunID: "a"}, {Values: map[string]string{"fc_limit": "256"}, State: Done, RunID: "b"},
	}}
	r := s.Results(map[string]report.Row{
		"a": {Servers: []report.Server{{Target: "n1", Values: []report.Value{{Measure: engine.FlowControl, Value: 0.25}}}}},
		"b": {TpmC: series.Some(1200.0), Servers: []report.Server{{Target: "n1", DrainSeconds: series.Some(3.0)}}},
	}, report.ByMedian)
	var text, csv, data bytes.Buffer
	if err := errors.Join(r.Text(&text), r.CSV(&csv), table.JSON(&data, r)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(text.String()), " "); got != "fc_limit runs tpmC flow control % drain s 16 1 – 25.00 – 256 1 1200.00 – 3.00" {
		t.Error(got)
	}
	if got, want := csv.String(), "fc_limit,state,runs,tpmc,tpmc_min,tpmc_max,flow_control_ratio,drain_seconds\n16,done,1,,,,0.25,\n256,done,1,1200,1200,1200,,3\n"; got != want {
		t.Error(got)
	}
	for _, want := range []string{`"name": "flow control",`, `"unit": "ratio",`, `"value": 0.25`, `"tpmc": {`, `"combinations": [`} {
		if !strings.Contains(data.String(), want) {
			t.Errorf("missing %s in %s", want, data.String())
		}
	}
}

// TestMachinesInFigures guards that the CPU of each machine is a line of one figure over the
// set that is scaled up, also of more machines than a table has columns for, and that a
// measure that no table has is drawn if it is named.
func TestMachinesInFigures(t *testing.T) {
	const machines = 7
	s := &Sweep{Sets: []Set{set(t, "threads=1,4"), set(t, "via=direct,proxy")}}
	s.Steps, _ = Plan(s.Sets, 1, Given, false)
	rows := map[string]report.Row{}
	for i := range s.Steps {
		step := &s.Steps[i]
		s.NewAttempt(step)
		step.State = Done
		row := report.Row{TPS: series.Some(100.0)}
		for n := range machines {
			row.Machines = append(row.Machines, report.Machine{
				Machine: rundir.Machine{Host: fmt.Sprint("db", n+1)},
				Values:  []report.Value{{Measure: host.Busy, Value: float64(i*10+n) / 100}},
			})
		}
		rows[step.RunID] = row
	}
	r := s.Results(rows, report.ByMedian)
	all, err := r.Figures("")
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, p := range all {
		titles = append(titles, p.Title)
	}
	if want := []string{"tps by threads", "cpu busy by threads"}; !slices.Equal(titles, want) {
		t.Fatalf("figures %q, want %q", titles, want)
	}
	named, err := r.Figures("cpu_busy")
	if err != nil || len(named) != 1 {
		t.Fatalf("%d figures of cpu_busy: %v", len(named), err)
	}
	for _, p := range []*report.Plot{all[1], named[0]} {
		if len(p.Lines) != 2*machines || p.Lines[1].Name != "via=proxy, db1" || p.Unit != "%" {
			t.Fatalf("%d lines in %s, the second is %s", len(p.Lines), p.Unit, p.Lines[1].Name)
		}
		// The steps are threads=1 via=direct, threads=1 via=proxy, threads=4 via=direct …
		if last := p.Lines[2*machines-1].Points; len(last) != 2 || last[1].X != 4 || math.Abs(last[1].Y-36) > 1e-9 {
			t.Errorf("the last machine through the proxy has %+v", last)
		}
	}
	busiest, err := r.Figures("cpu")
	if err != nil || len(busiest) != 1 || len(busiest[0].Lines) != 2 || math.Abs(busiest[0].Lines[0].Points[0].Y-6) > 1e-9 {
		t.Errorf("the busiest machine: %+v, %v", busiest, err)
	}
	var page bytes.Buffer
	if err := r.HTML(&page, time.Now(), ""); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "via=proxy, db7") {
		t.Error("the page has no line of the last machine")
	}
}

// TestCreateIsWhole guards that a sweep whose creation was interrupted can't be
// found, and that one that can't be read does not hide those before it (issue 10,
// defect 9).
func TestCreateIsWhole(t *testing.T) {
	data := t.TempDir()
	if _, _, err := Last(data); !errors.Is(err, ErrNone) {
		t.Errorf("of nothing: %v", err)
	}
	s := &Sweep{ID: "a", Sets: []Set{set(t, "threads=1,2")}}
	s.Steps, _ = Plan(s.Sets, 1, Given, false)
	if err := create(data, s); err != nil {
		t.Fatal(err)
	}
	// The state can't be written, so no folder is left either.
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
	if os.Geteuid() == 0 { // the newest one is another user's
		theirs := filepath.Join(Root(data), "zz-theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o755), os.Chown(theirs, 47600, 47600)); err != nil {
			t.Fatal(err)
		}
	}
	last, skipped, err := Last(data)
	if err != nil || last.ID != "a" || len(skipped) != 1 || !errors.Is(skipped[0], fs.ErrNotExist) {
		t.Errorf("%+v, %v, %v", last, skipped, err)
	}
	if err := create(data, s); !errors.Is(err, fs.ErrExist) {
		t.Errorf("one id twice: %v", err)
	}
}

// TestCreateRemovesAbandoned guards that what a killed creation left is removed by
// the next one, and that one that is just being made is not.
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
