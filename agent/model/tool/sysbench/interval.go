package sysbench

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// family is the code in sysbench that prints interval reports.
type family uint8

const (
	noFamily   family = iota
	builtIn           // sysbench's own C code in 1.x
	legacy            // in 0.x
	luaDefault        // a hook that calls sysbench.report_default
	luaCSV            // a hook that calls sysbench.report_csv
	luaJSON           // a hook that calls sysbench.report_json
)

// isLua reports whether a hook in Lua prints the reports.
func (f family) isLua() bool { return f == luaDefault || f == luaCSV || f == luaJSON }

// form is what the shape of an interval line reveals. It has no more fields than the compiler keeps in registers.
type form struct {
	family family
	// queued: there is a target rate, so a line with the queue's length follows.
	queued bool
	// commits: 0.5 prints COMMIT statements as transactions.
	commits bool
	// parts is the number of trailing parts of a legacy line; older versions leave some out.
	parts int
}

// reading is how much of a line could be read.
type reading uint8

const (
	foreign reading = iota // another kind of line
	damaged                // almost a line of this kind
	read
)

func readIf(ok bool) reading {
	if ok {
		return read
	}
	return damaged
}

// head reads `[ 12s ] ` of 1.x or `[  12s] ` of 0.x.
func head(s *scan.Line) (seconds int, ok bool) {
	if !s.Literal("[") {
		return 0, false
	}
	if seconds, ok = s.Int(); !ok || !s.Literal("s") {
		return 0, false
	}
	s.Literal(" ")
	return seconds, s.Literal("] ")
}

// stamped reads a line that begins with a time in brackets: an interval into p.scratch, or another
// line with p.queue or p.checkpoint.
func (p *Parser) stamped(line []byte, emit func(*tool.Report)) tool.Verdict {
	s := scan.New(line)
	seconds, ok := head(&s)
	if !ok {
		return p.fragment(line)
	}
	rest := s.Rest()
	p.scratch.Reset(tool.Interval, 0)
	p.scratch.ElapsedSeconds = series.Some(float64(seconds))
	var f form
	got := foreign
	switch s.Next() {
	case 't':
		f, got = p.threads(&s)
	case 'r':
		f, got = p.files(&s)
	case 'q':
		return p.queue(&s, seconds, emit)
	case 'C':
		if s.Literal("Checkpoint report:") && s.End() {
			p.checkpoint(emit)
			return tool.Reported
		}
	default:
		f, got = p.memory(&s)
	}
	if got == read && s.End() && !p.shortened(f) {
		return p.interval(f, emit)
	}
	if got == foreign && !resembles(rest) {
		return tool.Ignored
	}
	p.run.gap = true
	return tool.Malformed
}

// threads reads `thds: …` of 1.x, and `threads: …` of 0.x and of 1.0 before its release.
func (p *Parser) threads(s *scan.Line) (form, reading) {
	if !s.Literal("thds: ") && !s.Literal("threads: ") {
		return form{}, foreign
	}
	n, ok := s.Int()
	if !ok {
		return form{}, damaged
	}
	p.scratch.Threads = series.Some(n)
	switch {
	case s.Literal(" tps: "):
		return p.database(s)
	case s.Literal(", tps: "):
		return p.legacy(s)
	case s.Literal(" eps: "), s.Literal(" events/s: "):
		ok := rate(s, p.scratch, tool.Transaction) && s.Literal(" ") && p.latencies(s)
		return form{family: builtIn, queued: true}, readIf(ok)
	}
	return form{}, damaged
}

// database reads the text after `tps: ` in 1.x.
func (p *Parser) database(s *scan.Line) (form, reading) {
	f := form{family: builtIn, queued: true}
	ok := rate(s, p.scratch, tool.Transaction) &&
		s.Literal(" qps: ") && rate(s, p.scratch, tool.Query) &&
		s.Literal(" (r/w/o: ") && rate(s, p.scratch, tool.Read) && s.Literal("/") &&
		rate(s, p.scratch, tool.Write) && s.Literal("/") && rate(s, p.scratch, tool.Other) &&
		s.Literal(") ") && p.latencies(s) &&
		(s.Literal(" err/s") || s.Literal(" errors/s"))
	if !ok {
		return f, damaged
	}
	if !s.Literal(":") { // the Lua function lacks the colon
		f = form{family: luaDefault}
	}
	ok = s.Literal(" ") && setNumber(s, p.scratch, tool.ErrorRate) &&
		(s.Literal(" reconn/s: ") || s.Literal(" reconnects/s: ")) && setNumber(s, p.scratch, tool.ReconnectRate)
	return f, readIf(ok)
}

// latencies reads `lat (ms,95%): 1.23`, or the form of 1.0 before its release. A build that
// supports several percentiles repeats it.
func (p *Parser) latencies(s *scan.Line) bool {
	if s.Literal("latency: ") {
		return p.legacyLatency(s, 2)
	}
	for n := range maxLatencies {
		before := *s
		if n > 0 && !s.Literal(" ") || !s.Literal("lat (ms,") && !s.Literal("latency (ms,") {
			*s = before
			return n > 0
		}
		if !p.latency(s, 2) {
			return false
		}
	}
	return true
}

