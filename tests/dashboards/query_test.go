package dashboards

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/benchwatch/benchwatch/tests/rules"
)

const root = "../.."

func dashboards(t *testing.T) []Dashboard {
	t.Helper()
	found, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func known(t *testing.T) map[string][]string {
	t.Helper()
	names, err := Known(root)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// query is a query and its place, for messages.
type query struct{ place, expr string }

var (
	ofVariable  = regexp.MustCompile(`^label_values\((.+), *([a-z_]+)\)$`)
	queryResult = regexp.MustCompile(`^query_result\((.+)\)$`)
)

// expr returns the query whose result a variable offers, empty if it has another form than
// label_values(SELECTOR, LABEL) or query_result(QUERY).
func (v *Variable) expr() string {
	if m := ofVariable.FindStringSubmatch(v.Text()); m != nil {
		return fmt.Sprintf("group by (%s) (%s)", m[2], m[1])
	}
	if m := queryResult.FindStringSubmatch(v.Text()); m != nil {
		return m[1]
	}
	return ""
}

// queries returns all queries of a dashboard: of its panels, annotations and variables.
func queries(t *testing.T, d *Dashboard) []query {
	t.Helper()
	var all []query
	for _, p := range d.Graphs() {
		for _, target := range p.Targets {
			all = append(all, query{fmt.Sprintf("%s, panel %q, query %s", d.Name, p.Title, target.RefID), target.Expr})
		}
	}
	for _, a := range d.Annotations.List {
		if a.Expr != "" {
			all = append(all, query{fmt.Sprintf("%s, annotation %q", d.Name, a.Name), a.Expr})
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		expr := v.expr()
		if expr == "" {
			t.Errorf("%s, variable %s: %q is neither label_values(SELECTOR, LABEL) nor query_result(QUERY)", d.Name, v.Name, v.Text())
			continue
		}
		all = append(all, query{fmt.Sprintf("%s, variable %s", d.Name, v.Name), expr})
	}
	return all
}

func TestEveryQueryParses(t *testing.T) {
	for _, d := range dashboards(t) {
		for _, q := range queries(t, &d) {
			if _, err := Parse(q.expr); err != nil {
				t.Errorf("%s: %v\n%s", q.place, err, q.expr)
			}
		}
	}
}

// `and` binds more loosely than arithmetic and comparisons: next to one, the restriction to the
// servers of a run needs parentheses, or the operator applies to the list of servers.
func TestServersOfRunsAreNoOperands(t *testing.T) {
	for _, d := range dashboards(t) {
		for _, q := range queries(t, &d) {
			expr, err := Parse(q.expr)
			if err != nil {
				continue // TestEveryQueryParses
			}
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				b, ok := node.(*parser.BinaryExpr)
				if !ok || b.Op.IsSetOperator() {
					return nil
				}
				for _, side := range []parser.Expr{b.LHS, b.RHS} {
					if a, ok := side.(*parser.AggregateExpr); ok && a.Op == parser.GROUP && strings.Contains(a.String(), "|benchwatch_db_up") {
						t.Errorf("%s: %s is applied to a list of servers:\n%s", q.place, b.Op, q.expr)
					}
				}
				return nil
			})
		}
	}
}

func TestEveryMetricExists(t *testing.T) {
	names := known(t)
	check := func(place, expr string) {
		parsed, err := Parse(expr)
		if err != nil {
			return // another test's
		}
		for _, s := range Selectors(parsed) {
			of := Names(s, names)
			if len(of) == 0 {
				t.Errorf("%s: no metric matches %s", place, s)
			}
			for _, name := range of {
				if _, ok := names[name]; !ok {
					t.Errorf("%s: %s is not exposed (docs/reference/metrics.md, tests/metrics, prometheus/rules)", place, name)
				}
			}
		}
	}
	for _, d := range dashboards(t) {
		for _, q := range queries(t, &d) {
			check(q.place, q.expr)
		}
	}
	all, err := rules.All(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		check(r.Alert+r.Record, r.Expr)
	}
}

// infoLabels are the labels of run_info; docs/reference/metrics.md names some of them by their kind. The
// last three are labels of users and of sweeps.
var infoLabels = []string{"title", "tool", "tool_version", "verb", "workload", "threads", "target", "database", "generator", "group", "sweep", "via"}

// The labels of the agent's metrics are known: a matcher or a grouping by another label would
// silently return nothing.
func TestEveryLabelExists(t *testing.T) {
	names := known(t)
	check := func(place, expr string) {
		parsed, err := Parse(expr)
		if err != nil {
			return
		}
		for _, s := range Selectors(parsed) {
			has := names[s.Name]
			if has == nil {
				continue
			}
			if s.Name == "benchwatch_run_info" {
				has = append(slices.Clone(has), infoLabels...)
			}
			for _, m := range s.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(has, m.Name) {
					t.Errorf("%s: %s has no label %s", place, s.Name, m.Name)
				}
			}
		}
		parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
			a, ok := node.(*parser.AggregateExpr)
			if !ok || a.Without {
				return nil
			}
			has := labelsOf(a.Expr, names)
			for _, label := range a.Grouping {
				if has != nil && !slices.Contains(has, label) {
					t.Errorf("%s: no label %s to group by in %s", place, label, a)
				}
			}
			return nil
		})
	}
	for _, d := range dashboards(t) {
		for _, q := range queries(t, &d) {
			check(q.place, q.expr)
		}
	}
	all, err := rules.All(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		check(r.Alert+r.Record, r.Expr)
	}
}

