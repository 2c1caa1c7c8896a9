package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	rules "github.com/benchwatch/benchwatch/tests/rules"
	"go.yaml.in/yaml/v3"
)

// mutant is one rule, broken in one way.
type mutant struct {
	file, group, index int
	name               string
	breakage           breakage
}

func (m mutant) String() string { return m.name + ": " + m.breakage.what }

// bench runs promtool against broken rules. It changes nothing after
// newBench and may be used by several goroutines.
type bench struct {
	promtool string
	files    []rules.File
	// tests are the promtool tests by the file of rules that they load.
	tests map[string][]string
}

func newBench(files []rules.File) (*bench, error) {
	b := &bench{promtool: "promtool", files: files, tests: map[string][]string{}}
	if tool := os.Getenv("PROMTOOL"); tool != "" {
		b.promtool = tool
	}
	paths, err := filepath.Glob(filepath.Join(root, "tests/rules/*_test.yml"))
	if err != nil {
		return nil, fmt.Errorf("list tests: %w", err)
	}
	// Those of recording rules first: they are the likeliest to notice a break.
	slices.SortStableFunc(paths, func(a, b string) int {
		return cmp.Compare(rank(a), rank(b))
	})
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read test: %w", err)
		}
		var test struct {
			Files []string `yaml:"rule_files"`
		}
		if err := yaml.Unmarshal(text, &test); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		for _, file := range test.Files {
			loaded := filepath.Clean(filepath.Join("tests/rules", file))
			b.tests[loaded] = append(b.tests[loaded], path)
		}
	}
	return b, nil
}

func rank(test string) int {
	if strings.HasSuffix(test, ".recording_test.yml") {
		return 0
	}
	return 1
}

// noticed reports whether a test fails with the broken rule.
func (b *bench) noticed(m mutant) (bool, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, fmt.Errorf("make a folder for broken rules: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := b.write(dir, m); err != nil {
		return false, err
	}
	for _, path := range b.testsOf(m) {
		text, err := os.ReadFile(path)
		if err != nil {
			return false, fmt.Errorf("read test: %w", err)
		}
		copied := filepath.Join(dir, filepath.Base(path))
		moved := strings.ReplaceAll(string(text), "  - ../../", "  - "+dir+"/")
		if err := os.WriteFile(copied, []byte(moved), 0o600); err != nil {
			return false, fmt.Errorf("copy test: %w", err)
		}
		out, err := exec.Command(b.promtool, "test", "rules", copied).CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
			continue
		case errors.As(err, &exit):
			return true, nil
		default:
			return false, fmt.Errorf("run promtool: %w: %s", err, out)
		}
	}
	return false, nil
}

// testsOf lists the tests that can notice m: an alert's own (<Alert>_test.yml and
// <Alert>.<case>_test.yml), or, for a recording rule, all tests that load it.
func (b *bench) testsOf(m mutant) []string {
	loading := b.tests[b.files[m.file].Path]
	rule := b.files[m.file].Groups[m.group].Rules[m.index]
	if rule.Alert == "" {
		return loading
	}
	var own []string
	for _, path := range loading {
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), "_test.yml"), ".")
		if name == rule.Alert {
			own = append(own, path)
		}
	}
	return own
}

// write puts all rules into dir, with m's broken.
func (b *bench) write(dir string, m mutant) error {
	for f, file := range b.files {
		if f == m.file {
			file = withBroken(file, m)
		}
		path := filepath.Join(dir, file.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("write broken rules: %w", err)
		}
		text, err := yaml.Marshal(file)
		if err != nil {
			return fmt.Errorf("write broken rules: %w", err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return fmt.Errorf("write broken rules: %w", err)
		}
	}
	return nil
}

// withBroken copies file as far as it changes.
func withBroken(file rules.File, m mutant) rules.File {
	groups := append([]rules.Group(nil), file.Groups...)
	changed := append([]rules.Rule(nil), groups[m.group].Rules...)
	changed[m.index] = m.breakage.rule
	groups[m.group].Rules = changed
	file.Groups = groups
	return file
}
