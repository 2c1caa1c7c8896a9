package cli

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/report"
	"github.com/benchwatch/benchwatch/agent/setup"
	"github.com/benchwatch/benchwatch/agent/sweep"
)

const jsonDocument = "../../docs/json.md"

// printed is what each command prints with --format=json. Commands with a format of
// their own say so.
var printed = []struct {
	command string
	value   any
	about   string
}{
	{"runs", []report.Row{}, "An array of runs, the newest last."},
	{"runs import", []imported{}, "An array of the runs that the logs have."},
	{"runs rm", removed{}, ""},
	{"report", report.Document{}, "`run` and `replay` print the same of their one run at its end, in place of the tool's output."},
	{"compare", report.Comparison{}, ""},
	{"sweep", sweep.Result{}, ""},
	{"mark", marked{}, ""},
	{"init", setup.Done{}, ""},
	{"doctor", setup.Diagnosis{}, ""},
	{"dashboards import", dashboardsImported{}, ""},
	{"health", health{}, "Nothing if the agent is not healthy; the exit status is 1 then."},
	{"status", statusLine{}, "An object a line for each target and tick. Of a target that answered it also has the server's measures that are known, such as `queries_per_second`, as in `report`."},
}

// TestJSON guards that docs/json.md has every field of what commands print.
func TestJSON(t *testing.T) {
	var b strings.Builder
	for _, p := range printed {
		fmt.Fprintf(&b, "### benchwatch %s\n\n", p.command)
		if p.about != "" {
			b.WriteString(p.about + "\n\n")
		}
		b.WriteString("| field | value | meaning |\n|---|---|---|\n")
		d := schema{t: t, seen: map[reflect.Type]string{}}
		d.add(reflect.TypeOf(p.value), "")
		for _, r := range d.rows {
			row(&b, r...)
		}
		b.WriteString("\n")
	}
	data, err := os.ReadFile(jsonDocument)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)(<!-- generated: fields -->\n).*?(\n<!-- end -->)`)
	want := block.ReplaceAllString(string(data), "${1}"+strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "$", "$$")+"${2}")
	switch {
	case want == string(data):
	case !*update:
		t.Fatal("docs/json.md is out of date: go test ./agent/cli -run JSON -update")
	default:
		if err := os.WriteFile(jsonDocument, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFormats guards that every command that prints something has JSON.
func TestFormats(t *testing.T) {
	app, _ := newApplication()
	without := []string{"help", "agent"} // a service: --log.format=json
	for _, c := range app.Model().FlattenedCommands() {
		i := slices.IndexFunc(c.Flags, func(f *kingpin.FlagModel) bool { return f.Name == "format" })
		if i < 0 && !slices.Contains(without, c.FullCommand) {
			t.Errorf("%s has no --format", c.FullCommand)
		} else if i >= 0 && !strings.Contains(c.Flags[i].Help, "json") {
			t.Errorf("%s has no --format=json", c.FullCommand)
		}
	}
}

// schema lists the fields of types as they are in JSON, with their doc comments.
type schema struct {
	t    *testing.T
	rows [][]string
	seen map[reflect.Type]string
}

func (d *schema) add(of reflect.Type, at string) {
	for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
		if of.Kind() == reflect.Slice {
			at += "[]"
		}
		of = of.Elem()
	}
	if d.kind(of) != "object" || of.Kind() == reflect.Map {
		return
	}
	if _, again := d.seen[of]; again {
		return
	}
	d.seen[of] = at
	docs := comments(d.t, of)
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			d.add(f.Type, at)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			d.t.Errorf("%s.%s has no name in JSON", of, f.Name)
		}
		place := strings.TrimPrefix(at+"."+name, ".")
		kind := d.kind(f.Type)
		if strings.Contains(options, "omit") {
			kind += ", may be absent"
		}
		d.rows = append(d.rows, []string{"`" + place + "`", kind, docs[f.Name]})
		inner := f.Type
		if inner.Kind() == reflect.Map {
			inner, place = inner.Elem(), place+".*"
		}
		d.add(inner, place)
	}
}

// kind is how a type looks in JSON.
func (d *schema) kind(of reflect.Type) string {
	switch {
	case of == reflect.TypeFor[time.Time]():
		return "time"
	case of == reflect.TypeFor[time.Duration]():
		d.t.Error("a duration in JSON is seconds as a number")
	case strings.HasPrefix(of.Name(), "Optional["):
		return d.kind(of.Field(0).Type)
	}
	switch of.Kind() {
	case reflect.Pointer:
		return d.kind(of.Elem())
	case reflect.Slice:
		return "array of " + d.kind(of.Elem())
	case reflect.Map:
		return "object of " + d.kind(of.Elem())
	case reflect.Struct:
		return "object"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint8:
		return "whole number"
	case reflect.Float64:
		return "number"
	}
	d.t.Errorf("%s in JSON", of)
	return ""
}

var blanks = regexp.MustCompile(`\s+`)

// comments returns the doc comments of a struct's fields.
func comments(t *testing.T, of reflect.Type) map[string]string {
	t.Helper()
	const module = "github.com/benchwatch/benchwatch/agent/"
	dir := filepath.Join("..", strings.TrimPrefix(of.PkgPath(), module))
	files, err := filepath.Glob(path.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != of.Name() {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					text := strings.TrimSpace(field.Doc.Text() + " " + field.Comment.Text())
					for _, name := range field.Names {
						docs[name.Name] = blanks.ReplaceAllString(text, " ")
					}
				}
			}
			return false
		})
	}
	return docs
}
