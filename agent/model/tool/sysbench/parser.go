// Package sysbench reads the command line and the output of sysbench 0.4, 0.5, 1.0 and 1.1. Since
// different formats share a version number, each line is recognised by its own form. Formats, from
// https://github.com/akopytov/sysbench: src/sysbench.c, src/db_driver.c, src/sb_logger.c,
// src/lua/internal/sysbench.lua and src/tests/.
package sysbench

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// Parser reads sysbench's output. An interval is reported with its last line.
type Parser struct {
	number int // of the current run, 0 before the first
	run    run

	scratch *tool.Report // the interval being read
	held    *tool.Report // an interval that waits for its queue line
	holding bool
	report  tool.Report // start and error

	names        percentileNames
	summary      summary
	distribution distribution
	hook         hook
	lastMessage  string // the error to which a `repeated` note refers
}

// run is the state of the current run.
type run struct {
	listed   bool // its options were printed: it is a `run`, not prepare or cleanup
	started  bool // its start was reported
	version  string
	workload string
	command  string
	before05 bool // the banner is from 0.4
	threads  series.Optional[int]
	every    int  // report interval in seconds, 0 if off or unknown
	queues   bool // queue lines are expected
	rate     int  // requested events per second, 0 if unlimited

	clock series.Optional[int] // of the last interval
	step  int                  // distance between the first two intervals
	gap   bool                 // followed by an unreadable interval line
	// interrupted: followed by text that is not the tool's.
	interrupted bool
	reset       bool // followed by a checkpoint
	family      family
	parts       int  // the most trailing parts of a 0.x line
	commits     bool // a COMMIT was counted
	noCommit    bool // statements were counted, but no COMMIT

	checkpoint bool    // the next summary belongs to a checkpoint
	covered    float64 // end of the last checkpoint's summary
	parted     bool    // there was a checkpoint
	ended      bool    // the last summary is complete
}

// NewParser returns a parser for the output of a command line.
func NewParser(d tool.Description) *Parser {
	return &Parser{scratch: new(tool.Report), held: new(tool.Report), hook: hook{stat: unnamedStat(d)}}
}

// Parse takes the next line.
func (p *Parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	verdict := p.parse(line, emit)
	if verdict == tool.Ignored && len(bytes.TrimSpace(line.Text)) > 0 {
		p.run.interrupted = true
	}
	return verdict
}

func (p *Parser) parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	if line.Cut {
		return tool.Malformed
	}
	text := line.Text
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	if line.Stream == tool.Stderr {
		return p.stderr(text, emit)
	}
	verdict := tool.Ignored
	for len(text) > 0 {
		whole, rest := unglue(text)
		verdict = max(verdict, p.line(whole, emit))
		text = rest
	}
	return verdict
}

// Close reports what was held back.
func (p *Parser) Close(emit func(*tool.Report)) {
	p.end(emit)
}

func (p *Parser) line(text []byte, emit func(*tool.Report)) tool.Verdict {
	switch text[0] {
	case '[':
		if len(text) > 1 {
			return p.stamped(text, emit)
		}
	case ' ':
		if v, taken := p.hook.json(p, text, emit); taken {
			return v
		}
		if v, taken := p.histogramRow(text, emit); taken {
			return v
		}
		return p.summaryValue(text, emit)
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if v, taken := p.hook.csv(p, text, emit); taken {
			return v
		}
		if v, taken := p.summaryHeading(text, emit); taken {
			return v
		}
		return p.fragment(text)
	}
	if v, taken := p.banner(text, emit); taken {
		return v
	}
	if v, taken := p.message(text, emit); taken {
		return v
	}
	if v, taken := p.option(text, emit); taken {
		return v
	}
	if v, taken := p.hook.json(p, text, emit); taken {
		return v
	}
	if v, taken := p.summaryHeading(text, emit); taken {
		return v
	}
	return p.fragment(text)
}

