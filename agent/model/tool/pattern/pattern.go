// Package pattern defines a tool by a user's own regular expressions, for any benchmark that prints
// progress lines. See docs/patterns.md.
package pattern

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

// Config is one entry of `tools` in benchwatch.yml.
type Config struct {
	// Name of the tool, as in `--tool`.
	Name string
	// Command matches the command line: the program's base name and its arguments, joined by
	// blanks. It may have the groups threads, workload, target and database.
	Command string
	// Interval matches lines that report an interval, Summary the lines that form the tool's
	// summary, Error messages of failures. If several expressions of Interval match, the first one
	// counts.
	Interval, Summary, Error []string
	// Units by group, or by kind of group: latency, rate, elapsed, interval.
	Units map[string]string
}

// Error is a mistake in a [Config].
type Error struct {
	// Key is the path of keys below the tool, such as interval[1]; empty if the mistake concerns
	// the whole tool.
	Key     string
	Problem string
}

func (e *Error) Error() string { return strings.TrimPrefix(e.Key+": "+e.Problem, ": ") }

// New returns the tool that c describes. Its errors have type *Error.
func New(c Config) (*tool.Tool, error) {
	if err := checkName(c.Name); err != nil {
		return nil, err
	}
	u := units{given: c.Units, used: map[string]bool{}}
	command, err := compile(c.Command, "command", command, &u)
	if err != nil {
		return nil, err
	}
	p := program{}
	for _, part := range []struct {
		texts []string
		kind  expressionKind
		to    *[]*expression
	}{{c.Interval, interval, &p.interval}, {c.Summary, summary, &p.summary}, {c.Error, failure, &p.failure}} {
		for i, text := range part.texts {
			key := string(part.kind)
			if len(part.texts) > 1 {
				key = fmt.Sprintf("%s[%d]", key, i)
			}
			e, err := compile(text, key, part.kind, &u)
			if err != nil {
				return nil, err
			}
			*part.to = append(*part.to, e)
		}
	}
	if len(p.interval)+len(p.summary) == 0 {
		return nil, &Error{"", "needs interval or summary, else nothing is ever reported"}
	}
	if err := u.check(); err != nil {
		return nil, err
	}
	return &tool.Tool{
		Name:      c.Name,
		MatchArgs: func(base string, args []string) bool { return command.re.MatchString(commandLine(base, args)) },
		Describe:  func(inv tool.Invocation) tool.Description { return describe(command, inv) },
		NewParser: func(tool.Description) tool.Parser { return &parser{program: p} },
		Sniff:     p.sniff,
	}, nil
}

func checkName(name string) error {
	problem := ""
	switch {
	case name == "":
		problem = "needs a name"
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || len(name) > 64:
		problem = "a name is of lower-case letters, digits, _ and -"
	case name == "auto" || registry.Tools.ByName(name) != nil:
		problem = "benchwatch has a tool " + name + " of its own; choose another name"
	default:
		return nil
	}
	return &Error{"name", problem}
}

// program is the set of compiled expressions. It is immutable; all parsers share it.
type program struct {
	interval, summary, failure []*expression
}

// sniffed is the number of bytes of an output that are examined.
const sniffed = 64 << 10

// sniff is always less certain than a built-in tool, since a user's expression may match a lot.
func (p *program) sniff(head []byte) int {
	head = head[:min(len(head), sniffed)]
	score := 0
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		if first(p.interval, line) != nil {
			return 55
		}
		if first(p.summary, line) != nil {
			score = 45
		}
	}
	return score
}

func first(list []*expression, line []byte) *expression {
	for _, e := range list {
		if e.re.Match(line) {
			return e
		}
	}
	return nil
}

func commandLine(base string, args []string) string {
	return strings.Join(append([]string{base}, args...), " ")
}

// describe returns the facts that the groups of the command's expression found.
func describe(e *expression, inv tool.Invocation) tool.Description {
	d := tool.Description{Labels: map[string]string{}}
	line := commandLine(inv.Program, inv.Args)
	m := e.re.FindStringSubmatchIndex(line)
	for _, f := range e.fields {
		if m == nil || m[2*f.group] < 0 {
			continue
		}
		value := line[m[2*f.group]:m[2*f.group+1]]
		switch f.kind {
		case threads:
			d.Threads, _ = atoi(value)
		case workload:
			d.Workload = value
		case target:
			d.Target = value
		case database:
			d.Database = value
		}
	}
	return d
}
