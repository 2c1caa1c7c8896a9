package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

const schemaFolder = "../../../docs/schema"

func schemaFile(command string) string { return strings.ReplaceAll(command, " ", "-") + ".json" }

// TestSchema guards that docs/schema has the form of what commands print, as their Go
// types have it. The scripts compare the real output with these files.
func TestSchema(t *testing.T) {
	var files []string
	for _, p := range printed {
		want, err := json.MarshalIndent(schemaOf(t, p.command, p.value), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		file := filepath.Join(schemaFolder, schemaFile(p.command))
		files = append(files, file)
		is, err := os.ReadFile(file)
		switch {
		case err == nil && bytes.Equal(is, want):
		case !*update:
			t.Errorf("%s is out of date: go test ./agent/app/cli -run 'JSON|Schema' -update", file)
		default:
			if err := errors.Join(os.MkdirAll(schemaFolder, 0o755), os.WriteFile(file, want, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := filepath.Glob(schemaFolder + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if !slices.Contains(files, file) {
			t.Errorf("%s is the schema of no command", file)
		}
	}
}

// TestParseSchema guards that the schema of parse has exactly the fields that occur in
// the recorded output of all tools.
func TestParseSchema(t *testing.T) {
	var files []string
	if err := filepath.WalkDir("../../model/tool", func(path string, d fs.DirEntry, err error) error {
		if !d.IsDir() && (filepath.Ext(path) == ".golden" || filepath.Base(path) == "golden.txt") {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for _, p := range schemaOf(t, "parse", parsedLine{}).Properties {
		unused[p.name] = true
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// Some name the line of the output first, or that it was ignored.
		var objects []byte
		for line := range bytes.Lines(data) {
			if i := bytes.IndexByte(line, '{'); i >= 0 && json.Valid(line[i:]) {
				objects = append(objects, line[i:]...)
			}
		}
		lines, err := conforms("parse", objects)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, line := range lines {
			for name := range line.(map[string]any) {
				delete(unused, name)
			}
		}
	}
	if len(unused) > 0 {
		t.Errorf("no tool has %v", unused)
	}
}

// TestDashboardsImportSchema has what a script has not: a Grafana.
func TestDashboardsImportSchema(t *testing.T) {
	grafana := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(grafana.Close)
	var out, errs bytes.Buffer
	status := Main([]string{"dashboards", "import", "--grafana.url", grafana.URL, "--grafana.token-file", writeFile(t, "token", "glsa"), "--format=json"}, Streams{Out: &out, Err: &errs})
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, &errs)
	}
	if values, err := conforms("dashboards import", out.Bytes()); err != nil || len(values) != 1 {
		t.Errorf("%d values, %v", len(values), err)
	}
}

// conformScript is the command `conforms COMMAND` of scripts: standard output is what the
// schema of the command describes, without a field that it does not have.
func conformScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: conforms COMMAND")
	}
	values, err := conforms(args[0], []byte(ts.ReadFile("stdout")))
	ts.Check(err)
	if len(values) == 0 {
		ts.Fatalf("no JSON")
	}
}

// conforms reads JSON values and returns how they differ from a command's schema.
func conforms(command string, data []byte) ([]any, error) {
	file, err := os.Open(filepath.Join(sourceFolder, schemaFolder, schemaFile(command)))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	form, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		return nil, err
	}
	refuseMore(form)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", form); err != nil {
		return nil, err
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		return nil, err
	}
	var values []any
	for in := json.NewDecoder(bytes.NewReader(data)); ; {
		in.UseNumber()
		var v any
		if err := in.Decode(&v); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return values, err
		}
		if err := s.Validate(v); err != nil {
			return values, fmt.Errorf("%s: %w", schemaFile(command), err)
		}
		values = append(values, v)
	}
}

// sourceFolder is this package's: scripts run in other folders.
var sourceFolder = func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir
}()

// refuseMore has a schema refuse the fields that it does not describe. The files allow
// them, since fields may be added.
func refuseMore(form any) {
	switch form := form.(type) {
	case map[string]any:
		for _, inner := range form {
			refuseMore(inner)
		}
		if _, open := form["additionalProperties"]; form["properties"] != nil && !open {
			form["additionalProperties"] = false
		}
	case []any:
		for _, inner := range form {
			refuseMore(inner)
		}
	}
}

