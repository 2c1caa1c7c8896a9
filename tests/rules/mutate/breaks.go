package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	rules "github.com/benchwatch/benchwatch/tests/rules"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// breakage is a rule with one thing about it broken.
type breakage struct {
	what string
	rule rules.Rule
}

var promql = parser.NewParser(parser.Options{})

// breaks returns rule broken in every way that is tried.
func breaks(rule *rules.Rule) ([]breakage, error) {
	var found []breakage
	add := func(what string, change func(*rules.Rule)) {
		broken := *rule
		broken.Labels = maps.Clone(rule.Labels)
		broken.Annotations = maps.Clone(rule.Annotations)
		change(&broken)
		found = append(found, breakage{what: what, rule: broken})
	}
	exprs, err := brokenExprs(rule.Expr)
	if err != nil {
		return nil, err
	}
	for _, e := range exprs {
		add(e.what, func(r *rules.Rule) { r.Expr = e.expr })
	}
	if rule.Record != "" {
		add("record renamed", func(r *rules.Rule) { r.Record += "2" })
		return found, nil
	}
	add("alert renamed", func(r *rules.Rule) { r.Alert += "2" })
	if err := brokenFor(rule, add); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(rule.Labels)) {
		add("label "+name+" removed", func(r *rules.Rule) { delete(r.Labels, name) })
		add("label "+name+" changed", func(r *rules.Rule) { r.Labels[name] += "2" })
	}
	add("label added", func(r *rules.Rule) { r.Labels["run"] = "2" })
	for _, name := range slices.Sorted(maps.Keys(rule.Annotations)) {
		add("annotation "+name+" removed", func(r *rules.Rule) { delete(r.Annotations, name) })
		add("annotation "+name+" changed", func(r *rules.Rule) { r.Annotations[name] += " 2" })
	}
	return found, nil
}

func brokenFor(rule *rules.Rule, add func(string, func(*rules.Rule))) error {
	if rule.For == "" {
		add("for added", func(r *rules.Rule) { r.For = "5s" })
		return nil
	}
	d, err := model.ParseDuration(rule.For)
	if err != nil {
		return fmt.Errorf("read `for`: %w", err)
	}
	longer := model.Duration(time.Duration(d) + 2*time.Second)
	shorter := model.Duration(time.Duration(d) - 2*time.Second)
	add("for removed", func(r *rules.Rule) { r.For = "" })
	add("for "+longer.String(), func(r *rules.Rule) { r.For = longer.String() })
	if shorter > 0 {
		add("for "+shorter.String(), func(r *rules.Rule) { r.For = shorter.String() })
	}
	return nil
}

type brokenExpr struct{ what, expr string }

// brokenExprs changes one node of the expression at a time.
func brokenExprs(text string) ([]brokenExpr, error) {
	root, err := promql.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("parse expression: %w", err)
	}
	whole := root.String()
	var found []brokenExpr
	// attempt makes a change, notes the result and takes the change back.
	attempt := func(what string, change, restore func()) {
		change()
		if broken := root.String(); broken != whole {
			if _, err := promql.ParseExpr(broken); err == nil {
				found = append(found, brokenExpr{what, broken})
			}
		}
		restore()
	}
	place := 0
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		if node == nil { // the end of a node's children
			return nil
		}
		place++
		at := fmt.Sprintf(" (node %d)", place)
		switch n := node.(type) {
		case *parser.NumberLiteral:
			breakNumber(n, at, attempt)
		case *parser.BinaryExpr:
			breakBinary(n, at, attempt)
		case *parser.AggregateExpr:
			breakAggregation(n, at, attempt)
		case *parser.MatrixSelector:
			old := n.Range
			set := func(d time.Duration) func() { return func() { n.Range = d } }
			attempt(fmt.Sprintf("window %s doubled%s", model.Duration(old), at), set(2*old), set(old))
			attempt(fmt.Sprintf("window %s halved%s", model.Duration(old), at), set(old/2), set(old))
		case *parser.VectorSelector:
			breakSelector(n, at, attempt)
		case *parser.Call:
			breakCall(n, at, attempt)
		}
		return nil
	})
	return found, nil
}

type attempt = func(what string, change, restore func())

func breakNumber(n *parser.NumberLiteral, at string, try attempt) {
	old := n.Val
	set := func(v float64) func() { return func() { n.Val = v } }
	values := []float64{old * 1.1, old * 0.9}
	if old == float64(int(old)) && old < 10 {
		values = []float64{old + 1, old - 1}
	}
	for _, v := range values {
		try(fmt.Sprintf("%g becomes %g%s", old, v, at), set(v), set(old))
	}
}

