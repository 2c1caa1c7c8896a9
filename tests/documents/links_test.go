// Package documents tests the documentation as readers of the repository and of a package have it.
package documents

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	// quoted is code, in which brackets are no link.
	quoted = regexp.MustCompile("`[^`\n]*`")
)

// deadLinks returns the links of all Markdown files below the paths that lead to no file, and how many
// links there are.
func deadLinks(t *testing.T, paths ...string) (dead []string, all int) {
	t.Helper()
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(file) != ".md" {
				return err
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text := quoted.ReplaceAllString(fenced.ReplaceAllString(string(data), ""), "")
			for _, m := range link.FindAllStringSubmatch(text, -1) {
				to, _, _ := strings.Cut(m[1], "#")
				if to == "" || strings.Contains(to, "://") {
					continue
				}
				all++
				if _, err := os.Stat(filepath.Join(filepath.Dir(file), to)); err != nil {
					dead = append(dead, file+" → "+to)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dead, all
}

func TestLinks(t *testing.T) {
	installed := t.TempDir()
	// Man page and completion, which the program prints, are of no interest here.
	stage := exec.Command("../../packaging/stage.sh", "/bin/true", "/bin/true", installed, "/usr", "vendor-completions")
	if out, err := stage.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, paths := range map[string][]string{
		"repository": {"../../README.md", "../../CONTRIBUTING.md", "../../docs", "../../alerts/runbooks", "../../compose/README.md"},
		"package":    {filepath.Join(installed, "usr/share")},
	} {
		dead, all := deadLinks(t, paths...)
		if len(dead) > 0 || all < 100 {
			t.Errorf("%s: of %d links these lead nowhere:\n%s", name, all, strings.Join(dead, "\n"))
		}
	}
	for _, file := range []string{"doc/benchwatch/docs/tutorials/README.md", "doc/benchwatch/docs/ci/gate.sh", "doc/benchwatch/docs/images/live-run.png", "benchwatch/scripts/backfill.sh"} {
		if _, err := os.Stat(filepath.Join(installed, "usr/share", file)); err != nil {
			t.Error(err)
		}
	}
}