// definition is a part of a JSON schema.
type definition struct {
	Schema      string                 `json:"$schema,omitempty"`
	Title       string                 `json:"title,omitempty"`
	Description string                 `json:"description,omitempty"`
	Ref         string                 `json:"$ref,omitempty"`
	Type        string                 `json:"type,omitempty"`
	Format      string                 `json:"format,omitempty"`
	Enum        []string               `json:"enum,omitempty"`
	AnyOf       []*definition          `json:"anyOf,omitempty"`
	Items       *definition            `json:"items,omitempty"`
	Values      *definition            `json:"additionalProperties,omitempty"`
	Properties  properties             `json:"properties,omitempty"`
	Required    []string               `json:"required,omitempty"`
	Definitions map[string]*definition `json:"$defs,omitempty"`
}

// property is a field of an object. A measure's has no line in docs/reference/json.md.
type property struct {
	name string
	*definition
	measure bool
}

// properties are in the order of the Go type.
type properties []property

func (p properties) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, field := range p {
		if i > 0 {
			out = append(out, ',')
		}
		data, err := json.Marshal(field.definition)
		if err != nil {
			return nil, err
		}
		out = append(strconv.AppendQuote(out, field.name), ':')
		out = append(out, data...)
	}
	return append(out, '}'), nil
}

// schemaOf returns the schema of what a command prints.
func schemaOf(t *testing.T, command string, value any) *definition {
	t.Helper()
	d := definer{t: t, types: map[string]reflect.Type{}, definitions: map[string]*definition{}}
	s := d.define(reflect.TypeOf(value))
	if s.Ref != "" { // the command's own type is the schema itself
		inner := d.definitions[reflect.TypeOf(value).Name()]
		delete(d.definitions, reflect.TypeOf(value).Name())
		s = inner
	}
	s.Schema, s.Title, s.Definitions = "https://json-schema.org/draft/2020-12/schema", "benchwatch "+command, d.definitions
	return s
}

type definer struct {
	t           *testing.T
	types       map[string]reflect.Type
	definitions map[string]*definition // of structs by name
}

// define returns how values of a type look in JSON.
func (d *definer) define(of reflect.Type) *definition {
	switch {
	case of == reflect.TypeFor[time.Time]():
		return &definition{Type: "string", Format: "date-time"}
	case of == reflect.TypeFor[time.Duration]():
		d.t.Error("a duration in JSON is seconds as a number")
	case isOptional(of):
		return d.define(of.Field(0).Type)
	}
	switch of.Kind() {
	case reflect.Pointer:
		return d.define(of.Elem())
	case reflect.Slice:
		inner := d.define(of.Elem())
		if of.Elem().Kind() == reflect.Pointer { // an unknown element keeps its place
			inner = &definition{AnyOf: []*definition{inner, {Type: "null"}}}
		}
		return &definition{Type: "array", Items: inner}
	case reflect.Map:
		return &definition{Type: "object", Values: d.define(of.Elem())}
	case reflect.Struct:
		return d.object(of)
	case reflect.String:
		return &definition{Type: "string", Enum: constants(d.t, of)}
	case reflect.Bool:
		return &definition{Type: "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint8:
		return &definition{Type: "integer"}
	case reflect.Float64:
		return &definition{Type: "number"}
	}
	d.t.Fatalf("%s in JSON", of)
	return nil
}

func isOptional(of reflect.Type) bool { return strings.HasPrefix(of.Name(), "Optional[") }

func (d *definer) object(of reflect.Type) *definition {
	name := of.Name()
	if known := d.types[name]; known == nil {
		d.types[name] = of
		s := &definition{Type: "object"}
		d.definitions[name] = s
		d.fields(s, of)
	} else if known != of {
		d.t.Fatalf("%s and %s have one name in the schema", known, of)
	}
	return &definition{Ref: "#/$defs/" + name}
}

func (d *definer) fields(s *definition, of reflect.Type) {
	docs := comments(d.t, of)
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			d.fields(s, f.Type)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			d.t.Errorf("%s.%s has no name in JSON", of, f.Name)
		}
		field := d.define(f.Type)
		field.Description = describe(d.t, of, f.Name, docs[f.Name])
		s.Properties = append(s.Properties, property{name: name, definition: field})
		switch {
		case strings.Contains(options, "omit"):
		case f.Type.Kind() == reflect.Pointer || isOptional(f.Type):
			d.t.Errorf("%s.%s may be null in JSON: leave it out", of, f.Name)
		default:
			s.Required = append(s.Required, name)
		}
	}
	for _, n := range tool.Numbers() {
		kind := "number"
		if n.Unit == measure.Count && of == reflect.TypeFor[parsedLine]() {
			kind = "integer"
		}
		if of == reflect.TypeFor[parsedLine]() && !n.OfGroup || of == reflect.TypeFor[report.ExportLine]() && !n.AtEnd {
			about := &definition{Type: kind, Description: n.Note}
			s.Properties = append(s.Properties, property{name: n.ID, definition: about})
		}
	}
	if of == reflect.TypeFor[review.Row]() || of == reflect.TypeFor[sweep.Combination]() {
		for _, m := range review.RowMeasures() {
			if m == tool.HeadlineLatency {
				continue
			}
			about := &definition{Type: "number"}
			if m.MoreIsBetter && of == reflect.TypeFor[sweep.Combination]() {
				about = d.define(reflect.TypeFor[compare.Spread]())
			}
			about.Description = m.Note
			s.Properties = append(s.Properties, property{name: m.Field(), definition: about})
		}
	}
	if of == reflect.TypeFor[review.Machine]() {
		for _, m := range measure.All(measure.Host) {
			if m.Summary != measure.Last && m.Summary != measure.Cost {
				about := &definition{Type: "number", Description: strings.TrimSuffix(m.Title+": "+m.Note, ": ")}
				s.Properties = append(s.Properties, property{review.ServerField(m), about, true})
			}
		}
	}
	if of == reflect.TypeFor[statusLine]() {
		for _, m := range measure.All(measure.Host) {
			if m.Summary != measure.Cost {
				s.Properties = append(s.Properties, property{m.Field(), &definition{Type: "number", Description: "Of a machine: " + strings.TrimSuffix(m.Title+": "+m.Note, ": ")}, true})
			}
		}
	}
	for _, m := range measure.All(measure.Server) {
		if m.Summary == measure.Cost {
			continue
		}
		about := &definition{Type: "number", Description: strings.TrimSuffix(m.Title+": "+m.Note, ": ")}
		switch {
		case of == reflect.TypeFor[statusLine]():
			s.Properties = append(s.Properties, property{m.Field(), about, true})
		case of == reflect.TypeFor[review.Server]() && m.Summary != measure.Last:
			s.Properties = append(s.Properties, property{review.ServerField(m), about, true})
			if m.Summary == measure.Max {
				s.Properties = append(s.Properties, property{review.ServerField(m) + "_at", &definition{Type: "number", Description: "When that was, in seconds after the start"}, true})
			}
		}
	}
}

