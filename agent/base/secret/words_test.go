package secret

import (
	"go/ast"
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

// verb matches a verb of a format other than %w; the error of %w is a separate part.
var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*(?:\.[0-9]+)?[a-vx-zA-Z]`)

// TestOwnWords guards that blanking never changes benchwatch's own words in errors, hints and log messages of the whole
// program. To fix a message that fails here, make the text after the colon a separate error (%w) or use other words.
func TestOwnWords(t *testing.T) {
	checked := 0
	check := func(files *token.FileSet, e ast.Expr) {
		var words strings.Builder
		ast.Inspect(e, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, err := strconv.Unquote(l.Value)
				if err != nil {
					t.Fatal(err)
				}
				words.WriteString(text)
			}
			_, isCall := n.(*ast.CallExpr)
			return !isCall
		})
		for part := range strings.SplitSeq(words.String(), "%w") {
			checked++
			if own := strings.ReplaceAll(verb.ReplaceAllString(part, "it"), "%%", "%"); Text(own) != own {
				t.Errorf("%s: %q becomes %q", files.Position(e.Pos()), own, Text(own))
			}
		}
	}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Hint" {
					check(files, n.Value)
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || len(n.Args) == 0 {
					return true
				}
				switch of, _ := f.X.(*ast.Ident); {
				case of != nil && (of.Name == "errors" && f.Sel.Name == "New" || of.Name == "fmt" && f.Sel.Name == "Errorf"),
					slices.Contains([]string{"Info", "Warn", "Error", "Debug"}, f.Sel.Name):
					check(files, n.Args[0])
				case f.Sel.Name == "problem": // of the configuration: node, key, format
					check(files, n.Args[len(n.Args)-1])
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 500 {
		t.Errorf("found only %d messages: is %s the program?", checked, os.DirFS("../.."))
	}
}
