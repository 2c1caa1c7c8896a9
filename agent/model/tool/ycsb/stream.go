package ycsb

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// stream is the state of one stream, independent of the other.
type stream struct {
	stdout bool
	// mixed: stdout also contains the lines of stderr.
	mixed bool
	run   int // 0 before a run was recognised

	// The fields below describe the current run.

	banner   bool // it began with a banner
	tested   bool // it reached "Starting test."
	done     bool // its summary is reported
	start    tool.Report
	held     bool // start waits for the version
	command  bool // start has the command line
	redactor *secret.Redactor

	index   int // status lines so far
	last    sample
	line    []byte // the last one, on stdout
	twice   bool   // each line appears twice: on stdout and on stderr
	pending bool   // more lines of the status in report may follow
	report  tool.Report
	tally   tally

	failures uint64 // failed operations in all status lines
	good     uint64 // successful operations in all status lines
	summary  summary
	json     figure
	flood    message.Flood

	stops uint64 // exceptions that ended a thread
	cause []byte // the first of these exceptions
}

// begin makes sure that s is in a run.
func (s *stream) begin() {
	if s.run == 0 {
		s.run = 1
	}
}

// next moves to the next run and forgets the previous one, but keeps the memory.
func (s *stream) next() {
	keep := *s
	*s = stream{stdout: keep.stdout, mixed: keep.mixed, run: keep.run + 1, summary: keep.summary,
		start: keep.start, report: keep.report, tally: keep.tally, line: keep.line[:0]}
	s.summary.reset()
}

// banner reads one of the two lines that begin a run: the command line, then the version. YCSB
// before 0.9 prints them in reverse order.
func (p *parser) banner(s *stream, rest []byte, command bool, emit func(*tool.Report)) tool.Verdict {
	if !s.held || command && s.command || !command && s.start.Version != "" {
		if s.run > 0 {
			p.newRun(s, emit)
		}
		s.begin()
		s.banner, s.held = true, true
		s.start.Reset(tool.Start, s.run)
		s.start.Tool = Name
	}
	s.mixed = s.stdout
	if command {
		s.command = true
		s.readCommand(string(rest[:min(len(rest), maxCommand)]))
	} else {
		s.start.Version = string(bytes.TrimSpace(rest[:min(len(rest), scan.MaxName)]))
	}
	if s.command && s.start.Version != "" {
		s.emitStart(emit)
	}
	return tool.Reported
}

// maxCommand is the number of bytes read from a printed command line.
const maxCommand = 1 << 16

func (s *stream) readCommand(text string) {
	o := readClient(strings.Fields(text), &tool.Invocation{})
	s.start.Workload = o.Workload()
	s.start.Command = o.command
	if n := o.Number("threadcount"); n > 0 {
		s.start.Threads = series.Some(n)
	}
	s.twice = o.Values["measurementtype"] == "timeseries"
	s.redactor = secret.New(o.Secrets()...)
}

// emitStart reports the pending start.
func (s *stream) emitStart(emit func(*tool.Report)) {
	if s.held {
		s.held = false
		emit(&s.start)
	}
}

// phase reads the lines on stderr that show the progress of YCSB.
func (s *stream) phase(text []byte) bool {
	switch string(text) {
	case "Loading workload...":
	case "Starting test.":
		s.tested = true
	default:
		return false
	}
	s.mixed = s.stdout
	return true
}

// isFresh reports whether a status line without a preceding banner belongs to a new run. If two
// pipes write to one file, the last status line of a run may follow its summary.
func (s *stream) isFresh(h *head) bool {
	last := &s.last
	if last.known && (h.ops < last.ops || h.secs < last.secs) {
		return true
	}
	if !s.summary.open && !s.done {
		return false
	}
	// The first line is written at 0 s, without a rate or with an infinite one. No other process
	// begins within a tenth of a second.
	near := h.ms >= last.ms && h.ms-last.ms < 100
	return !last.known || h.secs == 0 && !h.rate.Known && !near
}

// repeats reports whether text is a copy of the previous status line, as with measurementtype
// timeseries if stdout and stderr go to one file.
func (s *stream) repeats(text []byte, h *head) bool {
	if !s.stdout || !s.last.known || h.ms != s.last.ms || h.ops != s.last.ops || h.secs != s.last.secs ||
		!bytes.Equal(text, s.line) || !s.twice && !bytes.Contains(text, []byte(averageIs)) {
		return false
	}
	s.twice = true
	return true
}

// stop counts an exception that ended a thread.
func (s *stream) stop(text []byte) {
	s.stops++
	if s.stops == 1 {
		s.cause = append(s.cause[:0], text[:min(len(text), message.MaxRead)]...)
	}
}

// stopped describes how many threads ended by exceptions; empty if none did.
func (s *stream) stopped() string {
	switch s.stops {
	case 0:
		return ""
	case 1:
		return "stopped by " + message.CleanWith(s.cause, s.redactor)
	}
	return fmt.Sprintf("%d threads stopped, the first by %s", s.stops, message.CleanWith(s.cause, s.redactor))
}
