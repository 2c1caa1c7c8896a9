package ycsb

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// summary collects the final figures. Every exporter writes them as metric, measurement and value.
type summary struct {
	open   bool
	report tool.Report // counts and latencies per operation

	elapsed, throughput series.Optional[float64]
	// undefined: the throughput is 0 divided by 0.
	undefined bool

	metric  []byte // the metric to which count belongs
	count   uint64 // its operations
	returns []statusCount
	failed  uint64 // operations in all -FAILED metrics

	distributions []distribution
}

// statusCount is a line "[READ], Return=NOT_FOUND, 12".
type statusCount struct {
	operation, status string
	n                 uint64
}

const maxReturns = 64

// reset empties s for the next run.
func (s *summary) reset() {
	*s = summary{report: s.report, metric: s.metric[:0], returns: s.returns[:0], distributions: s.distributions[:0]}
	s.report.Reset(tool.Summary, 0)
}

// readRow splits "[READ], AverageLatency(us), 11537.4". YCSB 0.1 has no blank after some commas.
func readRow(text []byte) (metric, measurement, value []byte, ok bool) {
	if len(text) == 0 || text[0] != '[' {
		return nil, nil, nil, false
	}
	end := bytes.Index(text, []byte("],"))
	last := bytes.LastIndex(text, []byte(", "))
	if end < 2 || last <= end+2 {
		return nil, nil, nil, false
	}
	return text[1:end], bytes.TrimPrefix(text[end+2:last], []byte(" ")), text[last+2:], true
}

// isFirst reports whether this figure begins a summary.
func isFirst(metric, measurement []byte) bool {
	return string(metric) == "OVERALL" && string(measurement) == "RunTime(ms)"
}

// add adds one figure.
func (s *summary) add(g *groups, metric, measurement, value []byte) tool.Verdict {
	if string(metric) == "OVERALL" {
		return s.addOverall(measurement, value)
	}
	if isJVM(string(metric)) {
		return tool.Ignored
	}
	n := g.names.Find(metric, newName)
	if n == nil || n.kind == unused || !scan.Only(metric, scan.Small+scan.Capital+scan.Digits+"_-") {
		return tool.Ignored
	}
	m := string(measurement)
	if status, ok := strings.CutPrefix(m, "Return="); ok {
		if status == "0" { // YCSB 0.1 prints numbers
			status = "OK"
		}
		return s.addReturn(n, status, value)
	}
	if m == "Operations" || m == "Total Operations" {
		l := scan.New(value)
		count, ok := whole(&l)
		if !ok || !l.End() {
			return tool.Malformed
		}
		s.metric, s.count = append(s.metric[:0], metric...), count
		s.report.AddCount(n.operation, count)
		if n.kind == failed {
			s.failed += count
		}
		return tool.Reported
	}
	if m == variance {
		s.distribution(n.operation).millis = true
		return tool.Ignored
	}
	unit := microseconds
	if in, ok := strings.CutSuffix(m, "Latency(ms)"); ok { // YCSB 0.1
		m, unit = in+"Latency(us)", -3
		s.distribution(n.operation).millis = true
	}
	stat := statistic(m)
	if stat == "" {
		return s.addBucket(n, measurement, value)
	}
	if stat[0] == 'p' {
		s.distribution(n.operation).percentiles = true
	}
	if bytes.Equal(s.metric, metric) && s.count == 0 {
		return tool.Ignored // placeholders if there are no samples
	}
	v, ok := decimal.Parse(value, unit)
	switch {
	case string(value) == "NaN":
		return tool.Ignored
	case !ok || v < 0 || v > maxLatency:
		return tool.Malformed
	case s.report.Latency(n.operation, stat).Known || len(s.report.Latencies) == maxLatencies:
		return tool.Ignored
	}
	s.report.AddLatency(n.operation, stat, v)
	return tool.Reported
}

const maxLatencies = 2048

func (s *summary) addOverall(measurement, value []byte) tool.Verdict {
	switch string(measurement) {
	case "RunTime(ms)":
		v, ok := decimal.Parse(value, -3)
		if !ok || v < 0 {
			return tool.Malformed
		}
		s.elapsed = series.Some(v)
	case "Throughput(ops/sec)":
		v, ok := decimal.Parse(value, 0)
		switch {
		case ok && v >= 0:
			s.throughput = series.Some(v)
		case string(value) == "NaN":
			s.undefined = true
		case string(value) != "Infinity":
			return tool.Malformed
		}
	default:
		return tool.Ignored
	}
	return tool.Reported
}

