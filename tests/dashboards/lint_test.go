package dashboards

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v4"
)

// exclusions are the entries of dashboards/.lint, in dashboard-linter's format.
type exclusions map[string]struct {
	Reason  string `yaml:"reason"`
	Entries []struct {
		Dashboard string `yaml:"dashboard"`
		Panel     string `yaml:"panel"`
	} `yaml:"entries"`
}

func readExclusions(t *testing.T) exclusions {
	t.Helper()
	text, err := os.ReadFile(root + "/dashboards/.lint")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Exclusions exclusions `yaml:"exclusions"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for rule, e := range file.Exclusions {
		if len(e.Reason) < 20 {
			t.Errorf(".lint excludes %s without a reason", rule)
		}
	}
	return file.Exclusions
}

// linter reports violations of dashboard-linter's rules, except exclusions, and records which
// exclusions were used.
type linter struct {
	t        *testing.T
	excluded exclusions
	used     map[string]bool
}

func (l *linter) broken(rule string, d *Dashboard, p *Panel, message string) {
	l.t.Helper()
	e, ok := l.excluded[rule]
	if ok && len(e.Entries) == 0 {
		l.used[rule] = true
		return
	}
	for _, entry := range e.Entries {
		if (entry.Dashboard == "" || entry.Dashboard == d.Title) && p != nil && entry.Panel == p.Title {
			l.used[rule+entry.Panel] = true
			return
		}
	}
	where := d.Name
	if p != nil {
		where += ", panel \"" + p.Title + "\""
	}
	l.t.Errorf("%s: %s: %s", where, rule, message)
}

// The rules of dashboard-linter for Prometheus. Its rules for LogQL do not apply;
// target-promql-rule is TestEveryQueryParses.
func TestRulesOfDashboardLinter(t *testing.T) {
	l := &linter{t: t, excluded: readExclusions(t), used: map[string]bool{}}
	for _, d := range dashboards(t) {
		l.dashboard(&d)
		for _, p := range d.Graphs() {
			l.panel(&d, &p)
			for _, target := range p.Targets {
				l.target(&d, &p, &target)
			}
		}
	}
	for rule, e := range l.excluded {
		if len(e.Entries) == 0 && !l.used[rule] {
			t.Errorf(".lint excludes %s, which nothing breaks", rule)
		}
		for _, entry := range e.Entries {
			if !l.used[rule+entry.Panel] {
				t.Errorf(".lint excludes %s for panel %q, which does not break it", rule, entry.Panel)
			}
		}
	}
}

func (l *linter) dashboard(d *Dashboard) {
	if d.Editable {
		l.broken("uneditable-dashboard", d, nil, "is editable")
	}
	has := map[string]bool{}
	for _, v := range d.Templating.List {
		has[v.Name] = true
		switch v.Type {
		case "datasource":
			if v.Name != "datasource" || v.Label != "Data source" || v.Text() != "prometheus" {
				l.broken("template-datasource-rule", d, nil, "is not called datasource, \"Data source\", of Prometheus")
			}
		case "query":
			if v.Refresh != 2 {
				l.broken("template-on-time-change-reload-rule", d, nil, v.Name+" is not reloaded when the time range changes")
			}
			if v.expr() == "" {
				l.broken("template-label-promql-rule", d, nil, v.Name+" has query "+v.Text())
			}
		}
	}
	for _, name := range []string{"datasource", "job", "instance"} {
		if !has[name] {
			l.broken("template-"+name+"-rule", d, nil, "no variable "+name)
		}
	}
}

// units are the units of Grafana that the dashboards use.
var units = map[string]bool{
	"none": true, "short": true, "percent": true, "percentunit": true, "bytes": true, "Bps": true,
	"locale": true, "s": true, "µs": true, "dthms": true, "dateTimeAsIso": true, "ops": true, "cps": true,
}

func (l *linter) panel(d *Dashboard, p *Panel) {
	if p.Datasource.UID != "${datasource}" {
		l.broken("panel-datasource-rule", d, p, "uses data source "+p.Datasource.UID)
	}
	if p.Title == "" || p.Description == "" {
		l.broken("panel-title-description-rule", d, p, "no title or description")
	}
	if !units[p.FieldConfig.Defaults.Unit] {
		l.broken("panel-units-rule", d, p, "unit "+p.FieldConfig.Defaults.Unit)
	}
	if len(p.Targets) == 0 {
		l.broken("panel-no-targets-rule", d, p, "no query")
	}
}

func (l *linter) target(d *Dashboard, p *Panel, target *Target) {
	if target.Datasource.UID != "${datasource}" {
		l.broken("panel-datasource-rule", d, p, "query uses data source "+target.Datasource.UID)
	}
	expr, err := Parse(target.Expr)
	if err != nil {
		return // TestEveryQueryParses
	}
	for _, s := range Selectors(expr) {
		has := map[string]bool{}
		for _, m := range s.LabelMatchers {
			has[m.Name] = true
		}
		for _, label := range []string{"job", "instance"} {
			if !has[label] {
				l.broken("target-"+label+"-rule", d, p, "no matcher of "+label)
			}
		}
	}
	parser.Inspect(expr, func(node parser.Node, parents []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			if err := checkRate(n, parents); err != nil {
				l.broken("target-rate-interval-rule", d, p, err.Error())
			}
		case *parser.VectorSelector:
			if strings.HasSuffix(n.Name, "_total") && !inRate(parents) {
				l.broken("target-counter-agg-rule", d, p, n.Name+" without rate or increase")
			}
		}
		return nil
	})
}

func checkRate(n *parser.MatrixSelector, parents []parser.Node) error {
	call, ok := parents[len(parents)-1].(*parser.Call)
	if !ok || call.Func.Name != "rate" && call.Func.Name != "irate" {
		return nil
	}
	if want, _ := time.ParseDuration(rateInterval); n.Range != want {
		return errors.New("rate over " + n.Range.String())
	}
	return nil
}

// inRate reports whether a selector is the argument of a rate, or within a subquery that is.
func inRate(parents []parser.Node) bool {
	isRate := func(n parser.Node) bool {
		call, ok := n.(*parser.Call)
		return ok && slices.Contains([]string{"rate", "irate", "increase"}, call.Func.Name)
	}
	for i, n := range parents[:max(0, len(parents)-1)] {
		_, isSubquery := parents[i+1].(*parser.SubqueryExpr)
		if isRate(n) && (isSubquery || i == len(parents)-2) {
			return true
		}
	}
	return false
}
