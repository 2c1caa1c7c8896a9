package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePrefix = "github.com/benchwatch/benchwatch/agent/"

// wings are the folders of the agent, in the order of dependencies.
var wings = []string{"base", "model", "run", "many", "show", "app"}

// TestArchitecture checks the table of packages in docs/architecture.md: it names
// all of them, and each imports only those above it.
func TestArchitecture(t *testing.T) {
	doc, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, packages, _ := strings.Cut(string(doc), "\n## Packages\n")
	packages, _, _ = strings.Cut(packages, "\n## ")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+/[a-z]+)` \\|").FindAllStringSubmatch(packages, -1) {
		listed = append(listed, m[1])
	}
	wingOf := func(name string) int { return slices.Index(wings, path.Dir(name)) }
	if !slices.IsSortedFunc(listed, func(a, b string) int { return wingOf(a) - wingOf(b) }) {
		t.Errorf("the table is not in the order of the wings %q", wings)
	}

	found, err := filepath.Glob("*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if info, err := os.Stat(name); err == nil && info.IsDir() && !slices.Contains(listed, name) {
			t.Errorf("package %s is not listed", name)
		}
	}
	for place, name := range listed {
		for imported, file := range importsBelow(t, name) {
			if at := slices.Index(listed, imported); at > place {
				t.Errorf("%s imports %s, which is below %s in the table", file, imported, name)
			}
		}
	}
}

// importsBelow returns the packages of the wings that the files in a folder import,
// tests left out, with a file that does.
func importsBelow(t *testing.T, folder string) map[string]string {
	t.Helper()
	imports := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if rest, ok := strings.CutPrefix(name, modulePrefix); ok {
				parts := strings.SplitN(rest, "/", 3)
				imports[strings.Join(parts[:min(2, len(parts))], "/")] = path
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}
