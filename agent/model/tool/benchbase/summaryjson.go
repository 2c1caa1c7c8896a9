package benchbase

import (
	"bytes"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// json is the state within *.summary.json.
type json struct {
	open      bool
	began     time.Time
	latencies []tool.Latency
	count     uint64
	rate      float64
	seconds   float64
	labels    []tool.Label
	workload  string
	threads   series.Optional[int]
}

func (p *Parser) openJSON(emit func(*tool.Report)) {
	p.endJSON(emit)
	p.json = json{open: true}
}

// member reads one line of *.summary.json, whose writer puts each member on a line of its own.
func (p *Parser) member(text []byte) tool.Verdict {
	l := scan.New(bytes.TrimLeft(text, " \t"))
	name, ok := l.Quoted()
	if !ok || !l.Literal(": ") {
		return tool.Ignored
	}
	key, value := string(name), bytes.Trim(l.Rest(), `", `)
	number, isNumber := decimal.Parse(value, 0)
	j := &p.json
	stat := ""
	if name, ok := strings.CutSuffix(key, " (microseconds)"); ok {
		stat = latencyNames[strings.ToLower(name)]
	}
	switch {
	case stat != "" && isNumber && len(j.latencies) < maxColumns:
		j.latencies = append(j.latencies, tool.Latency{Operation: tool.Transaction, Stat: stat, Seconds: number / 1e6})
	case key == "Start timestamp (milliseconds)" && isNumber && number > 0 && number < 1<<53:
		j.began = time.UnixMilli(int64(number))
	case key == "Elapsed Time (nanoseconds)" && isNumber:
		j.seconds = number / 1e9
	case key == "Measured Requests" && isNumber && number >= 0 && number < 1<<53:
		j.count = uint64(number)
	case key == "Throughput (requests/second)" && isNumber:
		j.rate = number
	case key == "Benchmark Type":
		j.workload = string(value)
	case key == "terminals" && isNumber && number >= 0 && number < 1<<31:
		j.threads = series.Some(int(number))
	case key == "DBMS Version":
		value, _, _ = bytes.Cut(value, []byte(" on ")) // PostgreSQL names its platform and compiler
		if len(value) > 64 {
			return tool.Ignored
		}
		j.labels = append(j.labels, tool.Label{Name: "server_version", Value: string(value)})
	case len(value) > 64:
		return tool.Ignored
	case key == "isolation":
		j.labels = append(j.labels, tool.Label{Name: key, Value: string(value)})
	case key == "scalefactor":
		j.labels = append(j.labels, tool.Label{Name: "scale_factor", Value: string(value)})
	case key == "DBMS Type":
		j.labels = append(j.labels, tool.Label{Name: "dbms", Value: string(value)})
	default:
		return tool.Ignored
	}
	return tool.Reported
}

// endJSON reports the run of *.summary.json.
func (p *Parser) endJSON(emit func(*tool.Report)) {
	j := p.json
	p.json = json{}
	if j.seconds <= 0 && j.rate <= 0 {
		return
	}
	p.number++
	r := &p.report
	r.Reset(tool.Start, p.number)
	r.Tool, r.Workload, r.Command, r.Threads, r.Began, r.Labels = Name, j.workload, "run", j.threads, j.began, j.labels
	emit(r)
	r.Reset(tool.Summary, p.number)
	r.Threads = j.threads
	if j.seconds > 0 {
		r.ElapsedSeconds = series.Some(j.seconds)
		r.AddCount(tool.Transaction, j.count)
	}
	if j.rate > 0 {
		r.AddRate(tool.Transaction, j.rate)
	}
	r.Latencies = append(r.Latencies, j.latencies...)
	emit(r)
}
