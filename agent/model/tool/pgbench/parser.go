package pgbench

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// Operations other than transactions.
const (
	opSkipped  = "skipped"          // not executed, too late for --latency-limit
	opRetried  = "retried"          // executed more than once
	opRetry    = "retry"            // executions after the first
	opLate     = "transaction_late" // took longer than --latency-limit
	statStddev = "stddev"
)

// parser reads both streams of one output, or a file of --log.
type parser struct {
	every   float64 // requested seconds between progress lines, 0 if unknown
	streams [2]stream
}

// stream is the state of one stream, independent of the other.
type stream struct {
	run     int // 0 before a run was recognised
	started bool
	banner  bool // the version was printed
	vacuum  bool // "starting vacuum..." was printed
	filling bool // --initialize is in progress
	beside  bool // it is standard error, beside which standard output has the summary
	version string

	progress progress
	summary  summary
	log      log
	flood    message.Flood
	report   tool.Report
}

func newParser(d tool.Description) *parser {
	p := &parser{every: d.ReportInterval.Seconds()}
	p.streams[tool.Stderr].beside = true
	return p
}

// Parse implements tool.Parser.
func (p *parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	s := &p.streams[min(line.Stream, tool.Stderr)]
	text := bytes.TrimSuffix(line.Text, []byte("\r"))
	if len(text) == 0 {
		return tool.Ignored
	}
	l := scan.New(text)
	switch {
	case l.Literal("progress: "):
		if line.Cut {
			return tool.Malformed
		}
		return s.addProgress(l, p.every, emit)
	case isDigit(text[0]):
		if filling(text) {
			return tool.Ignored
		}
		if line.Cut {
			return tool.Malformed
		}
		return s.addLog(l, emit)
	case l.Literal("pgbench ("):
		return s.header(l, emit)
	case l.Literal("starting vacuum..."):
		if s.summary.open || s.progress.seen || s.vacuum || s.log.active() {
			s.next(emit)
		}
		s.begin()
		s.vacuum = true
		if complaint(l.Rest()) {
			return s.complain(l.Rest(), emit)
		}
		return tool.Ignored
	case l.Literal("transaction type: "):
		if s.summary.open || s.log.active() {
			s.next(emit)
		}
		s.begin()
		s.summary.begin(l.Rest())
		return tool.Reported
	case complaint(text):
		return s.complain(text, emit)
	}
	if v, ok := s.initialize(l, emit); ok {
		return v
	}
	if s.excerpt(text, emit); !s.summary.open {
		return tool.Ignored
	}
	if line.Cut {
		return tool.Malformed
	}
	return s.summary.add(text)
}

// excerpt begins a summary whose first lines are missing, as in a text that keeps only the figures. Such a
// summary follows another one without a line between them that only pgbench prints.
func (s *stream) excerpt(text []byte, emit func(*tool.Report)) {
	t := &s.summary
	switch {
	case scan.HasPrefix(text, "number of clients: "):
		if t.open && !t.reported && !t.clients.Known && !t.processed.Known {
			return
		}
	case scan.HasPrefix(text, "number of transactions actually processed: "):
		if t.open && !t.reported && !t.processed.Known {
			return
		}
	default:
		return
	}
	if t.open || s.log.active() {
		s.next(emit)
	}
	s.begin()
	s.summary.begin(nil)
}

// Close implements tool.Parser.
func (p *parser) Close(emit func(*tool.Report)) {
	for i := range p.streams {
		p.streams[i].finish(emit)
	}
}

// begin makes sure that s is in a run.
func (s *stream) begin() { s.run = max(s.run, 1) }

// next ends the current run and begins the next.
func (s *stream) next(emit func(*tool.Report)) {
	s.finish(emit)
	*s = stream{run: s.run + 1, beside: s.beside, report: s.report}
}

// finish reports what was held back.
func (s *stream) finish(emit func(*tool.Report)) {
	if rest := s.flood.Rest(nil); rest != "" {
		s.report.ResetError(max(1, s.run), rest, false)
		emit(&s.report)
	}
	s.log.finish(s, emit)
	s.finishSummary(emit)
}

