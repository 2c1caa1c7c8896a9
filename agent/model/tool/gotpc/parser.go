package gotpc

import (
	"bytes"
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// mixed is the workload of transactions and queries, CH-benCHmark.
const mixed = "ch"

// Parser reads go-tpc's output. In the plain style it reports an interval when the next one begins,
// another line follows, or Flush is called: go-tpc writes the rows at once and nothing after the
// last one. Without Flush two intervals can look like one, but only if nothing is printed between
// them and no operation occurs twice, which takes less than one transaction per interval and kind.
type Parser struct {
	interval float64 // seconds, from the command line; 0 if unknown
	kinds    kinds   // from the command line
	number   int     // of the current run, 0 before the first
	run      run
	report   tool.Report

	names   scan.Memo[operation]
	columns scan.Columns[column]
	row     row
	group   group
	rows    []row // from one line of the style json

	tableRows int  // since the last border of a table
	totals    bool // the table below the summary
}

// run is the state of the current run.
type run struct {
	finished   bool // "Finished" was seen
	ended      bool // rows of its summary were seen
	summarised bool // its summary was reported
	kinds      kinds
	workload   string
	threads    series.Optional[int] // according to the output
	lengths    lengths              // of the run's intervals
	tpmC       series.Optional[float64]
	gaveUp     int // threads
	cause      string
}

// NewParser returns a parser for the output of a command line.
func NewParser(d tool.Description) *Parser {
	p := &Parser{interval: d.ReportInterval.Seconds(), columns: scan.NewColumns(newColumn)}
	switch d.Workload {
	case "":
	case mixed:
		p.kinds = bothKinds
	default:
		p.kinds = oneKind
	}
	return p
}

// Parse takes the next line.
func (p *Parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	if line.Cut {
		return tool.Malformed
	}
	text := bytes.TrimSuffix(line.Text, []byte("\r"))
	if line.Stream == tool.Stderr {
		return p.stderr(text, emit)
	}
	if len(text) == 0 {
		return tool.Ignored
	}
	switch text[0] {
	case '[':
		if scan.HasAnyPrefix(text, current, whole) {
			return p.plain(text, emit)
		}
		if bytes.HasPrefix(text, []byte("[{")) {
			return p.json(text, emit)
		}
	case '|':
		return p.tableRow(text, emit)
	case '+':
		return p.border(text, emit)
	}
	return p.word(text, emit)
}

// Flush reports an interval if no more rows have come for a moment. One of CH-benCHmark also needs rows of both kinds, so
// that the result does not depend on when the lines are read.
func (p *Parser) Flush(emit func(*tool.Report)) {
	// A border ends a table.
	if p.tableRows == 0 {
		p.pause(emit)
	}
}

// Close reports a group that is still held back.
func (p *Parser) Close(emit func(*tool.Report)) { p.settle(emit) }

// hints are line prefixes that reveal the verb of an output. Only names and numbers follow them,
// whereas an SQL statement ends at least with a semicolon.
var hints = []struct{ text, workload, command string }{
	{"creating table warehouse", "tpcc", "prepare"},
	{"creating view revenue", mixed, "prepare"},
	{"generating nation table", "", "prepare"},
	{"load to ", "tpcc", "prepare"},
	{"DROP TABLE IF EXISTS ", "", "cleanup"},
	{"begin to check warehouse ", "tpcc", "check"},
}

// word reads the lines other than rows.
func (p *Parser) word(text []byte, emit func(*tool.Report)) tool.Verdict {
	l := scan.New(text)
	if l.Literal("tpmC: ") {
		return p.tpmC(l, emit)
	}
	if l.Literal("QphH: ") { // the end of a summary of CH-benCHmark
		if p.group.summary {
			p.settle(emit)
		}
		return tool.Ignored
	}
	if scan.ContainsAny(text, "Takes(s): ", "th(ms): ") {
		p.group.broken = true
		return tool.Malformed
	}
	p.pause(emit)
	switch {
	case bytes.Equal(text, []byte("Finished")), l.Literal("Finished: "):
		if p.settle(emit); p.over() {
			p.open("", "", emit)
		}
		p.run.finished = true
		p.workers(l, emit)
		return tool.Reported
	case bytes.Contains(text, []byte(" maxprocs: ")):
		// The first line of standard error in a log that contains both streams.
		p.run.finished = p.number > 0
		return tool.Ignored
	case stampedFailure(text):
		return p.fail(text, false, emit)
	case l.Literal("execute "):
		// A thread gives up.
		if verb, ok := l.Until(" failed, err "); ok && len(verb) < 16 {
			v := p.fail(text, true, emit)
			p.run.gaveUp++
			return v
		}
	case scan.HasAnyPrefix(text, fatals...):
		return p.fail(text, true, emit)
	}
	for _, h := range hints {
		if rest, ok := bytes.CutPrefix(text, []byte(h.text)); ok && (len(rest) == 0 || scan.Only(rest, scan.Small+scan.Digits+"_ ")) {
			if p.over() {
				p.open(h.workload, h.command, emit)
				return tool.Reported
			}
			return tool.Ignored
		}
	}
	return tool.Ignored
}

// workers reads how many clients a run of CH-benCHmark had, after "Finished: ": 4 OLTP workers, 2 OLAP workers. The facts
// of the tool have the second number.
func (p *Parser) workers(l scan.Line, emit func(*tool.Report)) {
	n, ok := l.Int()
	if !ok || !l.Literal(" OLTP workers, ") {
		return
	}
	p.run.kinds, p.run.threads = bothKinds, series.Some(n)
	p.startReport(mixed, "", p.run.threads, emit)
}

// stampedFailure recognises "[2026-11-21 02:00:18] execute run failed, err …".
func stampedFailure(text []byte) bool {
	return text[0] == '[' && len(text) > 30 && text[20] == ']' && bytes.HasPrefix(text[21:], []byte(" execute ")) &&
		bytes.Contains(text[:min(len(text), 60)], []byte(" failed, err "))
}

// fatals are prefixes of messages after which go-tpc stops, whatever its exit status.
var fatals = []string{
	"failed to ping db, err ", "Failed to init work loader: ", "Failed to init tp work loader: ",
	"Failed to open db for analytical processing: ", "Failed to listen ", "check prepare failed, err ",
	"Output Directory cannot be empty", "panic: ", "fatal error: ", "cannot connect to the database",
	"Error: unknown ", "Error: invalid argument ", "Error: required flag", "Error: flag needs an argument", "Error: bad flag syntax",
}

// stderr reads a line of standard error, to which the driver writes, too. It does not distinguish
// runs, so everything belongs to run 1.
func (p *Parser) stderr(text []byte, emit func(*tool.Report)) tool.Verdict {
	if !scan.HasAnyPrefix(text, fatals...) {
		return tool.Ignored
	}
	var r tool.Report
	r.ResetError(1, message.Clean(text), true)
	emit(&r)
	return tool.Reported
}

// fail reports an error of the current run.
func (p *Parser) fail(text []byte, failed bool, emit func(*tool.Report)) tool.Verdict {
	if p.over() {
		p.open("", "", emit)
	}
	r := &p.report
	r.ResetError(p.number, message.Clean(text), failed)
	if p.run.cause == "" {
		p.run.cause = r.Message
	}
	emit(r)
	return tool.Reported
}

// rowOpens begins a run with its first row.
func (p *Parser) rowOpens(r *row, emit func(*tool.Report)) {
	workload := "tpcc"
	if r.queries {
		workload = "tpch"
		if r.hasCount {
			workload = mixed
		}
	}
	switch {
	case p.number == 0,
		!r.summary && (p.run.finished || p.run.ended),
		r.summary && p.run.ended && !r.queries:
		broken := p.group.broken
		p.open(workload, "", emit)
		p.group.broken = broken
	}
}

// over reports whether the next line belongs to another run.
func (p *Parser) over() bool { return p.number == 0 || p.run.finished || p.run.ended }

// open begins the next run.
func (p *Parser) open(workload, command string, emit func(*tool.Report)) {
	p.settle(emit)
	p.number++
	p.run = run{kinds: p.kinds}
	p.startReport(workload, command, series.Optional[int]{}, emit)
}

// startReport reports the start of the run, or what its output revealed later.
func (p *Parser) startReport(workload, command string, threads series.Optional[int], emit func(*tool.Report)) {
	p.run.workload = workload
	var r tool.Report
	r.Reset(tool.Start, p.number)
	r.Tool, r.Workload, r.Command, r.Threads = Name, workload, command, threads
	emit(&r)
}

// failure returns why the run failed.
func (r *run) failure(what string) string {
	if r.gaveUp > 0 {
		what = fmt.Sprintf("%d of the threads gave up", r.gaveUp)
	}
	if r.cause != "" {
		what += ": " + r.cause
	}
	return what
}
