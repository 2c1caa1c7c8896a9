package benchbase

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// Parser reads the log of BenchBase, or one of its files.
//
// The monitor's lines have a time only as part of the log's header. Their interval is the monitor's, and the clock counts
// them from the start of the first phase. The interval in which the warm-up ended counts as warm-up: a part of it is not
// in the summary.
type Parser struct {
	number  int
	run     run
	counts  counts
	windows windows
	raw     *raw // nil: outside of such a file
	json    json
	// beside are the windows on standard error: import puts a table of them there that a run's other files lack.
	beside       windows
	besideReport tool.Report
	report       tool.Report
	summary      tool.Pending // of the current run; its counts by procedure follow
}

// run is the state of the current run.
type run struct {
	workload, verb string
	threads        series.Optional[int] // of the current phase
	most           int                  // threads of a phase
	began          time.Time            // of a file that shows it; otherwise zero
	files          string               // the common part of the names of its files
	phases         int                  // how many the log announces
	works          []string             // what they do
	started        bool                 // its Start was reported
	interval       int                  // of the monitor in milliseconds; 0: unknown
	counted        int                  // lines of the monitor, with the first one, which covers nothing
	phase          tool.Phase
	straddles      bool // the interval in which the warm-up ended is not over
	seconds        float64
	ended          bool
}

// Parse implements tool.Parser.
func (p *Parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	if line.Cut {
		return tool.Malformed
	}
	text := scan.TrimEnd(line.Text)
	if line.Stream == tool.Stderr {
		return p.stderr(text, emit)
	}
	l := scan.New(text)
	if l.Literal(throughput) { // nearly every line of a log without the header of a logger
		return p.throughput(l, emit)
	}
	if bytes.IndexByte(text, 0x1b) >= 0 {
		text = withoutColours(text)
	}
	text, level := body(text)
	if len(text) == 0 {
		return tool.Ignored
	}
	switch {
	case p.raw != nil && '0' <= text[0] && text[0] <= '9':
		return p.transaction(text, emit)
	case p.windows.columns != nil && '0' <= text[0] && text[0] <= '9':
		return p.windows.row(text, &p.report, p.number, emit)
	case isWindowHeader(text):
		return p.openWindows(text, emit)
	case p.json.open && (text[0] == ' ' || text[0] == '\t'):
		return p.member(text)
	case len(text) == 1 && text[0] == '{':
		p.openJSON(emit)
		return tool.Ignored
	case len(text) == 1 && text[0] == '}':
		p.endJSON(emit)
		return tool.Ignored
	}
	if r := newRaw(text); r != nil {
		return p.openRaw(r, emit)
	}
	l = scan.New(text)
	switch {
	case l.Literal(throughput):
		return p.throughput(l, emit)
	case l.Literal("PHASE START :: "):
		return p.phase(l.Rest(), emit)
	case l.Literal("MEASURE :: "):
		p.need(emit)
		p.run.straddles = p.run.counted > 0
		p.run.phase = tool.Measure
		return tool.Reported
	case l.Literal("Starting MonitorThread Interval ["):
		if n, ok := l.Int(); ok {
			p.run.interval, p.run.counted = n, 0
			return tool.Reported
		}
		return tool.Malformed
	case l.Literal("Rate limited reqs/s: Results("):
		return p.totals(l, emit)
	case l.Literal("Benchmark: "):
		return p.banner(l.Rest(), emit)
	case l.Literal("Terminals: "):
		if n, ok := l.Int(); ok {
			p.run.threads = series.Some(n)
		}
		return tool.Reported
	case l.Literal("Output "):
		return p.file(l)
	case l.Literal("Launching the "):
		if _, ok := l.Until(" with "); ok {
			p.run.phases, _ = l.Int()
		}
		return tool.Ignored
	case l.Literal("TPM-C: "):
		return p.tpmC(l)
	case l.Literal("Skipping benchmark workload execution"):
		if !p.run.ended && !p.run.started {
			p.run.verb = "load"
			p.start(0, emit)
		}
		return tool.Reported
	case level == "ERROR", l.Literal("Unexpected error when "):
		return p.fail(text, emit)
	}
	return p.count(text, emit)
}

// throughput begins the lines of the monitor.
const throughput = "Throughput: "

// mostPhases bounds the phases that a label lists.
const mostPhases = 16

// levels are log4j's and logback's levels that matter.
var levels = []string{"INFO", "WARN", "ERROR", "DEBUG"}

