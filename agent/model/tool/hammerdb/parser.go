package hammerdb

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// Verbs of runs, as other tools call them.
const (
	verbRun     = "run"
	verbPrepare = "prepare"
	verbCheck   = "check"
	verbCleanup = "cleanup"
)

// Workloads.
const (
	oltp = "tproc-c"
	olap = "tproc-h"
)

// defaultRefresh is the refresh rate of the transaction counter in seconds, unless the log names another one.
const defaultRefresh = 10

// mostFailures bounds the messages of failed virtual users that are reported for one run.
const mostFailures = 16

// Parser reads the output of hammerdbcli, its files hammerdb.log and hdbxtprofile.log, and the lists that
// its command jobs prints.
//
// The transaction counter prints no time, so an interval is as long as the counter's refresh rate, and the clock counts
// them. Without the beginning of the output the rate is unknown, and so is the time. Its first line after a start covers nothing. An interval that ends after the measured period is left out: part of
// it is not in the result.
type Parser struct {
	number  int
	version string
	refresh int // of the transaction counter in seconds; 0: unknown
	labels  []tool.Label
	began   time.Time // of the log that follows; zero: unknown
	run     run
	queries queries
	profile profile
	report  tool.Report
	summary tool.Pending // of the current run
	// message: the previous lines are an error of a virtual user, which goes on until the next line that HammerDB begins.
	message []byte
}

// run is the state of the current run.
type run struct {
	workload  string
	fresh     bool // only the script's settings were read
	threads   series.Optional[int]
	counted   int // intervals of the transaction counter, with the first, which covers nothing
	phase     tool.Phase
	straddles bool // the interval in which the ramp-up ended is not over
	minutes   int  // of the measured period
	ended     bool // its measured period
	resulted  bool // its result was read
	done      bool // all virtual users
	failed    int  // virtual users
	cause     string
}

// NewParser returns a parser of one output.
func NewParser() *Parser { return &Parser{} }

// Parse implements tool.Parser.
func (p *Parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	if line.Cut {
		return tool.Malformed
	}
	text := bytes.Trim(line.Text, "\r ")
	if line.Stream == tool.Stderr {
		return p.stderr(text, emit)
	}
	if len(text) == 0 {
		p.endMessage()
		return tool.Ignored
	}
	if p.message != nil && !begins(text) {
		if len(p.message) < message.MaxRead {
			p.message = append(append(p.message, ' '), text...)
		}
		return tool.Reported
	}
	p.endMessage()
	l := scan.New(text)
	switch {
	case l.Literal("Vuser "):
		return p.user(l, emit)
	case l.Literal("Error in Virtual User "):
		p.need(emit)
		p.message = append([]byte{}, text...)
		return tool.Reported
	case l.Literal(">>>>> "), l.Literal("CALLS: "), l.Literal("P99: "):
		return p.timing(text)
	case l.Literal("TEST RESULT : "):
		return p.result(l, emit)
	case bytes.Contains(text, []byte(profileHeader)):
		return p.openProfile(text, emit)
	case bytes.Equal(text, []byte("ALL VIRTUAL USERS COMPLETE")):
		return p.complete(emit)
	case '0' <= text[0] && text[0] <= '9':
		return p.counter(l, emit)
	}
	return p.word(l, emit)
}

// stderr reads a line of standard error, which has what Tcl prints when a script can't be run.
func (p *Parser) stderr(text []byte, emit func(*tool.Report)) tool.Verdict {
	if !scan.HasAnyPrefix(text, "couldn't read file ", "can't find package ", "invalid command name ") {
		return tool.Ignored
	}
	var r tool.Report
	r.ResetError(1, message.Clean(text), true)
	emit(&r)
	return tool.Reported
}

// begins reports whether HammerDB begins this line, which is therefore no continuation of a database's message.
func begins(text []byte) bool {
	return scan.HasAnyPrefix(text, "Vuser ", "Error in Virtual User ", "ALL VIRTUAL USERS ", "TEST ", "Transaction Counter ") ||
		bytes.HasSuffix(text, []byte(" tpm")) || bytes.HasSuffix(text, []byte(" qph"))
}

