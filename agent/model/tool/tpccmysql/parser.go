package tpccmysql

import (
	"bytes"
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// Beginnings of an output, after a line of stars.
const (
	startBanner = "*** ###easy### TPC-C Load Generator ***"
	loadBanner  = "*** TPCC-mysql Data Loader        ***"
)

// defaultInterval is PRINT_INTERVAL of src/main.c, in seconds.
const defaultInterval = 10

// kinds are the five transactions in the order in which they are printed.
var kinds = [5]string{"new_order", "payment", "order_status", "delivery", "stock_level"}

// lateKinds are transactions that exceeded their limit; kinds includes them.
var lateKinds = [5]string{"new_order_late", "payment_late", "order_status_late", "delivery_late", "stock_level_late"}

// opRetry counts transactions that were tried again.
const opRetry = "retry"

// Parser reads the output of tpcc_start and tpcc_load. It holds back only the start of a run, until
// the output names the number of connections.
type Parser struct {
	number  int // of the current run, 0 before the first
	run     run
	report  tool.Report
	results results
}

// run is the state of the current run.
type run struct {
	banner  bool // its first line was seen
	loader  bool // it is tpcc_load
	started bool // its start was reported
	rampUp  bool // it began with a ramp-up

	threads series.Optional[int]
	every   int  // seconds between intervals, 0 if unknown
	assumed bool // every is the default: the clock decides
	clock   int  // of the last interval, in seconds
	refused int  // connections that failed
	cause   string
}

// NewParser returns a parser for one output.
func NewParser() *Parser { return &Parser{} }

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
	if l := scan.New(text); startsWithNumber(&l) {
		if serverError(text) {
			return p.fail(text, false, emit)
		}
		return p.interval(text, emit)
	}
	if p.results.open {
		return p.result(text, emit)
	}
	return p.word(text, emit)
}

// Close reports what was held back.
func (p *Parser) Close(emit func(*tool.Report)) {
	if p.number > 0 {
		p.start(emit)
		p.summary(emit)
	}
}

// word reads the lines other than intervals.
func (p *Parser) word(text []byte, emit func(*tool.Report)) tool.Verdict {
	l := scan.New(text)
	switch {
	case string(text) == startBanner, string(text) == loadBanner:
		p.open(emit)
		p.run.banner = true
		p.run.every, p.run.assumed = defaultInterval, true
		p.run.loader = string(text) == loadBanner
		return tool.Reported
	case l.Literal("option c with value '"):
		return p.setting(&l, "'", func(n int) { p.run.threads = series.Some(n) })
	case l.Literal(" [connection]: "), l.Literal("[connection]: "):
		return p.setting(&l, "", func(n int) { p.run.threads = series.Some(n) })
	case l.Literal("option i with value '"):
		return p.setting(&l, "'", func(n int) { p.run.every, p.run.assumed = n, false })
	case l.Literal("RAMP-UP TIME.("):
		n, ok := l.Count()
		p.run.rampUp = ok && n > 0
		p.start(emit)
		return tool.Reported
	case l.Literal("TPCC Data Load Started..."):
		p.run.loader = true
		p.start(emit)
		return tool.Reported
	case l.Literal("<Raw Results>"):
		p.results.reset()
		p.results.open = true
		return tool.Reported
	case bytes.HasSuffix(text, []byte("error at thread_main")):
		p.run.refused++
		return p.fail([]byte("error at thread_main"), false, emit)
	case l.Literal("error at "), l.Literal("cannot prase the host"):
		return p.fail(text, true, emit)
	case l.Literal("Usage: tpcc_"):
		// It exits with 0 after a wrong option.
		return p.fail([]byte("an option was refused: it printed its usage"), true, emit)
	case fragment(text):
		return tool.Malformed
	}
	return tool.Ignored
}

// fragment recognises the rest of a truncated interval line.
func fragment(text []byte) bool {
	if scan.ContainsAny(text, "max_rt: ", "9%: ") {
		return true
	}
	if i := bytes.IndexByte(text, '|'); i > 0 && i+1 < len(text) && isDigit(text[i-1]) && isDigit(text[i+1]) {
		return true
	}
	l := scan.New(text)
	l.Blanks()
	_, number := l.Count()
	return number && l.End()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// setting reads the number of a printed option. Whoever published the log may have added a comment after it.
func (p *Parser) setting(l *scan.Line, end string, set func(int)) tool.Verdict {
	n, ok := l.Count()
	if !ok || !l.Literal(end) || !l.End() && l.Next() != ' ' || n > maxSetting {
		return tool.Malformed
	}
	set(int(n))
	return tool.Reported
}

// maxSetting limits connections and seconds.
const maxSetting = 1 << 30

// stderr reads a line of standard error. It does not distinguish runs, so everything belongs to run
// 1.
func (p *Parser) stderr(text []byte, emit func(*tool.Report)) tool.Verdict {
	if !serverError(text) && !scan.HasPrefix(text, "error at ") &&
		!scan.ContainsAny(text, ": invalid option -- ", ": option requires an argument -- ") {
		return tool.Ignored
	}
	r := &p.report
	r.ResetError(1, message.Clean(text), false)
	emit(r)
	return tool.Reported
}

// serverError recognises the output of error() in src/support.c: errno, SQLSTATE and text, as in
// "2002, HY000, Can't connect to server".
func serverError(text []byte) bool {
	l := scan.New(text)
	if _, ok := l.Count(); !ok || !l.Literal(", ") || len(l.Rest()) < 5 {
		return false
	}
	if !scan.Only(l.Rest()[:5], scan.Digits+scan.Capital) {
		return false
	}
	l.Skip(5)
	return l.Literal(", ") || l.Literal(",") && l.End()
}

// fail reports an error of the current run.
func (p *Parser) fail(text []byte, failed bool, emit func(*tool.Report)) tool.Verdict {
	p.start(emit)
	r := &p.report
	r.ResetError(p.number, message.Clean(text), failed)
	if p.run.cause == "" || p.run.cause == "error at thread_main" {
		p.run.cause = r.Message
	}
	emit(r)
	return tool.Reported
}

// open ends the current run and begins the next.
func (p *Parser) open(emit func(*tool.Report)) {
	p.Close(emit)
	p.number++
	p.run = run{}
	p.results.reset()
}

// start reports the run's start, once.
func (p *Parser) start(emit func(*tool.Report)) {
	if p.number == 0 { // an output whose beginning is missing, but perhaps not the end of its options
		options := p.run
		p.open(emit)
		p.run = options
	}
	if p.run.started {
		return
	}
	p.run.started = true
	r := &p.report
	r.Reset(tool.Start, p.number)
	r.Tool, r.Workload, r.Threads = Name, "tpcc", p.run.threads
	if p.run.loader {
		r.Command = "load"
	}
	if p.run.rampUp {
		r.Phase = tool.Warmup
	}
	emit(r)
}

// failure returns why a run without any transaction failed.
func (r *run) failure() string {
	why := "no transaction succeeded"
	if r.refused > 0 {
		why = fmt.Sprintf("%s, %d connections failed", why, r.refused)
	}
	if r.cause != "" && r.cause != "error at thread_main" {
		why += ": " + r.cause
	}
	return why
}