// body returns a line without the header of a logger, and the header's level. Headers are "[INFO ] 2026-11-27
// 14:35:18,708 [main]  com.oltpbenchmark.DBWorkload main - " and OLTPBench's "02:24:40,072 (DBWorkload.java:849) INFO  - ".
func body(text []byte) (rest []byte, level string) {
	if len(text) == 0 || text[0] != '[' && text[0] != '(' && (text[0] < '0' || text[0] > '9') {
		return text, ""
	}
	head, rest, ok := bytes.Cut(text, []byte(" - "))
	if !ok || len(head) > 200 {
		return text, ""
	}
	for _, l := range levels {
		if bytes.Contains(head, []byte(l)) {
			return rest, l
		}
	}
	return text, ""
}

func withoutColours(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != 0x1b {
			out = append(out, text[i])
			continue
		}
		for i < len(text) && (text[i] < 'A' || text[i] == '[') {
			i++
		}
	}
	return out
}

// banner begins a run: "Benchmark:                       TPCC {com.oltpbenchmark.benchmarks.tpcc.TPCCBenchmark}".
func (p *Parser) banner(text []byte, emit func(*tool.Report)) tool.Verdict {
	name, _, ok := bytes.Cut(bytes.TrimSpace(text), []byte(" {"))
	if !ok || !scan.Only(name, scan.Digits+"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-, ") {
		return tool.Ignored
	}
	p.Close(emit)
	p.run = run{workload: strings.ToLower(string(name))}
	p.number++
	return tool.Reported
}

// phase reads the beginning of a phase.
func (p *Parser) phase(text []byte, emit func(*tool.Report)) tool.Verdict {
	if p.run.ended {
		p.Close(emit)
		p.run = run{}
		p.number++
	}
	if workload := field(text, "Workload"); p.run.workload == "" {
		p.run.workload = strings.ToLower(workload)
	}
	workers := scan.New([]byte(field(text, "ActiveWorkers")))
	if n, ok := workers.Int(); ok {
		p.run.threads = series.Some(n)
		p.run.most = max(p.run.most, n)
	}
	rate := scan.New([]byte(field(text, "Rate")))
	target, _ := rate.Int()
	if p.run.phases > 1 { // the run has no one rate
		target = 0
		if len(p.run.works) < mostPhases {
			p.run.works = append(p.run.works, fmt.Sprintf("%s for %s s", field(text, "Rate"), field(text, "Time")))
		}
	}
	p.run.verb = "run"
	if !p.run.started {
		p.run.phase = tool.Warmup
	}
	p.start(target, emit)
	return tool.Reported
}

// field returns the value of "[name=value]".
func field(text []byte, name string) string {
	_, after, ok := bytes.Cut(text, []byte("["+name+"="))
	value, _, end := bytes.Cut(after, []byte("]"))
	if !ok || !end || len(value) > 64 {
		return ""
	}
	return string(value)
}

// need begins a run unless one has begun.
func (p *Parser) need(emit func(*tool.Report)) {
	if p.number == 0 || p.run.ended {
		p.Close(emit)
		p.run = run{}
		p.number++
	}
	p.start(0, emit)
}

// start reports the beginning of the run once.
func (p *Parser) start(rate int, emit func(*tool.Report)) {
	p.number = max(p.number, 1)
	if p.run.started {
		return
	}
	p.run.started = true
	r := &p.report
	r.Reset(tool.Start, p.number)
	r.Tool, r.Workload, r.Command, r.Threads, r.TargetRate, r.Phase = Name, p.run.workload, p.run.verb, p.run.threads, rate, p.run.phase
	r.Began = p.run.began
	emit(r)
}

// throughput reads a line of the monitor, "Throughput: 204.0 txn/sec".
func (p *Parser) throughput(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	rate, _, ok := l.Number(0)
	if !ok || !l.Literal(" txn/sec") {
		return tool.Malformed
	}
	if p.run.ended {
		return tool.Ignored
	}
	p.need(emit)
	if p.run.counted++; p.run.counted == 1 && p.run.interval > 0 {
		return tool.Reported // the monitor has just begun
	}
	r := &p.report
	r.Reset(tool.Interval, p.number)
	r.Phase, r.Threads = p.run.phase, p.run.threads
	if p.run.straddles {
		r.Phase, p.run.straddles = tool.Warmup, false
	}
	if seconds := float64(p.run.interval) / 1000; seconds > 0 {
		r.IntervalSeconds = series.Some(seconds)
		r.ElapsedSeconds = series.Some(seconds * float64(p.run.counted-1))
	}
	r.AddRate(tool.Transaction, rate)
	emit(r)
	return tool.Reported
}

