package pattern

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// expression is a compiled regular expression with the meaning of its groups.
type expression struct {
	re     *regexp.Regexp
	fields []field
}

// expressionKind is the purpose of an expression; it decides which groups it may have.
type expressionKind string

const (
	command  expressionKind = "command"
	interval expressionKind = "interval"
	summary  expressionKind = "summary"
	failure  expressionKind = "error"
)

// field is a named group.
type field struct {
	group     int // its index
	kind      fieldKind
	operation string
	stat      string
	unit      unit
}

type fieldKind uint8

const (
	elapsed fieldKind = iota
	length            // length of the interval
	threads
	rate
	count
	latency
	tpmC
	messageText
	workload
	target
	database
)

// plain are the groups that do not belong to an operation, and the expressions that may contain
// them.
var plain = map[string]struct {
	kind fieldKind
	in   string
}{
	"elapsed":  {elapsed, "interval summary"},
	"interval": {length, "interval"},
	"threads":  {threads, "interval summary command"},
	"tpmc":     {tpmC, "summary"},
	"message":  {messageText, "error"},
	"workload": {workload, "command"},
	"target":   {target, "command"},
	"database": {database, "command"},
}

var (
	operationName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	latencyGroup  = regexp.MustCompile(`^latency_(.+)_(min|avg|max|p[0-9]+(?:_[0-9]+)?)$`)
)

// compile checks an expression and its groups.
func compile(text, key string, kind expressionKind, u *units) (*expression, error) {
	fail := func(format string, args ...any) error {
		return &Error{key, fmt.Sprintf(format, args...)}
	}
	if text == "" {
		return nil, fail("needs a regular expression")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fail("%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if kind != command && re.MatchString("") {
		return nil, fail("this matches an empty line, and so any line")
	}
	e := &expression{re: re}
	values := 0
	seen := map[string]bool{}
	for i, name := range re.SubexpNames() {
		if name == "" {
			continue
		}
		if seen[name] {
			return nil, fail("group %q is there twice", name)
		}
		seen[name] = true
		f, problem := newField(name, kind)
		if problem != "" {
			return nil, fail("%s", problem)
		}
		f.group = i
		if f.unit, problem = u.of(name, f.kind); problem != "" {
			return nil, fail("%s", problem)
		}
		if f.kind == rate || f.kind == count || f.kind == latency || f.kind == tpmC {
			values++
		}
		e.fields = append(e.fields, f)
	}
	if kind == interval && values == 0 {
		return nil, fail("needs a group that holds a value, such as (?P<rate_transaction>[0-9.]+)")
	}
	if kind == summary && len(e.fields) == 0 {
		return nil, fail("needs a named group, such as (?P<count_transaction>[0-9]+)")
	}
	return e, nil
}

// newField reads a group's name.
func newField(name string, kind expressionKind) (f field, problem string) {
	if p, ok := plain[name]; ok {
		if !strings.Contains(" "+p.in+" ", " "+string(kind)+" ") {
			return f, fmt.Sprintf("group %q has no meaning in %s: %s", name, kind, expected(kind))
		}
		return field{kind: p.kind}, ""
	}
	if kind == interval || kind == summary {
		operation, ok := strings.CutPrefix(name, "rate_")
		f.kind = rate
		if !ok {
			operation, ok = strings.CutPrefix(name, "count_")
			f.kind = count
		}
		if !ok {
			if m := latencyGroup.FindStringSubmatch(name); m != nil {
				f.kind, operation, ok = latency, m[1], true
				f.stat = strings.ReplaceAll(m[2], "_", ".")
			} else if strings.HasPrefix(name, "latency_") {
				return f, fmt.Sprintf("group %q: a latency is called latency_<operation>_<statistic>, the statistic min, avg, max or a percentile such as p95 or p99_9", name)
			}
		}
		if ok && operationName.MatchString(operation) {
			f.operation = operation
			return f, ""
		}
	}
	return f, fmt.Sprintf("unknown group %q: %s", name, expected(kind))
}

func expected(kind expressionKind) string {
	switch kind {
	case command:
		return "expected threads, workload, target or database"
	case failure:
		return "expected message"
	case summary:
		return "expected elapsed, threads, tpmc, rate_<operation>, count_<operation> or latency_<operation>_<statistic>"
	}
	return "expected elapsed, interval, threads, rate_<operation>, count_<operation> or latency_<operation>_<statistic>"
}

// atoi reads a small number, such as a number of threads.
func atoi(s string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	return n, err == nil && n >= 0
}
