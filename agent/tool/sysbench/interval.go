package sysbench

import (
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// family is who wrote an interval report.
type family uint8

const (
	noFamily   family = iota
	builtIn           // sysbench's own C code
	luaDefault        // a hook that calls sysbench.report_default
	luaCSV            // a hook that calls sysbench.report_csv
	luaJSON           // a hook that calls sysbench.report_json
)

// form is what an interval line tells by its shape.
type form struct {
	family family
	// queued: with a target rate, a line with the queue's length follows.
	queued bool
	// commits: the transactions are 0.5's, which counts COMMIT statements.
	commits bool
	// legacy is the 0.x line; parts counts its trailing parts, which older
	// versions leave out.
	legacy bool
	parts  int
}

// reading is what became of a line.
type reading uint8

const (
	foreign reading = iota // another kind of line
	damaged                // almost this kind of line
	read
)

func readIf(ok bool) reading {
	if ok {
		return read
	}
	return damaged
}

// head takes `[ 12s ] ` of 1.x or `[  12s] ` of 0.x.
func (s *scanner) head() (seconds int, ok bool) {
	if !s.lit("[") {
		return 0, false
	}
	if seconds, ok = s.small(); !ok || !s.lit("s") {
		return 0, false
	}
	s.lit(" ")
	return seconds, s.lit("] ")
}

// stamped reads a line that begins with the time in brackets: an interval into
// p.scratch, or the others by p.queue and p.checkpoint.
func (p *Parser) stamped(line []byte, emit func(*tool.Report)) tool.Verdict {
	s := scanner{b: line}
	seconds, ok := s.head()
	if !ok {
		return p.fragment(line)
	}
	at := s.i
	p.scratch.Reset(tool.Interval, 0)
	p.scratch.ElapsedSeconds = series.Some(float64(seconds))
	var f form
	got := foreign
	switch s.next() {
	case 't':
		f, got = p.threads(&s)
	case 'r':
		f, got = p.files(&s)
	case 'q':
		return p.queue(&s, seconds, emit)
	case 'C':
		if s.lit("Checkpoint report:") && s.end() {
			p.checkpoint(emit)
			return tool.Reported
		}
	default:
		f, got = p.memory(&s)
	}
	if got == read && s.end() && !p.shortened(f) {
		return p.interval(f, emit)
	}
	if got == foreign && !resembles(line[at:]) {
		return tool.Ignored
	}
	p.run.gap = true
	return tool.Malformed
}

// threads reads `thds: …` of 1.x and `threads: …` of 0.x and of 1.0 before its
// release.
func (p *Parser) threads(s *scanner) (form, reading) {
	if !s.lit("thds: ") && !s.lit("threads: ") {
		return form{}, foreign
	}
	n, ok := s.small()
	if !ok {
		return form{}, damaged
	}
	p.scratch.Threads = series.Some(n)
	switch {
	case s.lit(" tps: "):
		return p.database(s)
	case s.lit(", tps: "):
		return p.legacy(s)
	case s.lit(" eps: "), s.lit(" events/s: "):
		ok := rate(s, p.scratch, tool.Transaction) && s.lit(" ") && p.latencies(s)
		return form{family: builtIn, queued: true}, readIf(ok)
	}
	return form{}, damaged
}

// database reads on behind `tps: ` of 1.x.
func (p *Parser) database(s *scanner) (form, reading) {
	f := form{family: builtIn, queued: true}
	ok := rate(s, p.scratch, tool.Transaction) &&
		s.lit(" qps: ") && rate(s, p.scratch, tool.Query) &&
		s.lit(" (r/w/o: ") && rate(s, p.scratch, tool.Read) && s.lit("/") && rate(s, p.scratch, tool.Write) && s.lit("/") && rate(s, p.scratch, tool.Other) &&
		s.lit(") ") && p.latencies(s) &&
		(s.lit(" err/s") || s.lit(" errors/s"))
	if !ok {
		return f, damaged
	}
	if !s.lit(":") { // the Lua function forgot the colon
		f = form{family: luaDefault}
	}
	ok = s.lit(" ") && optional(s, &p.scratch.ErrorsPerSecond) &&
		(s.lit(" reconn/s: ") || s.lit(" reconnects/s: ")) && optional(s, &p.scratch.ReconnectsPerSecond)
	return f, readIf(ok)
}

// latencies reads `lat (ms,95%): 1.23` or what 1.0 printed before its release.
// A build that knows lists of percentiles repeats it.
func (p *Parser) latencies(s *scanner) bool {
	if s.lit("latency: ") {
		return p.legacyLatency(s, 2)
	}
	for n := 0; n < maxLatencies; n++ {
		at := s.i
		if n > 0 && !s.lit(" ") || !s.lit("lat (ms,") && !s.lit("latency (ms,") {
			s.i = at
			return n > 0
		}
		if !p.latency(s, 2) {
			return false
		}
	}
	return true
}

// latency reads `95%): 1.23`, milliseconds.
func (p *Parser) latency(s *scanner, places int) bool {
	stat, ok := s.percentile(&p.names)
	if !ok || !s.lit("%): ") {
		return false
	}
	seconds, ok := s.decimal(places, 3)
	if ok {
		addLatency(p.scratch, stat, seconds)
	}
	return ok
}

// legacyLatency reads `1.23ms (95%)`.
func (p *Parser) legacyLatency(s *scanner, places int) bool {
	seconds, ok := s.decimal(places, 3)
	if !ok || !s.lit("ms (") {
		return false
	}
	stat, ok := s.percentile(&p.names)
	if !ok || !s.lit("%)") {
		return false
	}
	addLatency(p.scratch, stat, seconds)
	return true
}

// addLatency adds an interval's latency. 0.00 is no measurement: no event has
// ended, the percentile is off, or a checkpoint has just emptied the histogram.
func addLatency(r *tool.Report, stat string, seconds float64) {
	if seconds > 0 && stat != "p0" {
		r.AddLatency(tool.Transaction, stat, seconds)
	}
}

// legacy reads on behind `tps: ` of 0.x. What older versions did not print
// yet may be missing at the end:
//
//	tps                                                      2010
//	tps, reads/s, writes/s                                   January 2011
//	tps, reads/s, writes/s response time                     July 2011, 0.4 for good
//	tps, reads/s, writes/s, response time                    0.5 from 2012
//	tps, reads, writes, response time, errors, reconnects    0.5 from October 2014
func (p *Parser) legacy(s *scanner) (form, reading) {
	f := form{family: builtIn, legacy: true, queued: true, commits: !p.run.before05}
	if !rate(s, p.scratch, tool.Transaction) {
		return f, damaged
	}
	if s.end() {
		return f, read
	}
	perSecond := s.lit(", reads/s: ")
	if !perSecond && !s.lit(", reads: ") || !rate(s, p.scratch, tool.Read) ||
		!s.lit(", writes") || perSecond != s.lit("/s") || !s.lit(": ") || !rate(s, p.scratch, tool.Write) {
		return f, damaged
	}
	f.parts = 1
	if s.end() {
		return f, readIf(perSecond)
	}
	comma := s.lit(",")
	if !s.lit(" response time: ") || !p.legacyLatency(s, 2) {
		return f, damaged
	}
	f.parts = 2
	if !comma { // 0.4 counts transactions, in its nontrx mode statements
		f.commits, f.queued = false, false
	}
	for range maxLatencies { // in July 2011 there were two
		at := s.i
		if !s.lit(", ") || s.next() == 'e' {
			s.i = at
			break
		}
		if !p.legacyLatency(s, 2) {
			return f, damaged
		}
	}
	if perSecond {
		return f, read
	}
	f.parts = 3
	ok := s.lit(", errors: ") && optional(s, &p.scratch.ErrorsPerSecond) &&
		s.lit(", reconnects: ") && optional(s, &p.scratch.ReconnectsPerSecond)
	return f, readIf(ok)
}

// shortened tells that earlier lines of the run had parts that this one lacks.
func (p *Parser) shortened(f form) bool {
	return f.legacy && f.parts < p.run.parts
}

// Operations besides the vocabulary of package tool.
const (
	opByte      = "byte"
	opReadByte  = "read_byte"
	opWriteByte = "write_byte"
	opFsync     = "fsync"
)

const mebibyte = 1 << 20 // what sysbench 0.x calls MB

// files reads fileio's line.
func (p *Parser) files(s *scanner) (form, reading) {
	if !s.lit("reads: ") {
		return form{}, foreign
	}
	f := form{family: builtIn, legacy: true}
	unit := " MB/s"
	ok := byteRate(s, p.scratch, opReadByte)
	if s.lit(" MiB/s") {
		f.legacy, unit = false, " MiB/s"
	} else {
		ok = ok && s.lit(unit)
	}
	ok = ok && s.lit(" writes: ") && byteRate(s, p.scratch, opWriteByte) && s.lit(unit) &&
		s.lit(" fsyncs: ") && rate(s, p.scratch, opFsync) && s.lit("/s")
	if !ok {
		return f, damaged
	}
	if f.legacy && s.end() {
		return f, read // before September 2011
	}
	f.parts = 1
	if s.lit(" latency (ms,") {
		return f, readIf(p.latency(s, 3))
	}
	if !s.lit(" response time: ") {
		return f, damaged
	}
	at := s.i
	if ok = p.legacyLatency(s, 3); !ok {
		s.i = at
		ok = p.legacyLatency(s, 2) // 0.4
	}
	return f, readIf(ok)
}

// memory reads memory's line, `1105.49 MiB/sec`; 0.x: `1105.49 MB/sec,`.
func (p *Parser) memory(s *scanner) (form, reading) {
	f := form{family: builtIn}
	if c := s.next(); (c < '0' || c > '9') && c != '-' && c != 'n' && c != 'i' || !byteRate(s, p.scratch, opByte) {
		return f, foreign
	}
	switch {
	case s.lit(" MiB/sec"):
	case s.lit(" MB/sec"):
		f.legacy = true
	case s.end(), begins([]byte(" MiB/sec"), string(s.b[s.i:])), begins([]byte(" MB/sec"), string(s.b[s.i:])):
		return f, damaged // cut
	default:
		return f, foreign
	}
	s.lit(",")
	return f, read
}

// rate takes a number with two decimals as operation's rate.
func rate(s *scanner, r *tool.Report, operation string) bool {
	v, ok := s.decimal(2, 0)
	if ok && v >= 0 {
		r.AddRate(operation, v)
	}
	return ok
}

// byteRate takes mebibytes per second.
func byteRate(s *scanner, r *tool.Report, operation string) bool {
	v, ok := s.decimal(2, 0)
	if ok && v >= 0 {
		r.AddRate(operation, v*mebibyte)
	}
	return ok
}

// optional takes a number with two decimals.
func optional(s *scanner, to *series.Optional[float64]) bool {
	v, ok := s.decimal(2, 0)
	if ok && v >= 0 {
		*to = series.Some(v)
	}
	return ok
}

// queue reads the second line of an interval with a target rate:
// `queue length: 65, concurrency: 4`; tests without SQL print no comma.
func (p *Parser) queue(s *scanner, seconds int, emit func(*tool.Report)) tool.Verdict {
	if !s.lit("queue length: ") {
		if resembles(s.b[s.i:]) {
			return tool.Malformed
		}
		return tool.Ignored
	}
	length, ok := s.small()
	s.lit(",")
	concurrency := 0
	if ok = ok && s.lit(" concurrency: "); ok {
		concurrency, ok = s.small()
	}
	if !ok || !s.end() {
		p.release(emit)
		return tool.Malformed
	}
	p.run.queues = true
	if !p.holding || p.held.ElapsedSeconds.Value != float64(seconds) {
		return tool.Ignored // its interval line is not known
	}
	p.held.QueueLength = series.Some(length)
	p.held.Concurrency = series.Some(concurrency)
	p.release(emit)
	return tool.Reported
}
