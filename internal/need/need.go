// Package need skips tests whose programs are not installed.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Program skips the test if a program is missing. On continuous integration (CI is set), where
// everything is installed, it fails the test.
func Program(t testing.TB, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	if err == nil {
		return
	}
	if _, e := exec.LookPath("/usr/sbin/" + name); e == nil { // a daemon; PATH may lack its folder
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// GoTool returns the path of a program that scripts/gotool.sh builds once; the script describes the
// arguments. If that fails, the test is skipped, or fails on continuous integration.
func GoTool(t testing.TB, root string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "gotool.sh"), args...)
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err == nil {
		return strings.TrimSpace(string(out))
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("build %s: %v\n%s", args[0], err, log.String())
	}
	t.Skipf("%s can't be built: %v\n%s", args[0], err, log.String())
	return ""
}
