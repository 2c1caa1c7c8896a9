package ingest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// PathLabels reads labels from the paths of logs, such as
// {engine}/{buffer_pool}/threads-{threads}.log. Each element of the pattern matches one whole
// element of the path, counted from the end; * matches anything within an element.
type PathLabels struct {
	text  string
	parts []*regexp.Regexp
}

// Facts that a path may have besides labels; see [GeneratorsOf] for generators.
const workloadFact, threadsFact, generatorFact = "workload", "threads", "generator"

var pathPlaceholder = regexp.MustCompile(`\{([^{}]*)\}|\*`)

// ParsePathLabels reads a pattern.
func ParsePathLabels(text string) (*PathLabels, error) {
	p := &PathLabels{text: text}
	var names []string
	for part := range strings.SplitSeq(filepath.ToSlash(text), "/") {
		if part == "" {
			return nil, fmt.Errorf("%q: a part between two / is empty", text)
		}
		expression, at := "^", 0
		for _, m := range pathPlaceholder.FindAllStringSubmatchIndex(part, -1) {
			expression += regexp.QuoteMeta(part[at:m[0]])
			at = m[1]
			if m[2] < 0 { // *
				expression += ".*"
				continue
			}
			name := part[m[2]:m[3]]
			if name != workloadFact && name != threadsFact && name != generatorFact {
				if err := rundir.CheckLabel(name); err != nil {
					return nil, fmt.Errorf("%q: %w", text, err)
				}
			}
			if slices.Contains(names, name) {
				return nil, fmt.Errorf("%q has {%s} twice", text, name)
			}
			names = append(names, name)
			expression += "(?P<" + name + ">.+?)"
		}
		compiled, err := regexp.Compile(expression + regexp.QuoteMeta(part[at:]) + "$")
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		p.parts = append(p.parts, compiled)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%q has no {label}", text)
	}
	return p, nil
}

// String returns the pattern.
func (p *PathLabels) String() string { return p.text }

// Match returns the labels of a path, plus {workload}, {threads} and {generator} under these names;
// false if the path does not match.
func (p *PathLabels) Match(path string) (map[string]string, bool) {
	parts := strings.Split(filepath.ToSlash(filepath.Clean(path)), "/")
	if len(parts) < len(p.parts) {
		return nil, false
	}
	labels := map[string]string{}
	for i, part := range parts[len(parts)-len(p.parts):] {
		m := p.parts[i].FindStringSubmatch(part)
		if m == nil {
			return nil, false
		}
		for j, name := range p.parts[i].SubexpNames() {
			if name != "" {
				labels[name] = m[j]
			}
		}
	}
	return labels, true
}

// withoutGenerator returns a path without the part that {generator} matches; false if the pattern
// has no {generator} or the path does not match.
func (p *PathLabels) withoutGenerator(path string) (string, bool) {
	if _, ok := p.Match(path); !ok {
		return "", false
	}
	parts := strings.Split(filepath.ToSlash(filepath.Clean(path)), "/")
	own := parts[len(parts)-len(p.parts):]
	for i, e := range p.parts {
		if at := e.SubexpIndex(generatorFact); at >= 0 {
			m := e.FindStringSubmatchIndex(own[i])
			own[i] = own[i][:m[2*at]] + "{}" + own[i][m[2*at+1]:]
			return strings.Join(parts, "/"), true
		}
	}
	return "", false
}
