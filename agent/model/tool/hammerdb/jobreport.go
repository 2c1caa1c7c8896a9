package hammerdb

import (
	"bytes"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// reportSchema is in the second line of a job report, which `jobs JOB summaryjson` of version 6 prints.
const reportSchema = `"schema": "hammerdb-job-report-v1"`

// jobReport is the state within a job report. HammerDB prints each member on a line of its own, indented by two spaces
// a level.
type jobReport struct {
	open    bool
	section string // the current member of the outermost object
	opened  bool   // the run has begun
	version string
	began   time.Time
	threads series.Optional[int]
	name    []byte // of a row, or the time of a point
	nopm    uint64
}

// reportMember reads a line of a job report.
func (p *Parser) reportMember(text []byte, emit func(*tool.Report)) tool.Verdict {
	j := &p.jobs.report
	if text[0] == '}' {
		p.sumQueries()
		p.settle()
		*j = jobReport{}
		return tool.Ignored
	}
	l := scan.New(bytes.TrimLeft(text, " "))
	key, ok := l.Quoted()
	if !ok || !l.Literal(": ") {
		return tool.Ignored
	}
	value := bytes.Trim(l.Rest(), `",`)
	if len(text)-len(bytes.TrimLeft(text, " ")) == 2 {
		j.section, j.name = string(key), j.name[:0]
		return tool.Ignored
	}
	switch j.section {
	case "job":
		return p.reportJob(string(key), value)
	case "benchmark_config":
		return p.reportConfiguration(string(key), value)
	case "result", "transaction_count", "response_times", "query_times":
		if !j.opened {
			j.opened = true
			p.settle()
			p.version, p.began, p.jobBegan, p.refresh, p.counts = j.version, j.began, j.began, 0, false
			rampup, minutes := p.run.rampup, p.run.minutes
			p.open(verbRun, j.threads, emit, p.run.workload)
			p.run.rampup, p.run.minutes = rampup, minutes
		}
		return p.reportValue(key, value, emit)
	}
	return tool.Ignored
}

func (p *Parser) reportJob(name string, value []byte) tool.Verdict {
	j := &p.jobs.report
	switch name {
	case "hdb_version":
		j.version = string(bytes.TrimPrefix(value, []byte("v")))
	case "release":
		if len(value) > 0 && len(value) <= 64 {
			p.label("server_version", string(value))
		}
	case "benchmark":
		p.run.workload = workloadOf(value)
	case "timestamp":
		j.began, _ = time.ParseInLocation(jobTime, string(value), time.Local)
	default:
		return tool.Ignored
	}
	return tool.Reported
}

func (p *Parser) reportConfiguration(name string, value []byte) tool.Verdict {
	number := scan.New(value)
	n, ok := number.Int()
	if !ok {
		return tool.Ignored
	}
	switch name {
	case "warehouses", "scale_factor", "rampup_minutes", "duration_minutes":
		p.label(name, string(value))
	case "virtual_users":
		p.jobs.report.threads = series.Some(n)
	default:
		return tool.Ignored
	}
	switch name {
	case "rampup_minutes":
		p.run.rampup = n
	case "duration_minutes":
		p.run.minutes = n
	}
	return tool.Reported
}

// reportValue reads a result, a point of the counter, or a row of times.
func (p *Parser) reportValue(name, value []byte, emit func(*tool.Report)) tool.Verdict {
	j := &p.jobs.report
	number := scan.New(value)
	switch string(name) {
	case "timestamp":
		j.name = append(j.name[:0], value...)
	case "name":
		j.name = append(j.name[:0], value...)
		p.jobs.procedure = procedures[string(bytes.ToUpper(value))]
		if bytes.HasSuffix(value, []byte(" tpm")) {
			p.jobs.tpm, p.jobs.last, p.jobs.step = true, time.Time{}, 0
		}
	case "nopm":
		j.nopm, _ = number.Count()
	case "tpm":
		tpm, ok := number.Count()
		if !ok {
			return tool.Malformed
		}
		p.achieved(j.nopm, tpm)
	case "value":
		if j.section == "transaction_count" {
			return p.counted(j.name, value, emit)
		}
		return tool.Ignored
	case "query_sets":
		p.queries.sets, _ = number.Int()
	case "geomean_seconds", "total_query_time_seconds", "seconds":
		return p.reportSeconds(string(name), value)
	default:
		if p.jobs.procedure != "" && j.section == "response_times" {
			return p.statistic(string(name), value)
		}
		return tool.Ignored
	}
	return tool.Reported
}

func (p *Parser) reportSeconds(name string, value []byte) tool.Verdict {
	seconds, ok := decimal.Parse(value, 0)
	if !ok || seconds < 0 {
		return tool.Malformed
	}
	q := &p.queries
	switch name {
	case "geomean_seconds":
		q.means = append(q.means[:0], seconds)
	case "total_query_time_seconds":
		q.seconds = seconds
	case "seconds":
		number := scan.New(p.jobs.report.name)
		n, ok := number.Int()
		if !ok || n < 1 || n > mostQueries || p.jobs.report.section != "query_times" {
			return tool.Ignored
		}
		q.times[n-1].add(seconds)
	}
	return tool.Reported
}