// totals reads "state=EXIT, nanoSeconds=30000056476, measuredRequests=11347) = 378.2326 requests/sec (throughput), …".
func (p *Parser) totals(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	failed := bytes.HasPrefix(l.Rest(), []byte("state=ERROR"))
	_, ok := l.Until("nanoSeconds=")
	nanoseconds, read := l.Count()
	if !ok || !read || !l.Literal(", measuredRequests=") {
		return tool.Malformed
	}
	n, ok := l.Count()
	if !ok || !l.Literal(") = ") {
		return tool.Malformed
	}
	p.need(emit)
	p.run.seconds = float64(nanoseconds) / 1e9
	rate, _, ok := l.Number(0)
	if !ok {
		return tool.Malformed
	}
	r := p.summary.Begin(tool.Summary, p.number)
	r.Threads, r.ElapsedSeconds = p.run.threads, series.Some(p.run.seconds)
	if p.run.most > 0 {
		r.Threads = series.Some(p.run.most)
	}
	if len(p.run.works) > 1 {
		r.Labels = append(r.Labels, tool.Label{Name: "rates", Value: strings.Join(p.run.works, ", ")})
	}
	r.AddCount(tool.Transaction, n)
	r.AddRate(tool.Transaction, rate)
	if failed {
		r.Failed, r.Message = true, "BenchBase ended in the state ERROR"
	}
	p.run.ended = true
	return tool.Reported
}

// tpmC reads a line of forks that print TPC-C's metric.
func (p *Parser) tpmC(l scan.Line) tool.Verdict {
	v, _, ok := l.Number(0)
	summary := p.summary.Report()
	if !ok || summary == nil {
		return tool.Ignored
	}
	summary.Set(tool.TpmC, v)
	return tool.Reported
}

func (p *Parser) fail(text []byte, emit func(*tool.Report)) tool.Verdict {
	if !p.run.ended {
		p.need(emit)
	}
	p.report.ResetError(max(p.number, 1), message.Clean(text), bytes.HasPrefix(text, []byte("Unexpected error when ")))
	emit(&p.report)
	return tool.Reported
}

// openWindows begins the run of a table of windows.
func (p *Parser) openWindows(header []byte, emit func(*tool.Report)) tool.Verdict {
	w := newWindows(header)
	if w.columns == nil {
		return tool.Malformed
	}
	p.Close(emit)
	p.number++
	p.run = run{verb: "run", phase: tool.Measure}
	p.start(0, emit)
	p.windows = w
	return tool.Reported
}

// file reads "Output Raw data into file: tpcc_2026-11-27_14-35-26.raw.csv".
func (p *Parser) file(l scan.Line) tool.Verdict {
	if _, ok := l.Until(" into file: "); !ok {
		return tool.Ignored
	}
	name, _, _ := bytes.Cut(l.Rest(), []byte(" with window size "))
	if run, _ := sideFile(path.Base(string(name)), nil); run != "" {
		p.run.files = run
		if r := p.summary.Report(); r != nil {
			r.Files = run
		}
		return tool.Reported
	}
	return tool.Ignored
}

// stderr reads a line of standard error, which has only what Java writes when the program can't start or ends by itself.
func (p *Parser) stderr(text []byte, emit func(*tool.Report)) tool.Verdict {
	switch {
	case isWindowHeader(text):
		p.beside = newWindows(text)
		return tool.Reported
	case p.beside.columns != nil && len(text) > 0 && '0' <= text[0] && text[0] <= '9':
		return p.beside.row(text, &p.besideReport, 1, emit)
	}
	if !scan.HasAnyPrefix(text, "Exception in thread ", "Error: ") {
		return tool.Ignored
	}
	var r tool.Report
	r.ResetError(1, message.Clean(text), true)
	emit(&r)
	return tool.Reported
}

// Close implements tool.Parser.
func (p *Parser) Close(emit func(*tool.Report)) {
	p.endCounts()
	p.summary.Emit(emit)
	p.windows.finish(&p.report, p.number, emit)
	p.beside.finish(&p.besideReport, 1, emit)
	p.endRaw(emit)
	p.endJSON(emit)
}
