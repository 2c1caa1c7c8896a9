package rules

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/internal/need"
)

// promtool is the program promtool, or the one in the variable PROMTOOL.
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
	files, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range glob(t, "tests/rules/*_test.yml") {
		t.Run(strings.TrimSuffix(filepath.Base(path), "_test.yml"), func(t *testing.T) {
			t.Parallel()
			check(t, promtool, "test", "rules", copied(t, t.TempDir(), path, read(t, path), files))
		})
	}
}

// copied writes a test and the rules that it needs into a folder, and returns the test's path: the rules that it names,
// and the rules that they read. promtool would evaluate all rules of a file at each step of each case.
func copied(t *testing.T, dir, path string, test []byte, files []File) string {
	t.Helper()
	texts := map[string]string{} // of the rules that are not needed so far, by name
	for _, file := range files {
		for _, group := range file.Groups {
			for _, rule := range group.Rules {
				text, err := yaml.Marshal(rule)
				if err != nil {
					t.Fatal(err)
				}
				texts[rule.Name()] += string(text)
			}
		}
	}
	for needing := []string{string(test)}; len(needing) > 0; needing = needing[1:] {
		for name, text := range texts {
			if strings.Contains(needing[0], name) {
				needing = append(needing, text)
				delete(texts, name)
			}
		}
	}
	for _, file := range files {
		groups := file.Groups
		file.Groups = nil
		for _, group := range groups {
			group.Rules = slices.DeleteFunc(slices.Clone(group.Rules), func(r Rule) bool { return texts[r.Name()] != "" })
			if len(group.Rules) > 0 {
				file.Groups = append(file.Groups, group)
			}
		}
		text, err := yaml.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, file.Path), text)
	}
	write(t, filepath.Join(dir, path), test)
	return filepath.Join(dir, path)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
