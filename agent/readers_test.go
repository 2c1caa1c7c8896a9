package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// trustedReads are the calls that read to the end of something whose length this machine's
// user or kernel decides: by file and call.
var trustedReads = map[string]string{
	"app/cli/init.go: r.in.ReadString":             "its reader has a limit",
	"base/clock/boot_linux.go: os.ReadFile":        "procfs",
	"model/engine/proxy/sockets.go: os.ReadFile":   "procfs",
	"model/host/witness.go: os.ReadFile":           "procfs",
	"many/archive/location.go: os.ReadFile":        "sysfs, and the file with the user's credentials",
	"model/engine/proxy/process.go: os.ReadFile":   "procfs",
	"model/engine/postgresql/conn.go: os.ReadFile": "procfs",
	"model/tool/tooltest/tooltest.go: os.ReadFile": "test data",
}

// bounds are what makes a reader end: a limit, or a part of a file.
var bounds = []string{"io.LimitReader(", "io.NewSectionReader(", "http.MaxBytesReader(", "bytes.NewReader(", "strings.NewReader("}

// TestReadersAreBounded: what reads up to a delimiter or an end that others decide has a
// bound at the place where it is called. bufio.Scanner and ReadSlice have one.
func TestReadersAreBounded(t *testing.T) {
	unbounded := map[string]bool{
		"io.ReadAll": true, "io.Copy": true, "json.NewDecoder": true, "yaml.NewDecoder": true, "xml.NewDecoder": true, "os.ReadFile": true, "ioutil.ReadAll": true,
		"http.Get": true, "http.Post": true, "http.DefaultClient": true,
	}
	methods := map[string]bool{"ReadBytes": true, "ReadString": true, "ReadFrom": true, "ReadLine": true, "CombinedOutput": true, "Output": true}
	text := func(set *token.FileSet, n ast.Node) string {
		var b bytes.Buffer
		if err := printer.Fprint(&b, set, n); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	readers, used := 0, map[string]bool{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		imports := map[string]bool{}
		for _, i := range file.Imports {
			imports[strings.Trim(i.Path.Value, `"`)] = true
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name := text(set, selector)
			isMethod := methods[selector.Sel.Name] && (imports["bufio"] || imports["os/exec"]) && (selector.Sel.Name != "Output" || imports["os/exec"] && len(call.Args) == 0)
			if !unbounded[name] && !isMethod {
				return true
			}
			readers++
			whole := text(set, call)
			for _, b := range bounds {
				if strings.Contains(whole, b) {
					return true
				}
			}
			key := fmt.Sprintf("%s: %s", filepath.ToSlash(path), name)
			used[key] = true
			if _, ok := trustedReads[key]; !ok {
				t.Errorf("%s: %s has no bound: use io.LimitReader or bufio.Scanner, or name why it needs none in trustedReads as %q", set.Position(n.Pos()), whole, key)
			}
			return true
		})
		return nil
	})
	for key := range trustedReads {
		if !used[key] {
			t.Errorf("trustedReads has %q, which is no more", key)
		}
	}
	if err != nil || readers < 20 {
		t.Errorf("%d readers, %v", readers, err)
	}
}