// labelsOf returns the labels that the selectors and label_replace in expr can give, or nil if
// the labels of a selector are unknown.
func labelsOf(expr parser.Expr, known map[string][]string) []string {
	all := []string{}
	unknown := false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			has := known[n.Name]
			if has == nil {
				unknown = true
			}
			all = append(all, has...)
			if n.Name == "benchwatch_run_info" {
				all = append(all, infoLabels...)
			}
		case *parser.Call:
			if n.Func.Name == "label_replace" || n.Func.Name == "label_join" {
				if name, ok := n.Args[1].(*parser.StringLiteral); ok {
					all = append(all, name.Val)
				}
			}
		case *parser.AggregateExpr:
			if n.Op == parser.COUNT_VALUES {
				if name, ok := n.Param.(*parser.StringLiteral); ok {
					all = append(all, name.Val)
				}
			}
		}
		return nil
	})
	if unknown {
		return nil
	}
	return all
}

// A legend that names a label which the query has aggregated away would be empty.
func TestLegendsNameLabelsThatAreLeft(t *testing.T) {
	inLegend := regexp.MustCompile(`\{\{ *([a-z_A-Z]+) *\}\}`)
	for _, d := range dashboards(t) {
		for _, p := range d.Graphs() {
			for _, target := range p.Targets {
				expr, err := Parse(target.Expr)
				if err != nil {
					continue // TestEveryQueryParses
				}
				left, some := labelsLeft(expr)
				for _, m := range inLegend.FindAllStringSubmatch(target.LegendFormat, -1) {
					if !some && !slices.Contains(left, m[1]) {
						t.Errorf("%s, panel %q, query %s: legend names %s, which is not left of %v", d.Name, p.Title, target.RefID, m[1], left)
					}
				}
			}
		}
	}
}

// labelsLeft returns the labels that a query's result can have. some means that it also has all
// labels of the selectors.
func labelsLeft(expr parser.Expr) (left []string, some bool) {
	switch n := expr.(type) {
	case *parser.ParenExpr:
		return labelsLeft(n.Expr)
	case *parser.UnaryExpr:
		return labelsLeft(n.Expr)
	case *parser.AggregateExpr:
		if n.Op == parser.TOPK || n.Op == parser.BOTTOMK {
			return labelsLeft(n.Expr)
		}
		return n.Grouping, n.Without
	case *parser.BinaryExpr:
		return binaryLeft(n)
	case *parser.Call:
		return callLeft(n)
	case *parser.NumberLiteral:
		return nil, false
	default:
		return nil, true
	}
}

func binaryLeft(n *parser.BinaryExpr) ([]string, bool) {
	left, some := labelsLeft(n.LHS)
	if n.VectorMatching == nil {
		if n.LHS.Type() == parser.ValueTypeScalar {
			return labelsLeft(n.RHS)
		}
		return left, some
	}
	if n.Op == parser.LOR {
		right, alsoSome := labelsLeft(n.RHS)
		return append(slices.Clone(left), right...), some || alsoSome
	}
	if !n.Op.IsSetOperator() && n.VectorMatching.Card == parser.CardOneToOne && n.VectorMatching.On {
		return n.VectorMatching.MatchingLabels, false
	}
	return append(slices.Clone(left), n.VectorMatching.Include...), some
}

func callLeft(n *parser.Call) ([]string, bool) {
	switch n.Func.Name {
	case "label_replace", "label_join":
		left, some := labelsLeft(n.Args[0])
		return append(slices.Clone(left), n.Args[1].(*parser.StringLiteral).Val), some
	case "time", "vector":
		return nil, false
	}
	for _, arg := range n.Args {
		if arg.Type() == parser.ValueTypeVector || arg.Type() == parser.ValueTypeMatrix {
			left, some := labelsLeft(arg)
			return slices.DeleteFunc(slices.Clone(left), func(l string) bool { return n.Func.Name == "histogram_quantile" && l == "le" }), some
		}
	}
	return nil, false
}

// TestReasonsAreOfTheRange guards that a state timeline shows why it is empty only if it has no data in
// the whole time range: at a single instant before a run it would be one more row beside the servers.
func TestReasonsAreOfTheRange(t *testing.T) {
	reasons := 0
	for _, d := range dashboards(t) {
		for _, q := range queries(t, &d) {
			if !strings.Contains(q.expr, "vector(-1) unless on () group(") {
				continue
			}
			reasons++
			expr, err := Parse(q.expr)
			if err != nil {
				t.Fatal(err)
			}
			parser.Inspect(expr, func(node parser.Node, parents []parser.Node) error {
				_, isSelector := node.(*parser.VectorSelector)
				if isSelector && !slices.ContainsFunc(parents, isAtEnd) {
					t.Errorf("%s: %s is of an instant", q.place, node)
				}
				return nil
			})
		}
	}
	if reasons == 0 {
		t.Error("no timeline has a reason")
	}
}

func isAtEnd(n parser.Node) bool {
	s, ok := n.(*parser.SubqueryExpr)
	return ok && s.StartOrEnd == parser.END
}
