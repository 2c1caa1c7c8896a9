package hammerdb

import (
	"bytes"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// jobHeader begins a job in the text of a job database.
const jobHeader = "HammerDB job "

// jobTime is the form of times in the job database. They are local and have no zone.
const jobTime = time.DateTime

// jobStats are the statistics in the JSON of a job's timing.
var jobStats = map[string]string{"min_ms": "min", "avg_ms": "avg", "max_ms": "max", "p99_ms": "p99", "p95_ms": "p95", "p50_ms": "p50"}

// mostResults bounds the results of a log that are remembered.
const mostResults = 1024

// jobs is the state within the JSON that the command jobs prints: a job's output, result, timing and counter, and the
// results of all jobs. HammerDB prints each member and each element on a line of its own.
type jobs struct {
	reading   bool // the current line is JSON
	counting  bool // within the transaction counter
	tpm       bool // the counter counts transactions
	last      time.Time
	step      time.Duration // between the counter's first two lines
	procedure string        // within the timing of this operation
	listed    listed
	report    jobReport
}

// listed is a job in the results of all jobs.
type listed struct {
	began   time.Time
	threads series.Optional[int]
	nopm    uint64
}

// json reads a line of JSON.
func (p *Parser) json(text []byte, emit func(*tool.Report)) tool.Verdict {
	p.jobs.reading = true
	defer func() { p.jobs.reading = false }()
	switch {
	case bytes.Contains(text, []byte(reportSchema)):
		p.close(emit)
		p.jobs.report = jobReport{open: true}
		p.run.rampup, p.run.minutes, p.run.workload = 0, 0, ""
		return tool.Ignored
	case p.jobs.report.open:
		return p.reportMember(text, emit)
	}
	l := scan.New(bytes.TrimLeft(text, "{[ "))
	key, ok := l.Quoted()
	if !ok {
		if bytes.HasPrefix(bytes.TrimLeft(text, " "), []byte("}")) {
			p.jobs.procedure, p.jobs.counting = "", false
		}
		return tool.Ignored
	}
	if !l.Literal(": ") {
		return p.element(key, emit)
	}
	value, isText := l.Quoted()
	if !isText {
		return p.object(key)
	}
	return p.member(key, value, emit)
}

// object reads the beginning of an object: the counter, or the timing of a procedure.
func (p *Parser) object(name []byte) tool.Verdict {
	j := &p.jobs
	j.procedure, j.counting = procedures[string(name)], false
	switch {
	case bytes.HasSuffix(name, []byte(" tpm")), bytes.HasSuffix(name, []byte(" qph")):
		j.counting, j.tpm, j.last, j.step = true, bytes.HasSuffix(name, []byte("tpm")), time.Time{}, 0
	case j.procedure != "" && p.number > 0 && p.summary.Report() == nil:
		p.summary.Begin(tool.Summary, p.number)
	case j.procedure == "":
		j.listed = listed{}
		return tool.Ignored
	}
	return tool.Reported
}

// element reads an element of an array: a line of a job's output, which is as in the log except for the number of its
// user, or a time. If the log has runs, only results count that it does not have.
func (p *Parser) element(text []byte, emit func(*tool.Report)) tool.Verdict {
	l := scan.New(text)
	if p.printed {
		if l.Literal("TEST RESULT : ") {
			return p.result(l, emit)
		}
		return tool.Ignored
	}
	switch {
	case l.Literal("Vuser "):
		return p.user(l, emit)
	case l.Literal("TEST RESULT : "):
		return p.result(l, emit)
	case l.Literal("Error in Virtual User "):
		return p.userError(text, emit)
	case l.Literal("Beginning rampup time of "), l.Literal("Timing test period of "), l.Literal("DBVersion:"), l.Literal("query "), l.Literal("Completed "),
		l.Literal("Geometric mean "), bytes.HasSuffix(text, []byte(" Active Virtual Users configured")):
		return p.monitor(scan.New(text), emit)
	case bytes.Equal(text, []byte("ALL VIRTUAL USERS COMPLETE")):
		return p.complete(emit)
	}
	if at, err := time.ParseInLocation(jobTime, string(text), time.Local); err == nil {
		p.began = at
		return tool.Reported
	}
	return tool.Ignored
}

// member reads "name": "value".
func (p *Parser) member(key, value []byte, emit func(*tool.Report)) tool.Verdict {
	j := &p.jobs
	switch {
	case j.counting:
		return p.counted(key, value, emit)
	case j.procedure != "":
		return p.statistic(string(key), value)
	}
	number := scan.New(value)
	switch name := string(key); name {
	case "tstamp":
		j.listed.began, _ = time.ParseInLocation(jobTime, string(value), time.Local)
	case "activevu":
		if n, ok := number.Int(); ok {
			j.listed.threads = series.Some(n)
		}
	case "nopm":
		j.listed.nopm, _ = number.Count()
	case "tpm":
		tpm, ok := number.Count()
		if !ok {
			return tool.Malformed
		}
		p.listedResult(tpm, emit)
	default:
		if label := settingLabel(name); label != "" && len(value) > 0 && len(value) < 64 && string(value) != "false" {
			p.label(label, string(value))
			return tool.Reported
		}
		return tool.Ignored
	}
	return tool.Reported
}

// listedResult reports a job in the results of all jobs as a run, unless its result was read before.
func (p *Parser) listedResult(tpm uint64, emit func(*tool.Report)) {
	j := p.jobs.listed
	p.jobs.listed = listed{}
	if p.results[[2]uint64{j.nopm, tpm}] {
		return
	}
	p.settle()
	p.began = j.began
	p.open(verbRun, j.threads, emit, oltp)
	p.achieved(j.nopm, tpm)
	p.settle()
}

// statistic reads a member of a procedure's timing. "calls" count each call twice and include the ramp-up.
func (p *Parser) statistic(name string, value []byte) tool.Verdict {
	r := p.summary.Report()
	stat := jobStats[name]
	if r == nil || stat == "" || r.Latency(p.jobs.procedure, stat).Known {
		return tool.Ignored // or the timing of a single user, which follows the timing of all
	}
	seconds, ok := decimal.Parse(value, -3)
	if !ok || seconds < 0 {
		return tool.Malformed
	}
	r.AddLatency(p.jobs.procedure, stat, seconds)
	return tool.Reported
}

// counted reads a line of the counter: "2026-11-28 15:26:36": "3360". The run is the current one, of which the log does
// not have the counter yet.
func (p *Parser) counted(at, value []byte, emit func(*tool.Report)) tool.Verdict {
	j := &p.jobs
	end, valid := localTime(at)
	number := scan.New(value)
	n, ok := number.Count()
	if !valid || !ok {
		return tool.Malformed
	}
	begin := j.last
	j.last = end
	if p.number == 0 { // the counter alone
		p.jobBegan, p.began = end, end
		p.need(emit)
	}
	if p.number == 0 || p.run.counted > 0 || p.run.jobBegan.IsZero() || begin.IsZero() || !end.After(begin) {
		return tool.Ignored
	}
	// The job begins before the ramp-up, by as long as its users need to connect.
	const connects = 3 * time.Second
	rampup, period := time.Duration(p.run.rampup)*time.Minute, time.Duration(p.run.minutes)*time.Minute
	elapsed := end.Sub(p.run.jobBegan)
	if period > 0 && elapsed > rampup+period {
		return tool.Ignored // part of the interval may be after the measured period
	}
	r := &p.report
	r.Reset(tool.Interval, p.number)
	r.Threads, r.Phase = p.run.threads, tool.Measure
	if rampup > 0 && begin.Sub(p.run.jobBegan) < rampup+connects {
		r.Phase = tool.Warmup
	}
	length := end.Sub(begin)
	if j.step == 0 {
		j.step = length
	}
	if length > 2*j.step { // lines are missing; each counts the time since its predecessor
		length = j.step
	}
	r.ElapsedSeconds, r.IntervalSeconds = series.Some(elapsed.Seconds()), series.Some(length.Seconds())
	if j.tpm {
		r.AddRate(tool.Transaction, float64(n)/60)
	} else {
		r.AddRate(tool.Query, float64(n)/3600)
	}
	p.emit(emit)
	return tool.Reported
}

// jobBegins reads the header of a job in the text of a job database: "HammerDB job 6B0AF2AA… @ 2026-11-28 15:26:34".
func (p *Parser) jobBegins(rest []byte, emit func(*tool.Report)) {
	p.close(emit)
	p.settle()
	_, at, _ := strings.Cut(string(rest), " @ ")
	p.began, _ = time.ParseInLocation(jobTime, at, time.Local)
	p.jobBegan = p.began
}

// localTime reads a time of the job database without allocating memory.
func localTime(text []byte) (time.Time, bool) {
	var parts [6]int
	if len(text) != len(jobTime) {
		return time.Time{}, false
	}
	part := 0
	for i, c := range text {
		switch {
		case '0' <= c && c <= '9':
			parts[part] = 10*parts[part] + int(c-'0')
		case c == jobTime[i] && part < len(parts)-1:
			part++
		default:
			return time.Time{}, false
		}
	}
	t := time.Date(parts[0], time.Month(parts[1]), parts[2], parts[3], parts[4], parts[5], 0, time.Local)
	return t, part == len(parts)-1 && t.Month() == time.Month(parts[1]) && t.Day() == parts[2]
}
