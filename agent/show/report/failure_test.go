package report

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// TestFailureComesFirst: reason, exit status and the last error message come before their consequences. No errors are
// counted beside messages, no message is repeated, and unknown values are mentioned once.
func TestFailureComesFirst(t *testing.T) {
	dir := recorded.Sysbench(t, []float64{100, 100, 100})
	out, err := os.OpenFile(dir.Path(rundir.StdoutFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	out.WriteString("FATAL: no server\nFATAL: no thread\nFATAL: giving up\n")
	out.Close()
	code := 3
	if _, err := dir.Update(func(m *rundir.Meta) {
		m.ExitCode, m.Outcome = &code, ""
		m.Conclude(rundir.Output{Complaint: "FATAL: no server; FATAL: no thread"})
	}); err != nil {
		t.Fatal(err)
	}
	d := reportOf(recorded.Read(t, dir))
	_, root := rendered(t, d)
	var markdown bytes.Buffer
	if err := d.Page().Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	for format, all := range map[string]string{"HTML": text(root), "Markdown": markdown.String()} {
		at := -1
		for _, want := range []string{"failed", "exit status 3: FATAL: no server; FATAL: no thread", "last error message", "FATAL: giving up"} {
			next := strings.Index(all, want)
			if next <= at {
				t.Errorf("%s: %q is missing or out of place", format, want)
			}
			at = next
		}
		for _, wrong := range []string{"errors 0", "errors: 0", "| error |", "nothing that was observed", "the run failed:", "no server was sampled during", "first: FATAL"} {
			if strings.Contains(all, wrong) {
				t.Errorf("%s: %q", format, wrong)
			}
		}
		if strings.Count(all, "no server was sampled") != 1 || !strings.Contains(strings.ReplaceAll(all, "**", ""), "error messages") {
			t.Errorf("%s: %s", format, all)
		}
		for _, later := range []string{"How far to trust this", "Throughput", "| operation"} {
			if i := strings.Index(all, later); i >= 0 && i < at {
				t.Errorf("%s: %q comes first", format, later)
			}
		}
	}
}

// TestFailuresOfASuccess: a tool that is configured to ignore errors exits 0.
func TestFailuresOfASuccess(t *testing.T) {
	r := review.Row{Result: rundir.Succeeded}
	for share, want := range map[float64]string{0: "succeeded", 0.004: "succeeded", 0.66: "succeeded, 66 % of transactions failed", 1: "succeeded, 100 % of transactions failed"} {
		r.FailedShare.Value, r.FailedShare.Known = share, true
		if got := r.Status(); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}
