package report

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/cause"
)

const causesPage = "../../../docs/reference/causes.md"

// TestCausesPage guards that docs/reference/causes.md lists the causes that the packages declare.
func TestCausesPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Causes

This page is generated from the code. [*What limited this run*](../limits.md) names a resource or a wait; below it a report
names what caused it, if the recorded numbers show that. A cause explains at least a quarter of its finding. Causes
without an engine are about the tool and its machine.

| cause | engine | explains | evidence | to confirm it |
|---|---|---|---|---|
`)
	meanings, err := os.ReadFile("../../../docs/meaning/causes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range cause.All() {
		if !strings.Contains(string(meanings), "\n### "+d.Name+"\n") {
			t.Errorf("docs/meaning/causes.md does not say what \"### %s\" means and what to do", d.Name)
		}
		limits := make([]string, len(d.Of))
		for i, l := range d.Of {
			limits[i] = string(l)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", d.Name, d.Engine, strings.Join(limits, ", "), d.Reads, d.Test)
		if d.Name == "" || d.Reads == "" || d.Find == nil || len(d.Of) == 0 || d.Test == "" {
			t.Errorf("the declaration of %q is incomplete", d.Name)
		}
	}
	if *update {
		if err := os.WriteFile(causesPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(causesPage)
	if d := cmp.Diff(string(page), b.String()); err != nil || d != "" {
		t.Errorf("docs/reference/causes.md is out of date: go test ./agent/show/report -run Causes -update (%v)\n%s", err, d)
	}
}
