package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	commoncfg "github.com/prometheus/common/config"
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

// key declares one key of a section completely. The decoder, the defaults, the reload and the
// documentation read these declarations.
type key struct {
	name string
	to   value
	doc  string // Markdown, without a period at its end
	// initial is the default as YAML. Default sets a computed default, and initialDoc describes it.
	initial, initialDoc string
	// check returns what is wrong with the value, even if the key is missing.
	check   func() error
	restart bool // a change needs a restart of the agent
}

// section is a set of keys.
type section interface{ keys() []key }

// value is the destination of a key's value.
type value interface {
	// kind completes "expected …".
	kind() string
	decode(d *decoder, n *yaml.Node, path string) error
}

// elementError is the error of a check for a key below the checked one.
type elementError struct {
	path string // such as [1].name
	error
}

// decoder reads one file.
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

// decode reads a file into s. Errors are of type *Error.
func decode(data []byte, file string, s section) error {
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
	err = d.section(s, n, "")
	if c, ok := s.(*Config); ok {
		c.files = d.files
	}
	return err
}

// unknownTag returns the first node with a tag that YAML does not define, or nil.
func unknownTag(n *yaml.Node) *yaml.Node {
	if tag := n.ShortTag(); !n.IsZero() && tag != "" && !slices.Contains([]string{"!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!merge", "!!timestamp"}, tag) {
		return n
	}
	for _, below := range n.Content {
		if unknown := unknownTag(below); unknown != nil {
			return unknown
		}
	}
	return nil
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
func (d *decoder) expected(v value, n *yaml.Node, path string) error {
	return d.problem(n, path, "expected %s, found %s", v.kind(), describe(n))
}

func describe(n *yaml.Node) string {
	if isNull(n) {
		return "nothing"
	}
	switch n.Kind {
	case yaml.MappingNode:
		return "a set of keys"
	case yaml.SequenceNode:
		return "a list"
	default:
		return fmt.Sprintf("%q", n.Value)
	}
}

// resolve follows an alias to its anchor.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// isNull reports whether the key has no value, which counts as if the key were missing.
func isNull(n *yaml.Node) bool {
	return n.IsZero() || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// pair is a key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

// pairs returns the keys of a mapping, including those that << merges into it. Own keys win over
// merged ones.
func (d *decoder) pairs(n *yaml.Node, path string) ([]pair, error) {
	var own []pair
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], resolve(n.Content[i+1])
		if d.pairsRead++; d.pairsRead > maxPairs {
			return nil, d.problem(k, path, "too many aliases")
		}
		switch {
		case k.Kind != yaml.ScalarNode:
			return nil, d.problem(k, path, "expected a key, found %s", describe(k))
		case k.Value == "<<" && k.Style == 0:
			if v.Kind == yaml.SequenceNode {
				merged = append(merged, v.Content...)
			} else {
				merged = append(merged, v)
			}
		case hasKey(own, k.Value):
			return nil, d.problem(k, join(path, k.Value), "is set twice")
		default:
			own = append(own, pair{k, v})
		}
	}
	for _, m := range merged {
		if m = resolve(m); m.Kind != yaml.MappingNode {
			return nil, d.problem(m, join(path, "<<"), "expected a set of keys, found %s", describe(m))
		}
		more, err := d.pairs(m, path)
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			if !hasKey(own, p.key.Value) {
				own = append(own, p)
			}
		}
	}
	return own, nil
}

