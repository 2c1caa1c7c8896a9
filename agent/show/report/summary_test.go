package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// galeraRuns is a group of runs on a cluster whose values are tps, p95 in ms, and of the slow node
// flow control, lag and drain in seconds.
func galeraRuns(name string, limit cause.Limit, share float64, runs ...[5]float64) compare.Group {
	g := compare.Group{Name: name}
	for i, v := range runs {
		r := review.Row{ID: fmt.Sprintf("%s-%d", name, i), Tool: "sysbench", Result: rundir.Succeeded, Values: tool.Values{{Measure: tool.Throughput, Value: v[0]}, {Measure: tool.Errors, Value: 0.}}}
		r.SetLatencies(&tool.Report{Latencies: []tool.Latency{{Operation: tool.Transaction, Stat: "p95", Seconds: v[1] / 1000}}})
		r.Servers = []review.Server{{Target: "n3", DrainSeconds: series.Some(v[4]), Values: []review.Value{{Measure: engine.FlowControl, Value: v[2]}, {Measure: engine.LagSeconds, Value: v[3]}}}}
		r.Limits = &limits.Verdict{Findings: []limits.LimitFinding{{Limit: limit, Share: share}}}
		g.Runs = append(g.Runs, r)
	}
	return g
}

// TestSummary has the runs of the Galera tutorial: what differs, what limited the runs and what the difference cost
// come before any table, in every form.
func TestSummary(t *testing.T) {
	strict := galeraRuns("strict", cause.FlowControl, 0.41, [5]float64{950, 48.34, 0.41, 0.08, 0})
	loose := galeraRuns("loose", cause.Replication, 0.52, [5]float64{967, 26.68, 0.05, 9.87, 3.43})
	groups := []compare.Group{strict, loose}
	c := compare.Compare(groups, nil)
	plain := textOf(t, c)
	var markdown, page bytes.Buffer
	if err := (&ComparisonPage{Comparison: c}).Page().Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	p := ComparisonPage{Comparison: c}
	if err := p.Page().HTML(&page); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	_, root := parsed(t, page.String())
	for form, said := range map[string]string{"text": plain, "markdown": markdown.String(), "html": text(root), "json": string(data)} {
		at := 0
		for _, want := range []string{
			"From strict to loose: ", "p95 -45 % (48 → 27 ms), not proven; no errors; one run each: repeat them",
			"What limited them, in shares of the clients' time that may overlap: strict by flow control (41 %), loose by synchronous replication (52 %)", "flow control 41 → 5 %",
			"loose pays with ", "lag 0.08 → 9.9 s", "drain 0 → 3.4 s",
		} {
			i := strings.Index(said[at:], want)
			if i < 0 {
				t.Errorf("%s: %q is missing, or not in order, in\n%s", form, want, said)
				continue
			}
			at += i
		}
		head := "measure"
		if form == "html" { // whose style sheet has this word
			head = "Measures"
		}
		if begin := strings.Index(said, head); begin < at {
			t.Errorf("%s: a table comes first", form)
		}
	}
	if !strings.Contains(plain, "3.4 from 0") {
		t.Errorf("a drain that was 0 has no difference:\n%s", plain)
	}
	for _, other := range compare.Compare([]compare.Group{loose, strict}, nil).Summary {
		if strings.Contains(other, "drain") && !strings.Contains(other, "in return") && !strings.Contains(other, "saves") {
			t.Errorf("the other way round: %s", other)
		}
	}
}