// word reads the lines that the command line interface prints.
func (p *Parser) word(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	switch {
	case l.Literal("HammerDB CLI v"):
		p.close(emit)
		p.version = string(l.Rest())
		p.refresh = cmp.Or(p.refresh, defaultRefresh)
		return tool.Ignored
	case l.Literal("Transaction Counter refresh rate set to "):
		if n, ok := l.Int(); ok && n > 0 {
			p.refresh = n
			return tool.Ignored
		}
		return tool.Malformed
	case l.Literal("Benchmark set to "):
		p.open("", series.Optional[int]{}, emit, workloadOf(l.Rest()))
		p.run.fresh = true
		return tool.Reported
	case l.Literal("Hammerdb Log @ "):
		p.close(emit)
		p.began = clock(l.Rest())
		return tool.Ignored
	case l.Literal("+-+-+"):
		p.endProfile()
		return tool.Ignored
	case l.Literal("Building "):
		return p.building(l, emit)
	case l.Literal("Checking schema with "):
		p.open(verbCheck, series.Optional[int]{}, emit, "")
		return tool.Reported
	case l.Literal("Deleting schema with "), l.Literal("Do you want to delete the "):
		p.open(verbCleanup, series.Optional[int]{}, emit, "")
		return tool.Reported
	case l.Literal("Changed "), l.Literal("Value "):
		p.setting(l.Rest())
		return tool.Ignored
	}
	return tool.Ignored
}

// workloadOf returns the workload of "TPC-C for MariaDB".
func workloadOf(name []byte) string {
	switch {
	case scan.HasAnyPrefix(name, "TPC-C", "TPROC-C"):
		return oltp
	case scan.HasAnyPrefix(name, "TPC-H", "TPROC-H"):
		return olap
	}
	return ""
}

// building reads "Building 2 Warehouses with 3 Virtual Users, 2 active + 1 Monitor VU(…)" and the same with
// "1 Scale Factor".
func (p *Parser) building(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	n, ok := l.Int()
	l.Blanks()
	unit, found := l.Until(" with ")
	users, counted := l.Int()
	if !ok || !found || !counted {
		return tool.Ignored
	}
	label, workload := "warehouses", oltp
	if bytes.Contains(unit, []byte("Scale")) {
		label, workload = "scale_factor", olap
	}
	if _, more := l.Until(", "); more {
		if active, ok := l.Int(); ok {
			users = active
		}
	}
	p.labels = append(p.labels, tool.Label{Name: label, Value: fmt.Sprint(n)})
	p.open(verbPrepare, series.Some(users), emit, workload)
	return tool.Reported
}

// user reads the line of a virtual user, which begins with "Vuser N:".
func (p *Parser) user(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	user, ok := l.Int()
	if !ok || !l.Literal(":") {
		return tool.Ignored // created MONITOR - WAIT IDLE
	}
	rest := l.Rest()
	switch {
	case bytes.Equal(rest, []byte("RUNNING")):
		p.need(emit)
		return tool.Ignored
	case bytes.Equal(rest, []byte("FINISHED FAILED")):
		return p.userFailed(user, emit)
	case l.Literal("Beginning rampup time of "):
		p.begin(emit)
		return tool.Reported
	case l.Literal("Rampup complete"):
		p.need(emit)
		p.run.phase, p.run.straddles = tool.Measure, p.run.counted > 1
		return tool.Reported
	case l.Literal("Timing test period of "):
		p.need(emit)
		if n, ok := l.Int(); ok {
			p.run.minutes = n
		}
		return tool.Reported
	case l.Literal("Test complete"):
		p.run.ended = true
		return tool.Reported
	case l.Literal("TEST RESULT : "):
		return p.result(l, emit)
	case bytes.HasSuffix(rest, []byte(" Active Virtual Users configured")):
		if n, ok := l.Int(); ok {
			p.run.threads = series.Some(n)
		}
		return tool.Reported
	case l.Literal("DBVersion:"):
		p.label("server_version", string(bytes.TrimSpace(l.Rest())))
		return tool.Reported
	case l.Literal("query "), l.Literal("Completed "), l.Literal("Geometric mean "):
		return p.query(rest, emit)
	}
	return tool.Ignored
}

