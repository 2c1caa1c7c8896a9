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
	refresh int  // of the transaction counter in seconds; 0: unknown
	counts  bool // the transaction counter is used
	// counterLog: the transaction counter's own log follows, and none of its lines was read.
	counterLog bool
	labels     []tool.Label
	began      time.Time // of the log that follows; zero: unknown
	run        run
	queries    queries
	profile    profile
	jobs       jobs
	// jobBegan is when the next run's job began, according to the job database; zero: unknown.
	jobBegan time.Time
	printed  bool               // a run was read that is not in JSON
	results  map[[2]uint64]bool // NOPM and TPM that were read
	report   tool.Report
	summary  tool.Pending // of the current run
	// message: the previous lines are an error of a virtual user, which goes on until the next line that HammerDB begins.
	message []byte
}

// run is the state of the current run.
type run struct {
	workload  string
	verb      string // empty: not known yet
	fresh     bool   // only the script's settings were read
	threads   series.Optional[int]
	counted   int // intervals of the transaction counter, with the first, which covers nothing
	phase     tool.Phase
	straddles bool      // the interval in which the ramp-up ended is not over
	rampup    int       // minutes
	minutes   int       // of the measured period
	jobBegan  time.Time // according to the job database; zero: unknown
	ended     bool      // its measured period
	// Time of the transaction counter's last line, if its lines have one, and how long it counted until then.
	counterAt      time.Time
	counterSeconds float64
	monitored      bool // by a virtual user that prints the result
	resulted       bool // its result was read
	done           bool // all virtual users
	failed         int  // virtual users
	cause          string
}

// NewParser returns a parser of one output.
func NewParser() *Parser { return &Parser{results: map[[2]uint64]bool{}} }

// Parse implements tool.Parser.
func (p *Parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	if line.Cut {
		return tool.Malformed
	}
	whole := scan.TrimEnd(line.Text)
	text := bytes.TrimPrefix(scan.TrimStart(whole), []byte("hammerdb>")) // the prompt of a terminal
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
	case '0' <= text[0] && text[0] <= '9':
		return p.counter(l, emit)
	case l.Literal("Vuser "):
		return p.user(l, emit)
	case l.Literal("Error in Virtual User "):
		return p.userError(text, emit)
	case l.Literal(">>>>> "), l.Literal("CALLS: "), l.Literal("P99: "):
		return p.timing(text)
	case l.Literal("TEST RESULT : "):
		return p.result(l, emit)
	case bytes.Contains(text, []byte(profileHeader)):
		return p.openProfile(text, emit)
	case bytes.Equal(text, []byte("ALL VIRTUAL USERS COMPLETE")):
		return p.complete(emit)
	case strings.IndexByte(`"{[}]`, text[0]) >= 0:
		return p.json(whole, emit)
	}
	return p.word(l, emit)
}

// userError reads the beginning of a database's message to a virtual user.
func (p *Parser) userError(text []byte, emit func(*tool.Report)) tool.Verdict {
	p.need(emit)
	p.message = append([]byte{}, text...)
	return tool.Reported
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
			p.refresh, p.counts = n, true
			return tool.Ignored
		}
		return tool.Malformed
	case l.Literal("Benchmark set to "):
		p.open("", series.Optional[int]{}, emit, workloadOf(l.Rest()))
		p.run.fresh = true
		return tool.Reported
	case l.Literal(jobHeader):
		p.jobBegins(l.Rest(), emit)
		return tool.Ignored
	case l.Literal("Hammerdb Log @ "):
		p.close(emit)
		p.began = clock(l.Rest())
		return tool.Ignored
	case l.Literal("Hammerdb Transaction Counter Log @ "): // hdbtcount.log, which has nothing else of a run
		p.close(emit)
		p.began, p.counterLog = clock(l.Rest()), true
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
	}
	return p.monitor(l, emit)
}

