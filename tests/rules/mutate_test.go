package rules

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/internal/need"
)

var mutate = flag.Bool("mutate", false, "break every rule in many ways and expect a test of it to fail; an hour")

// tolerated are mutations that no test can notice, as "RULE: MUTATION", with the reason.
var tolerated = map[string]string{
	"GeneratorSaturated: max becomes min (node 2)": sameHost,
	"HostCPUSaturated: max becomes min (node 2)":   sameHost,
}

const sameHost = "a host with two roles has the same value in both"

// With -mutate, every mutation of a rule makes one of its promtool tests fail:
//
//	go test ./tests/rules -run TestMutations/GaleraNodeLagging -mutate
func TestMutations(t *testing.T) {
	if !*mutate {
		t.Skip("takes an hour: run it with -mutate")
	}
	need.Program(t, promtool)
	files, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	tests := testsByFile(t)
	for _, file := range files {
		for g, group := range file.Groups {
			for r, rule := range group.Rules {
				t.Run(rule.Name(), func(t *testing.T) {
					t.Parallel()
					for _, m := range mutations(t, rule) {
						broken := file
						broken.Groups = slices.Clone(file.Groups)
						broken.Groups[g].Rules = slices.Clone(group.Rules)
						broken.Groups[g].Rules[r] = m.rule
						noticed := noticed(t, files, broken, rule, testsOf(rule, tests[file.Path]))
						if _, ok := tolerated[rule.Name()+": "+m.what]; ok == noticed {
							t.Errorf("%s: noticed is %t, tolerated is %t", m.what, noticed, ok)
						}
					}
				})
			}
		}
	}
}

// testsByFile returns the promtool tests by the file of rules that they load. Tests of recording rules come first,
// since they detect most.
func testsByFile(t *testing.T) map[string][]string {
	t.Helper()
	paths := glob(t, "tests/rules/*_test.yml")
	slices.SortStableFunc(paths, func(a, b string) int {
		return strings.Count(b, ".recording_") - strings.Count(a, ".recording_")
	})
	byFile := map[string][]string{}
	for _, path := range paths {
		var test struct {
			Files []string `yaml:"rule_files"`
		}
		if err := yaml.Unmarshal(read(t, path), &test); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, file := range test.Files {
			loaded := filepath.Join("tests/rules", file)
			byFile[loaded] = append(byFile[loaded], path)
		}
	}
	return byFile
}

// testsOf returns the tests that have to notice a change of the rule: an alert's own, or
// for a recording rule all that load it.
func testsOf(rule Rule, loading []string) []string {
	if rule.Alert == "" {
		return loading
	}
	return slices.DeleteFunc(slices.Clone(loading), func(path string) bool {
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), "_test.yml"), ".")
		return name != rule.Alert
	})
}

