package live

import (
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestCloseOrphan checks that a run whose watchers all died gets its outcome from the tool's output, without invented
// facts.
func TestCloseOrphan(t *testing.T) {
	begun := banner + intervalLine(1, 10)
	for name, tt := range map[string]struct {
		stdout, stderr string
		want           rundir.Outcome
	}{
		"with summary":    {begun + summaryText(23, 2.1), "", rundir.Succeeded},
		"cut off":         {begun + intervalLine(2, 13), "", rundir.Lost},
		"half a summary":  {begun + summaryText(23, 2.1)[:40], "", rundir.Lost},
		"broken":          {begun, "FATAL: mysql_stmt_execute() returned error 1213\n", rundir.Failed},
		"nothing printed": {"", "", rundir.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{
				ID:        "r",
				Benchmark: rundir.Benchmark{Tool: "sysbench"},
				Timing:    rundir.Timing{StartedAt: historyStart},
			})
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir.Path(rundir.StdoutFile), tt.stdout)
			write(t, dir.Path(rundir.StderrFile), tt.stderr)

			if meta, err := CloseOrphan(t.Context(), dir, tool.Set{sysbench.Tool}); err != nil || meta.Ended() {
				t.Fatalf("closed while its wrapper lives: %+v, %v", meta, err)
			}
			claim.Release() // what the kernel does when the wrapper dies
			meta, err := CloseOrphan(t.Context(), dir, tool.Set{sysbench.Tool})
			if err != nil || meta.Outcome != tt.want || !meta.Closed() || meta.EndedAt.Before(historyStart) || meta.EndedAt.After(time.Now()) {
				t.Errorf("got %+v, %v; want %s", meta, err, tt.want)
			}
			if again, err := CloseOrphan(t.Context(), dir, tool.Set{sysbench.Tool}); err != nil || !again.ClosedAt.Equal(*meta.ClosedAt) {
				t.Errorf("closed twice: %+v, %v", again, err)
			}
		})
	}
}
