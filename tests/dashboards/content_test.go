package dashboards

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/benchwatch/benchwatch/tests/rules"
)

func TestDashboardsAreAlike(t *testing.T) {
	uids := map[string]bool{}
	for _, d := range dashboards(t) {
		if d.UID != "benchwatch-"+d.Name || uids[d.UID] {
			t.Errorf("%s has uid %q", d.Name, d.UID)
		}
		uids[d.UID] = true
		if !strings.HasPrefix(d.Title, "Benchmark: ") || d.Description == "" || !slices.Contains(d.Tags, "benchwatch") {
			t.Errorf("%s lacks a title, a description or a tag", d.Name)
		}
		// Grafana 11 has 39; newer versions migrate it when they load it.
		if d.SchemaVersion < 39 || d.SchemaVersion > 41 {
			t.Errorf("%s has schema version %d", d.Name, d.SchemaVersion)
		}
		if len(d.Links) == 0 {
			t.Errorf("%s has no link to the other dashboards", d.Name)
		}
		for _, l := range d.Links {
			if !l.IncludeVars || !l.KeepTime {
				t.Errorf("%s has a link that loses variables or time range", d.Name)
			}
		}
	}
}

func TestVariablesCanBeAll(t *testing.T) {
	for _, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			if v.Description == "" && v.Type != "datasource" {
				t.Errorf("%s: variable %s has no description", d.Name, v.Name)
			}
			if !slices.Contains([]string{"cluster", "target", "run"}, v.Name) {
				continue
			}
			if (d.Name == "live-run" || d.Name == "group") && v.Name == "run" {
				// Its first value, the run in progress, is what the page opens on.
				if v.IncludeAll || !v.Multi {
					t.Errorf("%s: variable %s does not open on one run", d.Name, v.Name)
				}
				continue
			}
			// .* also matches series without the label: single servers.
			if !v.IncludeAll || !v.Multi || v.AllValue != ".*" {
				t.Errorf("%s: variable %s has no working All", d.Name, v.Name)
			}
		}
	}
	multi := regexp.MustCompile(`(=|!=) *"\$\{?(cluster|target|run)\b`)
	for _, d := range dashboards(t) {
		for _, q := range queries(t, &d) {
			if m := multi.FindString(q.expr); m != "" {
				t.Errorf("%s: %s fails for All and for several values; use =~", q.place, m)
			}
		}
	}
}

// Each mark is drawn once, from one source, and only for the selected runs. Its text names only labels that it always
// has, since Grafana prints the names of missing ones.
func TestMarksAreDrawnOnce(t *testing.T) {
	placeholder := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for _, d := range dashboards(t) {
		seen := map[string]bool{}
		for _, a := range d.Annotations.List {
			where := d.Name + ", annotation " + a.Name
			if a.Datasource.Type != "prometheus" || a.Expr == "" {
				t.Errorf("%s: not from Prometheus", where)
			}
			if !strings.Contains(a.Expr, `run=~"$run`) {
				t.Errorf("%s: not restricted to the selected runs", where)
			}
			if seen[a.Expr] {
				t.Errorf("%s: drawn twice", where)
			}
			seen[a.Expr] = true
			if alerts := strings.Contains(a.Expr, "ALERTS"); alerts && a.Enable != (d.Name == "live-run") {
				t.Errorf("%s: drawn from the beginning: %v", where, a.Enable)
			}
			for _, m := range placeholder.FindAllStringSubmatch(a.Title+a.Text, -1) {
				if !slices.Contains([]string{"title", "text", "alertname", "about"}, m[1]) {
					t.Errorf("%s: names the label %s, which may be missing", where, m[1])
				}
			}
		}
		if len(seen) != 4 {
			t.Errorf("%s draws %d kinds of marks, want runs, drain, markers, alerts", d.Name, len(seen))
		}
	}
}

// Rounded ticks that become equal are dropped: a percent axis would have 0 % and 100 % only.
// Equal widths of axes align panels in time, legends have numbers, percentiles no mean, and cumulative shares neither.
func TestGraphsAreReadable(t *testing.T) {
	percentile := regexp.MustCompile(`benchwatch_run_(summary_)?latency_seconds`)
	for _, d := range dashboards(t) {
		for _, p := range d.Graphs() {
			if p.Type != "timeseries" && p.Type != "trend" {
				continue
			}
			where := d.Name + ", panel \"" + p.Title + "\""
			defaults, legend := p.FieldConfig.Defaults, p.Options.Legend
			if defaults.Decimals != nil {
				t.Errorf("%s: a graph with decimals", where)
			}
			if defaults.Custom.AxisWidth == 0 {
				t.Errorf("%s: an axis without a fixed width", where)
			}
			if p.Type == "trend" && !slices.ContainsFunc(p.Targets, func(q Target) bool { return q.RefID == emptyRow }) {
				t.Errorf("%s: without data, Grafana shows that it finds no field", where)
			}
			if p.Title == "Share of operations by latency" { // every line ends at 100 %
				if legend.DisplayMode != "list" || len(legend.Calcs) > 0 {
					t.Errorf("%s: a legend with numbers that say nothing", where)
				}
				continue
			}
			if legend.DisplayMode != "table" || !slices.Contains(legend.Calcs, "max") || !slices.Contains(legend.Calcs, "lastNotNull") {
				t.Errorf("%s: a legend without numbers", where)
			}
			hasPercentiles := slices.ContainsFunc(p.Targets, func(q Target) bool { return percentile.MatchString(q.Expr) })
			if hasPercentiles == slices.Contains(legend.Calcs, "mean") {
				t.Errorf("%s: has percentiles: %v; calculates %v", where, hasPercentiles, legend.Calcs)
			}
		}
	}
}