func hasKey(pairs []pair, name string) bool {
	return slices.ContainsFunc(pairs, func(p pair) bool { return p.key.Value == name })
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// section reads a mapping into s, then checks every key of s.
func (d *decoder) section(s section, n *yaml.Node, path string) error {
	keys := s.keys()
	var pairs []pair
	switch {
	case isNull(n):
	case n.Kind != yaml.MappingNode:
		return d.expected(subsection{s}, n, path)
	default:
		var err error
		if pairs, err = d.pairs(n, path); err != nil {
			return err
		}
	}
	for _, p := range pairs {
		at := join(path, p.key.Value)
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == p.key.Value })
		if i < 0 {
			return d.problem(p.key, at, "unknown key: expected one of %s", keyNames(keys))
		}
		d.positions[at] = p.key
		if isNull(p.value) {
			continue
		}
		if err := keys[i].to.decode(d, p.value, at); err != nil {
			return err
		}
	}
	for _, k := range keys {
		if k.check == nil {
			continue
		}
		if err := k.check(); err != nil {
			at := join(path, k.name)
			if element, ok := errors.AsType[*elementError](err); ok {
				at += element.path
			}
			return d.problem(d.position(at), at, "%v", err)
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

func keyNames(keys []key) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// setDefaults sets every key of s to its default.
func setDefaults(s section) {
	for _, k := range s.keys() {
		switch sub := k.to.(type) {
		case subsection:
			setDefaults(sub.section)
		case shorthand:
			setDefaults(sub.section)
		}
		if k.initial == "" {
			continue
		}
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: k.initial}
		if err := k.to.decode(&decoder{}, n, k.name); err != nil {
			panic(err) // an error in the declaration
		}
	}
}

// scalar is a value that is written as a single word or text.
type scalar[T comparable] struct {
	to    *T
	kinds string
	parse func(d *decoder, n *yaml.Node) (T, error)
}

func (v scalar[T]) kind() string { return v.kinds }

func (v scalar[T]) decode(d *decoder, n *yaml.Node, path string) error {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		return d.expected(v, n, path)
	}
	parsed, err := v.parse(d, n)
	if errors.Is(err, errSecret) || errors.Is(err, errNoFile) {
		return d.problem(n, path, "%v", err)
	}
	if err != nil {
		return d.expected(v, n, path)
	}
	*v.to = parsed
	if name, ok := any(parsed).(string); ok && v.kinds == fileKind && name != "" {
		secret.Configured(name, fmt.Sprintf("%s:%d: %s", d.file, n.Line, path))
		if !slices.Contains(d.files, name) {
			d.files = append(d.files, name)
		}
	}
	return nil
}

func (v scalar[T]) equal(other value) bool {
	o, ok := other.(scalar[T])
	return ok && *v.to == *o.to
}

func text(to *string) value {
	return scalar[string]{to, "a text", func(_ *decoder, n *yaml.Node) (string, error) {
		if secret.Text(n.Value) != n.Value {
			return "", errSecret
		}
		return n.Value, nil
	}}
}

// errSecret is returned for a text that would be shown and logged.
var errSecret = errors.New("contains a user or password; these have their own keys, password_file or token_file")

// expression is a regular expression, which may look like a password.
func expression(to *string) value {
	return scalar[string]{to, "a text", func(_ *decoder, n *yaml.Node) (string, error) { return n.Value, nil }}
}

// path is the name of a file. A relative one is relative to the configuration file.
func path(to *string) value {
	return scalar[string]{to, "a path", func(d *decoder, n *yaml.Node) (string, error) {
		if n.Value == "" || filepath.IsAbs(n.Value) {
			return n.Value, nil
		}
		return filepath.Join(d.dir, n.Value), nil
	}}
}

// errNoFile is returned for a file that no user can read.
var errNoFile = errors.New("expected a file")

// fileKind is the kind of keys that name files.
const fileKind = "a file"

// file is the path of an existing file. It is read only when needed, since other commands read the
// same configuration as other users.
func file(to *string) value {
	whole := path(to).(scalar[string])
	name := whole.parse
	whole.kinds, whole.parse = fileKind, func(d *decoder, n *yaml.Node) (string, error) {
		at, err := name(d, n)
		if err != nil || at == "" {
			return at, err
		}
		switch err := secret.FileExists(at); {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("%w, but there is no %s", errNoFile, at)
		case errors.Is(err, secret.ErrFolder):
			return "", fmt.Errorf("%w, but %s is a folder", errNoFile, at)
		case err != nil:
			return "", fmt.Errorf("%w, but %w", errNoFile, err)
		}
		return at, nil
	}
	return whole
}

func duration(to *time.Duration) value {
	return scalar[time.Duration]{to, "a duration such as 1s", func(_ *decoder, n *yaml.Node) (time.Duration, error) {
		return time.ParseDuration(n.Value)
	}}
}

func number(to *int) value {
	return scalar[int]{to, "a whole number", func(_ *decoder, n *yaml.Node) (i int, err error) {
		err = n.Decode(&i)
		return i, err
	}}
}