// constants returns the values of the constants of a type of texts; nil if it has none.
func constants(t *testing.T, of reflect.Type) (values []string) {
	t.Helper()
	if of.PkgPath() == "" {
		return nil
	}
	eachFile(t, of, func(f *ast.File) {
		for _, decl := range f.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if name, ok := v.Type.(*ast.Ident); !ok || name.Name != of.Name() {
					continue
				}
				for _, x := range v.Values {
					if text, err := strconv.Unquote(x.(*ast.BasicLit).Value); err == nil && text != "" {
						values = append(values, text)
					}
				}
			}
		}
	})
	return values
}

// eachFile parses the files of a type's package.
func eachFile(t *testing.T, of reflect.Type, visit func(*ast.File)) {
	t.Helper()
	const module = "github.com/benchwatch/benchwatch/agent/"
	files, err := filepath.Glob(filepath.Join("../..", strings.TrimPrefix(of.PkgPath(), module), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		visit(f)
	}
}

// fields passes each field below a definition to add, as docs/reference/json.md has them: its
// place, its kind of value and its meaning. An object that occurs again is not repeated.
func fields(root, at *definition, place string, seen map[string]bool, add func(place, value, meaning string)) {
	for at.Type == "array" {
		at, place = at.Items, place+"[]"
	}
	if at.Ref != "" {
		name := strings.TrimPrefix(at.Ref, "#/$defs/")
		if seen[name] {
			return
		}
		seen[name] = true
		at = root.Definitions[name]
	}
	for _, p := range at.Properties {
		if p.measure {
			continue
		}
		inner, value := strings.TrimPrefix(place+"."+p.name, "."), kindOf(p.definition)
		if !slices.Contains(at.Required, p.name) {
			value += ", may be absent"
		}
		add(inner, value, p.Description)
		below := p.definition
		if below.Values != nil {
			below, inner = below.Values, inner+".*"
		}
		fields(root, below, inner, seen, add)
	}
}

// kindOf is a kind of value in words.
func kindOf(d *definition) string {
	switch {
	case d.Type == "array":
		return "array of " + kindOf(d.Items)
	case d.AnyOf != nil:
		return kindOf(d.AnyOf[0]) + " or null"
	case d.Values != nil:
		return "object of " + kindOf(d.Values)
	case d.Format == "date-time":
		return "time"
	case d.Ref != "":
		return "object"
	case len(d.Enum) > 0:
		return "text (" + strings.Join(d.Enum, ", ") + ")"
	}
	return map[string]string{"string": "text", "boolean": "true or false", "integer": "whole number", "number": "number", "object": "object"}[d.Type]
}
