package tool

import (
	"bytes"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/prefix"
)

// Front comes before the parser of one output, wherever a log is read. It removes what other programs put before the
// lines (package prefix). In a log with lines of several containers it passes those of the first container whose output
// the parser understands, so that nothing is counted twice. From the reports it removes numbers that no run can have, and
// their line is Malformed; it adds the throughput to those without one. One goroutine uses it.
type Front struct {
	// Written is about when the log was written; it completes dates without a year. Zero: now.
	Written time.Time
	// Before, if not nil, is called before the parser gets a line, with the time in the line's prefix or at the beginning
	// of its text; it is zero if there is none.
	Before func(stamp time.Time)

	parser    Parser
	strippers [2]prefix.Stripper // by stream
	source    []byte             // empty: none so far
	others    []string           // containers whose lines were left out, at most mostOthers
	command   command
	emit      func(*Report) // of the current call
	take      func(*Report)
	facts     facts
	damaged   bool // a report of the current line had an impossible number
}

// NewFront returns a Front of a new parser.
func (t *Tool) NewFront(d Description) *Front {
	f := &Front{
		parser: t.NewParser(d), facts: newFacts(t), command: command{tool: t},
		strippers: [2]prefix.Stripper{t.NewStripper(), t.NewStripper()},
	}
	f.take = func(r *Report) {
		kept, damaged := r.dropImpossible()
		f.damaged = f.damaged || damaged
		if kept {
			r.completeTransaction()
			f.facts.attach(r)
			f.command.complete(r, f.emit)
			f.emit(r)
		}
	}
	return f
}

// NewStripper returns what removes prefixes from the lines of a log of this tool.
func (t *Tool) NewStripper() prefix.Stripper {
	return prefix.Stripper{Keep: t.OwnTime, Margin: t.Margin}
}

// flushingFront is a Front of a Flusher.
type flushingFront struct{ *Front }

// Flush implements Flusher.
func (f flushingFront) Flush(emit func(*Report)) {
	f.emit = emit
	f.parser.(Flusher).Flush(f.take)
}

// Parser returns f as a Parser, which is a Flusher if the tool's parser is one.
func (f *Front) Parser() Parser {
	if _, ok := f.parser.(Flusher); ok {
		return flushingFront{f}
	}
	return f
}

// Parse implements Parser.
func (f *Front) Parse(l Line, emit func(*Report)) Verdict {
	stripper := &f.strippers[l.Stream]
	stripper.Written = f.Written
	return f.ParseStripped(l, stripper.Strip(l.Text), emit)
}

// ParseStripped is Parse for a line whose prefix the caller has removed, by a stripper of this log from NewStripper.
func (f *Front) ParseStripped(l Line, stripped *prefix.Line, emit func(*Report)) Verdict {
	if len(f.source) > 0 && len(stripped.Source) > 0 && !bytes.Equal(f.source, stripped.Source) {
		f.leaveOut(stripped.Source)
		return Ignored
	}
	if l.Text = stripped.Text; f.Before != nil {
		stamp := stripped.Time
		if stamp.IsZero() {
			stamp, _ = LineTime(l.Text)
		}
		f.Before(stamp)
	}
	f.emit, f.damaged = emit, false
	f.command.age++
	if !l.Cut {
		f.facts.read(l.Text)
	}
	verdict := f.parser.Parse(l, f.take)
	if verdict == Ignored && !l.Cut {
		f.command.read(l.Text)
	}
	if verdict == Reported && len(f.source) == 0 {
		f.source = append(f.source, stripped.Source...)
	}
	if f.damaged {
		return Malformed
	}
	return verdict
}

// Close implements Parser.
func (f *Front) Close(emit func(*Report)) {
	f.emit = emit
	f.parser.Close(f.take)
}

// mostOthers bounds the names of containers that are kept.
const mostOthers = 8

func (f *Front) leaveOut(source []byte) {
	if len(f.others) < mostOthers && !slices.ContainsFunc(f.others, func(known string) bool { return known == string(source) }) {
		f.others = append(f.others, string(source))
	}
}

// LeftOut returns the containers whose lines were left out.
func (f *Front) LeftOut() []string { return slices.Clone(f.others) }
