package tpccmysql

import (
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// cell is the part of an interval line for one kind of transaction. Times are in seconds.
type cell struct {
	n, late        uint64
	hasLate        bool
	p90, p95, p99  float64
	max            float64
	hasMax         bool
	decimals       int // in its numbers
	decimalsDiffer bool
}

// startsWithNumber reads a number and the comma after it, the beginning of every interval line.
func startsWithNumber(l *scan.Line) bool {
	l.Blanks()
	_, ok := l.Count()
	return ok && l.Literal(",")
}

// interval reads an interval line of any version:
//
//	%4d, trx: N, 95%: F, 99%: F, max_rt: F, N|F, N|F, N|F, N|F    since February 2016
//	%4d, trx: N max_rt: F, N|F, N|F, N|F, N|F                     for a day in February 2016
//	%4d, N:P|M, N:P|M, N:P|M, N:P|M, N:P|M                        earlier in that month
//	%4d, N(L):P|M, N(L):P|M, N(L):P|M, N(L):P|M, N(L):P|M         2011 to 2016
//	%4d, N(L):P, N(L):P, N(L):P, N(L):P, N(L):P                   2008 to 2011
//
// The first number is the clock; N and L are counts of the interval. The percentile is the 90th in
// seconds if it has one or two decimals, otherwise the 99th (the 95th for a few days in October
// 2011) in milliseconds.
func (p *Parser) interval(text []byte, emit func(*tool.Report)) tool.Verdict {
	l := scan.New(text)
	l.Blanks()
	seconds, _ := l.Count()
	var cells [5]cell
	if !l.Literal(", ") || seconds > maxSetting || !readCells(&l, &cells) || !l.End() {
		return tool.Malformed
	}
	if !p.advance(int(seconds), emit) {
		return tool.Malformed
	}
	p.start(emit)
	r := &p.report
	r.Reset(tool.Interval, p.number)
	r.Phase = tool.Measure
	r.Threads = p.run.threads
	r.ElapsedSeconds = series.Some(float64(seconds))
	if p.run.every > 0 {
		r.IntervalSeconds = series.Some(float64(p.run.every))
	}
	fill(r, &cells)
	emit(r)
	return tool.Reported
}

// advance reads the clock of a line; false if it is impossible. The clock is the number of the
// interval times its length. In a log without banners a clock that goes back belongs to the next
// run.
func (p *Parser) advance(seconds int, emit func(*tool.Report)) bool {
	r := &p.run
	if seconds == 0 {
		return false
	}
	if r.banner {
		if seconds <= r.clock {
			return false
		}
		switch {
		case r.assumed && r.clock == 0 && seconds != r.every:
			r.every = 0 // the next line shows it
		case r.assumed && r.every == 0:
			r.every = seconds - r.clock
		case r.every <= 0 || seconds%r.every != 0:
			return false
		}
		r.clock = seconds
		return true
	}
	switch {
	case p.number == 0:
		p.open(emit)
		p.run.clock = seconds
	case seconds <= r.clock:
		p.open(emit)
		p.run.every, p.run.clock = seconds, seconds
	default:
		if r.every == 0 {
			r.every = seconds - r.clock
		}
		r.clock = seconds
	}
	return true
}

// readCells reads everything except the clock.
func readCells(l *scan.Line, cells *[5]cell) bool {
	first := 0
	if l.Literal("trx: ") {
		if !readNewOrder(l, &cells[0]) {
			return false
		}
		first = 1
	}
	decimals := cells[0].decimals
	for i := first; i < len(cells); i++ {
		c := &cells[i]
		if i > 0 && !l.Literal(", ") {
			return false
		}
		if first == 1 && !readCountAndMax(l, c) || first == 0 && !readCountAndPercentile(l, c) {
			return false
		}
		// A truncated line has fewer decimals in its last number.
		if c.decimalsDiffer || decimals != 0 && c.decimals != decimals {
			return false
		}
		decimals = c.decimals
	}
	return cells[0].hasMax == cells[4].hasMax || first == 1
}

func readNewOrder(l *scan.Line, c *cell) (ok bool) {
	ok = l.CountTo(&c.n)
	if ok && l.Literal(", 95%: ") {
		ok = c.time(l, &c.p95) && l.Literal(", 99%: ") && c.time(l, &c.p99) && l.Literal(",")
	}
	return ok && l.Literal(" max_rt: ") && c.time(l, &c.max) && c.decimals == 3
}

func readCountAndMax(l *scan.Line, c *cell) bool {
	return l.CountTo(&c.n) && l.Literal("|") && c.time(l, &c.max)
}

func readCountAndPercentile(l *scan.Line, c *cell) (ok bool) {
	ok = l.CountTo(&c.n)
	if c.hasLate = ok && l.Literal("("); c.hasLate {
		ok = l.CountTo(&c.late) && l.Literal(")")
	}
	ok = ok && l.Literal(":")
	before := *l
	if !ok || !c.time(l, &c.p99) {
		return false
	}
	if c.decimals == 1 || c.decimals == 2 {
		c.p99 = 0
		c.p90, _, _ = before.Number(0)
	}
	if c.hasMax = l.Literal("|"); c.hasMax {
		ok = c.time(l, &c.max)
	}
	return ok && c.decimals >= 1 && c.decimals <= 3
}

// time reads milliseconds as seconds.
func (c *cell) time(l *scan.Line, seconds *float64) bool {
	v, decimals, ok := l.Number(-3)
	c.decimalsDiffer = c.decimalsDiffer || c.decimals != 0 && decimals != c.decimals
	*seconds, c.decimals = v, decimals
	return ok
}

// fill adds the cells to r. A time of 0 means unknown: the tool prints it if there was no
// transaction, or too few for a percentile.
func fill(r *tool.Report, cells *[5]cell) {
	var total uint64
	for i := range cells {
		total += cells[i].n
	}
	r.AddCountOver(tool.Transaction, total, r.IntervalSeconds.Value)
	for i := range cells {
		r.AddCountOver(kinds[i], cells[i].n, r.IntervalSeconds.Value)
	}
	for i := range cells {
		if cells[i].hasLate {
			r.AddCount(lateKinds[i], cells[i].late)
		}
	}
	for i := range cells {
		addLatency(r, kinds[i], "p90", cells[i].p90)
		addLatency(r, kinds[i], "p95", cells[i].p95)
		addLatency(r, kinds[i], "p99", cells[i].p99)
		addLatency(r, kinds[i], "max", cells[i].max)
	}
}

func addLatency(r *tool.Report, operation, stat string, seconds float64) {
	if seconds > 0 {
		r.AddLatency(operation, stat, seconds)
	}
}
