package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// Error is a mistake in a configuration file.
type Error struct {
	File string
	Line int // from 1
	// Key is the path of the key, such as targets[0].address; empty if the file is not YAML.
	Key     string
	Problem string
}

// Error returns "file:line: key: problem".
func (e *Error) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
	}
	return fmt.Sprintf("%s:%d: %s: %s", e.File, e.Line, e.Key, e.Problem)
}

// Unwrap returns only the problem.
func (e *Error) Unwrap() error { return errors.New(e.Problem) }

// checked is a section with conditions for its values, which hold even for keys that are missing.
type checked interface {
	// check returns the first mistake, made by in.
	check() error
}

// keyError is a mistake in the value of a key.
type keyError struct {
	path string // from the checked section on, such as targets[1].name
	error
}

func in(path string, err error) error {
	if err == nil {
		return nil
	}
	return &keyError{path, err}
}

// decoder reads one file, by the tags of the sections' fields. The YAML library decodes the values. It does not decode
// whole sections, since its errors have no path of keys, a key without a value would not hide a merged one, and an empty
// element of a list would become a section without values.
type decoder struct {
	file  string
	dir   string // folder of the file, where relative paths start
	lines int    // number of lines, at least 1
	// positions are the nodes read so far, by the path of their keys.
	positions map[string]*yaml.Node
	pairsRead int // merged ones included
	files     []string
}

// maxPairs limits the work that a small file can cause with aliases of aliases.
const maxPairs = 100_000

// decode reads a file into c. Errors are of type *Error.
func decode(data []byte, file string, c *Config) error {
	d := &decoder{file: file, dir: filepath.Dir(file), positions: map[string]*yaml.Node{}}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return &Error{File: file, Line: 1, Problem: "expected text in UTF-8, which this file is not"}
	}
	d.lines = max(1, len(bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))))
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithV4Defaults())
	if err != nil {
		return d.syntax(err)
	}
	var root, second yaml.Node
	if err := loader.Load(&root); err != nil && !errors.Is(err, io.EOF) {
		return d.syntax(err)
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return d.problem(&second, "", "a second document begins here: expected one")
	case !errors.Is(err, io.EOF):
		return d.syntax(err)
	}
	n := &root
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	if unknown := unknownTag(n); unknown != nil {
		return d.problem(unknown, "", "unknown tag %s", unknown.Tag)
	}
	err = d.section(reflect.ValueOf(c).Elem(), n, "")
	c.files = d.files
	return err
}

// syntax converts an error of the YAML library.
func (d *decoder) syntax(err error) error {
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return &Error{File: d.file, Line: 1, Problem: err.Error()}
	}
	problem := load.Message
	if load.ContextMsg != "" {
		problem += ", " + load.ContextMsg
	}
	// Something missing at the end of a file is reported after its last line.
	return &Error{File: d.file, Line: min(max(load.Mark.Line, 1), d.lines), Problem: problem}
}

func (d *decoder) problem(n *yaml.Node, path, format string, args ...any) error {
	return &Error{File: d.file, Line: max(n.Line, 1), Key: path, Problem: secret.Text(fmt.Sprintf(format, args...))}
}

// expected returns the error for a node of the wrong type.
func (d *decoder) expected(kind string, n *yaml.Node, path string) error {
	return d.problem(n, path, "expected %s, found %s", kind, describe(n))
}

// section reads a mapping into a section, then checks it.
func (d *decoder) section(s reflect.Value, n *yaml.Node, path string) error {
	fields := fieldsOf(s)
	var pairs []pair
	if !isNull(n) {
		if n.Kind != yaml.MappingNode {
			return d.expected(kindSection, n, path)
		}
		var err error
		if pairs, err = d.pairs(n, path); err != nil {
			return err
		}
	}
	for _, p := range pairs {
		at := join(path, p.key.Value)
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == p.key.Value })
		if i < 0 {
			return d.problem(p.key, at, "unknown key: %s", expectedKeys(p.key.Value, fields))
		}
		d.positions[at] = p.key
		if isNull(p.value) {
			continue
		}
		if err := d.value(fields[i], p.value, at); err != nil {
			return err
		}
	}
	if c, ok := reflect.TypeAssert[checked](s.Addr()); ok {
		if wrong, ok := errors.AsType[*keyError](c.check()); ok {
			at := join(path, wrong.path)
			return d.problem(d.position(at), at, "%v", wrong.error)
		}
	}
	return nil
}