// header reads "pgbench (15.18 (Debian 15.18-0), server 13.2)", the first line of versions 14 and
// later.
func (s *stream) header(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	if l.Literal("PostgreSQL)") {
		return tool.Ignored // --version
	}
	if s.banner || s.summary.open || s.log.active() {
		s.next(emit)
	}
	s.begin()
	s.banner = true
	version := l.Rest()
	if i := bytes.IndexAny(version, " ,)"); i >= 0 {
		version = version[:i]
	}
	s.version = string(version[:min(len(version), scan.MaxName)])
	return tool.Reported
}

// start reports the start of the run, once. Facts that the output reveals at its end are reported
// by a second start.
func (s *stream) start(workload string, clients series.Optional[int], emit func(*tool.Report)) {
	s.begin()
	r := &s.report
	if s.started && workload == "" {
		return
	}
	s.started = true
	r.Reset(tool.Start, s.run)
	r.Tool, r.Version, r.Workload, r.Threads = Name, s.version, workload, clients
	emit(r)
}

// filling recognises "200000 of 200000 tuples (100%) done (elapsed 0.07 s, …".
func filling(text []byte) bool {
	return bytes.Contains(text, []byte(" tuples (")) && bytes.Contains(text, []byte(" done (elapsed "))
}

// initialize reads the output of --initialize; ok is false for any other line.
func (s *stream) initialize(l scan.Line, emit func(*tool.Report)) (v tool.Verdict, ok bool) {
	r := &s.report
	switch {
	case l.Literal("dropping old tables..."), l.Literal("creating tables..."), l.Literal("generating data"):
		if s.filling {
			return tool.Ignored, true
		}
		if s.started || s.summary.open {
			s.next(emit)
		}
		s.begin()
		s.started, s.filling = true, true
		r.Reset(tool.Start, s.run)
		r.Tool, r.Command = Name, initialization
		emit(r)
		return tool.Reported, true
	case s.filling && l.Literal("done in "):
		seconds, decimals, ok := l.Number(0)
		if !ok || decimals != 2 || !l.Literal(" s (") {
			return tool.Malformed, true
		}
		r.Reset(tool.Summary, s.run)
		r.ElapsedSeconds = series.Some(seconds)
		emit(r)
		s.filling = false
		s.summary = summary{open: true, reported: true, columns: -1}
		return tool.Reported, true
	}
	return tool.Ignored, false
}

// aborted follows the summary of a run in which a client stopped.
const aborted = "Run was aborted"

// complaint recognises an error message. Since version 12 it begins with the program and the level;
// before, it has neither.
func complaint(text []byte) bool {
	if scan.HasAnyPrefix(text, "pgbench: error: ", "pgbench: fatal: ", aborted, "Connection to database ", "connection to database ") {
		return true
	}
	if scan.HasAnyPrefix(text, "client ", "Client ") {
		return bytes.Contains(text[:min(len(text), 80)], []byte(" aborted in "))
	}
	head := text[:min(len(text), 512)]
	for _, option := range []string{"pgbench: unrecognized option ", "pgbench: invalid option ",
		"pgbench: option requires an argument ", "pgbench: ambiguous option "} {
		if i := bytes.Index(head, []byte(option)); i >= 0 && bytes.IndexByte(head[:i], ' ') < 0 {
			return true
		}
	}
	return false
}

// complain reads an error message. Only the message "Run was aborted" concerns the whole run:
// versions before 12 exit with status 0 after it.
func (s *stream) complain(text []byte, emit func(*tool.Report)) tool.Verdict {
	for _, prefix := range []string{"pgbench: error: ", "pgbench: fatal: "} {
		text = bytes.TrimPrefix(text, []byte(prefix))
	}
	ended := scan.HasPrefix(text, aborted)
	if s.summary.open && !ended || s.log.active() {
		s.next(emit)
	}
	s.begin()
	if s.flood.Add(text, ended) {
		s.report.ResetError(s.run, message.Clean(text), ended)
		emit(&s.report)
	}
	return tool.Reported
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
