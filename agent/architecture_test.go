package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePrefix = "github.com/benchwatch/benchwatch/agent/"

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
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(packages, -1) {
		listed = append(listed, m[1])
	}

	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(listed, e.Name()) {
			t.Errorf("package %s is not listed", e.Name())
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

// importsBelow returns the first-level packages that the files in a folder import,
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
				first, _, _ := strings.Cut(rest, "/")
				imports[first] = path
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}