// position returns the node of a key or, if the file does not contain it, of the innermost
// enclosing key.
func (d *decoder) position(path string) *yaml.Node {
	for path != "" {
		if n, ok := d.positions[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return &yaml.Node{Line: 1}
}

// value reads the value of a key.
func (d *decoder) value(f field, n *yaml.Node, path string) error {
	switch f.to.Kind() {
	case reflect.Struct:
		if f.alone != "" && n.Kind == yaml.ScalarNode {
			n = &yaml.Node{Kind: yaml.MappingNode, Line: n.Line,
				Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.alone, Line: n.Line}, n}}
		}
		return d.section(f.to, n, path)
	case reflect.Pointer: // nil if the key is missing
		f.to.Set(reflect.New(f.to.Type().Elem()))
		setDefaults(f.to.Elem())
		return d.section(f.to.Elem(), n, path)
	case reflect.Map:
		return d.texts(f, n, path)
	case reflect.Slice:
		return d.list(f, n, path)
	}
	return d.scalar(f, n, path)
}

// scalar reads a value that is written as a single word or text. Values of other types than texts are read by the
// library, and by the type's own UnmarshalYAML if it has one.
func (d *decoder) scalar(f field, n *yaml.Node, path string) (err error) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		return d.expected(f.kind, n, path)
	}
	to, isText := reflect.TypeAssert[*string](f.to.Addr())
	if !isText {
		if n.Load(f.to.Addr().Interface()) != nil {
			return d.expected(f.kind, n, path)
		}
		return nil
	}
	if *to, err = d.text(f.kind, n.Value); err != nil {
		return d.problem(n, path, "%v", err)
	}
	if f.kind == kindFile && *to != "" {
		secret.Configured(*to, fmt.Sprintf("%s:%d: %s", d.file, n.Line, path))
		if !slices.Contains(d.files, *to) {
			d.files = append(d.files, *to)
		}
	}
	return nil
}

// text returns the text or path that a key has as its value. A file is read only when needed, since
// other commands read the same configuration as other users.
func (d *decoder) text(kind, value string) (string, error) {
	switch kind {
	case kindExpression:
		return value, nil
	case kindText:
		if secret.Text(value) != value { // it would be shown and logged
			return "", errors.New("contains a user or password; these have their own keys, password_file or token_file")
		}
		return value, nil
	}
	if value == "" {
		return "", nil
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(d.dir, value)
	}
	if kind == kindPath {
		return value, nil
	}
	switch err := secret.FileExists(value); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("expected a file, but there is no %s", value)
	case errors.Is(err, secret.ErrFolder):
		return "", fmt.Errorf("expected a file, but %s is a folder", value)
	case err != nil:
		return "", fmt.Errorf("expected a file, but %w", err)
	}
	return value, nil
}

// texts reads a mapping whose keys the user chooses.
func (d *decoder) texts(f field, n *yaml.Node, path string) error {
	if n.Kind != yaml.MappingNode {
		return d.expected(f.kind, n, path)
	}
	pairs, err := d.pairs(n, path)
	if err != nil {
		return err
	}
	texts := make(map[string]string, len(pairs))
	for _, p := range pairs {
		var s string
		at := join(path, p.key.Value)
		d.positions[at] = p.key
		if err := d.scalar(field{to: reflect.ValueOf(&s).Elem(), kind: kindText}, p.value, at); err != nil {
			return err
		}
		texts[p.key.Value] = s
	}
	f.to.Set(reflect.ValueOf(texts))
	return nil
}

// list reads a list of sections or of texts; a single text needs no list.
func (d *decoder) list(f field, n *yaml.Node, path string) error {
	nodes, sections := n.Content, f.to.Type().Elem().Kind() == reflect.Struct
	if n.Kind != yaml.SequenceNode {
		if sections {
			return d.expected(f.kind, n, path)
		}
		nodes = []*yaml.Node{n}
	}
	f.to.Set(reflect.MakeSlice(f.to.Type(), len(nodes), len(nodes)))
	for i, element := range nodes {
		at, to := path, f.to.Index(i)
		if n.Kind == yaml.SequenceNode {
			at = fmt.Sprintf("%s[%d]", path, i)
			d.positions[at] = element
		}
		element = resolve(element)
		var err error
		switch {
		case !sections:
			err = d.scalar(field{to: to, kind: kindText}, element, at)
		case isNull(element):
			err = d.expected(kindSection, element, at)
		default:
			setDefaults(to)
			err = d.section(to, element, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
