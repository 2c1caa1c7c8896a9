// Package rules holds the tests of Prometheus' rules: promtool tests in
// <Alert>_test.yml, the tests of their completeness, and the program `mutate`,
// which breaks the rules and expects those tests to notice.
package rules

import (
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// File is a file of rules, as Prometheus reads it.
type File struct {
	// Path is relative to the project's root.
	Path   string  `yaml:"-"`
	Groups []Group `yaml:"groups"`
}

// Group is a group of rules that Prometheus evaluates in order.
type Group struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval,omitempty"`
	Rules    []Rule `yaml:"rules"`
}

// Rule is a recording rule (Record) or an alert (Alert).
type Rule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// Name is the rule's, whichever kind it is.
func (r *Rule) Name() string { return r.Alert + r.Record }

// Load reads all files of rules below the project's root.
func Load(root string) ([]File, error) {
	var files []File
	for _, glob := range []string{"prometheus/rules/*.yml", "alerts/*.rules.yml"} {
		paths, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil {
			return nil, fmt.Errorf("list rules: %w", err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("read rules: %w", err)
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return nil, fmt.Errorf("read rules: %w", err)
			}
			file := File{Path: relative}
			if err := yaml.Unmarshal(text, &file); err != nil {
				return nil, fmt.Errorf("read rules in %s: %w", relative, err)
			}
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no rules below %s", root)
	}
	return files, nil
}
