package main

import (
	"slices"
	"testing"

	rules "github.com/benchwatch/benchwatch/tests/rules"
)

func TestBreaksReachEveryPartOfARule(t *testing.T) {
	rule := &rules.Rule{
		Alert:       "Sample",
		Expr:        `max by (run) (rate(errors_total{op="x"}[15s] offset 4s)) > 0.5 and on (run) active == 1`,
		For:         "15s",
		Labels:      map[string]string{"severity": "warning"},
		Annotations: map[string]string{"summary": "Sample."},
	}
	found, err := breaks(rule)
	if err != nil {
		t.Fatal(err)
	}
	var what []string
	for _, b := range found {
		what = append(what, b.what)
	}
	for _, want := range []string{
		"and becomes unless (node 1)", "right side of and removed (node 1)",
		"> becomes < (node 2)", "max becomes min (node 3)", "grouping by run removed (node 3)",
		"rate becomes irate (node 4)", "window 15s doubled (node 5)", "window 15s halved (node 5)",
		`matcher op="x" removed (node 6)`, "errors_total renamed (node 6)", "offset removed (node 6)",
		"== becomes != (node 8)", "1 becomes 2 (node 10)", "1 becomes 0 (node 10)",
		"for removed", "for 17s", "for 13s", "alert renamed",
		"label severity removed", "label severity changed", "label added",
		"annotation summary removed", "annotation summary changed",
	} {
		if !slices.Contains(what, want) {
			t.Errorf("no break %q in %q", want, what)
		}
	}
	if rule.Expr != `max by (run) (rate(errors_total{op="x"}[15s] offset 4s)) > 0.5 and on (run) active == 1` || rule.For != "15s" {
		t.Error("the rule itself was changed")
	}
}
