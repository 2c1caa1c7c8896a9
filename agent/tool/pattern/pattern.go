// Package pattern makes a tool of a user's own regular expressions, for any
// benchmark that prints a line now and then. See docs/patterns.md.
package pattern

import (
	"bytes"
	"strings"

	"github.com/benchwatch/benchwatch/agent/secret"
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/registry"
)

// Config is one entry of `tools` in benchwatch.yml.
type Config struct {
	// Name of the tool, as in `--tool`.
	Name Text
	// Command matches the command line: the program's base name and its
	// arguments, joined by blanks. Its groups may be named threads, workload,
	// target and database.
	Command Text
	// Interval matches the lines that report an interval, Summary those that
	// together are the tool's summary, Error messages of failures. Of several
	// expressions in Interval, the first that matches counts.
	Interval, Summary, Error []Text
	// Units by group, or for all groups of a kind: latency, rate, elapsed,
	// interval.
	Units map[string]Text
}

// Text is a value of the configuration and its line.
type Text struct {
	Text string
	Line int // 0 if it is from no file
}

// Error is a mistake in the configuration.
type Error struct {
	Line int
	// Key is the path of keys, such as tools[0].interval.
	Key     string
	Problem string
}

func (e *Error) Error() string {
	s := e.Key + ": " + e.Problem
	if e.Line > 0 {
		return "line " + itoa(e.Line) + ": " + s
	}
	return s
}

// New returns the tool that c describes. Errors are of type *Error.
func New(c Config) (*tool.Tool, error) { return newTool(c, "tools") }

func newTool(c Config, key string) (*tool.Tool, error) {
	if err := checkName(c.Name, key); err != nil {
		return nil, err
	}
	u := units{key: key, given: c.Units, used: map[string]bool{}}
	command, err := compile(c.Command, key+".command", command, &u)
	if err != nil {
		return nil, err
	}
	p := program{}
	for _, part := range []struct {
		name  string
		texts []Text
		kind  expressionKind
		to    *[]*expression
	}{
		{"interval", c.Interval, interval, &p.interval},
		{"summary", c.Summary, summary, &p.summary},
		{"error", c.Error, failure, &p.failure},
	} {
		for i, text := range part.texts {
			at := key + "." + part.name
			if len(part.texts) > 1 {
				at += "[" + itoa(i) + "]"
			}
			e, err := compile(text, at, part.kind, &u)
			if err != nil {
				return nil, err
			}
			*part.to = append(*part.to, e)
		}
	}
	if len(p.interval)+len(p.summary) == 0 {
		return nil, &Error{c.Name.Line, key, "needs interval or summary, else nothing is ever reported"}
	}
	if err := u.check(); err != nil {
		return nil, err
	}
	name := c.Name.Text
	return &tool.Tool{
		Name:      name,
		MatchArgs: func(base string, args []string) bool { return command.re.MatchString(commandLine(base, args)) },
		Describe:  func(inv tool.Invocation) tool.Description { return describe(command, inv) },
		NewParser: func(tool.Description) tool.Parser { return &parser{program: p, tool: name} },
		Sniff:     p.sniff,
	}, nil
}

func checkName(name Text, key string) error {
	problem := ""
	switch {
	case name.Text == "":
		problem = "needs a name"
	case strings.Trim(name.Text, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || len(name.Text) > 64:
		problem = "a name is of lower-case letters, digits, _ and -"
	case name.Text == "auto" || registry.Tools.ByName(name.Text) != nil:
		problem = "benchwatch has a tool " + name.Text + " of its own; choose another name"
	default:
		return nil
	}
	return &Error{name.Line, key + ".name", problem}
}

// program is the compiled expressions. It is never changed and shared by all
// parsers.
type program struct {
	interval, summary, failure []*expression
}

// sniffed bounds how much of an output is read.
const sniffed = 64 << 10

// sniff is never as certain as a built-in tool: a user's expression may match much.
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

// describe returns what the groups of the command's expression found.
func describe(e *expression, inv tool.Invocation) tool.Description {
	d := tool.Description{Labels: map[string]string{}}
	d.Redacted, d.Secrets = redact(inv.Args)
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
			d.Workload = secret.Text(value)
		case target:
			d.Target = secret.Text(value)
		case database:
			d.Database = secret.Text(value)
		}
	}
	return d
}

// redact blanks what looks like a secret, by the names of options.
func redact(args []string) (redacted, found []string) {
	for i, a := range args {
		name, value, ok := strings.Cut(a, "=")
		switch {
		case ok && value != "" && secret.Name(strings.TrimLeft(name, "-")):
			found = append(found, value)
			a = name + "=" + secret.Blank
		case i > 0 && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "=") && secret.Name(strings.TrimLeft(args[i-1], "-")) &&
			a != "" && a[0] != '-':
			found = append(found, a)
			a = secret.Blank
		default:
			a = secret.Text(a)
		}
		redacted = append(redacted, a)
	}
	return redacted, found
}
