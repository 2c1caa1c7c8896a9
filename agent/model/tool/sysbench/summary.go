package sysbench

import (
	"bytes"
	"math"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// section orders the parts of a summary. A section that does not follow the current one belongs to
// another summary.
type section uint8

const (
	noSection section = iota
	opening           // counts of the test itself
	throughput
	general
	latency
	fairness
)

// summary collects the lines of sysbench's summary.
type summary struct {
	section section
	empty   bool // no value of the section was read
	legacy  bool // 0.x: the total time starts at the last checkpoint
	brief   bool // fileio of 1.1: the summary ends with the latencies

	elapsed    series.Optional[float64]
	events     series.Optional[uint64]
	statements amount // 0.x: reads and writes

	transaction, query, read, write, other, errors, reconnects, fsync amount
	readByte, writeByte, bytes                                        amount

	sum       float64 // of all latencies in milliseconds; 0: not printed
	latencies []tool.Latency
	report    tool.Report
}

func (m *summary) reset() {
	*m = summary{latencies: m.latencies[:0], report: m.report}
}

// enter begins a section, and a new summary if the section does not belong to the current one. A summary after the final
// one belongs to the next run: only summaries were kept.
func (p *Parser) enter(s section, emit func(*tool.Report)) {
	p.endHistogram(emit)
	if s == p.summary.section && p.summary.empty {
		return // printed by two processes that share a name
	}
	again := s < p.summary.section && p.summary.elapsed.Known
	if again && !p.run.checkpoint || p.run.ended && p.summary.section == noSection {
		p.open(emit)
	}
	p.start(emit)
	p.release(emit)
	p.hook.settle(p, summaryComes, emit)
	if s <= p.summary.section {
		p.endSummary(emit)
	}
	p.summary.section, p.summary.empty = s, true
}

// sectionOf returns the section that a heading begins.
func sectionOf(heading []byte) section {
	switch string(heading) {
	case "SQL statistics:", "OLTP test statistics:", "CPU speed:", "File operations:":
		return opening
	case "Throughput:":
		return throughput
	case "General statistics:", "Test execution summary:":
		return general
	case "Latency (ms):":
		return latency
	}
	return noSection
}

// summaryHeading reads the unindented lines of a summary.
func (p *Parser) summaryHeading(text []byte, emit func(*tool.Report)) (tool.Verdict, bool) {
	if p.histogramHeading(text, emit) {
		return tool.Reported, true
	}
	text = bytes.TrimRight(text, " \t")
	if s := sectionOf(text); s != noSection {
		p.enter(s, emit)
		return tool.Reported, true
	}
	if string(text) == "Threads fairness:" {
		if p.summary.section == noSection {
			return tool.Ignored, true
		}
		p.summary.section = fairness
		return tool.Reported, true
	}
	s := scan.New(text)
	switch {
	case s.Literal("Total operations: "):
		return p.operations(&s, " per second)", emit), true
	case s.Literal("Operations performed:"):
		if bytes.Contains(text, []byte(" ops/sec)")) {
			return p.operations(&s, " ops/sec)", emit), true
		}
		return p.fileOperations(&s, emit), true
	}
	if p.summary.section != opening {
		return 0, false
	}
	if text[0] == 'R' {
		return p.legacyVolume(text)
	}
	if text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	return p.volume(&s)
}

// operations reads `1234 (12.34 per second)` from the memory test.
func (p *Parser) operations(s *scan.Line, end string, emit func(*tool.Report)) tool.Verdict {
	var a amount
	n, ok := count(s)
	if !ok || !s.Literal(" (") || !optional(s, &a.rate) || !s.Literal(end) || !s.End() {
		return tool.Malformed
	}
	a.count = series.Some(n)
	p.enter(opening, emit)
	p.summary.transaction = a
	return tool.Reported
}

// fileOperations reads the line of fileio in 0.x: `Operations performed:  316439 reads, 210961
// writes, 10548 Other = 537948 Total`.
func (p *Parser) fileOperations(s *scan.Line, emit func(*tool.Report)) tool.Verdict {
	reads, ok1 := count(s)
	ok1 = ok1 && (s.Literal(" reads,") || s.Literal(" Read,"))
	writes, ok2 := count(s)
	ok2 = ok2 && (s.Literal(" writes,") || s.Literal(" Write,"))
	others, ok3 := count(s)
	ok3 = ok3 && s.Literal(" Other =")
	_, ok4 := count(s)
	if !ok1 || !ok2 || !ok3 || !ok4 || !s.Literal(" Total") || !s.End() {
		return tool.Malformed
	}
	p.enter(opening, emit)
	m := &p.summary
	m.read.count, m.write.count, m.fsync.count = series.Some(reads), series.Some(writes), series.Some(others)
	return tool.Reported
}

// volume reads the lines that begin with a number:
// `3359.26 MiB transferred (822.76 MiB/sec)` and `131840.77 Requests/sec executed`.
func (p *Parser) volume(s *scan.Line) (tool.Verdict, bool) {
	v, ok := s.Fixed(2, 0)
	if !ok {
		return 0, false
	}
	m := &p.summary
	switch {
	case s.Literal(" Requests/sec executed"):
		if s.End() && v >= 0 {
			m.transaction.rate = series.Some(v)
		}
		return verdict(s.End()), true
	case s.Literal(" MiB transferred ("), s.Literal(" MB transferred ("):
		var rate series.Optional[float64]
		ok := optional(s, &rate) && (s.Literal(" MiB/sec)") || s.Literal(" MB/sec)")) && s.End()
		if ok && rate.Known {
			m.bytes.rate = series.Some(rate.Value * mebibyte)
		}
		return verdict(ok), true
	}
	return 0, false
}

// legacyUnits are the units of fileio in 0.4: powers of 1024.
var legacyUnits = map[string]float64{"b": 1, "Kb": 1 << 10, "Mb": mebibyte, "Gb": 1 << 30}

// legacyVolume reads fileio's line of 0.4: `Read 0b  Written 4Gb  Total transferred 4Gb  (91.604Mb/sec)`.
func (p *Parser) legacyVolume(text []byte) (tool.Verdict, bool) {
	_, rate, ok := bytes.Cut(text, []byte("  Total transferred "))
	if !ok || !bytes.HasPrefix(text, []byte("Read ")) {
		return 0, false
	}
	_, rate, ok = bytes.Cut(rate, []byte("("))
	rate, isRate := bytes.CutSuffix(bytes.TrimRight(rate, " "), []byte("/sec)"))
	unit := bytes.TrimLeft(rate, "0123456789.")
	size, isUnit := legacyUnits[string(unit)]
	v, err := strconv.ParseFloat(string(rate[:len(rate)-len(unit)]), 64)
	if !ok || !isRate || !isUnit || err != nil {
		return tool.Malformed, true
	}
	p.summary.bytes.rate = series.Some(v * size)
	return tool.Reported, true
}

func verdict(ok bool) tool.Verdict {
	if ok {
		return tool.Reported
	}
	return tool.Malformed
}

// summaryValue reads an indented line of a summary.
func (p *Parser) summaryValue(text []byte, emit func(*tool.Report)) tool.Verdict {
	trimmed := bytes.TrimLeft(text, " ")
	if len(trimmed) == 0 {
		return tool.Ignored
	}
	m := &p.summary
	if m.section == noSection {
		return p.fragment(text)
	}
	if m.section == opening && bytes.HasSuffix(trimmed, []byte(" Requests/sec executed")) { // 0.4 indents it
		s := scan.New(trimmed)
		v, _ := p.volume(&s)
		return v
	}
	colon := bytes.IndexByte(trimmed, ':')
	if colon < 0 {
		return tool.Malformed
	}
	m.empty = false
	s := scan.New(trimmed[colon+1:])
	switch label := trimmed[:colon]; string(label) {
	case "events (avg/stddev)", "percentile stats", "queries performed":
		return tool.Ignored
	case "response time", "per-request statistics", "total time taken by event execution":
		m.legacy = true
		return tool.Ignored
	case "sum":
		m.sum, _ = s.Fixed(2, 0)
		if m.brief {
			p.run.ended = !p.run.checkpoint
			p.endSummary(emit)
		}
		return tool.Ignored
	case "execution time (avg/stddev)":
		p.run.ended = !p.run.checkpoint
		p.endSummary(emit)
		return tool.Reported
	case "min", "avg", "max":
		return verdict(m.takeLatency(&s, string(label)))
	default:
		if known, ok := m.take(string(label), &s); known {
			return verdict(ok)
		}
		if stat, ok := p.percentileLabel(label); ok {
			return verdict(m.takeLatency(&s, stat))
		}
		return p.fragment(text)
	}
}

// take reads the value after a label. It takes nothing from an incomplete value.
func (m *summary) take(label string, s *scan.Line) (known, ok bool) {
	switch label {
	case "read":
		return true, m.takeFiles(s, &m.read, &m.readByte)
	case "write":
		return true, m.takeFiles(s, &m.write, &m.writeByte)
	case "fsync":
		return true, m.takeFiles(s, &m.fsync, nil)
	case "other", "other operations":
		return true, m.other.take(s)
	case "total", "queries":
		return true, m.query.take(s)
	case "transactions":
		return true, m.transaction.take(s)
	case "read/write requests":
		return true, m.statements.take(s)
	case "ignored errors", "deadlocks":
		return true, m.errors.take(s)
	case "reconnects":
		return true, m.reconnects.take(s)
	case "total number of events":
		var a amount
		ok := a.take(s)
		if ok {
			m.events = a.count
		}
		return true, ok
	case "events per second":
		return true, m.transaction.takeRate(s, 2, 1)
	case "events/s (eps)":
		var a amount
		ok := a.takeRate(s, 4, 1)
		if ok && !m.transaction.rate.Known { // otherwise printed above with two decimals
			m.transaction.rate = a.rate
		}
		return true, ok
	case "reads/s":
		return true, m.read.takeRate(s, 2, 1)
	case "writes/s":
		return true, m.write.takeRate(s, 2, 1)
	case "fsyncs/s":
		return true, m.fsync.takeRate(s, 2, 1)
	case "read, MiB/s":
		return true, m.readByte.takeRate(s, 2, mebibyte)
	case "written, MiB/s":
		return true, m.writeByte.takeRate(s, 2, mebibyte)
	case "total time", "time elapsed":
		v, ok := s.Fixed(4, 0)
		ok = ok && s.Literal("s") && s.End()
		if ok && v >= 0 {
			m.elapsed = series.Some(v)
		}
		return true, ok
	}
	return false, false
}

// endSummary reports the current summary, if any.
func (p *Parser) endSummary(emit func(*tool.Report)) {
	m := &p.summary
	defer m.reset()
	if m.section == noSection {
		return
	}
	p.trueTotals(m)
	r := &m.report
	r.Reset(tool.Summary, p.number)
	r.Threads = p.run.threads
	r.Checkpoint = p.run.checkpoint
	r.ElapsedSeconds = m.elapsed
	p.span(r, m.legacy)
	m.queryRate(r)
	if !m.transaction.count.Known {
		m.transaction.count = m.events
	}
	for _, a := range []struct {
		operation string
		amount    amount
	}{
		{tool.Transaction, m.transaction}, {tool.Query, m.query}, {tool.Read, m.read}, {tool.Write, m.write}, {tool.Other, m.other},
		{opFsync, m.fsync}, {opByte, m.bytes}, {opReadByte, m.readByte}, {opWriteByte, m.writeByte},
		{tool.ErrorCount, m.errors}, {tool.ReconnectCount, m.reconnects},
	} {
		r.AddKnownRate(a.operation, a.amount.rate)
		r.AddKnownCount(a.operation, a.amount.count)
	}
	if !m.events.Known || m.events.Value > 0 { // otherwise nothing was measured
		for _, l := range m.latencies {
			r.AddLatency(l.Operation, l.Stat, m.mean(l))
		}
	}
	p.run.checkpoint = false
	if r.ElapsedSeconds.Known || len(r.Rates) > 0 || len(r.Counts) > 0 || len(r.Latencies) > 0 {
		emit(r)
	}
}

// mean returns the mean latency as the quotient of sum and count if the printed one contradicts them or is 0, and any
// other latency as it is.
func (m *summary) mean(l tool.Latency) float64 {
	if l.Stat != "avg" || !(m.sum > 0) || m.events.Value == 0 {
		return l.Seconds
	}
	mean := m.sum / float64(m.events.Value) / 1000
	const rounding = 0.0000051 // two decimals of a millisecond
	if l.Seconds > 0 && math.Abs(mean-l.Seconds) <= max(rounding, 0.5*mean) {
		return l.Seconds
	}
	return mean
}

// span sets the length of the time that a summary covers if it is not the whole run but the time
// since the last checkpoint. 1.x prints the time since the start, 0.x since the checkpoint.
func (p *Parser) span(r *tool.Report, legacy bool) {
	if !r.ElapsedSeconds.Known || !r.Checkpoint && !p.run.parted {
		return
	}
	total := r.ElapsedSeconds.Value
	if legacy {
		r.IntervalSeconds = r.ElapsedSeconds
	} else if total >= p.run.covered {
		r.IntervalSeconds = series.Some(math.Round((total-p.run.covered)*1e4) / 1e4)
	}
	p.run.covered = total
	p.run.parted = true
}

// queryRate sets the rate of all statements, BEGIN and COMMIT included, which 0.x does not print.
func (m *summary) queryRate(r *tool.Report) {
	seconds := r.ElapsedSeconds.Value
	if r.IntervalSeconds.Known {
		seconds = r.IntervalSeconds.Value
	}
	if m.query.count.Known && !m.query.rate.Known && seconds > 0 {
		m.query.rate = series.Some(float64(m.query.count.Value) / seconds)
	}
}

// amount is a count with its rate, if printed.
type amount struct {
	count series.Optional[uint64]
	rate  series.Optional[float64]
}

// take reads `7540` or `7540  (753.42 per sec.)` at the end of a line.
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

// takeRate reads a number with this many decimals at the end of a line.
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

// takeFiles reads a count, or `IOPS=11916.62 186.20 MiB/s (195.24 MB/s)` as printed by fileio of
// 1.1.
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

// percentileLabel reads `95th percentile`, or `approx.  95 percentile` in 0.x.
func (p *Parser) percentileLabel(label []byte) (string, bool) {
	s := scan.New(label)
	s.Literal("approx.")
	stat, ok := p.percentile(&s)
	if !ok {
		return "", false
	}
	s.Literal("th")
	return stat, s.Literal(" percentile") && s.End()
}

// maxLatency is the largest plausible latency in seconds. The initial value of a minimum without
// events is 2^64-1 ns.
const maxLatency = 1e9

// takeLatency reads milliseconds, followed by the unit in 0.x. Earlier versions print seconds.
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

// maxLatencies limits the list of percentiles.
const maxLatencies = 32
