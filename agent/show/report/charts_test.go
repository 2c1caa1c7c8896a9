package report

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/document"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// TestPercentilesHaveNoMean: a legend shows the median of the intervals' percentiles.
func TestPercentilesHaveNoMean(t *testing.T) {
	h := recorded.Read(t, recorded.Sysbench(t, []float64{1000, 2000, 3000, 6000}))
	for _, c := range Charts(h) {
		for _, e := range c.Legend() {
			want := map[string]string{"transaction": "mean 3000", "transaction p95": "median of the intervals 2.50"}[e.Name]
			if want != "" && !strings.HasPrefix(e.Values, want+",") {
				t.Errorf("%s of %s: %q, want %q", e.Name, c.Title, e.Values, want)
			}
		}
	}
}

// The charts that show what limited a run come first, then throughput and latency; each other chart is folded, with
// charts without a change in the last fold.
func TestOrderOfCharts(t *testing.T) {
	charts := Charts(recorded.Read(t, recorded.Galera(t)))
	titles := func(b document.Block) []string {
		var all []string
		for _, d := range b.Drawings {
			all = append(all, d.Title)
		}
		return all
	}
	for limit, want := range map[cause.Limit]string{
		cause.FlowControl: "Flow control, Flow control requested, Replication queue, Throughput, Latency",
		cause.RowLocks:    "Waiting for row locks, Deadlocks, Flow control, Throughput, Latency",
		"":                "Flow control, Flow control requested, Replication lag, Throughput, Latency",
	} {
		v := &limits.Verdict{}
		if limit != "" {
			v.Findings = []limits.LimitFinding{{Limit: limit}}
		}
		blocks := chartBlocks(charts, v)
		if got := strings.Join(titles(blocks[0]), ", "); got != want || blocks[0].Fold != "" {
			t.Errorf("%s: first %s, want %s", limit, got, want)
		}
		var all []string
		for _, b := range blocks {
			all = append(all, titles(b)...)
		}
		slices.Sort(all)
		if n := len(all); n != len(slices.Compact(all)) || n != len(charts) {
			t.Errorf("%s: %d of %d charts: %q", limit, n, len(charts), all)
		}
		for i, b := range blocks[1:] {
			if flat := i == len(blocks)-2; len(b.Drawings) > 0 && (b.Fold == "" || b.Unprinted != flat) {
				t.Errorf("%s: block %d: %q, printed %v", limit, i+1, b.Fold, !b.Unprinted)
			}
		}
	}
}

