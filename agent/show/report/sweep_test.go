package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func parsedSet(t *testing.T, text string) sweep.Set {
	t.Helper()
	s, err := sweep.ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// swept is a sweep over threads whose trials differ by 1 tps.
func swept(t *testing.T, repeat int, tps map[int]float64) sweep.Result {
	t.Helper()
	var values []string
	for n := range tps {
		values = append(values, fmt.Sprint(n))
	}
	slices.Sort(values)
	s := &sweep.Sweep{ID: "s", Sets: []sweep.Set{parsedSet(t, "threads="+strings.Join(values, ","))}}
	s.Steps, _ = sweep.Plan(s.Sets, repeat, sweep.Given, false)
	rows := map[string]review.Row{}
	for i := range s.Steps {
		step := &s.Steps[i]
		s.NewAttempt(step)
		step.State = sweep.Done
		var n int
		fmt.Sscan(step.Values["threads"], &n)
		rows[step.RunID] = review.Row{Values: tool.Values{{Measure: tool.Throughput, Value: tps[n] + float64(step.Repeat)}}, Latency: map[string]float64{"p95": float64(n) / 1000}}
	}
	return s.Results(rows, compare.ByMedian)
}

func TestResultFormats(t *testing.T) {
	r := swept(t, 2, map[int]float64{1: 100, 2: 190})
	page := SweepPage{Result: &r}
	var text, markdown, csv, data bytes.Buffer
	for _, err := range []error{page.Page().Text(&text, terminal.Terminal{}), page.Page().Markdown(&markdown), r.CSV(&csv), table.JSON(&data, r)} {
		if err != nil {
			t.Error(err)
		}
	}
	for want, in := range map[string]string{
		"over threads\nbest: 2 threads, 191.50 tps": text.String(),
		"2           2  191.50 [191.00 … 192.00]\n": text.String(),
		"| 2 | 2 | 191.50 \\[191.00 … 192.00\\]":    markdown.String(),
		"\n2,done,2,191.5,191,192,0.002\n":          csv.String(),
	} {
		if !strings.Contains(in, want) {
			t.Errorf("missing %q in\n%s", want, in)
		}
	}
	if !json.Valid(data.Bytes()) {
		t.Error(data.String())
	}
}

// TestSharedAdvice guards that advice that holds for every combination is written once.
func TestSharedAdvice(t *testing.T) {
	r := (&sweep.Sweep{Sets: []sweep.Set{{Name: "via"}}}).Results(nil, compare.ByMedian)
	r.Advice = []sweep.Advice{
		{Others: map[string]string{"via": "direct"}, BestText: "8 threads", Lines: []string{"best: 8 threads", "one run each", "no knee"}},
		{Others: map[string]string{"via": "proxy"}, BestText: "4 threads", Lines: []string{"best: 4 threads", "one run each"}},
	}
	page := SweepPage{Result: &r}
	var text, markdown bytes.Buffer
	if err := errors.Join(page.Page().Text(&text, terminal.Terminal{}), page.Page().Markdown(&markdown)); err != nil {
		t.Fatal(err)
	}
	want := "best: via=direct, 8 threads\n\nResult\nvia=direct\n- best: 8 threads\n- no knee\nvia=proxy\n- best: 4 threads\nall combinations\n- one run each\n"
	if !strings.Contains(text.String(), want) {
		t.Errorf("have %q, want in it %q", text.String(), want)
	}
	if n := strings.Count(markdown.String(), "one run each"); n != 1 {
		t.Errorf("written %d times in\n%s", n, markdown.String())
	}
}

// TestServersInResults guards that a sweep's table has tpmC and what was observed of
// the servers, and that data is in base units.
func TestServersInResults(t *testing.T) {
	s := &sweep.Sweep{Sets: []sweep.Set{parsedSet(t, "fc_limit=16,256")}, Steps: []sweep.Step{
		{Values: map[string]string{"fc_limit": "16"}, State: sweep.Done, RunID: "a"}, {Values: map[string]string{"fc_limit": "256"}, State: sweep.Done, RunID: "b"},
	}}
	r := s.Results(map[string]review.Row{
		"a": {Servers: []review.Server{{Target: "n1", Values: []review.Value{{Measure: engine.FlowControl, Value: 0.25}}}}},
		"b": {Values: tool.Values{{Measure: tool.TpmC, Value: 1200.0}}, Servers: []review.Server{{Target: "n1", DrainSeconds: series.Some(3.0)}}},
	}, compare.ByMedian)
	page := SweepPage{Result: &r}
	var text, csv, data bytes.Buffer
	if err := errors.Join(page.Page().Text(&text, terminal.Terminal{}), r.CSV(&csv), table.JSON(&data, r)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(got, "fc_limit runs tpmC flow control % drain s 16 1 – 25 – 256 1 1200 – 3.00") {
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

// busyMachines returns the result of a sweep in whose steps some machines were busy.
func busyMachines(s *sweep.Sweep, machines int, busy func(step, machine int) float64) sweep.Result {
	s.Steps, _ = sweep.Plan(s.Sets, 1, sweep.Given, false)
	rows := map[string]review.Row{}
	for i := range s.Steps {
		step := &s.Steps[i]
		s.NewAttempt(step)
		step.State = sweep.Done
		row := review.Row{Values: tool.Values{{Measure: tool.Throughput, Value: 100.0}}}
		for n := range machines {
			row.Machines = append(row.Machines, review.Machine{
				Machine: rundir.Machine{Host: fmt.Sprint("db", n+1)},
				Values:  []review.Value{{Measure: host.Busy, Value: busy(i, n)}},
			})
		}
		rows[step.RunID] = row
	}
	return s.Results(rows, compare.ByMedian)
}

// TestMachinesInFigures guards that the CPU of each machine is a line of one figure over the
// set that is scaled up, also of more machines than a table has columns for, and that a
// measure that no table has is drawn if it is named.
func TestMachinesInFigures(t *testing.T) {
	const machines = 7
	s := &sweep.Sweep{Sets: []sweep.Set{parsedSet(t, "threads=1,4"), parsedSet(t, "via=direct,proxy")}}
	r := busyMachines(s, machines, func(step, machine int) float64 { return float64(step*10+machine) / 100 })
	page := SweepPage{Result: &r}
	figures := func(name string) []*Plot {
		measures, err := review.MeasuresNamed(r.Runs, name)
		if err != nil {
			t.Fatal(err)
		}
		return page.Figures(measures)
	}
	all := page.Figures(review.FigureMeasures(r.Runs))
	var titles []string
	for _, p := range all {
		titles = append(titles, p.Title)
	}
	if want := []string{"tps by threads", "cpu busy by threads"}; !slices.Equal(titles, want) {
		t.Fatalf("figures %q, want %q", titles, want)
	}
	named := figures("cpu_busy")
	if len(named) != 1 {
		t.Fatalf("%d figures of cpu_busy", len(named))
	}
	for _, p := range []*Plot{all[1], named[0]} {
		if len(p.Lines) != 2*machines || p.Lines[1].Name != "via=proxy, db1" || p.Unit != "%" {
			t.Fatalf("%d lines in %s, the second is %s", len(p.Lines), p.Unit, p.Lines[1].Name)
		}
		// The steps are threads=1 via=direct, threads=1 via=proxy, threads=4 via=direct …
		if last := p.Lines[2*machines-1].Points; len(last) != 2 || last[1].X != 4 || math.Abs(last[1].Y-36) > 1e-9 {
			t.Errorf("the last machine through the proxy has %+v", last)
		}
	}
	busiest := figures("cpu")
	if len(busiest) != 1 || len(busiest[0].Lines) != 2 || math.Abs(busiest[0].Lines[0].Points[0].Y-6) > 1e-9 {
		t.Errorf("the busiest machine: %+v", busiest)
	}
	var out bytes.Buffer
	if err := page.Page().HTML(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "via=proxy, db7") {
		t.Error("the page has no line of the last machine")
	}
}

// TestMachinesOfTable guards that the first table has either all machines or none, since their
// CPU is compared.
func TestMachinesOfTable(t *testing.T) {
	for _, one := range []struct {
		busy [2][2]float64 // by combination and machine
		want []string
	}{
		{[2][2]float64{{0.30, 0.06}, {0.50, 0.06}}, []string{"db1 cpu busy %", "db2 cpu busy %"}},
		{[2][2]float64{{0.30, 0.06}, {0.30, 0.06}}, nil},
	} {
		s := &sweep.Sweep{Sets: []sweep.Set{parsedSet(t, "threads=1,4")}}
		r := busyMachines(s, 2, func(step, machine int) float64 { return one.busy[step][machine] })
		var have []string
		for _, head := range r.FirstTable().Head() {
			if strings.Contains(head, "cpu busy") {
				have = append(have, head)
			}
		}
		if !slices.Equal(have, one.want) {
			t.Errorf("busy %v: columns %q, want %q", one.busy, have, one.want)
		}
	}
}

// TestSeekMarksWhatWasFound guards that a seek does not mark a value beyond its conditions as the best.
func TestSeekMarksWhatWasFound(t *testing.T) {
	r := swept(t, 1, map[int]float64{1: 100, 2: 190, 4: 300})
	for found, want := range map[int]string{2: "highest threads within p95 < 40ms: 2", 0: ""} {
		r.Found = &sweep.Found{Name: "threads", Value: found, SubjectTo: []string{"p95 < 40ms"}}
		plots := (&SweepPage{Result: &r}).Figures(review.FigureMeasures(r.Runs))
		var marks []string
		for _, m := range plots[0].Marks {
			marks = append(marks, m.Text)
		}
		if got := strings.Join(marks, "; "); got != want {
			t.Errorf("found %d: marks %q", found, got)
		}
	}
}
