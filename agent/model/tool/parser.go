package tool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/prefix"
	"github.com/benchwatch/benchwatch/agent/base/series"
)

// Stream is the origin of a line.
type Stream uint8

const (
	Stdout Stream = iota
	Stderr
)

// Line is one line of a tool's output.
type Line struct {
	Stream Stream
	// Text is the line without its line end. It may contain any bytes.
	Text []byte
	// Cut: the line exceeded the reader's limit and Text is its beginning. Values in such a line
	// are not reliable.
	Cut bool
}

// Verdict is how a parser classified a line.
type Verdict uint8

const (
	// Ignored: irrelevant, such as progress texts, banners, and statistics that no report contains.
	Ignored Verdict = iota
	// Reported: the line is (part of) a report.
	Reported
	// Malformed: the line resembles a report but is damaged: cut, interleaved, or with a number out
	// of range. The parser took no value from it.
	Malformed
)

// Parser turns the lines of one output into reports. The lines of a stream come in order, but how
// both streams interleave is unknown (after a restart one is read after the other), so the reports
// of one stream must not depend on the other. For any input a parser's memory is bounded, and it
// never blocks or panics. One goroutine uses it.
type Parser interface {
	// Parse takes the next line. It calls emit for each report that is now complete; the *Report is
	// valid only during that call.
	Parse(line Line, emit func(*Report)) Verdict
	// Close ends the output and emits what was held back.
	Close(emit func(*Report))
}

// ParseAll parses the complete text of one stream.
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
	// Name for `--tool`, run_info's label and the output of `parse`.
	Name string

	// Programs are the base names of programs that start the tool, such as "sysbench". A name also
	// matches with the suffix ".exe", ".sh" or ".py".
	Programs []string

	// MatchArgs recognises a start that the program's base name alone does not reveal, such as
	// `java -cp … site.ycsb.Client`. args are the arguments after the name. Nil: Programs alone
	// decide.
	MatchArgs func(base string, args []string) bool

	// Describe reads the arguments after the program's name.
	Describe func(Invocation) Description

	// Login returns how the tool logs in, given its arguments with their secrets. Its result must not reach a
	// fact. Nil: only the password is known, if it is the only secret among the arguments.
	Login func(Invocation) Login

	// NewParser returns a parser for one output: both streams of one process, or one log file,
	// whose description is the zero value. The output takes precedence over the description.
	NewParser func(Description) Parser

	// ReportsOnStderr: the two streams, which users usually redirect into two files, form one
	// output.
	ReportsOnStderr bool

	// OwnTime reports whether a line begins with a time that the tool itself prints, which is then no prefix of another
	// program. Nil: none does.
	OwnTime func(line []byte) bool

	// Margin are texts that the tool prints at the beginning of a line and never indents, by which a part of a log with more
	// indentation than the lines before is recognised. An empty text: the tool indents nothing that the parser reads.
	Margin []string

	// Facts are what the tool prints about a run and its parser does not report. They become labels.
	Facts []Fact
	// Echo begins a line in which the tool repeats its options; EchoLabels returns their labels. Empty: it does not.
	Echo       string
	EchoLabels func(options []string) map[string]string

	// Pasted describes the command that starts the tool in a line of its output, as terminals and scripts leave it there.
	// Nil: no command is recognised. The registry sets it.
	Pasted func(t *Tool, line string) (Description, bool)

	// Unread are forms of the tool's output that it does not read.
	Unread []Unread

	// OpenLoop reports whether all latencies of a run count from the time at which an operation was
	// due, so that they include its waiting time. version is tool_version of run.json, rate the
	// Rate of Describe. Nil: never; latencies count from the start of an operation. Latencies of
	// operations named with IntendedPrefix always include the waiting time.
	OpenLoop func(version string, rate int) bool
	// AskPercentile returns the option that makes the tool print a percentile such as p99 in its intervals; empty if there
	// is none. Nil: it prints the ones that it prints.
	AskPercentile func(name string) string
	// AnyProgram: the output is in a format that many programs write, so it is unknown when the
	// latencies begin to count.
	AnyProgram bool

	// CountsFailures reports whether the transactions of a run with this verb include failed ones.
	// Nil: never.
	CountsFailures func(verb string) bool

	// ThreadLog returns the common part of the names of files that the threads of one process
	// wrote, given the name and the beginning of one of these files; empty if the file is not one.
	// Nil: the tool's threads write no files.
	ThreadLog func(name string, head []byte) string

	// JoinThreads writes the intervals that such files of one process have as one stream, which the parser reads as
	// standard error beside the summary. It fails for files without intervals. Nil: they have none.
	JoinThreads func(ctx context.Context, w io.Writer, logs []io.Reader) error

	// SideFile recognises a file that the tool writes about a run beside its output, given the file's name and beginning:
	// the common part of the names of the run's files, which its output may show as Report.Files, and what the file has.
	// The common part is empty if it is no such file. Nil: the tool writes none.
	SideFile func(name string, head []byte) (run string, kind SideKind)

	// Decode writes a binary file in which the tool keeps its runs as the text that the parser reads. The same runs result
	// in the same text. Nil: the tool has no such files.
	Decode func(ctx context.Context, path string, w io.Writer) error

	// Sniff returns, from 0 (certainly not) to 100, how certain it is that the output beginning
	// with head comes from this tool.
	Sniff func(head []byte) int
}