// A comparison begins with what differs, and its first table has at most eight rows.
func TestOrderOfComparison(t *testing.T) {
	row := func(id, limit string, tps float64) review.Row {
		r := review.Row{ID: id, Labels: map[string]string{"fc_limit": limit, "sweep": id}, Values: tool.Values{{Measure: tool.Throughput, Value: tps}}, Latency: map[string]float64{}}
		for i, stat := range []string{"min", "avg", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"} {
			r.Latency[stat] = tps * float64(i+1) / 1e6
		}
		return r
	}
	groups := []compare.Group{{Name: "one", Runs: []review.Row{row("one", "16", 1000)}}, {Name: "two", Runs: []review.Row{row("two", "100000", 500)}}}
	compare.NameByDifference(groups)
	p := ComparisonPage{Comparison: compare.Compare(groups, nil)}
	sections := p.Layout()
	if d := cmp.Diff([]document.Term{{Name: "fc_limit", Value: "16 → 100000"}}, sections[0].Blocks[0].Facts); d != "" {
		t.Error(d)
	}
	if text := sections[0].Blocks[1].Lines[0].Text; !strings.HasPrefix(text, "From fc_limit=16 to fc_limit=100000: tps -50 %") {
		t.Errorf("%q", text)
	}
	var text strings.Builder
	if err := p.Page().Text(&text, terminal.Terminal{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(text.String(), "\n"); !strings.HasPrefix(lines[4], "From fc_limit=16") || !strings.Contains(text.String(), "runs: fc_limit=16 is one and fc_limit=100000 is two") {
		t.Errorf("the result is not among the first five lines, or the runs are not named:\n%s", text.String())
	}
	i := slices.IndexFunc(sections, func(s document.Section) bool { return s.ID == "measures" })
	first, more := sections[i].Blocks[0], sections[i].Blocks[1]
	if len(first.Rows) != 8 || first.Fold != "" || first.Rows[0][0] != "tps" || len(more.Rows) != 2 || more.Fold != "2 more rows" {
		t.Errorf("%q, then %s %q", first.Rows, more.Fold, more.Rows)
	}
}

// Groups are named by the first fact that distinguishes all of them, by several only if no single fact does.
func TestNameByDifference(t *testing.T) {
	for want, facts := range map[string][3]string{
		"x=1 x=2 x=3":             {"x=1,t=a", "x=2,t=a", "x=3,t=b"},
		"t=a,x=1 t=a,x=2 t=b,x=1": {"x=1,t=a", "x=2,t=a", "x=1,t=b"},
		"r0 r1 r2":                {"x=1", "x=1", "x=1"},
		"t=a t=b t=c":             {"t=a", "t=b,x=1", "t=c,x=2"}, // what a group lacks does not name it
	} {
		var groups []compare.Group
		for i, text := range facts {
			r := review.Row{ID: "r" + string(rune('0'+i)), Labels: map[string]string{}}
			for fact := range strings.SplitSeq(text, ",") {
				name, value, _ := strings.Cut(fact, "=")
				r.Labels[name] = value
			}
			groups = append(groups, compare.Group{Name: r.ID, Runs: []review.Row{r}})
		}
		compare.NameByDifference(groups)
		var names []string
		for _, g := range groups {
			names = append(names, strings.ReplaceAll(g.Name, " ", ","))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%v: %s, want %s", facts, got, want)
		}
	}
	named := []compare.Group{{Name: "v=1", Facts: []rundir.Fact{{Name: "v", Value: "1"}}, Runs: []review.Row{{ID: "a"}}}, {Name: "b", Runs: []review.Row{{ID: "b"}}}}
	if compare.NameByDifference(named); named[0].Name != "v=1" {
		t.Errorf("renamed to %s", named[0].Name)
	}
}

// declaredLimits reads the limits that a verdict may name from their declarations.
func declaredLimits(t *testing.T) []cause.Limit {
	t.Helper()
	source, err := os.ReadFile("../../model/cause/limit.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []cause.Limit
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ +Limit = "(.+)"$`).FindAllSubmatch(source, -1) {
		if l := cause.Limit(m[1]); l != cause.Unlimited && l != cause.Unknown {
			declared = append(declared, l)
		}
	}
	if !slices.Contains(declared, cause.FlowControl) {
		t.Fatalf("the limits were read as %q", declared)
	}
	return declared
}

// TestLimitsHaveEvidence guards that each limit that a verdict may name has a chart that shows it.
func TestLimitsHaveEvidence(t *testing.T) {
	for _, limit := range declaredLimits(t) {
		if !slices.ContainsFunc(limits.Charts(limit), func(m *measure.Measure) bool { return len(chartOf(m).Charted()) > 0 }) {
			t.Errorf("%s has no chart", limit)
		}
	}
}

// TestMarkersSideBySide guards that the texts of markers have room or are left out, however close the
// markers are.
func TestMarkersSideBySide(t *testing.T) {
	c := newChart(tool.Throughput)
	c.To = 60
	c.Lines = []Line{{X: []float64{0, 30, 60}, Y: []float64{1, 2, 3}}}
	for i, at := range []float64{10, 10, 10.1, 10.5, 11, 11.5, 12, 13, 14.5, 17, 40, 60} {
		c.Markers = append(c.Markers, review.Marker{Number: i + 1, ElapsedSeconds: at, Text: "alter table"})
	}
	svg := string(c.SVG(400))
	for want, n := range map[string]int{`class="mark"`: 12, ">alter table<": 2} {
		if got := strings.Count(svg, want); got != n {
			t.Errorf("%d times %s, want %d", got, want, n)
		}
	}
}