func boolean(to *bool) value {
	return scalar[bool]{to, "true or false", func(_ *decoder, n *yaml.Node) (b bool, err error) {
		err = n.Decode(&b)
		return b, err
	}}
}

func tlsVersion(to *commoncfg.TLSVersion) value {
	return scalar[commoncfg.TLSVersion]{to, "TLS10, TLS11, TLS12 or TLS13", func(_ *decoder, n *yaml.Node) (commoncfg.TLSVersion, error) {
		version, ok := commoncfg.TLSVersions[n.Value]
		if !ok {
			return 0, errors.ErrUnsupported
		}
		return version, nil
	}}
}

// texts is a mapping whose keys the user chooses.
type texts struct{ to *map[string]string }

func (texts) kind() string { return "a set of names with a text each" }

func (v texts) decode(d *decoder, n *yaml.Node, path string) error {
	if n.Kind != yaml.MappingNode {
		return d.expected(v, n, path)
	}
	pairs, err := d.pairs(n, path)
	if err != nil {
		return err
	}
	*v.to = make(map[string]string, len(pairs))
	for _, p := range pairs {
		var s string
		at := join(path, p.key.Value)
		d.positions[at] = p.key
		if err := text(&s).decode(d, p.value, at); err != nil {
			return err
		}
		(*v.to)[p.key.Value] = s
	}
	return nil
}

// oneOrMore is a text or a list of texts.
type oneOrMore struct{ to *[]string }

func (oneOrMore) kind() string { return "a text or a list" }

func (v oneOrMore) decode(d *decoder, n *yaml.Node, path string) error {
	nodes := n.Content
	if n.Kind != yaml.SequenceNode {
		nodes = []*yaml.Node{n}
	}
	*v.to = make([]string, len(nodes))
	for i, element := range nodes {
		at := path
		if n.Kind == yaml.SequenceNode {
			at = fmt.Sprintf("%s[%d]", path, i)
			d.positions[at] = element
		}
		if err := text(&(*v.to)[i]).decode(d, resolve(element), at); err != nil {
			return err
		}
	}
	return nil
}

// sectionOf is a pointer to T that is a section.
type sectionOf[T any] interface {
	*T
	section
}

// subsection is a section that always exists.
type subsection struct{ section }

func (subsection) kind() string { return "a set of keys" }

func (v subsection) decode(d *decoder, n *yaml.Node, path string) error {
	return d.section(v.section, n, path)
}

// shorthand is a section with one key that can be written alone, in place of the section.
type shorthand struct {
	subsection
	key string
	to  value
}

func (shorthand) kind() string { return "a text or a set of keys" }

func (v shorthand) decode(d *decoder, n *yaml.Node, path string) error {
	if n.Kind != yaml.ScalarNode {
		return v.subsection.decode(d, n, path)
	}
	only := &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: v.key, Line: n.Line}, n}}
	return v.subsection.decode(d, only, path)
}

// optional is a section that is nil if its key is missing.
type optional[T any, P sectionOf[T]] struct{ to **T }

func (optional[T, P]) kind() string { return "a set of keys" }

func (v optional[T, P]) decode(d *decoder, n *yaml.Node, path string) error {
	*v.to = new(T)
	setDefaults(P(*v.to))
	return d.section(P(*v.to), n, path)
}

// list is a list of sections.
type list[T any, P sectionOf[T]] struct{ to *[]T }

func (list[T, P]) kind() string { return "a list" }

func (v list[T, P]) decode(d *decoder, n *yaml.Node, path string) error {
	if n.Kind != yaml.SequenceNode {
		return d.expected(v, n, path)
	}
	*v.to = make([]T, len(n.Content))
	for i, element := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.positions[at] = element
		s := P(&(*v.to)[i])
		setDefaults(s)
		if element = resolve(element); isNull(element) {
			return d.expected(subsection{s}, element, at)
		}
		if err := d.section(s, element, at); err != nil {
			return err
		}
	}
	return nil
}

// nested is a value with its own keys. element returns a section with these keys, and the text
// between the value's path and theirs.
type nested interface {
	element() (s section, suffix string)
}

func (v subsection) element() (section, string)   { return v.section, "" }
func (optional[T, P]) element() (section, string) { return P(new(T)), "" }
func (list[T, P]) element() (section, string)     { return P(new(T)), "[]" }