// begin begins a run with the ramp-up of its monitor, unless it has begun.
func (p *Parser) begin(emit func(*tool.Report)) {
	if p.number == 0 || p.run.done || p.run.ended || p.run.minutes > 0 {
		p.open("", series.Optional[int]{}, emit, oltp)
	}
	p.run.fresh = false
	p.run.phase = tool.Warmup
}

// userFailed notes that a virtual user ended with an error. HammerDB's exit status is 0 nevertheless.
func (p *Parser) userFailed(user int, emit func(*tool.Report)) tool.Verdict {
	p.need(emit)
	p.run.failed++
	text := fmt.Sprintf("virtual user %d failed", user)
	if p.run.cause != "" {
		text += ": " + p.run.cause
		p.run.cause = ""
	}
	if p.run.failed <= mostFailures {
		p.report.ResetError(p.number, text, true)
		emit(&p.report)
	}
	return tool.Reported
}

// endMessage keeps a message of a virtual user that is complete. "FINISHED FAILED" follows it.
func (p *Parser) endMessage() {
	if p.message == nil {
		return
	}
	text := p.message
	p.message = nil
	if _, after, ok := bytes.Cut(text, []byte(": ")); ok {
		text = after
	}
	p.run.cause = message.Clean(text)
}

// counter reads "15552 MariaDB tpm", what the transaction counter saw since its previous line, and the same of queries
// per hour.
func (p *Parser) counter(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	n, ok := l.Count()
	if !ok || !l.Literal(" ") {
		return p.created(l, n, emit)
	}
	rest := l.Rest()
	operation, per := tool.Transaction, 60.0
	switch {
	case bytes.HasSuffix(rest, []byte(" tpm")), bytes.Equal(rest, []byte("tpm")):
	case bytes.HasSuffix(rest, []byte(" qph")), bytes.Equal(rest, []byte("qph")):
		operation, per = tool.Query, 3600
	default:
		return p.created(l, n, emit)
	}
	if p.number == 0 || p.run.done || p.run.ended {
		return tool.Ignored // the counter runs on until it is stopped, also after a run
	}
	p.need(emit)
	if p.run.counted++; p.run.counted == 1 && n == 0 {
		return tool.Reported // the counter has just begun
	}
	r := &p.report
	r.Reset(tool.Interval, p.number)
	r.Phase, r.Threads = p.run.phase, p.run.threads
	if p.run.straddles {
		r.Phase, p.run.straddles = tool.Warmup, false
	}
	if p.refresh > 0 {
		r.IntervalSeconds = series.Some(float64(p.refresh))
		if p.run.counted > 1 { // otherwise the log does not begin with the run
			r.ElapsedSeconds = series.Some(float64(p.refresh * (p.run.counted - 1)))
		}
	}
	r.AddRate(operation, float64(n)/per)
	p.emit(emit)
	return tool.Reported
}

// created reads "3 Virtual Users Created with Monitor VU".
func (p *Parser) created(l scan.Line, n uint64, emit func(*tool.Report)) tool.Verdict {
	if rest, ok := bytes.CutPrefix(l.Rest(), []byte("Virtual Users Created")); ok && n > 0 && n < 1<<20 {
		if bytes.Contains(rest, []byte("Monitor")) {
			n--
		}
		p.open(verbRun, series.Some(int(n)), emit, "")
		return tool.Reported
	}
	return tool.Ignored
}

// result reads "System achieved 8108 NOPM from 18840 MariaDB TPM" and, from versions before 4, "System achieved 18840
// MariaDB TPM at 8108 NOPM".
func (p *Parser) result(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	if !l.Literal("System achieved ") {
		return tool.Malformed
	}
	first, ok := l.Count()
	if !ok {
		return tool.Malformed
	}
	nopm, tpm := first, first
	between, at := " NOPM from ", " TPM"
	if !l.Literal(between) {
		if _, ok := l.Until(" TPM at "); !ok {
			return tool.Malformed
		}
		at = " NOPM"
	}
	second, ok := l.Count()
	if !ok || !bytes.HasSuffix(l.Rest(), []byte(at)) {
		return tool.Malformed
	}
	if at == " TPM" {
		tpm = second
	} else {
		nopm = second
	}
	p.run.done = p.run.done || p.run.resulted // lines of results only
	p.need(emit)
	p.run.workload, p.run.ended, p.run.resulted = oltp, true, true
	r := p.summary.Begin(tool.Summary, p.number)
	r.Threads = p.run.threads
	if p.run.minutes > 0 {
		r.ElapsedSeconds = series.Some(60 * float64(p.run.minutes))
	}
	r.AddRate(tool.Transaction, float64(tpm)/60)
	r.AddRate(tool.NewOrder, float64(nopm)/60)
	r.Set(tool.NOPM, float64(nopm))
	r.Set(tool.TPM, float64(tpm))
	return tool.Reported
}