// monitor reads what a virtual user says, mostly the one that monitors the others.
func (p *Parser) monitor(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	rest := l.Rest()
	switch {
	case l.Literal("Beginning rampup time of "):
		p.begin(emit)
		p.run.rampup, _ = l.Int()
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
	case bytes.HasPrefix(rest, []byte("CREATING ")) && bytes.HasSuffix(rest, []byte(" SCHEMA")):
		return p.does(verbPrepare, emit)
	case l.Literal("CHECKING TPC"), l.Literal("CHECK: "):
		return p.does(verbCheck, emit)
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

// does names the verb of a run whose log has only what its virtual users print.
func (p *Parser) does(verb string, emit func(*tool.Report)) tool.Verdict {
	p.need(emit)
	if p.run.verb != "" {
		return tool.Ignored
	}
	p.run.verb = verb
	r := &p.report
	r.Reset(tool.Start, p.number)
	r.Tool, r.Version, r.Command = Name, p.version, verb
	p.emit(emit)
	return tool.Reported
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
	rest, at, timed := cutTime(l.Rest())
	operation, per := tool.Transaction, 60.0
	switch {
	case bytes.HasSuffix(rest, []byte(" tpm")), bytes.Equal(rest, []byte("tpm")):
	case bytes.HasSuffix(rest, []byte(" qph")), bytes.Equal(rest, []byte("qph")):
		operation, per = tool.Query, 3600
	default:
		return p.created(l, n, emit)
	}
	if p.counterLog && timed { // without times, nothing is known of its intervals
		p.open(verbRun, series.Optional[int]{}, emit, "")
		p.counterLog = false
	}
	if p.number == 0 || p.run.done || p.run.ended {
		return tool.Ignored // the counter runs on until it is stopped, also after a run
	}
	p.need(emit)
	p.counts = true
	previous := p.run.counterAt
	p.run.counterAt = at
	if p.run.counted++; p.run.counted == 1 && n == 0 {
		return tool.Reported // the counter has just begun
	}
	r := &p.report
	r.Reset(tool.Interval, p.number)
	r.Phase, r.Threads = p.run.phase, p.run.threads
	if p.run.straddles {
		r.Phase, p.run.straddles = tool.Warmup, false
	}
	if seconds := at.Sub(previous).Seconds(); timed && !previous.IsZero() && seconds > 0 {
		p.run.counterSeconds += seconds
		r.IntervalSeconds, r.ElapsedSeconds = series.Some(seconds), series.Some(p.run.counterSeconds)
	} else if p.refresh > 0 && !timed {
		r.IntervalSeconds = series.Some(float64(p.refresh))
		if p.run.counted > 1 { // otherwise the log does not begin with the run
			r.ElapsedSeconds = series.Some(float64(p.refresh * (p.run.counted - 1)))
		}
	}
	r.AddRate(operation, float64(n)/per)
	p.emit(emit)
	return tool.Reported
}

// cutTime removes the time that "tcset timestamps 1" adds to the lines of hdbtcount.log: " @ Thu Jun 30 21:18:41 UTC 2022".
// It is for comparing with others of the same log: an abbreviated zone may be unknown.
func cutTime(rest []byte) (text []byte, at time.Time, ok bool) {
	before, after, ok := bytes.Cut(rest, []byte(" @ "))
	if !ok {
		return rest, at, false
	}
	at, err := time.Parse(tclClock, string(bytes.TrimSpace(after)))
	return before, at, err == nil
}

// created reads "3 Virtual Users Created with Monitor VU".
func (p *Parser) created(l scan.Line, n uint64, emit func(*tool.Report)) tool.Verdict {
	if rest, ok := bytes.CutPrefix(l.Rest(), []byte("Virtual Users Created")); ok && n > 0 && n < 1<<20 {
		monitored := bytes.Contains(rest, []byte("Monitor"))
		if monitored {
			n--
		}
		p.open(verbRun, series.Some(int(n)), emit, "")
		p.run.monitored = monitored
		return tool.Reported
	}
	return tool.Ignored
}

// result reads "System achieved 8108 NOPM from 18840 MariaDB TPM" and, from versions before 4, "System achieved 18840
// MariaDB TPM at 8108 NOPM".
func (p *Parser) result(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	nopm, tpm, ok := readResult(l)
	if !ok {
		return tool.Malformed
	}
	if p.jobs.reading && p.results[[2]uint64{nopm, tpm}] {
		return tool.Reported
	}
	p.run.done = p.run.done || p.run.resulted // lines of results only
	p.need(emit)
	p.achieved(nopm, tpm)
	return tool.Reported
}

// readResult reads NOPM and TPM.
func readResult(l scan.Line) (nopm, tpm uint64, ok bool) {
	if !l.Literal("System achieved ") {
		return 0, 0, false
	}
	first, ok := l.Count()
	if !ok {
		return 0, 0, false
	}
	after := " TPM"
	if _, ok := l.Until(" NOPM from "); !ok { // some wrappers name the database before both numbers
		if _, ok := l.Until(" TPM at "); !ok {
			return 0, 0, false
		}
		after = " NOPM"
	}
	second, ok := l.Count()
	if !ok || !bytes.HasSuffix(l.Rest(), []byte(after)) {
		return 0, 0, false
	}
	if after == " TPM" {
		return first, second, true
	}
	return second, first, true
}

// achieved makes the summary of a run of TPROC-C.
func (p *Parser) achieved(nopm, tpm uint64) {
	if len(p.results) < mostResults {
		p.results[[2]uint64{nopm, tpm}] = true
	}
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
}

// complete ends a run: all its virtual users have ended.
func (p *Parser) complete(emit func(*tool.Report)) tool.Verdict {
	if p.number == 0 || p.run.done {
		return tool.Ignored // the run is not in this log
	}
	p.sumQueries()
	if p.run.monitored && !p.run.resulted && p.run.failed == 0 && p.summary.Report() == nil {
		p.report.ResetError(p.number, "all virtual users ended, and the one that monitors them printed no result", true)
		emit(&p.report)
	}
	p.settle()
	return tool.Reported
}

// settle ends the current run. Its summary is emitted when the next run or the end of the log shows that the script
// prints no more of it, such as the timing of the job. What follows of other settings belongs to the next run.
func (p *Parser) settle() {
	if p.run.done || p.number == 0 {
		return
	}
	if r := p.summary.Report(); r != nil {
		r.Labels, p.labels = p.labels, nil
	}
	// What the log says about the program before the next run is read again: each run must have the same values if it is
	// read without the others.
	p.run.done, p.run.workload = true, ""
	p.version, p.refresh, p.counts = "", 0, false
}

// emitSummary emits the summary of the current run, if it has one.
func (p *Parser) emitSummary(emit func(*tool.Report)) {
	p.settle()
	p.summary.Emit(emit)
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
	if p.run.fresh && p.jobBegan.IsZero() {
		p.jobBegan = p.run.jobBegan
	}
	p.run = run{workload: workload, verb: verb, threads: threads, jobBegan: p.jobBegan}
	p.profile, p.jobBegan = profile{}, time.Time{}
	p.printed = p.printed || !p.jobs.reading
	r := &p.report
	r.Reset(tool.Start, p.number)
	r.Tool, r.Version, r.Workload, r.Command, r.Threads = Name, p.version, workload, verb, threads
	r.Began, p.began = p.began, time.Time{}
	if p.counts && p.refresh > 0 && verb == verbRun {
		r.IntervalSeconds = series.Some(float64(p.refresh))
	}
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
	p.settle()
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

// tclClock is Tcl's default form of a time.
const tclClock = "Mon Jan _2 15:04:05 MST 2006"

// clock reads Tcl's default form of a time. An abbreviated zone is only known if it is UTC or this machine's.
func clock(text []byte) time.Time {
	t, err := time.ParseInLocation(tclClock, string(bytes.TrimSpace(text)), time.Local)
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
