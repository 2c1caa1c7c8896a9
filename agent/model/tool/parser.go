package tool

import "bytes"

// Stream is where a line came from.
type Stream uint8

const (
	Stdout Stream = iota
	Stderr
)

// Line is one line of a tool's output.
type Line struct {
	Stream Stream
	// Text is without its line end; any bytes may be in it.
	Text []byte
	// Cut: the line was longer than the reader's limit and Text is only its
	// beginning. Such a line can't be trusted to hold values.
	Cut bool
}

// Verdict is what a parser made of a line.
type Verdict uint8

const (
	// Ignored: nothing of interest; progress texts, banners, statistics that
	// no report carries.
	Ignored Verdict = iota
	// Reported: the line is (part of) a report.
	Reported
	// Malformed: the line looks like a report but isn't quite: cut,
	// interleaved, a number out of range. No value was taken from it.
	Malformed
)

// Parser turns the lines of one output into reports. Lines of one stream come in
// order; how the two streams interleave is unknown (after a restart they are read
// one after the other), so that a parser's reports of a stream must not depend on
// it. A parser's memory is bounded whatever its input; it never blocks and never
// panics. It is used by one goroutine.
type Parser interface {
	// Parse takes the next line. emit is called for each report that it
	// completes, the *Report is valid during that call only.
	Parse(line Line, emit func(*Report)) Verdict
	// Close ends the output: what was held back is emitted.
	Close(emit func(*Report))
}

// ParseAll parses text, one stream of an output, to its end.
func ParseAll(p Parser, stream Stream, text []byte, emit func(*Report)) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		p.Parse(Line{Stream: stream, Text: line}, emit)
	}
	p.Close(emit)
}

// Tool is one benchmark tool. The registry lists them all.
type Tool struct {
	// Name as in `--tool`, run_info's label and `parse`'s output.
	Name string

	// Programs are the base names by which the tool is started, such as
	// "sysbench". A name also matches with ".exe", ".sh" or ".py" at its end.
	Programs []string

	// MatchArgs recognises a start by more than the program's base name, such
	// as `java -cp … site.ycsb.Client`; args are the arguments after the name.
	// Nil: Programs alone decide.
	MatchArgs func(base string, args []string) bool

	// Describe reads the arguments after the program's name.
	Describe func(Invocation) Description

	// NewParser returns a parser for one output: both streams of one process, or
	// one log file, for which the description is the zero value. The output takes
	// precedence over the description.
	NewParser func(Description) Parser

	// ReportsOnStderr: what users usually redirect into two files is one output.
	ReportsOnStderr bool

	// OpenLoop reports whether all latencies of a run count from when an
	// operation was due, so that they include the time that it waited for its
	// turn: version is run.json's tool_version, rate that of Describe. Nil
	// means never: latencies count from when an operation began. Operations named
	// with IntendedPrefix include the waiting in any case.
	OpenLoop func(version string, rate int) bool
	// AnyProgram means that the output is of a format, not of one tool, so it is not known
	// from when its latencies count.
	AnyProgram bool

	// CountsFailures reports whether the transactions that a run with this verb
	// reports include the failed ones. Nil means never.
	CountsFailures func(verb string) bool

	// ThreadLog returns what the names of the files have in common that the threads of one
	// process wrote, of which a file with this name and beginning is one; empty if it is none.
	// Nil: the tool's threads write none.
	ThreadLog func(name string, head []byte) string

	// Sniff returns how certain it is, from 0 (not this tool's) to 100, that an
	// output that begins with head is this tool's.
	Sniff func(head []byte) int
}

// Match reports whether base, a program's name without its folder, starts t.
func (t *Tool) Match(base string) bool {
	for _, p := range t.Programs {
		if base == p || base == p+".exe" || base == p+".sh" || base == p+".py" {
			return true
		}
	}
	return false
}

// Flusher is a Parser that may hold back a report although its last line has come,
// because only the next line would show that. Flush is called when no bytes have
// come for a moment. The reports must be the same whenever and however often it is
// called.
type Flusher interface {
	Flush(emit func(*Report))
}
