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

func TestMarksAreDrawnWithAndWithoutAToken(t *testing.T) {
	for _, d := range dashboards(t) {
		var fromGrafana, fromSeries, alerts bool
		for _, a := range d.Annotations.List {
			if !a.Enable {
				continue
			}
			switch {
			case a.Datasource.UID == "-- Grafana --" && slices.Contains(a.Target.Tags, "benchwatch"):
				fromGrafana = true
			case strings.Contains(a.Expr, "benchwatch_marker_timestamp_seconds"):
				fromSeries = true
			case strings.Contains(a.Expr, "ALERTS"):
				alerts = true
			}
		}
		if !fromGrafana || !fromSeries || !alerts {
			t.Errorf("%s: marks from Grafana %v, from series %v, alerts %v", d.Name, fromGrafana, fromSeries, alerts)
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
			if p.Type == "stat" && len(defaults.NoValue) > 24 {
				t.Errorf("%s: %q is too long for a tile", where, defaults.NoValue)
			}
			if p.Type != "table" && defaults.Min == nil {
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
	text, err := os.ReadFile(root + "/dashboards/src/threshold.ts")
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
