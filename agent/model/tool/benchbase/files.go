package benchbase

import (
	"bytes"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// samplesHeader begins *.samples.csv.
const samplesHeader = "Time (seconds),Requests,"

// sampleStats are the statistics in the columns of *.samples.csv and in *.summary.json.
var sampleStats = map[string]string{
	"Minimum Latency (microseconds)": "min", "25th Percentile Latency (microseconds)": "p25", "Median Latency (microseconds)": "p50",
	"Average Latency (microseconds)": "avg", "75th Percentile Latency (microseconds)": "p75", "90th Percentile Latency (microseconds)": "p90",
	"95th Percentile Latency (microseconds)": "p95", "99th Percentile Latency (microseconds)": "p99", "Maximum Latency (microseconds)": "max",
}

// samples is the state within *.samples.csv.
type samples struct {
	columns []string // the statistic of each column, "requests", or empty
	last    float64  // start of the previous window
	first   []byte   // the first row, whose window is known from the second one
}

// openSamples reads the header of *.samples.csv.
func (p *Parser) openSamples(text []byte, emit func(*tool.Report)) tool.Verdict {
	p.Close(emit)
	p.number++
	p.run = run{verb: "run", phase: tool.Measure}
	p.start(0, emit)
	p.samples = samples{last: -1}
	for name := range bytes.SplitSeq(text, []byte(",")) {
		column := sampleStats[string(name)]
		if string(name) == "Requests" {
			column = tool.Transaction
		}
		p.samples.columns = append(p.samples.columns, column)
	}
	return tool.Reported
}

// sample reads a row of *.samples.csv: a window that begins at the time in its first column. The length of a window is the
// distance between two.
func (p *Parser) sample(text []byte, emit func(*tool.Report)) tool.Verdict {
	s := &p.samples
	first, _, _ := bytes.Cut(text, []byte(","))
	start, ok := decimal.Parse(first, 0)
	if !ok || start <= s.last {
		return tool.Malformed
	}
	before := s.last
	s.last = start
	if before < 0 {
		s.first = append(s.first, text...)
		return tool.Reported
	}
	if s.first != nil {
		p.window(s.first, before, start-before, emit)
		s.first = nil
	}
	return p.window(text, start, start-before, emit)
}

// window reports a row.
func (p *Parser) window(text []byte, start, seconds float64, emit func(*tool.Report)) tool.Verdict {
	r := &p.report
	r.Reset(tool.Interval, p.number)
	r.Phase = tool.Measure
	if seconds > 0 {
		r.ElapsedSeconds, r.IntervalSeconds = series.Some(start+seconds), series.Some(seconds)
	}
	i := 0
	for field := range bytes.SplitSeq(text, []byte(",")) {
		if i == len(p.samples.columns) {
			return tool.Malformed
		}
		value, ok := decimal.Parse(field, 0)
		switch column := p.samples.columns[i]; {
		case column == "":
		case !ok || value < 0 || value >= 1<<53:
			return tool.Malformed
		case column == tool.Transaction:
			r.AddCountOver(tool.Transaction, uint64(value), seconds)
		default:
			r.AddLatency(tool.Transaction, column, value/1e6)
		}
		i++
	}
	if i < len(p.samples.columns) {
		return tool.Malformed
	}
	emit(r)
	return tool.Reported
}

// endSamples reports the only row of a short run.
func (p *Parser) endSamples(emit func(*tool.Report)) {
	if p.samples.first != nil {
		p.window(p.samples.first, p.samples.last, 0, emit)
	}
	p.samples = samples{}
}

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
func (p *Parser) member(text []byte, _ func(*tool.Report)) tool.Verdict {
	l := scan.New(bytes.TrimLeft(text, " "))
	name, ok := l.Quoted()
	if !ok || !l.Literal(": ") {
		return tool.Ignored
	}
	key, value := string(name), bytes.Trim(l.Rest(), `", `)
	number, isNumber := decimal.Parse(value, 0)
	j := &p.json
	switch stat := sampleStats[key]; {
	case stat != "" && isNumber && len(j.latencies) < len(sampleStats):
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
	if !j.open || j.seconds <= 0 {
		return
	}
	p.number++
	r := &p.report
	r.Reset(tool.Start, p.number)
	r.Tool, r.Workload, r.Command, r.Threads, r.Began, r.Labels = Name, j.workload, "run", j.threads, j.began, j.labels
	emit(r)
	r.Reset(tool.Summary, p.number)
	r.Threads, r.ElapsedSeconds = j.threads, series.Some(j.seconds)
	r.AddCount(tool.Transaction, j.count)
	if j.rate > 0 {
		r.AddRate(tool.Transaction, j.rate)
	}
	r.Latencies = append(r.Latencies, j.latencies...)
	emit(r)
}