// noticed reports whether a test fails with one file of rules replaced by a broken one.
func noticed(t *testing.T, files []File, broken File, rule Rule, tests []string) bool {
	t.Helper()
	files = slices.Clone(files)
	files[slices.IndexFunc(files, func(f File) bool { return f.Path == broken.Path })] = broken
	fails := func(path string, test []byte) bool {
		out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", copied(t, t.TempDir(), path, test, files)).CombinedOutput()
		if _, ok := errors.AsType[*exec.ExitError](err); ok {
			if !bytes.Contains(out, []byte("FAILED")) {
				t.Fatalf("%s: %s", path, out)
			}
			return true
		} else if err != nil {
			t.Fatal(err)
		}
		return false
	}
	for _, path := range tests {
		if fails(path, read(t, path)) {
			return true
		}
	}
	return rule.Alert != "" && fails(separation(t, rule.Alert))
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// mutation is a rule with one thing about it changed.
type mutation struct {
	what string
	rule Rule
}

// mutations returns the rule changed in every way that is tried.
func mutations(t *testing.T, rule Rule) []mutation {
	t.Helper()
	var found []mutation
	add := func(what string, change func(*Rule)) {
		broken := rule
		broken.Labels, broken.Annotations = maps.Clone(rule.Labels), maps.Clone(rule.Annotations)
		change(&broken)
		found = append(found, mutation{what, broken})
	}
	eachExpression(t, rule.Expr, func(what, expr string) { add(what, func(r *Rule) { r.Expr = expr }) })
	if rule.Record != "" {
		add("record renamed", func(r *Rule) { r.Record += "2" })
		return found
	}
	add("alert renamed", func(r *Rule) { r.Alert += "2" })
	for name, field := range map[string]func(*Rule) *string{
		"for":             func(r *Rule) *string { return &r.For },
		"keep_firing_for": func(r *Rule) *string { return &r.KeepFiring },
	} {
		value := *field(&rule)
		if value == "" {
			add(name+" added", func(r *Rule) { *field(r) = "5s" })
			continue
		}
		add(name+" removed", func(r *Rule) { *field(r) = "" })
		d, err := model.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []time.Duration{time.Duration(d) + 2*time.Second, time.Duration(d) - 2*time.Second} {
			if other > 0 {
				changed := model.Duration(other).String()
				add(name+" "+changed, func(r *Rule) { *field(r) = changed })
			}
		}
	}
	for name := range rule.Labels {
		add("label "+name+" removed", func(r *Rule) { delete(r.Labels, name) })
		add("label "+name+" changed", func(r *Rule) { r.Labels[name] += "2" })
	}
	add("label added", func(r *Rule) { r.Labels["run"] = "2" })
	for name := range rule.Annotations {
		add("annotation "+name+" removed", func(r *Rule) { delete(r.Annotations, name) })
		add("annotation "+name+" changed", func(r *Rule) { r.Annotations[name] += " 2" })
	}
	return found
}

var (
	otherOperators = map[parser.ItemType][]parser.ItemType{
		parser.GTR: {parser.LSS}, parser.GTE: {parser.LSS, parser.GTR}, parser.LSS: {parser.GTR}, parser.LTE: {parser.GTR},
		parser.EQLC: {parser.NEQ}, parser.NEQ: {parser.EQLC}, parser.LAND: {parser.LUNLESS}, parser.LUNLESS: {parser.LAND},
		parser.ADD: {parser.SUB}, parser.SUB: {parser.ADD}, parser.MUL: {parser.DIV}, parser.DIV: {parser.MUL},
	}
	otherAggregations = map[parser.ItemType]parser.ItemType{
		parser.MAX: parser.MIN, parser.MIN: parser.MAX, parser.SUM: parser.MAX, parser.AVG: parser.MAX,
		parser.COUNT: parser.MAX, parser.TOPK: parser.BOTTOMK,
	}
	otherFunctions = map[string]string{
		"min_over_time": "max_over_time", "max_over_time": "min_over_time", "avg_over_time": "max_over_time",
		"last_over_time": "count_over_time", "stddev_over_time": "avg_over_time", "changes": "count_over_time",
		"rate": "irate", "deriv": "delta", "increase": "delta", "clamp_max": "clamp_min",
	}
)

// expression is a parsed query whose nodes are changed in place, one at a time.
type expression struct {
	root  parser.Expr
	whole string
	emit  func(what, expr string)
}

// try replaces a node by another value, emits the query, and restores the node. A query that Prometheus would refuse is
// left out.
func try[T any](e *expression, what string, node *T, other T) {
	old := *node
	*node = other
	defer func() { *node = old }()
	if text := e.root.String(); text != e.whole {
		if _, err := promql.ParseExpr(text); err == nil {
			e.emit(what, text)
		}
	}
}

var promql = parser.NewParser(parser.Options{})

// eachExpression emits the query with one of its nodes changed, for each change.
func eachExpression(t *testing.T, text string, emit func(what, expr string)) {
	t.Helper()
	root, err := promql.ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	e := &expression{root: root, whole: root.String(), emit: emit}
	place := 0
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		if node == nil { // the end of a node's children
			return nil
		}
		place++
		e.change(node, fmt.Sprintf(" (node %d)", place))
		return nil
	})
}

