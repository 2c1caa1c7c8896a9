package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	engines "github.com/benchwatch/benchwatch/agent/engine/registry"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool/pattern"
)

// problem is an error at a place in the file, by its path of keys and indexes.
func problem(root *yaml.Node, what string, path ...any) error {
	key := ""
	for _, p := range path {
		switch p := p.(type) {
		case string:
			if key != "" {
				key += "."
			}
			key += p
		case int:
			key += fmt.Sprintf("[%d]", p)
		}
	}
	return fmt.Errorf(":%d: %s: %s", lineOf(root, path), key, what)
}

// lineOf is the line of the deepest part of path that the file has.
func lineOf(node *yaml.Node, path []any) int {
	if node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		node = node.Content[0]
	}
	line := max(node.Line, 1)
	for _, p := range path {
		var next *yaml.Node
		switch p := p.(type) {
		case string:
			for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
				if node.Content[i].Value == p {
					line, next = node.Content[i].Line, node.Content[i+1]
				}
			}
		case int:
			if node.Kind == yaml.SequenceNode && p < len(node.Content) {
				next = node.Content[p]
				line = next.Line
			}
		}
		if next == nil {
			return line
		}
		node = next
	}
	return line
}

func (c *Config) check(root *yaml.Node) error {
	switch {
	case c.DataDir == "":
		return problem(root, "is empty: name a folder", "data_dir")
	case c.SampleInterval < 100*time.Millisecond || c.SampleInterval > time.Hour:
		return problem(root, fmt.Sprintf("%s is out of range: 100ms to 1h, such as 1s", c.SampleInterval), "sample_interval")
	case c.Runs.MaxLive < 1:
		return problem(root, "must be at least 1", "runs", "max_live")
	case c.Runs.MaxKept < 1:
		return problem(root, "must be at least 1", "runs", "max_kept")
	case c.Runs.DrainTimeout < time.Second:
		return problem(root, "must be at least 1s", "runs", "drain_timeout")
	}
	for i := range c.Logs {
		if err := c.checkLog(root, i); err != nil {
			return err
		}
	}
	names := map[string]bool{}
	for i := range c.Targets {
		if err := c.checkTarget(root, i, names); err != nil {
			return err
		}
	}
	if err := checkURL(c.Grafana.URL); err != nil {
		return problem(root, err.Error(), "grafana", "url")
	}
	if c.Grafana.URL != "" && c.Grafana.TokenFile == "" {
		return problem(root, "is missing: a file with a service account token that may write annotations", "grafana", "token_file")
	}
	if err := checkURL(c.Prometheus.URL); err != nil {
		return problem(root, err.Error(), "prometheus", "url")
	}
	return nil
}

func (c *Config) checkLog(root *yaml.Node, i int) error {
	l := c.Logs[i]
	if l.Path == "" {
		return problem(root, "is missing: a file name, * and ? allowed", "logs", i, "path")
	}
	if _, err := filepath.Match(l.Path, ""); err != nil {
		return problem(root, fmt.Sprintf("%q is not a valid pattern", l.Path), "logs", i, "path")
	}
	if l.Tool != "" && c.ToolSet().ByName(l.Tool) == nil {
		return problem(root, fmt.Sprintf("unknown tool %q: use one of %s", l.Tool, c.ToolSet().Names()), "logs", i, "tool")
	}
	if err := rundir.CheckLabels(l.Labels); err != nil {
		return problem(root, err.Error(), "logs", i, "labels")
	}
	return nil
}

func (c *Config) checkTarget(root *yaml.Node, i int, names map[string]bool) error {
	t := c.Targets[i]
	switch {
	case t.Name == "":
		return problem(root, "is missing: a short name, used as label target", "targets", i, "name")
	case names[t.Name]:
		return problem(root, fmt.Sprintf("%q is used twice", t.Name), "targets", i, "name")
	case t.Engine == "":
		return problem(root, "is missing: one of "+strings.Join(engines.Names(), ", "), "targets", i, "engine")
	case engines.ByName(t.Engine) == nil:
		return problem(root, fmt.Sprintf("unknown engine %q: use one of %s", t.Engine, strings.Join(engines.Names(), ", ")), "targets", i, "engine")
	case t.Address == "":
		return problem(root, "is missing: host:port", "targets", i, "address")
	case t.PasswordFile != "" && t.PasswordEnv != "":
		return problem(root, "password_file and password_env are both set: use one", "targets", i, "password_env")
	}
	names[t.Name] = true
	return nil
}

func checkURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("is not an http:// or https:// address")
	case u.User != nil:
		return errors.New("holds a user or password: use a token file")
	}
	return nil
}

var (
	unknownKey  = regexp.MustCompile(`line (\d+): field (\S+) not found in type (\S+)`)
	lineMessage = regexp.MustCompile(`line (\d+): (.*)`)
	wrongType   = regexp.MustCompile("^cannot unmarshal \\S+ (`.*?`)? ?into (.*)$")
)

// yamlError turns the library's message into ":<line>: what is wrong", the
// first one if there are several.
func yamlError(err error) error {
	var own *pattern.Error
	if errors.As(err, &own) {
		return fmt.Errorf(":%d: %s: %s", max(own.Line, 1), own.Key, own.Problem)
	}
	msg := err.Error()
	var typed *yaml.TypeError
	if errors.As(err, &typed) && len(typed.Errors) > 0 {
		msg = typed.Errors[0]
	}
	if m := unknownKey.FindStringSubmatch(msg); m != nil {
		return fmt.Errorf(":%s: unknown key %q: expected one of %s", m[1], m[2], strings.Join(keysOf(m[3]), ", "))
	}
	m := lineMessage.FindStringSubmatch(msg)
	if m == nil {
		return fmt.Errorf(":1: %s", strings.TrimPrefix(msg, "yaml: "))
	}
	what := m[2]
	if w := wrongType.FindStringSubmatch(what); w != nil {
		what = strings.TrimSpace(w[1]+" is not ") + " " + kindOf(w[2])
	}
	return fmt.Errorf(":%s: %s", m[1], what)
}

func kindOf(goType string) string {
	switch {
	case strings.HasSuffix(goType, "Duration"):
		return "a duration such as 1s"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.HasPrefix(goType, "int"):
		return "a whole number"
	case strings.HasPrefix(goType, "map"), strings.Contains(goType, "config."):
		return "a set of keys"
	default:
		return "a " + goType
	}
}

// keysOf lists the keys of one of this package's types, by its printed name.
func keysOf(typeName string) []string {
	var keys []string
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for f := range t.Fields() {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if key == "" {
				continue
			}
			if t.String() == typeName {
				keys = append(keys, key)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Config]())
	slices.Sort(keys)
	return slices.Compact(keys)
}
