package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// group makes runs of one setting: threads and label, with these rates.
func group(name string, threads int, rates ...float64) compare.Group {
	g := compare.Group{Name: "via=" + name}
	for i, tps := range rates {
		g.Runs = append(g.Runs, review.Row{
			ID: fmt.Sprintf("%s-%d-%d", name, threads, i), Tool: "sysbench", Workload: "oltp_read_write", Threads: threads, Result: rundir.Succeeded,
			Labels: map[string]string{"via": name, "sweep": "s", "repeat": fmt.Sprint(i)},
			Values: tool.Values{{Measure: tool.Throughput, Value: tps}, {Measure: tool.Errors, Value: 0.0}}, Latency: map[string]float64{"p95": 0.001 * 1000 / tps},
		})
	}
	return g
}

func join(a, b compare.Group) compare.Group {
	a.Runs = append(a.Runs, b.Runs...)
	return a
}

func textOf(t *testing.T, c compare.Comparison) string {
	t.Helper()
	var b bytes.Buffer
	if err := (&ComparisonPage{Comparison: c}).Page().Text(&b, terminal.Terminal{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCompareCombinations guards that what varies within the groups makes lines, in
// the order of numbers, and is never mixed.
func TestCompareCombinations(t *testing.T) {
	direct := join(join(group("direct", 128, 3000), group("direct", 16, 2000)), group("direct", 1, 200))
	atlas := join(group("atlas", 16, 1800), group("atlas", 1, 150))
	c := compare.Compare([]compare.Group{direct, atlas}, []string{"via"})
	if len(c.Varied) != 1 || c.Varied[0] != "threads" || len(c.Differs) != 0 {
		t.Fatalf("varied %v, differs %v", c.Varied, c.Differs)
	}
	var got []string
	for _, row := range c.Table().Rows {
		if row[1].String() == "tps" {
			got = append(got, row[0].String()+" "+row[4].String())
		}
	}
	if s := strings.Join(got, ", "); s != "1 0.750, 16 0.900, 128 –" {
		t.Errorf("lines %s", s)
	}
}

// The lines of a comparison have the order of the figure's axis, also of sizes.
func TestCompareAndFigureHaveOneOrder(t *testing.T) {
	var groups []compare.Group
	for _, via := range []string{"direct", "atlas"} {
		g := compare.Group{Name: via}
		for i, size := range []string{"16G", "512M", "8G", "8G"} {
			g.Runs = append(g.Runs, review.Row{ID: fmt.Sprint(via, i), Threads: 16, Labels: map[string]string{"via": via, "pool": size}, Values: tool.Values{{Measure: tool.Throughput, Value: 100.0}}})
		}
		groups = append(groups, g)
	}
	c := compare.Compare(groups, []string{"via"})
	var lines []string
	for _, l := range c.Lines {
		lines = append(lines, l.Combination...)
	}
	if lines = slices.Compact(lines); !slices.Equal(lines, []string{"512M", "8G", "16G"}) {
		t.Errorf("lines of %q", lines)
	}
	set, err := compare.NewFigureSet(&c, groups, compare.FigureOptions{X: "pool"})
	if err != nil {
		t.Fatal(err)
	}
	var ticks []string
	for _, tick := range FigurePlots(set)[0].X.Ticks {
		ticks = append(ticks, tick.Text)
	}
	if !slices.Equal(ticks, lines) {
		t.Errorf("the axis has %q, the lines %q", ticks, lines)
	}
}

// TestCompareDropsEchoes guards against two columns with the same values: a sweep's label and the option of the tool
// that it was put into. Columns that only look alike stay.
func TestCompareDropsEchoes(t *testing.T) {
	one, two := group("direct", 8, 100), group("direct", 16, 200)
	for i, g := range []compare.Group{one, two} {
		labels := g.Runs[0].Labels
		labels["mode"] = []string{"select", "insert"}[i]
		labels["oltp_nontrx_mode"] = labels["mode"]
		labels["event_threads"] = []string{"8", "4"}[i]
	}
	c := compare.Compare([]compare.Group{join(one, two), group("atlas", 8, 300)}, []string{"via"})
	if got, want := strings.Join(c.Varied, " "), "threads event_threads mode"; got != want {
		t.Errorf("varied %q, want %q", got, want)
	}
}

// TestCompareSaysWhatDiffers guards against comparing apples and oranges.
func TestCompareSaysWhatDiffers(t *testing.T) {
	c := compare.Compare([]compare.Group{group("direct", 16, 1000), group("atlas", 32, 1000)}, nil)
	text := textOf(t, c)
	for _, want := range []string{"\nthreads 16 → 32, via direct → atlas\n", "the groups differ in threads (16 and 32)"} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
}

func TestCompareFormats(t *testing.T) {
	dir := recorded.Galera(t)
	h := recorded.Read(t, dir)
	groups := []compare.Group{{Name: "<b>a", Runs: []review.Row{review.NewRow(&h.Snapshot)}}, {Name: "b|c", Runs: []review.Row{review.NewRow(&h.Snapshot)}}}
	c := compare.Compare(groups, nil)
	var markdown, csv, data, page bytes.Buffer
	if err := (&ComparisonPage{Comparison: c}).Page().Markdown(&markdown); err != nil || !strings.Contains(markdown.String(), `| \<b\>a | b\|c | ratio |`) {
		t.Errorf("%v\n%s", err, markdown.String())
	}
	if err := c.CSV(&csv); err != nil || !strings.Contains(csv.String(), "\ntps,/s,b|c,1,1328.11,1328.11,1328.11,1,,one run\n") {
		t.Errorf("%v\n%s", err, csv.String())
	}
	if err := table.JSON(&data, c); err != nil || !json.Valid(data.Bytes()) {
		t.Errorf("%v\n%s", err, data.String())
	}
	p := ComparisonPage{Comparison: c, Charts: CompareCharts(&c, groups, [][]*record.History{{h}, {h}})}
	if err := p.Page().HTML(&page); err != nil {
		t.Fatal(err)
	}
	_, root := parsed(t, page.String())
	selfContained(t, root)
	if n := elements(root, "figure"); n != 3 || !strings.Contains(text(root), "<b>a") {
		t.Errorf("%d charts", n)
	}
}

// A label that numbers the repeats of a group does not make pairs of them.
func TestCompareRepeats(t *testing.T) {
	labelled := func(name string, label string, values ...string) compare.Group {
		rates := make([]float64, len(values))
		for i := range rates {
			rates[i] = 1000 + float64(i)
		}
		g := group(name, 16, rates...)
		for i, v := range values {
			delete(g.Runs[i].Labels, "sweep")
			g.Runs[i].Labels[label] = v
		}
		return g
	}
	sweep := func(g compare.Group) compare.Group {
		for i := range g.Runs {
			g.Runs[i].Labels["sweep"] = "s"
		}
		return g
	}
	for name, c := range map[string]struct {
		a, b   compare.Group
		varied string
	}{
		"from 1":              {labelled("a", "k", "1", "2", "3", "4", "5"), labelled("b", "k", "5", "4", "3", "2", "1"), ""},
		"from 0, not as many": {labelled("a", "k", "0", "1", "2"), labelled("b", "k", "0", "1", "2", "3"), ""},
		"a number of its own": {labelled("a", "build", "881", "884"), labelled("b", "build", "890", "897"), ""},
		"a parameter":         {labelled("a", "k", "1", "2", "4"), labelled("b", "k", "1", "2", "4"), "k"},
		"names":               {labelled("a", "mode", "x", "y"), labelled("b", "mode", "x", "y"), "mode"},
		"of a sweep":          {sweep(labelled("a", "k", "1", "2")), sweep(labelled("b", "k", "1", "2")), "k"},
	} {
		got := compare.Compare([]compare.Group{c.a, c.b}, []string{"via"})
		if strings.Join(got.Varied, " ") != c.varied {
			t.Errorf("%s: varied %v", name, got.Varied)
		}
		if n := got.Lines[0].Samples[0].N; (n == len(c.a.Runs)) != (c.varied == "") {
			t.Errorf("%s: %d runs in a cell", name, n)
		}
		if note := strings.Contains(textOf(t, got), "numbers the runs of a group"); note != (c.varied == "" && name != "a number of its own") {
			t.Errorf("%s: note %v", name, note)
		}
	}
	// Beside threads that vary, each number of threads has its repeats.
	both := func(name string) compare.Group {
		g := join(labelled(name, "k", "1", "2"), labelled(name, "k", "1", "2"))
		for i := range g.Runs {
			g.Runs[i].Threads = 8 + i/2
		}
		return g
	}
	if got := compare.Compare([]compare.Group{both("a"), both("b")}, []string{"via"}); strings.Join(got.Varied, " ") != "threads" {
		t.Errorf("varied %v", got.Varied)
	}
}

// Transactions of two tools have no verdict, and a run has no difference from itself.
func TestCompareOfNothingComparable(t *testing.T) {
	before, after := group("direct", 16, 100), group("atlas", 16, 1900)
	after.Runs[0].Tool, after.Runs[0].Version, before.Runs[0].Version = "hammerdb", "5.0", "1.0.20"
	c := compare.Compare([]compare.Group{before, after}, []string{"tool"})
	if want := "The tools count different things as a transaction: tps can't be compared."; c.Summary[0] != want {
		t.Errorf("%q", c.Summary)
	}
	for _, l := range c.Lines {
		if s := l.Samples[1]; l.Measure == "tps" && (s.Verdict != compare.Incomparable || s.Ratio.Known) {
			t.Errorf("%+v", s)
		}
	}
	plain := textOf(t, c)
	for _, not := range []string{"×", "+1800", "1800 %", "repeat", "differ in tool_version"} {
		if strings.Contains(plain, not) {
			t.Errorf("%q in\n%s", not, plain)
		}
	}
	same := compare.Compare([]compare.Group{before, before}, nil)
	if want := []string{"Both groups are the same run, direct-16-0."}; !slices.Equal(same.Summary, want) {
		t.Errorf("%q", same.Summary)
	}
}

// Runs that were named by their place are named by id and title, and their titles are what differs.
func TestCompareNamesRunsByTitle(t *testing.T) {
	groups := []compare.Group{group("direct", 16, 100), group("direct", 16, 110)}
	for i, kernel := range []string{"6.1", "6.8"} {
		g := &groups[i]
		g.Name, g.Runs[0].ID, g.Runs[0].Title = []string{"last~1", "last"}[i], "r"+kernel, "kernel "+kernel
	}
	c := compare.Compare(groups, nil)
	p := ComparisonPage{Comparison: c}
	if got := p.Page().Documents[0].Title; got != "r6.1 (kernel 6.1) against r6.8 (kernel 6.8)" {
		t.Errorf("title %q", got)
	}
	if !strings.Contains(c.Summary[0], "From last~1 to last (title kernel 6.1 → kernel 6.8): ") {
		t.Errorf("%q", c.Summary)
	}
}

// The range of several combinations is of those that are proven.
func TestCompareRangeOfProven(t *testing.T) {
	before := join(group("direct", 1, 100, 101, 102, 103), group("direct", 8, 100, 101, 102, 103))
	after := join(group("atlas", 1, 80, 81, 82, 83), group("atlas", 8, 99, 103, 104, 105))
	c := compare.Compare([]compare.Group{before, after}, []string{"via"})
	if !strings.Contains(c.Summary[0], "tps proven in 1 of 2 combinations: -20 %;") {
		t.Errorf("%q", c.Summary)
	}
}
