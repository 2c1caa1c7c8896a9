package pattern

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/tool"
)

// Tools is the list `tools` of benchwatch.yml. Reading it checks it.
type Tools []Config

// UnmarshalYAML reads and checks the list. Errors are of type *Error.
func (t *Tools) UnmarshalYAML(node *yaml.Node) error {
	node = resolve(node)
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		*t = nil
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		return &Error{node.Line, "tools", "expected a list of tools"}
	}
	list := make(Tools, len(node.Content))
	for i, n := range node.Content {
		key := fmt.Sprintf("tools[%d]", i)
		if err := list[i].decode(n, key); err != nil {
			return err
		}
		for _, other := range list[:i] {
			if other.Name.Text == list[i].Name.Text {
				return &Error{list[i].Name.Line, key + ".name", "there is another tool " + other.Name.Text}
			}
		}
	}
	*t = list
	return nil
}

// New returns the tools of the list.
func (t Tools) New() ([]*tool.Tool, error) {
	var all []*tool.Tool
	for i, c := range t {
		one, err := newTool(c, fmt.Sprintf("tools[%d]", i))
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// UnmarshalYAML reads and checks one entry. Errors are of type *Error.
func (c *Config) UnmarshalYAML(node *yaml.Node) error { return c.decode(node, "tools") }

// Key is a key of a tool in the list, for its documentation.
type Key struct{ Name, Kind, Doc string }

// Keys are the keys of a tool.
var Keys = []Key{
	{"name", "a text", "Name of the tool: lower-case letters, digits, `_` and `-`. Required"},
	{"command", "a text", "Matches the command line of the tool. Required"},
	{"interval", "a text or a list", "Matches the lines that report an interval"},
	{"summary", "a text or a list", "Matches the lines of the final figures. `interval` or `summary` is required"},
	{"error", "a text or a list", "Matches messages of failures"},
	{"units", "a set of names with a text each", "Units of the groups"},
}

func keyNames() string {
	names := make([]string, len(Keys))
	for i, k := range Keys {
		names[i] = k.Name
	}
	return strings.Join(names, ", ")
}

func (c *Config) decode(node *yaml.Node, key string) error {
	node = resolve(node)
	if node.Kind != yaml.MappingNode {
		return &Error{node.Line, key, "expected a set of keys: " + keyNames()}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, v := node.Content[i], resolve(node.Content[i+1])
		at := key + "." + k.Value
		if seen[k.Value] {
			return &Error{k.Line, at, "is there twice"}
		}
		seen[k.Value] = true
		var err error
		switch k.Value {
		case "name":
			c.Name, err = text(v, at)
		case "command":
			c.Command, err = text(v, at)
		case "interval":
			c.Interval, err = texts(v, at)
		case "summary":
			c.Summary, err = texts(v, at)
		case "error":
			c.Error, err = texts(v, at)
		case "units":
			c.Units, err = mapping(v, at)
		default:
			err = &Error{k.Line, at, "unknown key: expected one of " + keyNames()}
		}
		if err != nil {
			return err
		}
	}
	for _, needed := range []struct {
		name string
		text *Text
	}{{"name", &c.Name}, {"command", &c.Command}} {
		if !seen[needed.name] {
			return &Error{node.Line, key, "needs " + needed.name}
		}
	}
	_, err := newTool(*c, key)
	return err
}

// resolve follows an alias to its anchor.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

func text(node *yaml.Node, key string) (Text, error) {
	if node.Kind != yaml.ScalarNode {
		return Text{}, &Error{node.Line, key, "expected a text"}
	}
	return Text{Text: node.Value, Line: node.Line}, nil
}

// texts reads one text or a list of them.
func texts(node *yaml.Node, key string) ([]Text, error) {
	if node.Kind != yaml.SequenceNode {
		one, err := text(node, key)
		return []Text{one}, err
	}
	all := make([]Text, len(node.Content))
	for i, n := range node.Content {
		var err error
		if all[i], err = text(resolve(n), fmt.Sprintf("%s[%d]", key, i)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func mapping(node *yaml.Node, key string) (map[string]Text, error) {
	if node.Kind != yaml.MappingNode {
		return nil, &Error{node.Line, key, "expected units by group, such as {latency: ms}"}
	}
	all := map[string]Text{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		one, err := text(resolve(node.Content[i+1]), key+"."+name)
		if err != nil {
			return nil, err
		}
		if _, twice := all[name]; twice {
			return nil, &Error{node.Content[i].Line, key + "." + name, "is there twice"}
		}
		all[name] = one
	}
	return all, nil
}