// banner reads the first line of an output:
//
//	sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)
//	sysbench 0.5:  multi-threaded system evaluation benchmark
func (p *Parser) banner(text []byte, emit func(*tool.Report)) (tool.Verdict, bool) {
	rest, ok := bytes.CutPrefix(text, []byte("sysbench "))
	if !ok {
		return 0, false
	}
	rest = bytes.TrimPrefix(rest, []byte("v"))
	n := bytes.IndexAny(rest, " :")
	if n <= 0 || n > 64 || rest[0] < '0' || rest[0] > '9' {
		return 0, false
	}
	if !scan.HasPrefix(rest[n:], " (using ") && !scan.HasPrefix(rest[n:], ":  multi-threaded") {
		return 0, false
	}
	version := string(bytes.ToValidUTF8(rest[:n], []byte("?")))
	p.open(emit)
	p.run.version = version
	p.run.before05 = scan.HasPrefix(rest, "0.4")
	return tool.Reported, true
}

// option reads the lines between the banner and the first report.
func (p *Parser) option(text []byte, emit func(*tool.Report)) (tool.Verdict, bool) {
	if is(text, "Running the test with following options:") {
		if p.number == 0 || p.run.listed {
			p.open(emit) // a log without banners
		}
		p.run.listed = true
		return tool.Ignored, true
	}
	if p.number == 0 {
		return 0, false
	}
	s := scan.New(text)
	if s.Literal("Number of threads: ") {
		n, ok := s.Int()
		if !ok || !s.End() {
			return tool.Malformed, true
		}
		p.run.threads = series.Some(n)
		return tool.Reported, true
	}
	if p.run.started {
		return 0, false
	}
	switch {
	case s.Literal("Report intermediate results every "):
		n, ok := s.Int()
		if !ok || !s.Literal(" second") {
			return tool.Malformed, true
		}
		p.run.every = n
		return tool.Ignored, true
	case s.Literal("Target transaction rate: "):
		p.run.queues = true
		p.run.rate, _ = s.Int()
		return tool.Ignored, true
	case s.Literal("Initializing worker threads..."), s.Literal("Threads started!"):
		p.start(emit)
		return tool.Ignored, true
	}
	for _, hint := range hints {
		if s.Literal(hint.text) {
			p.hint(hint, emit)
			return tool.Ignored, true
		}
	}
	return 0, false
}

// hints are lines that reveal the test or the verb of an output.
var hints = []hint{
	{"Prime numbers limit: ", "cpu", ""},
	{"Maximum prime number checked in CPU test: ", "cpu", ""},
	{"Doing CPU performance benchmark", "cpu", ""},
	{"Running memory speed test with the following options:", "memory", ""},
	{"Doing memory operations speed test", "memory", ""},
	{"Extra file open flags: ", "fileio", ""},
	{"Doing thread subsystem performance test", "threads", ""},
	{"Doing mutex performance test", "mutex", ""},
	{"Doing OLTP test.", "oltp", ""},
	{"Creating files for the test...", "fileio", "prepare"},
	{"Removing test files...", "fileio", "cleanup"},
	{"Creating table '", "", "prepare"},
	{"Dropping table '", "", "cleanup"},
}

type hint struct{ text, workload, command string }

func (p *Parser) hint(h hint, emit func(*tool.Report)) {
	if p.run.workload == "" {
		p.run.workload = h.workload
	}
	if h.command != "" && !p.run.listed {
		p.run.command = h.command
		p.start(emit)
	}
}

// open ends the current run and begins the next.
func (p *Parser) open(emit func(*tool.Report)) {
	p.end(emit)
	p.number++
	p.run = run{}
	p.hook = hook{stat: p.hook.stat}
	p.summary.reset()
	p.distribution.open = false
	p.lastMessage = ""
}

// end reports what the current run still holds back.
func (p *Parser) end(emit func(*tool.Report)) {
	if p.number == 0 {
		return
	}
	p.start(emit)
	p.release(emit)
	p.hook.settle(p, runEnds, emit)
	p.endSummary(emit)
}

