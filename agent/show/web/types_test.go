package web

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

var update = flag.Bool("update", false, "write src/types.ts")

// TestTypes checks that the page's TypeScript has the views as the API sends them: src/types.ts is generated from them
// by `go test ./agent/show/web -update`.
func TestTypes(t *testing.T) {
	const file = "src/types.ts"
	want := typeScript(measuresView{}, runsView{}, agentView{}, historyView{}, documentView{}, compareView{}, trendView{}, helloView{})
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("out of date, run go test ./agent/show/web -update:\n%s", d)
	}
}

// TestHeadlineIsDecidedInGo guards that the page has no own list of statistics or of operations.
func TestHeadlineIsDecidedInGo(t *testing.T) {
	files, err := filepath.Glob("src/*.ts")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	own := regexp.MustCompile(`['"|(_]p[0-9]+['"_|)]|cleanup|not_found`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := own.Find(regexp.MustCompile("(?m)//.*$").ReplaceAll(text, nil)); found != nil && file != "src/types.ts" {
			t.Errorf("%s decides about %q", file, found)
		}
	}
}

// shownByName are the measures that the page shows in a way of its own.
var shownByName = []struct {
	name string
	*measure.Measure
}{
	{"throughput", tool.Throughput}, {"latency", tool.HeadlineLatency}, {"errorRate", tool.ErrorRate},
	{"lagSeconds", engine.LagSeconds}, {"lagTransactions", engine.LagTransactions}, {"flowControl", engine.FlowControl}, {"flowControlSent", engine.FlowControlSent},
}

// TestNoMeasureByText guards that the page names measures only by what Go generates.
func TestNoMeasureByText(t *testing.T) {
	files, err := filepath.Glob("src/*.ts")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var names []string
	for _, scope := range []measure.Scope{measure.Run, measure.Server, measure.Host, measure.Cluster} {
		for _, m := range measure.All(scope) {
			names = append(names, regexp.QuoteMeta(m.ID))
		}
	}
	// Some ids are also words for other things, such as the key of a column.
	byText := regexp.MustCompile(`(of\(|id [!=]==? |measure [!=]==? |includes\()'(` + strings.Join(names, "|") + `)'|'(` + strings.Join(slices.DeleteFunc(names, func(id string) bool { return !strings.Contains(id, "_") }), "|") + `)'`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := byText.Find(text); found != nil && file != "src/types.ts" {
			t.Errorf("%s names a measure: %s", file, found)
		}
	}
}

// unions are the types of the strings that the page distinguishes.
var unions = []reflect.Type{
	reflect.TypeFor[ingest.Phase](), reflect.TypeFor[rundir.Outcome](), reflect.TypeFor[marker.Kind](), reflect.TypeFor[document.Level](),
	reflect.TypeFor[measure.Summary](), reflect.TypeFor[measure.Scope](), reflect.TypeFor[measure.Unit](),
}

// constants returns the values of the constants of a string type, as its package declares them.
func constants(t reflect.Type) (values []string) {
	folder := filepath.Join("../../..", strings.TrimPrefix(t.PkgPath(), "github.com/benchwatch/benchwatch/"))
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		panic(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if ok && len(spec.Values) == 1 {
				named, _ := spec.Type.(*ast.Ident)
				if value, _ := spec.Values[0].(*ast.BasicLit); named != nil && named.Name == t.Name() && value != nil {
					values = append(values, strings.Trim(value.Value, "\""))
				}
			}
			return true
		})
	}
	if len(values) == 0 {
		panic("no constants of " + t.String())
	}
	return values
}

// generator writes Go structs as TypeScript interfaces.
type generator struct {
	text strings.Builder
	done map[reflect.Type]bool
}

func typeScript(views ...any) string {
	g := &generator{done: map[reflect.Type]bool{}}
	g.text.WriteString("// Generated from the Go types by `go test ./agent/show/web -update`. Do not edit.\n")
	g.text.WriteString("\n/** The measures that the page shows in a way of its own. */\nexport const ids = {\n")
	for _, m := range shownByName {
		fmt.Fprintf(&g.text, "  %s: '%s',\n", m.name, m.ID)
	}
	g.text.WriteString("};\n")
	for _, v := range views {
		g.declare(reflect.TypeOf(v))
	}
	return g.text.String()
}

func typeName(t reflect.Type) string {
	name := strings.TrimSuffix(t.Name(), "View")
	return strings.ToUpper(name[:1]) + name[1:]
}

func (g *generator) declare(t reflect.Type) {
	if g.done[t] {
		return
	}
	g.done[t] = true
	var fields strings.Builder
	extends := ""
	for f := range t.Fields() {
		if f.Anonymous {
			g.declare(f.Type)
			extends = " extends " + typeName(f.Type)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		optional := ""
		if strings.HasPrefix(options, "omit") {
			optional = "?"
		}
		fmt.Fprintf(&fields, "  %s%s: %s;\n", name, optional, g.typeOf(f.Type))
	}
	fmt.Fprintf(&g.text, "\nexport interface %s%s {\n%s}\n", typeName(t), extends, fields.String())
}

// typeOf returns the TypeScript type of t. The API sends no null for a slice:
// TestNoNull checks that.
func (g *generator) typeOf(t reflect.Type) string {
	if slices.Contains(unions, t) {
		return "'" + strings.Join(constants(t), "' | '") + "'"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return "number"
	case reflect.Pointer:
		return g.typeOf(t.Elem())
	case reflect.Array:
		return "[" + strings.TrimSuffix(strings.Repeat(g.typeOf(t.Elem())+", ", t.Len()), ", ") + "]"
	case reflect.Slice:
		element := g.typeOf(t.Elem())
		if strings.Contains(element, " | ") {
			element = "(" + element + ")"
		}
		return element + "[]"
	case reflect.Map:
		return "Record<string, " + g.typeOf(t.Elem()) + ">"
	case reflect.Struct:
		if strings.HasPrefix(t.Name(), "Optional[") {
			return g.typeOf(t.Field(0).Type)
		}
		g.declare(t)
		return typeName(t)
	}
	panic("no TypeScript for " + t.String())
}

// TestNoNull checks that the API sends no null for a run about which nothing is known: the page's types have no null.
func TestNoNull(t *testing.T) {
	s := newSite(t)
	s.ended(rundir.Meta{ID: "one"}, "")
	for _, path := range []string{"/api/measures", "/api/runs", "/api/runs/one", "/api/runs/one/history", "/api/agent", "/api/runs/one/findings", "/api/trend"} {
		if code, body := s.get(path); code != 200 || strings.Contains(string(body), "null") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}