func (s *summary) addReturn(n *name, status string, value []byte) tool.Verdict {
	l := scan.New(value)
	count, ok := whole(&l)
	if !ok || !l.End() || len(status) > scan.MaxName {
		return tool.Malformed
	}
	if len(s.returns) < maxReturns {
		s.returns = append(s.returns, statusCount{n.operation, status, count})
	}
	return tool.Reported
}

// statistic returns the name of a latency for a measurement such as 99.9PercentileLatency(us);
// empty for other measurements, such as rows of a histogram.
func statistic(m string) string {
	switch m {
	case "AverageLatency(us)", "Average":
		return "avg"
	case "MinLatency(us)", "Min":
		return "min"
	case "MaxLatency(us)", "Max":
		return "max"
	}
	p, ok := strings.CutSuffix(m, "PercentileLatency(us)")
	if ok {
		for _, ordinal := range [...]string{"th", "st", "nd", "rd"} {
			p = strings.TrimSuffix(p, ordinal)
		}
	} else if p, ok = strings.CutPrefix(m, "p"); !ok { // measurementtype raw
		return ""
	}
	if !isPercentile(p) {
		return ""
	}
	return "p" + p
}

// fill completes r, the summary's report.
func (s *summary) fill(g *groups, run int, r *tool.Report) {
	r.Reset(tool.Summary, run)
	r.ElapsedSeconds = s.elapsed
	total := s.total()
	r.AddKnownRate(tool.Transaction, s.throughput)
	r.AddKnownCount(tool.Transaction, total)
	for _, c := range s.report.Counts {
		if g.isOperation(c.Operation) {
			r.AddCountOver(c.Operation, c.N, s.elapsed.Value)
		} else {
			r.AddCount(c.Operation, c.N)
		}
	}
	r.Latencies = append(r.Latencies, s.report.Latencies...)
	failures, known := s.errors()
	if known {
		r.AddCount(tool.ErrorCount, failures)
	}
	r.Message = s.verdict(total, failures)
	r.Failed = r.Message != ""
}

func (g *groups) isOperation(op string) bool {
	for n := range g.names.All {
		if n.operation == op {
			return n.kind == operation
		}
	}
	return false
}

// total returns the number of operations. YCSB does not print it, but prints the rate and the time
// by which it divided. The sum over the kinds would count a read-modify-write and its parts.
func (s *summary) total() series.Optional[uint64] {
	if s.undefined && s.elapsed.Known && s.elapsed.Value == 0 {
		return series.Some(uint64(0))
	}
	if !s.throughput.Known || !s.elapsed.Known {
		return series.Optional[uint64]{}
	}
	n := s.throughput.Value * s.elapsed.Value
	whole := math.Round(n)
	if math.Abs(n-whole) > 0.01 || whole > 1e15 {
		return series.Optional[uint64]{}
	}
	return series.Some(uint64(whole))
}

func isOK(status string) bool { return status == "OK" || status == "BATCHED_OK" }

// errors returns the number of failed operations, whatever their status.
func (s *summary) errors() (n uint64, known bool) {
	for _, c := range s.returns {
		if !isOK(c.status) {
			n += c.n
		}
	}
	if len(s.returns) > 0 {
		return n, true
	}
	return s.failed, s.failed > 0
}

// verdict returns why the run failed; empty if it did not. YCSB exits with 0 in both cases. YCSB
// counts a row that was not found as an error, and so does benchwatch, but the run only fails if no
// row was found.
func (s *summary) verdict(total series.Optional[uint64], failures uint64) string {
	var good, missing uint64
	var list []string
	for _, c := range s.returns {
		switch {
		case isOK(c.status):
			good += c.n
		default:
			if c.status == "NOT_FOUND" {
				missing += c.n
			}
			list = append(list, fmt.Sprintf("%s %s %d", c.operation, c.status, c.n))
		}
	}
	detail := ""
	if len(list) > 0 {
		detail = ": " + strings.Join(list, ", ")
	}
	switch {
	case good == 0 && failures > 0:
		return "no operation succeeded" + detail
	case total.Known && total.Value == 0 && good == 0:
		return "no operation ended"
	case failures > missing:
		return fmt.Sprintf("%d operations failed%s", failures, detail)
	}
	return ""
}