// start reports the run's start, once.
func (p *Parser) start(emit func(*tool.Report)) {
	if p.number == 0 {
		p.open(emit) // a log whose beginning is missing
	}
	if p.run.started {
		return
	}
	p.run.started = true
	r := &p.report
	r.Reset(tool.Start, p.number)
	r.Tool, r.Version, r.Workload, r.Command, r.Threads = Name, p.run.version, p.run.workload, p.run.command, p.run.threads
	r.TargetRate = p.run.rate
	emit(r)
}

// checkpoint notes that the next summary does not end the run.
func (p *Parser) checkpoint(emit func(*tool.Report)) {
	p.start(emit)
	p.release(emit)
	p.hook.settle(p, continues, emit)
	p.endSummary(emit)
	p.run.checkpoint, p.run.reset = true, true
}

// interval reports the interval in p.scratch.
func (p *Parser) interval(f form, emit func(*tool.Report)) tool.Verdict {
	seconds := int(p.scratch.ElapsedSeconds.Value)
	if p.clockRestarted(seconds) {
		p.open(emit)
	}
	p.start(emit)
	if f.family.isLua() && p.hook.postpone(p, f, seconds, emit) {
		return tool.Reported
	}
	p.deliver(f, seconds, emit)
	return tool.Reported
}

// clockRestarted recognises the next run in a log without banners, for example after grep: the
// clock returns to its first value, or goes back after a summary or after other text, such as
// between two excerpts. Any other step backwards means that two processes write to one file.
func (p *Parser) clockRestarted(seconds int) bool {
	r := &p.run
	if !r.clock.Known {
		return false
	}
	if r.ended && seconds <= r.clock.Value {
		return true
	}
	return seconds < r.clock.Value && (r.interrupted || seconds <= max(r.every, r.step, 1))
}

// deliver completes the interval in p.scratch, then reports it or holds it back for its queue line.
func (p *Parser) deliver(f form, seconds int, emit func(*tool.Report)) {
	if p.holding { // without a queue line: this version or test prints none
		p.run.queues = false
		p.release(emit)
	}
	p.hook.settle(p, continues, emit)
	r := p.scratch
	r.Run = p.number
	r.Phase = tool.Measure // sysbench prints nothing during warm-up
	r.IntervalSeconds = p.length(f, seconds)
	if f.commits {
		p.trueTransactions(r, f.parts)
	}
	if f.family == legacy {
		if reads, writes := r.Rate(tool.Read), r.Rate(tool.Write); reads.Known && writes.Known {
			r.AddRate(tool.Query, hundredths(reads.Value+writes.Value)) // 0.x does not print the others
		}
	}
	p.run.clock = series.Some(seconds)
	p.run.gap, p.run.reset, p.run.interrupted = false, false, false
	p.run.family = f.family
	p.run.parts = max(p.run.parts, f.parts)
	if f.queued && p.run.queues {
		p.scratch, p.held = p.held, p.scratch
		p.holding = true
		return
	}
	emit(r)
}

// release reports the interval held back.
func (p *Parser) release(emit func(*tool.Report)) {
	if p.holding {
		p.holding = false
		emit(p.held)
	}
}

// length returns the length of the interval that ends at seconds. sysbench divides by the measured
// length but prints only its own clock, rounded to seconds.
func (p *Parser) length(f form, seconds int) series.Optional[float64] {
	r := &p.run
	var n int
	switch {
	case r.reset && f.family == legacy:
		// 0.x resets its counts at a checkpoint, at some time within this second.
		return series.Optional[float64]{}
	case r.gap:
		n = r.every
	case r.clock.Known:
		n = seconds - r.clock.Value
		if r.step == 0 {
			r.step = n
		}
	case r.every > 0 && seconds <= r.every+1:
		n = seconds
	default:
		n = r.every // the beginning of the log is missing
	}
	if n <= 0 {
		return series.Optional[float64]{}
	}
	return series.Some(float64(n))
}

func is(text []byte, want string) bool {
	return string(bytes.TrimRight(text, " \t")) == want
}
