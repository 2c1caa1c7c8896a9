//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The script for continuous integration runs a benchmark several times. The first
// job makes the baseline, the second compares its runs with that.
func TestGateScript(t *testing.T) {
	script, err := filepath.Abs("../../docs/ci/gate.sh")
	must(t, err)
	dir := t.TempDir()
	must(t, os.Symlink(env.binary, filepath.Join(dir, "benchwatch")))
	job := func(version string, limits ...string) string {
		t.Helper()
		cmd := exec.Command(script, load(2)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "VERSION="+version)
		cmd.Env = append(cmd.Env, limits...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", version, err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, "gate.md"))
		must(t, err)
		return string(text)
	}
	if text := job("1.0"); !strings.Contains(text, "these are the baseline") {
		t.Errorf("first job:\n%s", text)
	}
	text := job("1.1", "TPS=90", "P95=2000")
	if !strings.Contains(text, "last=4") || !strings.Contains(text, "n=4") || !strings.Contains(text, "held") {
		t.Errorf("second job:\n%s", text)
	}
	junit, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	must(t, err)
	if !strings.Contains(string(junit), `tests="2"`) || !strings.Contains(string(junit), `failures="0"`) {
		t.Errorf("junit.xml:\n%s", junit)
	}
}
