package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

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
