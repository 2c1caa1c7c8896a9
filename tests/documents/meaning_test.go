package documents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The pages that say what a text means and what to do about it. What must be there is taken from the code, so that a
// new text without an entry fails here.
const meanings = "../../docs/meaning/"

// TestMeaningOfLimits guards that each limit has an entry. The causes are in the test of their list, TestCausesPage.
func TestMeaningOfLimits(t *testing.T) {
	limits := constants(t, "../../agent/model/cause", "Limit")
	if len(limits) < 30 {
		t.Fatalf("%d limits", len(limits))
	}
	page := read(t, meanings+"findings.md")
	for _, l := range limits {
		if !strings.Contains(page, "\n### "+l+"\n") {
			t.Errorf("meaning/findings.md has no entry ### %s", l)
		}
	}
}

// TestMeaningOfOutcomes guards that each outcome is defined.
func TestMeaningOfOutcomes(t *testing.T) {
	outcomes := constants(t, "../../agent/run/rundir", "Outcome")
	if len(outcomes) < 5 {
		t.Fatalf("%d outcomes", len(outcomes))
	}
	page := read(t, "../../docs/outcomes.md")
	for _, o := range outcomes {
		if !strings.Contains(page, "\n## `"+o+"`\n") {
			t.Errorf("outcomes.md does not define `%s`", o)
		}
	}
}

// TestMeaningOfTrust guards that each line of How far to trust this has an entry, and all missing evidence.
func TestMeaningOfTrust(t *testing.T) {
	explained(t, "trust.md", 3, slices.Concat(
		texts(t, "../../agent/run/review", func(f *ast.FuncDecl) bool { return receiver(f) == "judge" || f.Name.Name == "generatorCPU" }, nil),
		texts(t, "../../agent/run/limits", func(f *ast.FuncDecl) bool { return f.Name.Name == "missing" }, nil)))
}

// TestMeaningOfErrors guards that each error of the command line that comes with a hint has an entry.
func TestMeaningOfErrors(t *testing.T) {
	all := texts(t, "../../agent/app/cli", func(*ast.FuncDecl) bool { return true }, hinted)
	if len(all) < 60 {
		t.Fatalf("%d errors", len(all))
	}
	explained(t, "errors.md", 2, all)
}

// hinted reports whether an expression is an error with a hint.
func hinted(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.Ident)
		return ok && f.Name == "withHint"
	case *ast.CompositeLit:
		f, ok := n.Type.(*ast.Ident)
		return ok && f.Name == "exitError"
	}
	return false
}

// explained checks that a page has the texts: of each the longest part without values, if it has some words.
func explained(t *testing.T, page string, words int, texts []string) {
	t.Helper()
	is := spaces.ReplaceAllString(read(t, meanings+page), " ")
	for _, text := range texts {
		part := slices.MaxFunc(values.Split(text, -1), func(a, b string) int { return len(a) - len(b) })
		part = strings.Trim(part, " :;,.(\"'")
		if len(strings.Fields(part)) >= words && !strings.Contains(is, part) {
			t.Errorf("meaning/%s does not explain %q", page, part)
		}
	}
}

var (
	spaces = regexp.MustCompile(`\s+`)
	values = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]|%%`)
)

// constants returns the texts of a type's constants.
func constants(t *testing.T, folder, name string) (all []string) {
	t.Helper()
	for _, file := range sources(t, folder) {
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if of, ok := v.Type.(*ast.Ident); !ok || of.Name != name {
					continue
				}
				for _, x := range v.Values {
					all = append(all, literals(x)...)
				}
			}
		}
	}
	return all
}

// texts returns the texts in functions of a folder or, if within is set, only those in such expressions.
func texts(t *testing.T, folder string, of func(*ast.FuncDecl) bool, within func(ast.Node) bool) (all []string) {
	t.Helper()
	for _, file := range sources(t, folder) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || !of(f) {
				continue
			}
			if within == nil {
				all = append(all, literals(f.Body)...)
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if n == nil || !within(n) {
					return true
				}
				all = append(all, literals(n)...)
				return false
			})
		}
	}
	return all
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	x := f.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	name, _ := x.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

func literals(in ast.Node) (all []string) {
	ast.Inspect(in, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil && text != "" {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}

func sources(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(folder + "/*.go")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
