// Package yaml stands in for go.yaml.in/yaml/v2, with which prometheus/common and exporter-toolkit
// read their files. They are read here with the version that the agent reads its own configuration
// with: two libraries for YAML take 0.3 MB more.
package yaml

import (
	"bytes"
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"
)

type (
	// Marshaler is a value that is written as another one.
	Marshaler interface{ MarshalYAML() (any, error) }
	// Unmarshaler is a value that reads itself.
	Unmarshaler interface {
		UnmarshalYAML(unmarshal func(any) error) error
	}
)

// Marshal returns a value as YAML.
func Marshal(in any) ([]byte, error) { return yaml.Dump(in, yaml.WithV2Defaults()) }

// UnmarshalStrict reads a document. It fails if a key is unknown or occurs twice. A document of
// comments changes nothing.
func UnmarshalStrict(in []byte, out any) error {
	for line := range bytes.Lines(in) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			if err := yaml.Load(in, out, yaml.WithV2Defaults(), yaml.WithKnownFields()); err != nil {
				return errors.New(strings.Replace(err.Error(), "construct errors", "unmarshal errors", 1)) // the original's words
			}
			return nil
		}
	}
	return nil
}
