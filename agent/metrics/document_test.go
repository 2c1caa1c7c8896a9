package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "github.com/benchwatch/benchwatch/agent/engine/registry" // declares the engines' metrics
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

const document = "../../docs/metrics.md"

// The list of metrics that users and dashboards go by says what is exposed.
func TestDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Metrics

Made from the code by ` + "`go test ./agent/metrics -update`" + `; a test keeps it true. Beside these there are the
usual ` + "`benchwatch_build_info`, `go_*`, `process_*` and `promhttp_*`" + `. A series is there only while it is true:
what a tool, a server or an ended run does not say is absent, never 0.

| metric | type | labels | meaning |
|---|---|---|---|
`)
	seen := map[string]bool{}
	for _, f := range Families() {
		if seen[f.Name] {
			t.Errorf("%s is declared twice", f.Name)
		}
		seen[f.Name] = true
		if f.Help == "" || !strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s: help %q is not a sentence", f.Name, f.Help)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, strings.Join(f.Labels, ", "), strings.ReplaceAll(f.Help, "|", "\\|"))
	}
	if *update {
		if err := os.WriteFile(document, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Error("docs/metrics.md is out of date: go test ./agent/metrics -update")
	}
}
