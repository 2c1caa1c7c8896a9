package report

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

const stallsPage = "../../../docs/stalls.md"

// TestReasonsPage guards that docs/stalls.md lists the reasons that the packages declare.
func TestReasonsPage(t *testing.T) {
	const begin, end = "<!-- generated: reasons -->\n", "<!-- end: reasons -->"
	var b strings.Builder
	b.WriteString("| reason | of | evidence |\n|---|---|---|\n")
	for _, r := range evidence.All() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cmp.Or(r.Name, "the kind of lock"), r.Of, r.Reads)
		if r.Reads == "" || r.Each == nil && (r.Part == nil || r.Text == nil) {
			t.Errorf("the declaration of %q is incomplete", r.Name)
		}
	}
	page, err := os.ReadFile(stallsPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(page), begin)
	old, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatal("docs/stalls.md has no place for the table")
	}
	if old == b.String() {
		return
	}
	if !*update {
		t.Error("docs/stalls.md is out of date: go test ./agent/show/report -run Reasons -update")
		return
	}
	if err := os.WriteFile(stallsPage, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
