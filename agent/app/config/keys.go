package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	commoncfg "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v4"
)

// field is a key of a section. A section is a struct whose fields have the tag yaml:"NAME" and perhaps
//
//   - default:"VALUE", as YAML,
//   - text:"path", "file" or "expression", what a text is,
//   - reload:"restart", if a reload does not apply it,
//   - alone:"KEY", if the section can be written as the value of that key.
type field struct {
	name    string
	to      reflect.Value
	kind    string // completes "expected …"
	initial string // the default as YAML; Default sets computed ones
	restart bool
	alone   string
}

// The kinds of keys that decoding distinguishes by their options.
const (
	kindText       = "a text"
	kindExpression = "a regular expression" // which may look like a password
	kindPath       = "a path"               // a relative one is relative to the configuration file
	kindFile       = "a file"               // one that exists
	kindSection    = "a set of keys"
)

func fieldsOf(section reflect.Value) []field {
	var all []field
	for i := range section.NumField() {
		tag := section.Type().Field(i).Tag
		name, isKey := tag.Lookup("yaml")
		if !isKey {
			continue
		}
		f := field{
			name: name, to: section.Field(i), kind: kindOf(section.Field(i).Type()), initial: tag.Get("default"),
			restart: tag.Get("reload") == "restart", alone: tag.Get("alone"),
		}
		if f.alone != "" {
			f.kind = "a text or a set of keys"
		}
		if text := tag.Get("text"); text != "" {
			f.kind = map[string]string{"path": kindPath, "file": kindFile, "expression": kindExpression}[text]
		}
		all = append(all, f)
	}
	return all
}

func kindOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 1s"
	case reflect.TypeFor[commoncfg.TLSVersion]():
		return "TLS10, TLS11, TLS12 or TLS13"
	case reflect.TypeFor[[]string]():
		return "a text or a list"
	}
	return map[reflect.Kind]string{
		reflect.String: kindText, reflect.Int: "a whole number", reflect.Bool: "true or false", reflect.Map: "a set of names with a text each",
		reflect.Struct: kindSection, reflect.Pointer: kindSection, reflect.Slice: "a list",
	}[t.Kind()]
}

// expectedKeys says what a section has instead of an unknown key. A secret is never in the file itself.
func expectedKeys(unknown string, fields []field) string {
	var sources []string
	for _, f := range fields {
		if strings.HasPrefix(f.name, unknown+"_") {
			sources = append(sources, f.name)
		}
	}
	if slices.Contains([]string{"password", "token", "credentials"}, unknown) && len(sources) > 0 {
		return strings.TrimSuffix(unknown, "s") + "s come from " + strings.Join(sources, " or ")
	}
	return "expected one of " + fieldNames(fields)
}

func fieldNames(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// setDefaults sets every key of a section to its default.
func setDefaults(section reflect.Value) {
	for _, f := range fieldsOf(section) {
		if f.to.Kind() == reflect.Struct {
			setDefaults(f.to)
		}
		if f.initial == "" {
			continue
		}
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: f.initial}
		if err := (&decoder{}).value(f, n, f.name); err != nil {
			panic(err) // an error in the declaration
		}
	}
}

// Key is a key of benchwatch.yml, for its documentation.
type Key struct {
	Path    string // such as targets[].tls.ca_file
	Kind    string // kind of its value, such as "a path"
	Default string // as YAML; empty: none, or computed
	Restart bool   // a change needs a restart of the agent
}

// Keys returns all keys in the order of the documentation. Sections and lists come before their keys.
func Keys() []Key { return keysBelow(reflect.ValueOf(Default()).Elem(), "") }

func keysBelow(section reflect.Value, path string) []Key {
	var all []Key
	for _, f := range fieldsOf(section) {
		at := join(path, f.name)
		all = append(all, Key{at, f.kind, f.initial, f.restart})
		t := f.to.Type()
		if t.Kind() == reflect.Slice {
			at += "[]"
		}
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct {
			all = append(all, keysBelow(reflect.New(t).Elem(), at)...)
		}
	}
	return all
}