func (e *expression) change(node parser.Node, at string) {
	switch n := node.(type) {
	case *parser.NumberLiteral:
		values := []float64{n.Val * 1.1, n.Val * 0.9}
		if n.Val == float64(int(n.Val)) && n.Val < 10 {
			values = []float64{n.Val + 1, n.Val - 1}
		}
		for _, v := range values {
			try(e, fmt.Sprintf("%g becomes %g%s", n.Val, v, at), &n.Val, v)
		}
	case *parser.BinaryExpr:
		for _, other := range otherOperators[n.Op] {
			if n.Op == parser.MUL && (isNumber(n.LHS, 0) || isOne(n.RHS)) {
				continue // 0 and x/1 are what they were
			}
			try(e, fmt.Sprintf("%s becomes %s%s", n.Op, other, at), &n.Op, other)
		}
		if n.VectorMatching == nil {
			return
		}
		for i, label := range n.VectorMatching.MatchingLabels {
			matching := *n.VectorMatching
			matching.MatchingLabels = slices.Delete(slices.Clone(matching.MatchingLabels), i, i+1)
			try(e, fmt.Sprintf("matching by %s removed%s", label, at), &n.VectorMatching, &matching)
		}
		if !n.Op.IsComparisonOperator() { // one side only: X and X is X
			one := *n
			one.Op, one.VectorMatching = parser.LAND, &parser.VectorMatching{Card: parser.CardManyToMany}
			one.RHS = n.LHS
			try(e, fmt.Sprintf("right side of %s removed%s", n.Op, at), n, one)
			if n.Op != parser.LAND && n.Op != parser.LUNLESS {
				one.LHS, one.RHS = n.RHS, n.RHS
				try(e, fmt.Sprintf("left side of %s removed%s", n.Op, at), n, one)
			}
		}
	case *parser.AggregateExpr:
		if other, ok := otherAggregations[n.Op]; ok {
			try(e, fmt.Sprintf("%s becomes %s%s", n.Op, other, at), &n.Op, other)
		}
		for i, label := range n.Grouping {
			try(e, fmt.Sprintf("grouping by %s removed%s", label, at), &n.Grouping, slices.Delete(slices.Clone(n.Grouping), i, i+1))
		}
	case *parser.MatrixSelector:
		try(e, fmt.Sprintf("window %s doubled%s", model.Duration(n.Range), at), &n.Range, 2*n.Range)
		try(e, fmt.Sprintf("window %s halved%s", model.Duration(n.Range), at), &n.Range, n.Range/2)
	case *parser.VectorSelector:
		renamed := *n
		renamed.Name += "2"
		renamed.LabelMatchers = slices.Clone(n.LabelMatchers)
		for i, m := range n.LabelMatchers {
			if m.Name == model.MetricNameLabel {
				renamed.LabelMatchers[i] = labels.MustNewMatcher(labels.MatchEqual, m.Name, renamed.Name)
			} else {
				try(e, fmt.Sprintf("matcher %s removed%s", m, at), &n.LabelMatchers, slices.Delete(slices.Clone(n.LabelMatchers), i, i+1))
			}
		}
		try(e, n.Name+" renamed"+at, n, renamed)
		try(e, "offset removed"+at, &n.OriginalOffset, 0)
	case *parser.Call:
		if other, ok := parser.Functions[otherFunctions[n.Func.Name]]; ok {
			try(e, fmt.Sprintf("%s becomes %s%s", n.Func.Name, other.Name, at), &n.Func, other)
		}
	}
}

func isNumber(e parser.Expr, value float64) bool {
	n, ok := e.(*parser.NumberLiteral)
	return ok && n.Val == value
}

// isOne reports whether all values of an expression are 1.
func isOne(e parser.Expr) bool {
	switch e := e.(type) {
	case *parser.AggregateExpr:
		return e.Op == parser.GROUP
	case *parser.VectorSelector:
		return strings.HasSuffix(e.Name, "_info")
	}
	return false
}

func TestMutationsReachEveryPartOfARule(t *testing.T) {
	rule := Rule{
		Alert:       "Sample",
		Expr:        `max by (run) (rate(errors_total{op="x"}[15s] offset 4s)) > 0.5 and on (run) active * on (host) group_left () busy == 1`,
		For:         "15s",
		Labels:      map[string]string{"severity": "warning"},
		Annotations: map[string]string{"summary": "Sample."},
	}
	var what []string
	for _, m := range mutations(t, rule) {
		what = append(what, m.what)
	}
	for _, want := range []string{
		"and becomes unless (node 1)", "right side of and removed (node 1)",
		"> becomes < (node 2)", "max becomes min (node 3)", "grouping by run removed (node 3)",
		"rate becomes irate (node 4)", "window 15s doubled (node 5)", "window 15s halved (node 5)",
		`matcher op="x" removed (node 6)`, "errors_total renamed (node 6)", "offset removed (node 6)",
		"matching by run removed (node 1)", "== becomes != (node 8)", "* becomes / (node 9)",
		"matching by host removed (node 9)", "right side of * removed (node 9)", "left side of * removed (node 9)",
		"1 becomes 2 (node 12)", "1 becomes 0 (node 12)",
		"for removed", "for 17s", "for 13s", "keep_firing_for added", "alert renamed",
		"label severity removed", "label severity changed", "label added",
		"annotation summary removed", "annotation summary changed",
	} {
		if !slices.Contains(what, want) {
			t.Errorf("no mutation %q in %q", want, what)
		}
	}
}