func TestPanelsExplainThemselves(t *testing.T) {
	source := regexp.MustCompile(`From (run:|[a-z]+_|up\b)`)
	for _, d := range dashboards(t) {
		ids := map[int]bool{}
		for _, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: two panels have id %d", d.Name, p.ID)
			}
			ids[p.ID] = true
		}
		for _, p := range d.Graphs() {
			where := d.Name + ", panel \"" + p.Title + "\""
			defaults := p.FieldConfig.Defaults
			if !source.MatchString(p.Description) {
				t.Errorf("%s: the description does not name the source of the number", where)
			}
			if defaults.NoValue == "" {
				t.Errorf("%s: no text for the case of no data", where)
			}
			if limit := map[string]int{"stat": 24, "state-timeline": 32}[p.Type]; limit > 0 && len(defaults.NoValue) > limit {
				t.Errorf("%s: %q is too long for its place", where, defaults.NoValue)
			}
			if p.Type == "stat" && p.GridPos.W <= 4 && len(p.Title) > 12 {
				t.Errorf("%s: the title is cut in a window of 1400 pixels with the menu docked", where)
			}
			if p.Type != "table" && defaults.Min == nil && defaults.Custom.ScaleDistribution.Type != "log" {
				t.Errorf("%s: no minimum", where)
			}
			refs := map[string]bool{}
			for _, target := range p.Targets {
				if refs[target.RefID] {
					t.Errorf("%s: two queries %s", where, target.RefID)
				}
				refs[target.RefID] = true
				if target.Interval == "" {
					t.Errorf("%s, query %s: no interval, so that $__rate_interval would follow the data source's", where, target.RefID)
				}
			}
		}
	}
}

// Alerts that descriptions name exist.
func TestDescriptionsNameRealAlerts(t *testing.T) {
	all, err := rules.All(root)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, r := range all {
		known[r.Alert] = true
	}
	alert := regexp.MustCompile(`\b(?:Run|Database|Host|Generator|Galera|GroupReplication|Replication|MongoDB|TiDB|TiKV|Aurora|Proxy|Agent|Markers|Throughput)[A-Z][A-Za-z]+\b`)
	for _, d := range dashboards(t) {
		for _, p := range d.Graphs() {
			for _, name := range alert.FindAllString(p.Description, -1) {
				if !known[name] && name != "ProxySQL" {
					t.Errorf("%s, panel %q: there is no alert %s", d.Name, p.Title, name)
				}
			}
		}
	}
}

// A tile turns orange or red at the value at which the alert fires.
func TestThresholdsAreThoseOfTheAlerts(t *testing.T) {
	all, err := rules.All(root)
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string][]float64{}
	for _, r := range all {
		if r.Alert != "" {
			limits[r.Alert] = numbers(t, r)
		}
	}
	text, err := os.ReadFile(root + "/dashboards-src/threshold.ts")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^  \w+: \{ warning: ([0-9.]+)(?:, critical: ([0-9.]+))? \}, // ([A-Za-z, ]+)$`)
	found := line.FindAllStringSubmatch(string(text), -1)
	if len(found) < 5 {
		t.Fatalf("only %d limits found in threshold.ts", len(found))
	}
	for _, m := range found {
		alerts := strings.Split(m[3], ", ")
		for _, value := range m[1:3] {
			if value == "" {
				continue
			}
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(alerts, func(a string) bool { return slices.Contains(limits[a], n) }) {
				t.Errorf("threshold.ts has %s, but the rules of %s compare with %v", value, m[3], limits[alerts[0]])
			}
		}
	}
}

// numbers returns the numbers in a rule's expression.
func numbers(t *testing.T, r rules.Rule) []float64 {
	t.Helper()
	expr, err := promql.ParseExpr(r.Expr)
	if err != nil {
		t.Fatalf("%s: %v", r.Alert, err)
	}
	var all []float64
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if b, ok := node.(*parser.BinaryExpr); ok && b.Op.IsComparisonOperator() {
			if n, ok := b.RHS.(*parser.NumberLiteral); ok {
				all = append(all, n.Val)
			}
		}
		return nil
	})
	return all
}

// A dashboard that is watched during a run must not become a load itself.
func TestLiveRunAsksLittle(t *testing.T) {
	for _, d := range dashboards(t) {
		if d.Name != "live-run" {
			continue
		}
		targets, annotations, variables := d.Queries()
		if n := len(targets) + len(annotations) + len(variables); n > 30 {
			t.Errorf("%d queries at each load, 30 are allowed", n)
		}
		return
	}
	t.Error("there is no such dashboard")
}
