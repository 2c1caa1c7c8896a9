package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Tests and the program share one module, so that `go test ./...` runs everything. Dependencies of
// tests must not get into the program. It contains the part of Prometheus that writes blocks, but
// neither its database nor its query engine. Templates of HTML make the linker keep every exported
// method.
func TestProgramLinksNothingOfTheTests(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../agent").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name) + " "
		for _, unwanted := range []string{"golang.org/x/net/trace ", "html/template ", "github.com/prometheus/prometheus/config", "github.com/prometheus/prometheus/promql ", "github.com/prometheus/prometheus/tsdb ", "github.com/compose-spec/", "github.com/benchwatch/benchwatch/internal/", "github.com/benchwatch/benchwatch/tests/"} {
			if strings.HasPrefix(name, unwanted) {
				t.Errorf("the program links %s", name)
			}
		}
	}
}

// The resident memory of an agent is mostly pages of its program.
func TestProgramIsSmall(t *testing.T) {
	const limit = 26 << 20
	file := filepath.Join(t.TempDir(), "benchwatch")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", file, "../agent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > limit {
		t.Errorf("the program has %d bytes, more than %d: `go tool nm -size -sort size` lists what is in it, "+
			"and a ReflectMethod in `go build -ldflags=-dumpdep` keeps all exported methods", info.Size(), limit)
	}
}
