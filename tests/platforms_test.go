package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The agent and its tests have no type errors on each operating system and each processor that packages are built for.
// Checking types takes seconds; compiling all dependencies for another platform takes minutes, and `make packages` does
// that.
func TestPlatforms(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, platform := range [][2]string{{"linux", "arm64"}, {"darwin", "amd64"}} {
		t.Run(platform[0]+"/"+platform[1], func(t *testing.T) {
			loaded, err := packages.Load(&packages.Config{
				Context: t.Context(), Dir: root, Tests: true,
				Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
					packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes,
				Env: append(os.Environ(), "GOOS="+platform[0], "GOARCH="+platform[1], "CGO_ENABLED=0"),
				ParseFile: func(fset *token.FileSet, name string, source []byte) (*ast.File, error) {
					file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
					if file != nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
						dropBodies(file)
					}
					return file, err
				},
			}, ".", "./agent/...")
			if err != nil {
				t.Fatal(err)
			}
			if len(loaded) < 100 {
				t.Errorf("only %d packages were checked", len(loaded))
			}
			for _, p := range loaded {
				if strings.HasSuffix(p.ID, ".test") { // the generated main package of a test
					continue
				}
				for _, e := range p.Errors {
					t.Error(e)
				}
			}
		})
	}
}

// dropBodies removes the bodies of the functions of a dependency: only their types matter.
func dropBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
