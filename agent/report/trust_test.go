package report

import (
	"os"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool/registry"
)

// That a loop is closed is known of a tool, and not of a format that any program writes.
func TestLoop(t *testing.T) {
	histograms, err := os.ReadFile("../tool/hdrlog/testdata/jHiccup-2.0.7S.logV2.txt")
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{"sysbench": "a closed loop: ", "hdrlog": "the log does not say "} {
		dir := sysbenchRun(t, []float64{100, 100, 100})
		if tool == "hdrlog" {
			if err := os.WriteFile(dir.Path(rundir.StdoutFile), histograms, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := dir.Update(func(m *rundir.Meta) { m.Tool = tool }); err != nil {
				t.Fatal(err)
			}
		}
		h, err := history.Read(t.Context(), dir, registry.Tools.ByName(tool))
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, f := range New(h).Trust {
			if strings.Contains(f.Text, "closed loop") || strings.HasPrefix(f.Text, want) {
				said = append(said, f.Text)
			}
		}
		if len(said) != 1 || !strings.HasPrefix(said[0], want) {
			t.Errorf("%s: %q, want %q", tool, said, want)
		}
	}
}