// latency reads `95%): 1.23`, milliseconds.
func (p *Parser) latency(s *scan.Line, places int) bool {
	stat, ok := p.percentile(s)
	if !ok || !s.Literal("%): ") {
		return false
	}
	seconds, ok := s.Fixed(places, 3)
	if ok {
		addLatency(p.scratch, stat, seconds)
	}
	return ok
}

// legacyLatency reads `1.23ms (95%)`.
func (p *Parser) legacyLatency(s *scan.Line, places int) bool {
	seconds, ok := s.Fixed(places, 3)
	if !ok || !s.Literal("ms (") {
		return false
	}
	stat, ok := p.percentile(s)
	if !ok || !s.Literal("%)") {
		return false
	}
	addLatency(p.scratch, stat, seconds)
	return true
}

// addLatency adds an interval's latency. 0.00 means no measurement: no event has ended, the
// percentile is off, or a checkpoint has just cleared the histogram.
func addLatency(r *tool.Report, stat string, seconds float64) {
	if seconds > 0 && stat != "p0" {
		r.AddLatency(tool.Transaction, stat, seconds)
	}
}

// legacy reads the text after `tps: ` in 0.x. Parts that older versions do not print are missing at
// the end:
//
//	tps                                                      2010
//	tps, reads/s, writes/s                                   January 2011
//	tps, reads/s, writes/s response time                     July 2011, 0.4 until its end
//	tps, reads/s, writes/s, response time                    0.5 from 2012
//	tps, reads, writes, response time, errors, reconnects    0.5 from October 2014
func (p *Parser) legacy(s *scan.Line) (form, reading) {
	f := form{family: legacy, queued: true, commits: !p.run.before05}
	if !rate(s, p.scratch, tool.Transaction) {
		return f, damaged
	}
	if s.End() {
		return f, read
	}
	perSecond := s.Literal(", reads/s: ")
	if !perSecond && !s.Literal(", reads: ") || !rate(s, p.scratch, tool.Read) ||
		!s.Literal(", writes") || perSecond != s.Literal("/s") || !s.Literal(": ") || !rate(s, p.scratch, tool.Write) {
		return f, damaged
	}
	f.parts = 1
	if s.End() {
		return f, readIf(perSecond)
	}
	comma := s.Literal(",")
	if !s.Literal(" response time: ") || !p.legacyLatency(s, 2) {
		return f, damaged
	}
	f.parts = 2
	if !comma { // 0.4 counts transactions; in its nontrx mode, statements
		f.commits, f.queued = false, false
	}
	for range maxLatencies { // July 2011 printed two
		before := *s
		if !s.Literal(", ") || s.Next() == 'e' {
			*s = before
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
	ok := s.Literal(", errors: ") && setNumber(s, p.scratch, tool.ErrorRate) &&
		s.Literal(", reconnects: ") && setNumber(s, p.scratch, tool.ReconnectRate)
	return f, readIf(ok)
}

// shortened reports whether earlier lines of the run had parts that this line lacks.
func (p *Parser) shortened(f form) bool {
	return f.family == legacy && f.parts < p.run.parts
}

// Operations in addition to the operations of package tool.
const (
	opByte      = "byte"
	opReadByte  = "read_byte"
	opWriteByte = "write_byte"
	opFsync     = "fsync"
)

const mebibyte = 1 << 20 // sysbench 0.x calls it MB

// files reads fileio's line.
func (p *Parser) files(s *scan.Line) (form, reading) {
	if !s.Literal("reads: ") {
		return form{}, foreign
	}
	f := form{family: legacy}
	unit := " MB/s"
	ok := byteRate(s, p.scratch, opReadByte)
	if s.Literal(" MiB/s") {
		f.family, unit = builtIn, " MiB/s"
	} else {
		ok = ok && s.Literal(unit)
	}
	ok = ok && s.Literal(" writes: ") && byteRate(s, p.scratch, opWriteByte) && s.Literal(unit) &&
		s.Literal(" fsyncs: ") && rate(s, p.scratch, opFsync) && s.Literal("/s")
	if !ok {
		return f, damaged
	}
	if f.family == legacy && s.End() {
		return f, read // before September 2011
	}
	f.parts = 1
	if s.Literal(" latency (ms,") {
		return f, readIf(p.latency(s, 3))
	}
	if !s.Literal(" response time: ") {
		return f, damaged
	}
	before := *s
	if ok = p.legacyLatency(s, 3); !ok {
		*s = before
		ok = p.legacyLatency(s, 2) // 0.4
	}
	return f, readIf(ok)
}

// memory reads memory's line, `1105.49 MiB/sec`; 0.x: `1105.49 MB/sec,`.
func (p *Parser) memory(s *scan.Line) (form, reading) {
	f := form{family: builtIn}
	if c := s.Next(); (c < '0' || c > '9') && c != '-' && c != 'n' && c != 'i' || !byteRate(s, p.scratch, opByte) {
		return f, foreign
	}
	switch {
	case s.Literal(" MiB/sec"):
	case s.Literal(" MB/sec"):
		f.family = legacy
	case s.End(), strings.HasPrefix(" MiB/sec", string(s.Rest())), strings.HasPrefix(" MB/sec", string(s.Rest())):
		return f, damaged // cut
	default:
		return f, foreign
	}
	s.Literal(",")
	return f, read
}

// rate reads a number with two decimals as the rate of operation.
func rate(s *scan.Line, r *tool.Report, operation string) bool {
	v, ok := s.Fixed(2, 0)
	if ok && v >= 0 {
		r.AddRate(operation, v)
	}
	return ok
}

// byteRate reads mebibytes per second.
func byteRate(s *scan.Line, r *tool.Report, operation string) bool {
	v, ok := s.Fixed(2, 0)
	if ok && v >= 0 {
		r.AddRate(operation, v*mebibyte)
	}
	return ok
}

// optional reads a number with two decimals.
func optional(s *scan.Line, to *series.Optional[float64]) bool {
	v, ok := s.Fixed(2, 0)
	if ok && v >= 0 {
		*to = series.Some(v)
	}
	return ok
}

// setNumber reads a number with two decimals as the value of a measure.
func setNumber(s *scan.Line, r *tool.Report, m *measure.Measure) bool {
	v, ok := s.Fixed(2, 0)
	if ok && v >= 0 {
		r.Set(m, v)
	}
	return ok
}

// queue reads the second line of an interval with a target rate: `queue length: 65, concurrency:
// 4`. Tests without SQL print no comma.
func (p *Parser) queue(s *scan.Line, seconds int, emit func(*tool.Report)) tool.Verdict {
	if !s.Literal("queue length: ") {
		if resembles(s.Rest()) {
			return tool.Malformed
		}
		return tool.Ignored
	}
	length, ok := s.Int()
	s.Literal(",")
	concurrency := 0
	if ok = ok && s.Literal(" concurrency: "); ok {
		concurrency, ok = s.Int()
	}
	if !ok || !s.End() {
		p.release(emit)
		return tool.Malformed
	}
	p.run.queues = true
	if !p.holding || p.held.ElapsedSeconds.Value != float64(seconds) {
		return tool.Ignored // its interval line is unknown
	}
	p.held.Set(tool.QueueLength, float64(length))
	p.held.Set(tool.Concurrency, float64(concurrency))
	p.release(emit)
	return tool.Reported
}

// count reads a whole number after optional blanks.
func count(s *scan.Line) (uint64, bool) {
	s.Blanks()
	return s.Count()
}

// percentile reads a percentile such as 95 or 99.90 and returns its name, such as p95 or p99.9.
// "p0" means that the percentile is off.
func (p *Parser) percentile(s *scan.Line) (string, bool) {
	s.Blanks()
	text, n := s.Rest(), 0
	for n < len(text) && (text[n]-'0' <= 9 || text[n] == '.') {
		n++
	}
	s.Skip(n)
	stat, ok := p.names.name(text[:n])
	return stat, ok
}

// percentileNames creates the names of percentiles. It remembers the last one, since a run has only
// one.
type percentileNames struct {
	text []byte
	last string
}

func (p *percentileNames) name(text []byte) (string, bool) {
	if p.last != "" && bytes.Equal(p.text, text) {
		return p.last, true
	}
	if len(text) > 8 {
		return "", false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v >= 0 && v <= 100) || text[0] == '.' || text[len(text)-1] == '.' {
		return "", false
	}
	p.text = append(p.text[:0], text...)
	p.last = percentileName(v)
	return p.last, true
}

func percentileName(percent float64) string { return "p" + strconv.FormatFloat(percent, 'f', -1, 64) }

// resembles reports whether text after a time stamp is part of one of sysbench's lines rather than
// output of a script.
func resembles(text []byte) bool {
	for _, word := range []string{"thds: ", "threads: ", "queue length: ", "reads: ", "Checkpoint report:"} {
		n := min(len(text), len(word))
		if string(text[:n]) == word[:n] {
			return true
		}
	}
	return scan.ContainsAny(text, fragments...)
}

// fragments occur in interval lines and hardly anywhere else.
var fragments = []string{"thds: ", " tps: ", "(r/w/o: ", "lat (ms,", "reconn/s: ", "queue length: ", "response time: ", "] threads: "}

// fragment classifies a line that no other function recognised: it is Malformed if it contains a
// piece of an interval line.
func (p *Parser) fragment(line []byte) tool.Verdict {
	if !scan.ContainsAny(line, fragments...) && !cutStamp.Match(line) {
		return tool.Ignored
	}
	p.run.gap = true
	return tool.Malformed
}

// cutStamp matches a truncated time stamp: `[ 12`, `[ 12s`, `[ 12s ]`.
var cutStamp = regexp.MustCompile(`^\[[ \t]*[0-9]+(?:s ?)?\]?[ \t]*$`)
