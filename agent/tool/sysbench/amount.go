package sysbench

import (
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/scan"
)

// amount is a count with its rate, each as far as printed.
type amount struct {
	count series.Optional[uint64]
	rate  series.Optional[float64]
}

// take reads `7540` or `7540  (753.42 per sec.)` up to the line's end.
func (a *amount) take(s *scan.Line) bool {
	n, ok := count(s)
	if !ok {
		return false
	}
	taken := amount{count: series.Some(n), rate: a.rate}
	if !s.End() {
		s.Blanks()
		if !s.Literal("(") || !optional(s, &taken.rate) || !s.Literal(" per sec.)") || !s.End() {
			return false
		}
	}
	*a = taken
	return true
}

// takeRate reads a number with so many decimals up to the line's end.
func (a *amount) takeRate(s *scan.Line, places int, unit float64) bool {
	v, ok := s.Fixed(places, 0)
	if !ok || !s.End() {
		return false
	}
	if v >= 0 {
		a.rate = series.Some(v * unit)
	}
	return true
}

// takeFiles reads a count or what fileio of 1.1 prints:
// `IOPS=11916.62 186.20 MiB/s (195.24 MB/s)`.
func (m *summary) takeFiles(s *scan.Line, operations, volume *amount) bool {
	s.Blanks()
	if !s.Literal("IOPS=") {
		return operations.take(s)
	}
	m.brief = true
	var rate, bytes amount
	ok := optional(s, &rate.rate)
	if volume != nil {
		ok = ok && s.Literal(" ") && optional(s, &bytes.rate) && s.Literal(" MiB/s (")
		if ok {
			_, ok = s.Fixed(2, 0)
		}
		ok = ok && s.Literal(" MB/s)")
	}
	if !ok || !s.End() {
		return false
	}
	operations.rate = rate.rate
	if volume != nil && bytes.rate.Known {
		volume.rate = series.Some(bytes.rate.Value * mebibyte)
	}
	return true
}

// percentileLabel reads `95th percentile`, of 0.x `approx.  95 percentile`.
func (p *Parser) percentileLabel(label []byte) (string, bool) {
	s := scan.Line(label)
	s.Literal("approx.")
	stat, ok := p.percentile(&s)
	if !ok {
		return "", false
	}
	s.Literal("th")
	return stat, s.Literal(" percentile") && s.End()
}

// maxLatency in seconds: more is the start value of a minimum that no event
// has lowered, 2^64-1 ns.
const maxLatency = 1e9

// takeLatency reads milliseconds, in 0.x with the unit behind them; before
// that it was seconds.
func (m *summary) takeLatency(s *scan.Line, stat string) bool {
	before := *s
	v, ok := s.Fixed(2, 3)
	if ok {
		s.Literal("ms")
	} else {
		*s = before
		v, ok = s.Fixed(4, 0)
		ok = ok && s.Literal("s")
	}
	if !ok || !s.End() {
		return false
	}
	if v <= maxLatency && len(m.latencies) < maxLatencies {
		m.latencies = append(m.latencies, tool.Latency{Operation: tool.Transaction, Stat: stat, Seconds: v})
	}
	return true
}

// maxLatencies bounds the list of percentiles.
const maxLatencies = 32
