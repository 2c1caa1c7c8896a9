// Package rules reads Prometheus' rules. Its tests run promtool on <Alert>_test.yml and
// <file>.recording_test.yml, check that no alert lacks a test or a runbook, and, with
// -mutate, break every rule in many ways and expect those tests to notice.
package rules

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v4"
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
	KeepFiring  string            `yaml:"keep_firing_for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// Name returns the rule's name, whichever kind it is.
func (r Rule) Name() string { return r.Alert + r.Record }

// Load reads all files of rules below the project's root. It is an error if there are none.
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
			var file File
			decoder := yaml.NewDecoder(bytes.NewReader(text))
			decoder.KnownFields(true) // a field that is lost changes the rule
			if err := decoder.Decode(&file); err != nil {
				return nil, fmt.Errorf("read rules in %s: %w", path, err)
			}
			if file.Path, err = filepath.Rel(root, path); err != nil {
				return nil, fmt.Errorf("read rules: %w", err)
			}
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no rules found")
	}
	return files, nil
}

// All reads the rules of all files.
func All(root string) ([]Rule, error) {
	files, err := Load(root)
	if err != nil {
		return nil, err
	}
	var all []Rule
	for _, file := range files {
		for _, group := range file.Groups {
			all = append(all, group.Rules...)
		}
	}
	return all, nil
}