// TestLimitsThatVanish guards that a limit of one side is named, and that an unknown cost is only named if there was a
// gain.
func TestLimitsThatVanish(t *testing.T) {
	before, after := galeraRuns("a", cause.Neighbours, 0.44, [5]float64{100, 10, 0, 0, 0}), galeraRuns("b", cause.Commit, 0.72, [5]float64{50, 20, 0, 0, 0})
	locks := limits.LimitFinding{Limit: cause.RowLocks, Share: 0.37}
	before.Runs[0].Limits.Findings = append(before.Runs[0].Limits.Findings, locks)
	for _, g := range []compare.Group{before, after} {
		g.Runs[0].Servers = g.Runs[0].Servers[:0]
	}
	after.Runs[0].Values.Set(tool.Errors, series.Some(3.0))
	c := compare.Compare([]compare.Group{before, after}, nil)
	all := strings.Join(c.Summary, "\n")
	for _, want := range []string{"a by other programs on the machine (44 %), b by commits (72 %)", "row locks 37 % → below 15 %", "errors 0 → 3; one run each: repeat them"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in %q", want, c.Summary)
		}
	}
	if strings.Contains(all, "paid") || len(c.Summary) != 2 {
		t.Errorf("%q: nothing was bought", c.Summary)
	}
	back := compare.Compare([]compare.Group{after, before}, nil)
	if last := back.Summary[len(back.Summary)-1]; !strings.Contains(last, "What the gain cost is not known") || strings.Contains(last, "lag") {
		t.Errorf("%q", back.Summary)
	}
}

// TestSummaryOfAlikeRuns guards that alike runs have no price, and that rows without a
// difference become one line.
func TestSummaryOfAlikeRuns(t *testing.T) {
	run := [5]float64{950, 48, 0.41, 0.1, 0}
	c := compare.Compare([]compare.Group{galeraRuns("a", cause.FlowControl, 0.4, run), galeraRuns("b", cause.FlowControl, 0.4, run)}, nil)
	plain := textOf(t, c)
	for _, want := range []string{"tps alike", "p95 alike", "No price was found in b", "0 or alike on all sides: flow control, worst lag, drain"} {
		if !strings.Contains(plain, want) {
			t.Errorf("%q is missing in\n%s", want, plain)
		}
	}
	if n := len(c.Table().Rows); n != 2 {
		t.Errorf("%d rows, want tps and p95", n)
	}
}

// TestSummaryOfRepeats guards that a difference is printed with how far it is proven.
func TestSummaryOfRepeats(t *testing.T) {
	group := func(name string, tps ...float64) compare.Group {
		var runs [][5]float64
		for _, v := range tps {
			runs = append(runs, [5]float64{v, 1e4 / v, 0, 0, 0})
		}
		return galeraRuns(name, cause.ServerCPU, 0.5, runs...)
	}
	for want, after := range map[string][]float64{
		"tps -45 % (1000 → 550 /s) and p95 +82 % (10 → 18 ms), proven (p=0.029); no errors.": {549, 550, 550, 551},
		"tps -44 %": {1200, 300, 320, 800},
	} {
		c := compare.Compare([]compare.Group{group("a", 999, 1000, 1000, 1001), group("b", after...)}, nil)
		if !strings.Contains(c.Summary[0], want) {
			t.Errorf("%q is missing in %q", want, c.Summary[0])
		}
		if proven := math.Abs(after[3]-after[0]) < 10; !proven && !strings.Contains(c.Summary[0], "not proven") {
			t.Errorf("%q", c.Summary[0])
		}
	}
}

// TestNarrowComparison guards that the table fits 80 columns without its ratios.
func TestNarrowComparison(t *testing.T) {
	c := compare.Compare([]compare.Group{
		galeraRuns("appliers=1,fc_limit=16", cause.FlowControl, 0.4, [5]float64{950, 48, 0.41, 0.1, 0}),
		galeraRuns("appliers=16,fc_limit=16", cause.FlowControl, 0.4, [5]float64{1950, 28, 0.1, 0.2, 3}),
	}, nil)
	var wide, narrow bytes.Buffer
	if err := (&ComparisonPage{Comparison: c}).Page().Text(&wide, terminal.Terminal{Width: 200}); err != nil {
		t.Fatal(err)
	}
	if err := (&ComparisonPage{Comparison: c}).Page().Text(&narrow, terminal.Terminal{Width: 80}); err != nil {
		t.Fatal(err)
	}
	const column = "  ratio  difference"
	if !strings.Contains(narrow.String(), "  difference\n") {
		t.Errorf("the difference is missing:\n%s", narrow.String())
	}
	if !strings.Contains(wide.String(), column) || strings.Contains(narrow.String(), column) || !strings.Contains(narrow.String(), "too wide for this terminal: ratio") {
		t.Errorf("%s\n%s", wide.String(), narrow.String())
	}
}
