// Package documents tests the documentation as readers of the repository, of a package and of the site have it.
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
	quoted  = regexp.MustCompile("`[^`\n]*`")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	named   = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	// unspoken is what GitHub and the site leave out of a heading's anchor.
	unspoken = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors returns the places of a page that a link can name.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	text := fenced.ReplaceAllString(read(t, file), "")
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(unspoken.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		all[m[1]] = true
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// pages returns the Markdown files below the paths.
func pages(t *testing.T, paths ...string) (files []string) {
	t.Helper()
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && filepath.Ext(file) == ".md" {
				files = append(files, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// deadLinks returns the links of all Markdown files below the paths that lead to no file or to no place in it, and
// how many links there are.
func deadLinks(t *testing.T, paths ...string) (dead []string, all int) {
	t.Helper()
	places := map[string]map[string]bool{}
	for _, file := range pages(t, paths...) {
		text := quoted.ReplaceAllString(fenced.ReplaceAllString(read(t, file), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			all++
			to, place, _ := strings.Cut(m[1], "#")
			target := file
			if to != "" {
				target = filepath.Join(filepath.Dir(file), to)
			}
			if _, err := os.Stat(target); err != nil {
				dead = append(dead, file+" → "+m[1])
				continue
			}
			if place == "" || filepath.Ext(target) != ".md" {
				continue
			}
			if places[target] == nil {
				places[target] = anchors(t, target)
			}
			if !places[target][place] {
				dead = append(dead, file+" → "+m[1])
			}
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

// TestOldLinks guards that links into the pages of released versions still lead to what they named: testdata/0.1.0.txt
// has the pages of 0.1.0 and their headings.
func TestOldLinks(t *testing.T) {
	redirected := redirects(t)
	places := map[string]map[string]bool{}
	for line := range strings.Lines(read(t, "testdata/0.1.0.txt")) {
		page, place, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "#")
		if to := redirected[page]; to != "" {
			page, place = to, ""
		}
		if places[page] == nil {
			places[page] = anchors(t, filepath.Join("../../docs", page))
		}
		if place != "" && !places[page][place] {
			t.Errorf("docs/%s has no place %s, which a link to 0.1.0's page names: add <a id=\"%[2]s\"></a>", page, place)
		}
	}
}

// redirects are the moved pages, by their former name.
func redirects(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(read(t, "../../site/redirects.txt")) {
		if from, to, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[from] = to
		}
	}
	return all
}
