package tool

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/prefix"
	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// Fact declares which text of a tool's output is the value of a label. docs/reference/labels.md lists the facts of all tools.
type Fact struct {
	// Label is the name of the label, as Describe names the option.
	Label string
	// Line begins the line, after blanks; empty: Before begins it.
	Line string
	// Before and After enclose the value. It ends with the line if After is empty. Without Line and Before the value begins
	// the line: a number, perhaps with a unit.
	Before, After string
}

// Label is a fact of a run.
type Label struct {
	Name, Value string
	// FromCommand: of a command before the run's output; what the output itself shows has precedence.
	FromCommand bool
}

const (
	// longestFact bounds the value of a label in bytes.
	longestFact = 128
	// mostFacts bounds the labels of one report.
	mostFacts = 64
)

// facts finds the facts of a tool in its lines.
type facts struct {
	tool    *Tool
	first   [256]bool // bytes with which a line that has a fact can begin
	begins  []string  // the text with which a line that has the fact of this index begins
	pending []Label   // not in a report yet
}

func newFacts(t *Tool) facts {
	f := facts{tool: t}
	for _, fact := range t.Facts {
		begin := cmp.Or(fact.Line, fact.Before)
		f.begins = append(f.begins, begin)
		if begin != "" {
			f.first[begin[0]] = true
			continue
		}
		for c := '0'; c <= '9'; c++ {
			f.first[c] = true
		}
	}
	if t.Echo != "" {
		f.first[t.Echo[0]] = true
	}
	return f
}

// read looks for facts in a line.
func (f *facts) read(line []byte) {
	text := line
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	if len(text) == 0 || !f.first[text[0]] {
		return
	}
	if echo, ok := f.echoed(text); ok {
		labels := f.tool.EchoLabels(strings.Fields(string(echo)))
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			f.add(name, labels[name])
		}
		return
	}
	for i, begin := range f.begins {
		if begin != "" && begin[0] != text[0] {
			continue
		}
		fact := &f.tool.Facts[i]
		rest, ok := bytes.CutPrefix(text, []byte(begin))
		if ok && fact.Line != "" {
			_, rest, ok = bytes.Cut(rest, []byte(fact.Before))
		}
		if !ok {
			continue
		}
		value := bytes.TrimRight(rest, " \r")
		if fact.After != "" {
			if value, _, ok = bytes.Cut(rest, []byte(fact.After)); !ok {
				continue
			}
		}
		if begin == "" && (value[0] < '0' || value[0] > '9' || bytes.IndexByte(value, ' ') >= 0) {
			continue
		}
		f.add(fact.Label, strings.TrimSpace(string(withoutRemark(value))))
	}
}

// echoed returns what follows the beginning of a command line that the tool prints.
func (f *facts) echoed(text []byte) (echo []byte, ok bool) {
	if f.tool.Echo == "" {
		return nil, false
	}
	return bytes.CutPrefix(text, []byte(f.tool.Echo))
}

// withoutRemark cuts what a person wrote behind a value.
func withoutRemark(value []byte) []byte {
	for i := 1; i < len(value); i++ {
		if value[i-1] == ' ' && prefix.IsRemark(value[i:]) {
			return value[:i]
		}
	}
	return value
}

// add keeps a label for the next report. A value of 0 is an option that is off, which Describe does not name either.
func (f *facts) add(name, value string) {
	if value == "" || value == "0" || len(value) > longestFact || len(f.pending) >= mostFacts ||
		slices.ContainsFunc(f.pending, func(l Label) bool { return l.Name == name }) {
		return
	}
	f.pending = append(f.pending, Label{Name: name, Value: secret.Value(name, value)})
}

// attach adds the labels that no report has yet to a report of a run.
func (f *facts) attach(r *Report) {
	if len(f.pending) == 0 || r.Kind != Start && r.Kind != Interval && r.Kind != Summary {
		return
	}
	r.Labels, f.pending = append(r.Labels, f.pending...), nil
}