// Unread is a form of a tool's output that is not read.
type Unread struct {
	// Text is in such an output.
	Text string
	// Why is a sentence for the user, without a period.
	Why string
}

// SideKind is what a file has that a tool writes about a run beside its output.
type SideKind uint8

const (
	// SideOther: nothing that the output or the other files lack.
	SideOther SideKind = iota
	// SideSummary: the statistics of the run.
	SideSummary
	// SideLatencies: the latency of each transaction.
	SideLatencies
	// SideIntervals: the run's intervals.
	SideIntervals
	// SideFewerValues: the run's intervals, with fewer values than SideIntervals.
	SideFewerValues
)

// Match reports whether base, a program's name without its folder, starts t.
func (t *Tool) Match(base string) bool {
	for _, p := range t.Programs {
		if base == p || base == p+".exe" || base == p+".sh" || base == p+".py" {
			return true
		}
	}
	return false
}

// IncludesFailures reports whether the transactions of a run with this verb include failed ones. It is false for a
// nil Tool.
func (t *Tool) IncludesFailures(verb string) bool {
	return t != nil && t.CountsFailures != nil && t.CountsFailures(verb)
}

// FailedShare returns the share of transactions that failed, counting each attempt. It is unknown without transactions,
// or if one of the numbers is unknown. included: transactions include failed ones.
func FailedShare(failed, transactions float64, included bool) series.Optional[float64] {
	if !included {
		transactions += failed
	}
	if transactions == 0 {
		return series.Optional[float64]{}
	}
	return series.Of(min(1, failed/transactions))
}

// Flusher is a Parser that may hold back a complete report, because only the next line shows that
// it is complete. Flush is called when no bytes have come for a moment. Calling it at any time, any
// number of times, must not change the reports.
type Flusher interface {
	Flush(emit func(*Report))
}

// Set is the list of known tools in the order in which they are tried: built-in tools, then the
// user's own.
type Set []*Tool

// ByName returns the tool called name, or nil.
func (s Set) ByName(name string) *Tool {
	for _, t := range s {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Sniff returns the tool whose output head resembles most, as it is or without prefixes, or nil.
func (s Set) Sniff(head []byte) *Tool {
	if all := s.SniffAll(head); len(all) > 0 {
		return all[0]
	}
	return nil
}

// certain is how certain it must be that an output also has output of a second tool.
const certain = 90

// SniffAll returns the tool whose output head resembles most, as it is or without prefixes, and then the tools whose
// output is certainly in it, too: a script may start several tools.
func (s Set) SniffAll(head []byte) []*Tool {
	if all := s.sniff(head); len(all) > 0 {
		return all
	}
	var margin []string
	for _, t := range s {
		if !slices.Contains(t.Margin, "") {
			margin = append(margin, t.Margin...)
		}
	}
	return s.sniff(prefix.All(head, margin...))
}

func (s Set) sniff(head []byte) (all []*Tool) {
	score := 0
	for _, t := range s {
		switch sure := t.Sniff(head); {
		case sure > score:
			if score < certain {
				all = all[:0]
			}
			all, score = slices.Insert(all, 0, t), sure
		case sure >= certain:
			all = append(all, t)
		}
	}
	return all
}

// Names lists the tools, for messages.
func (s Set) Names() string {
	names := make([]string, len(s))
	for i, t := range s {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}

// lineTime matches a date and time at the beginning of a line. Loggers write the fraction after a
// point or a comma, YCSB after a colon.
var lineTime = regexp.MustCompile(`^\[?(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,:](\d{1,9}))? ?(Z|[+-]\d\d:?\d\d)?`)

// LineTime returns the wall-clock time at the beginning of a line; false if there is none. A time
// without a zone is local.
func LineTime(line []byte) (time.Time, bool) {
	year := line
	if len(year) > 0 && year[0] == '[' {
		year = year[1:]
	}
	if len(year) < 19 || year[0] != '1' && year[0] != '2' || year[4] != '-' && year[4] != '/' {
		return time.Time{}, false
	}
	m := lineTime.FindSubmatch(line[:min(len(line), 64)])
	if m == nil {
		return time.Time{}, false
	}
	text := fmt.Sprintf("%s-%s-%sT%s.%s0", m[1], m[2], m[3], m[4], m[5])
	if zone := strings.ReplaceAll(string(m[6]), ":", ""); zone != "" {
		t, err := time.Parse("2006-01-02T15:04:05Z0700", text+zone)
		return t, err == nil
	}
	t, err := time.ParseInLocation("2006-01-02T15:04:05", text, time.Local)
	return t, err == nil
}
