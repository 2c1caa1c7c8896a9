package run

import (
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/tool/sysbench"
)

// TestCloseOrphan guards that a run whose watchers all died tells its result by what
// the tool wrote, and that nothing of it is invented.
func TestCloseOrphan(t *testing.T) {
	begun := banner + intervalLine(1, 10)
	for name, tt := range map[string]struct {
		stdout, stderr string
		want           Result
	}{
		"with summary":    {begun + summaryText(23, 2.1), "", Succeeded},
		"cut off":         {begun + intervalLine(2, 13), "", Lost},
		"half a summary":  {begun + summaryText(23, 2.1)[:40], "", Lost},
		"broken":          {begun, "FATAL: mysql_stmt_execute() returned error 1213\n", Lost},
		"nothing printed": {"", "", Lost},
	} {
		t.Run(name, func(t *testing.T) {
			dir, claim, err := Create(t.TempDir(), Meta{ID: "r", Tool: "sysbench", StartedAt: historyStart})
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir.Path(StdoutFile), tt.stdout)
			write(t, dir.Path(StderrFile), tt.stderr)

			if meta, err := dir.CloseOrphan(t.Context(), sysbench.Tool); err != nil || meta.Ended() {
				t.Fatalf("closed while its wrapper lives: %+v, %v", meta, err)
			}
			claim.Release() // what the kernel does when the wrapper dies
			meta, err := dir.CloseOrphan(t.Context(), sysbench.Tool)
			if err != nil || meta.Result != tt.want || !meta.Closed() || meta.EndedAt.Before(historyStart) || meta.EndedAt.After(time.Now()) {
				t.Errorf("got %+v, %v; want %s", meta, err, tt.want)
			}
			if again, err := dir.CloseOrphan(t.Context(), sysbench.Tool); err != nil || !again.ClosedAt.Equal(*meta.ClosedAt) {
				t.Errorf("closed twice: %+v, %v", again, err)
			}
		})
	}
}
