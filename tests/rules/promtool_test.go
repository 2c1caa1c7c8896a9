package rules

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/internal/need"
)

// promtool is the program of that name, or the one that PROMTOOL names.
var promtool = cmp.Or(os.Getenv("PROMTOOL"), "promtool")

// check runs a program in the project's root and fails the test if the program fails.
func check(t *testing.T, program string, args ...string) {
	t.Helper()
	need.Program(t, program)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	for i, path := range paths {
		if paths[i], err = filepath.Rel(root, path); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

func TestPromtoolChecks(t *testing.T) {
	check(t, promtool, "check", "config", "prometheus/prometheus.yml")
	files := append(glob(t, "prometheus/rules/*.yml"), glob(t, "alerts/*.rules.yml")...)
	check(t, promtool, append([]string{"check", "rules"}, files...)...)
}

func TestAlertmanagerConfig(t *testing.T) {
	check(t, cmp.Or(os.Getenv("AMTOOL"), "amtool"), "check-config", "alerts/alertmanager.yml")
}

// No Debian package has pint, so not even continuous integration needs it.
func TestPint(t *testing.T) {
	if _, err := exec.LookPath("pint"); err != nil {
		t.Skip(err)
	}
	check(t, "pint", "--offline", "--no-color", "lint", "--min-severity=info", "--fail-on=info", "alerts", "prometheus/rules")
}

func TestPromtoolTests(t *testing.T) {
	need.Program(t, promtool)
	for _, path := range glob(t, "tests/rules/*_test.yml") {
		t.Run(strings.TrimSuffix(filepath.Base(path), "_test.yml"), func(t *testing.T) {
			t.Parallel()
			check(t, promtool, "test", "rules", path)
		})
	}
}
