package review

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// Whether a loop is open shows in the output, too; it is not known of a format that any
// program writes.
func TestLoop(t *testing.T) {
	const closed, open, unknown = "a closed loop: ", "an open loop: ", "the log does not say "
	for _, c := range []struct{ tool, output, want string }{
		{"sysbench", "sysbench/testdata/1.0.20/oltp_read_only-th4-nointerval.txt", closed},
		{"sysbench", "sysbench/testdata/1.0.20/oltp_read_write-th4-rate200.txt", open},
		{"pgbench", "pgbench/testdata/9.6/rate/stdout.txt", open},
		{"hdrlog", "hdrlog/testdata/jHiccup-2.0.7S.logV2.txt", unknown},
	} {
		dir := recorded.Sysbench(t, nil)
		outputs := map[string]string{rundir.StdoutFile: c.output}
		if c.tool == "pgbench" {
			outputs[rundir.StderrFile] = filepath.Dir(c.output) + "/stderr.txt"
		}
		for name, output := range outputs {
			text, err := os.ReadFile(filepath.Join("../../model/tool", output))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir.Path(name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := dir.Update(func(m *rundir.Meta) { m.Tool = c.tool }); err != nil {
			t.Fatal(err)
		}
		h, err := record.Read(t.Context(), dir, registry.Tools)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, f := range NewRun(h).Trust {
			for _, loop := range []string{closed, open, unknown} {
				if strings.HasPrefix(f.Text, loop) {
					said = append(said, f.Text)
				}
			}
		}
		if len(said) != 1 || !strings.HasPrefix(said[0], c.want) {
			t.Errorf("%s: %q, want %q", c.output, said, c.want)
		}
	}
}

// TestTrustAgreesWithLimits guards that the judgement of the generator's CPU names whoever the limits name, and never
// calls a tool short of CPU if the servers used it.
func TestTrustAgreesWithLimits(t *testing.T) {
	for _, c := range []struct {
		finding limits.LimitFinding
		text    string
	}{
		{limits.LimitFinding{Limit: cause.SharedCPU, Of: "db1"}, "mostly by the servers"},
		{limits.LimitFinding{Limit: cause.SharedCPU, Of: "sysbench"}, "a generator short of CPU"},
		{limits.LimitFinding{Limit: cause.GeneratorCPU}, "a generator short of CPU"},
		{limits.LimitFinding{Limit: cause.ToolCPU, Of: "sysbench"}, "a generator short of CPU"},
		{limits.LimitFinding{Limit: cause.Neighbours}, "other programs"},
		{limits.LimitFinding{Limit: cause.RowLocks}, "which is part of the latency"},
	} {
		v := limits.Verdict{Findings: []limits.LimitFinding{{Limit: cause.Commit}, c.finding}}
		for _, waited := range []float64{0.06, 0.45} {
			if _, text := generatorCPU(v.CPUUser("sysbench"), waited, 1); !strings.Contains(text, c.text) {
				t.Errorf("%s of %s, waited %v: %s", c.finding.Limit, c.finding.Of, waited, text)
			}
		}
	}
}

// TestTrustOfAnEmptyRun guards that a run that failed at once has one line.
func TestTrustOfAnEmptyRun(t *testing.T) {
	h := &record.History{}
	h.Snapshot.Meta.Outcome = rundir.Failed
	row := NewRow(&h.Snapshot)
	if got := Trust(h, &row); len(got) != 1 || got[0].Text != "the run failed before it measured anything" {
		t.Errorf("%v", got)
	}
}
