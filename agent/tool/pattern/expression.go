package pattern

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// expression is a compiled regular expression and what its groups mean.
type expression struct {
	re     *regexp.Regexp
	fields []field
}

// expressionKind is what an expression is for; it decides which groups it may
// have.
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
	length            // of the interval
	threads
	rate
	count
	latency
	tpmC
	message
	workload
	target
	database
)

// plain are the groups that are about no operation, and where they may be.
var plain = map[string]struct {
	kind fieldKind
	in   string
}{
	"elapsed":  {elapsed, "interval summary"},
	"interval": {length, "interval"},
	"threads":  {threads, "interval summary command"},
	"tpmc":     {tpmC, "summary"},
	"message":  {message, "error"},
	"workload": {workload, "command"},
	"target":   {target, "command"},
	"database": {database, "command"},
}

var (
	operationName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	latencyGroup  = regexp.MustCompile(`^latency_(.+)_(min|avg|max|p[0-9]+(?:_[0-9]+)?)$`)
)

// compile checks an expression and its groups.
func compile(text Text, key string, kind expressionKind, u *units) (*expression, error) {
	fail := func(format string, args ...any) error {
		return &Error{text.Line, key, fmt.Sprintf(format, args...)}
	}
	if text.Text == "" {
		return nil, fail("needs a regular expression")
	}
	re, err := regexp.Compile(text.Text)
	if err != nil {
		return nil, fail("%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if !canMatch(text.Text) {
		return nil, fail("this can match no line: a text before ^ or behind $, a line end, or a class without characters")
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

// canMatch reports whether there is a line that text matches. It walks the
// expression's automaton with all that matters of a position: whether a
// character stands before it, and whether the line has to end here.
func canMatch(text string) bool {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return false
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return false
	}
	type position struct {
		pc           uint32
		moved, ended bool
	}
	todo := []position{{uint32(prog.Start), false, false}, {uint32(prog.Start), true, false}}
	seen := map[position]bool{}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[p] {
			continue
		}
		seen[p] = true
		inst := &prog.Inst[p.pc]
		next := position{inst.Out, p.moved, p.ended}
		switch inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstFail:
			continue
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, position{inst.Arg, p.moved, p.ended})
		case syntax.InstEmptyWidth:
			op := syntax.EmptyOp(inst.Arg)
			if op&(syntax.EmptyBeginText|syntax.EmptyBeginLine) != 0 && p.moved {
				continue
			}
			next.ended = p.ended || op&(syntax.EmptyEndText|syntax.EmptyEndLine) != 0
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if p.ended || !takes(inst) {
				continue
			}
			next.moved = true
		}
		todo = append(todo, next)
	}
	return false
}

// takes reports whether inst takes any character that a line can hold.
func takes(inst *syntax.Inst) bool {
	if inst.Op == syntax.InstRuneAny || inst.Op == syntax.InstRuneAnyNotNL {
		return true
	}
	if len(inst.Rune) == 0 {
		return false
	}
	if len(inst.Rune) == 1 {
		return inst.Rune[0] != '\n'
	}
	for i := 0; i+1 < len(inst.Rune); i += 2 {
		if inst.Rune[i] != '\n' || inst.Rune[i+1] != '\n' {
			return true
		}
	}
	return false
}

func itoa(n int) string { return strconv.Itoa(n) }

// atoi reads a number of threads and the like.
func atoi(s string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	return n, err == nil && n >= 0
}