var opposites = map[parser.ItemType][]parser.ItemType{
	parser.GTR:     {parser.LSS},
	parser.GTE:     {parser.LSS, parser.GTR},
	parser.LSS:     {parser.GTR},
	parser.LTE:     {parser.GTR},
	parser.EQLC:    {parser.NEQ},
	parser.NEQ:     {parser.EQLC},
	parser.LAND:    {parser.LUNLESS},
	parser.LUNLESS: {parser.LAND},
	parser.ADD:     {parser.SUB},
	parser.SUB:     {parser.ADD},
	parser.MUL:     {parser.DIV},
	parser.DIV:     {parser.MUL},
}

func breakBinary(n *parser.BinaryExpr, at string, try attempt) {
	op, left, right, matching := n.Op, n.LHS, n.RHS, n.VectorMatching
	restore := func() { n.Op, n.LHS, n.RHS, n.VectorMatching = op, left, right, matching }
	for _, other := range opposites[op] {
		try(fmt.Sprintf("%s becomes %s%s", op, other, at), func() { n.Op = other }, restore)
	}
	if !op.IsSetOperator() {
		return
	}
	// A set operation with one side only: X and X is X.
	same := &parser.VectorMatching{Card: parser.CardManyToMany}
	try(fmt.Sprintf("right side of %s removed%s", op, at), func() { n.Op, n.RHS, n.VectorMatching = parser.LAND, left, same }, restore)
	if op == parser.LOR {
		try(fmt.Sprintf("left side of %s removed%s", op, at), func() { n.Op, n.LHS, n.VectorMatching = parser.LAND, right, same }, restore)
	}
}

var otherAggregations = map[parser.ItemType]parser.ItemType{
	parser.MAX: parser.MIN, parser.MIN: parser.MAX, parser.SUM: parser.MAX, parser.AVG: parser.MAX,
	parser.COUNT: parser.MAX, parser.TOPK: parser.BOTTOMK,
}

func breakAggregation(n *parser.AggregateExpr, at string, try attempt) {
	op, grouping := n.Op, n.Grouping
	restore := func() { n.Op, n.Grouping = op, grouping }
	if other, ok := otherAggregations[op]; ok {
		try(fmt.Sprintf("%s becomes %s%s", op, other, at), func() { n.Op = other }, restore)
	}
	for i, label := range grouping {
		try(fmt.Sprintf("grouping by %s removed%s", label, at), func() {
			n.Grouping = slices.Delete(slices.Clone(grouping), i, i+1)
		}, restore)
	}
}

func breakSelector(n *parser.VectorSelector, at string, try attempt) {
	name, matchers, offset := n.Name, n.LabelMatchers, n.OriginalOffset
	restore := func() { n.Name, n.LabelMatchers, n.OriginalOffset = name, matchers, offset }
	try(fmt.Sprintf("%s renamed%s", name, at), func() {
		n.Name += "2"
		n.LabelMatchers = slices.Clone(matchers)
		for i, m := range n.LabelMatchers {
			if m.Name == model.MetricNameLabel {
				n.LabelMatchers[i] = labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, n.Name)
			}
		}
	}, restore)
	for i, m := range matchers {
		if m.Name != model.MetricNameLabel {
			try(fmt.Sprintf("matcher %s removed%s", m, at), func() {
				n.LabelMatchers = slices.Delete(slices.Clone(matchers), i, i+1)
			}, restore)
		}
	}
	if offset != 0 {
		try("offset removed"+at, func() { n.OriginalOffset = 0 }, restore)
	}
}

var otherFunctions = map[string]string{
	"min_over_time": "max_over_time", "max_over_time": "min_over_time", "avg_over_time": "max_over_time",
	"rate": "irate", "deriv": "delta", "increase": "delta", "changes": "count_over_time",
	"last_over_time": "count_over_time", "quantile_over_time": "", "stddev_over_time": "avg_over_time", "clamp_max": "clamp_min",
}

func breakCall(n *parser.Call, at string, try attempt) {
	old := n.Func
	other, ok := parser.Functions[otherFunctions[old.Name]]
	if !ok {
		return
	}
	try(fmt.Sprintf("%s becomes %s%s", old.Name, other.Name, at), func() { n.Func = other }, func() { n.Func = old })
}