// complete ends a run: all its virtual users have ended.
func (p *Parser) complete(emit func(*tool.Report)) tool.Verdict {
	p.need(emit)
	p.sumQueries()
	p.emitSummary(emit)
	p.forget()
	return tool.Reported
}

// forget ends the current run. What the log says about the program before the next run is read again: each run must
// have the same values if it is read without the others.
func (p *Parser) forget() {
	p.run.done, p.run.workload = true, ""
	p.version, p.refresh = "", 0
}

// emitSummary emits the summary of the current run, if it has one.
func (p *Parser) emitSummary(emit func(*tool.Report)) {
	if r := p.summary.Report(); r != nil {
		r.Labels, p.labels = p.labels, nil
		p.summary.Emit(emit)
	}
}

// need begins a run unless one has begun.
func (p *Parser) need(emit func(*tool.Report)) {
	if p.number == 0 || p.run.done {
		p.open("", series.Optional[int]{}, emit, "")
	}
	p.run.fresh = false
}

// open begins the next run, or says more about one that only its script's settings have begun.
func (p *Parser) open(verb string, threads series.Optional[int], emit func(*tool.Report), workload string) {
	if workload = cmp.Or(workload, p.run.workload); !p.run.fresh || p.run.done {
		p.close(emit)
		p.number++
	}
	p.run = run{workload: workload, threads: threads}
	p.profile = profile{}
	r := &p.report
	r.Reset(tool.Start, p.number)
	r.Tool, r.Version, r.Workload, r.Command, r.Threads = Name, p.version, workload, verb, threads
	r.Began, p.began = p.began, time.Time{}
	p.emit(emit)
}

// emit emits the report with the labels that no report has yet.
func (p *Parser) emit(emit func(*tool.Report)) {
	p.report.Labels, p.labels = p.labels, nil
	emit(&p.report)
}

// close ends what belongs to the current run.
func (p *Parser) close(emit func(*tool.Report)) {
	p.Close(emit)
	if !p.run.done && p.number > 0 {
		p.forget()
	}
}

// Close implements tool.Parser.
func (p *Parser) Close(emit func(*tool.Report)) {
	p.endMessage()
	if p.number > 0 {
		p.sumQueries()
		p.endProfile()
		p.emitSummary(emit)
	}
}

// label adds a label to the next report.
func (p *Parser) label(name, value string) {
	for i := range p.labels {
		if p.labels[i].Name == name {
			p.labels[i].Value = value
			return
		}
	}
	p.labels = append(p.labels, tool.Label{Name: name, Value: value})
}

// clock reads Tcl's default form of a time. An abbreviated zone is only known if it is UTC or this machine's.
func clock(text []byte) time.Time {
	t, err := time.ParseInLocation("Mon Jan _2 15:04:05 MST 2006", string(bytes.TrimSpace(text)), time.Local)
	zone, offset := t.Zone()
	if err != nil || offset == 0 && zone != "UTC" && zone != "GMT" {
		return time.Time{}
	}
	return t
}

// setting reads a setting of the dictionary that a command repeats: "tpcc:maria_rampup from 2 to 1 for MariaDB", or
// "1 for tpcc:maria_rampup is the same as existing value 1, no change made".
func (p *Parser) setting(text []byte) {
	s := string(text)
	var key, value string
	if before, _, ok := strings.Cut(s, " is the same as existing value "); ok {
		value, key, _ = strings.Cut(before, " for ")
	} else if before, after, ok := strings.Cut(s, " from "); ok {
		key = before
		_, value, _ = strings.Cut(after, " to ")
		if i := strings.LastIndex(value, " for "); i >= 0 {
			value = value[:i]
		}
	}
	if label := settingLabel(key); label != "" && value != "" && value != "false" && value != "0" && len(value) < 64 {
		p.label(label, value)
	}
}
