package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A log is imported with the dumps beside it: settings, and counters as means over the run. The
// dumps are of a real MariaDB.
func TestImportDumps(t *testing.T) {
	folder, data := t.TempDir(), t.TempDir()
	for name, recorded := range map[string]string{"run-2.log": "run.log", "run-2.status.before": "before.tsv", "run-2.status.after": "after.table", "run-2.variables": "variables.tsv"} {
		content, err := os.ReadFile(filepath.Join("../../run/imports/testdata/status", recorded))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		var out, messages bytes.Buffer
		if status := Main(append(args, "--data-dir="+data), Streams{In: strings.NewReader(""), Out: &out, Err: &messages}); status != 0 || messages.Len() > 0 {
			t.Fatalf("%v: exit status %d, %s", args, status, &messages)
		}
		return out.String()
	}
	if printed := run("runs", "import", folder); !strings.HasSuffix(printed, ", 3 dumps\n") {
		t.Error(printed)
	}
	report := run("report", "last", "--format=markdown")
	for _, line := range []string{
		"| Commits per second | 255.49 |", "| Deadlocks | 9 |", "| innodb_buffer_pool_size | 134217728 (128 MiB) |",
		"what vm did is the difference of two dumps of its status",
	} {
		if !strings.Contains(report, line) {
			t.Errorf("no %s in\n%s", line, report)
		}
	}
	if strings.Contains(report, "aligned by one clock") || strings.Contains(report, "| Threads running") {
		t.Errorf("the report invents something:\n%s", report)
	}
	if table := run("compare", "threads=2", "--x=innodb_buffer_pool_size", "--measure=tps,vm_commits"); !strings.Contains(table, "134217728  255.20      255.49") {
		t.Error(table)
	}
}
