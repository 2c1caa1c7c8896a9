package tests

import (
	"os/exec"
	"strings"
	"testing"
)

// Tests and the program share one module, so that `go test ./...` runs everything. Dependencies of
// tests must not get into the program. It contains the part of Prometheus that writes blocks, but
// neither its database nor its query engine.
func TestProgramLinksNothingOfTheTests(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "..").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name) + " "
		for _, unwanted := range []string{"github.com/prometheus/prometheus/config", "github.com/prometheus/prometheus/promql ", "github.com/prometheus/prometheus/tsdb ", "github.com/compose-spec/", "github.com/benchwatch/benchwatch/internal/", "github.com/benchwatch/benchwatch/tests/"} {
			if strings.HasPrefix(name, unwanted) {
				t.Errorf("the program links %s", name)
			}
		}
	}
}
