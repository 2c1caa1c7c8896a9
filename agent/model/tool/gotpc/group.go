package gotpc

import (
	"math"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// maxRows limits a group: TPC-C has ten operations, TPC-H 22.
const maxRows = 64

// group is the rows that go-tpc prints at once, sorted by name. In the plain style nothing marks
// the end of a group.
type group struct {
	rows    []row
	summary bool
	broken  bool // a row was unreadable: sums would be too small
}

func (g *group) reset() { *g = group{rows: g.rows[:0]} }

// accepts reports whether r can follow the rows of g.
func (g *group) accepts(r *row) bool {
	if len(g.rows) == 0 {
		return !g.broken || g.summary == r.summary
	}
	last := &g.rows[len(g.rows)-1]
	return g.summary == r.summary && last.queries == r.queries && last.op.printed < r.op.printed && len(g.rows) < maxRows
}

// take adds p.row to its group.
func (p *Parser) take(emit func(*tool.Report)) tool.Verdict {
	if !p.group.accepts(&p.row) {
		p.settle(emit)
	}
	if len(p.group.rows) == 0 {
		p.rowOpens(&p.row, emit)
	}
	if p.row.summary {
		p.run.ended = true
	}
	p.group.summary = p.row.summary
	p.group.rows = append(p.group.rows, p.row)
	return tool.Reported
}

// unreadable notes that p.row was unreadable.
func (p *Parser) unreadable(emit func(*tool.Report)) tool.Verdict {
	r := &p.row
	if n := len(p.group.rows); n > 0 && len(r.name) > 0 &&
		(p.group.summary != r.summary || string(r.name) <= p.group.rows[n-1].op.printed) {
		p.settle(emit)
	}
	if len(p.group.rows) == 0 {
		p.group.summary = r.summary
	}
	p.group.broken = true
	return tool.Malformed
}

// pause ends a group of rows unless it is a summary, which also includes the tpmC line after it.
func (p *Parser) pause(emit func(*tool.Report)) {
	if !p.group.summary {
		p.settle(emit)
	}
}

// settle reports the group, which is now complete.
func (p *Parser) settle(emit func(*tool.Report)) {
	g := &p.group
	if len(g.rows) > 0 {
		r := &p.report
		if g.summary {
			p.summarise(r)
		} else {
			p.measure(r)
		}
		if len(r.Counts)+len(r.Latencies) > 0 {
			emit(r)
		}
	}
	g.reset()
}

// total takes tpmC, the last line of a summary.
func (p *Parser) total(tpmC float64, emit func(*tool.Report)) tool.Verdict {
	if len(p.group.rows) == 0 || !p.group.summary {
		return tool.Malformed
	}
	p.run.tpmC = series.Some(tpmC)
	p.settle(emit)
	return tool.Reported
}

// measure turns the group into an interval.
func (p *Parser) measure(r *tool.Report) {
	g := &p.group
	r.Reset(tool.Interval, p.number)
	r.Phase = tool.Measure
	if g.rows[0].queries && p.run.transactions {
		return // CH-benCHmark prints queries beside transactions
	}
	covered, samples := g.count(r)
	if !g.rows[0].queries {
		p.run.transactions = true
		p.length(r, covered, samples)
	}
	if r.IntervalSeconds.Known {
		g.rates(r, r.IntervalSeconds.Value)
	}
	for i := range g.rows {
		g.rows[i].add(r)
	}
}

// summarise turns the group into the run's summary.
func (p *Parser) summarise(r *tool.Report) {
	g := &p.group
	r.Reset(tool.Summary, p.number)
	if g.rows[0].queries && p.run.summarised {
		return
	}
	p.run.summarised = true
	covered, _ := g.count(r)
	if !g.rows[0].queries {
		printed := 0.0
		for i := range g.rows {
			printed = math.Max(printed, g.rows[i].takes)
		}
		r.ElapsedSeconds = series.Some(printed)
		r.Values.Set(tool.TpmC, p.run.tpmC)
		if covered > 0 {
			g.rates(r, covered)
		}
		if n := r.Count(tool.Transaction); n.Known && n.Value == 0 {
			r.Failed, r.Message = true, p.run.failure("no transaction succeeded")
		}
	}
	for i := range g.rows {
		g.rows[i].add(r)
	}
	if p.run.gaveUp > 0 && !r.Failed {
		r.Failed, r.Message = true, p.run.failure("threads gave up")
	}
}

// count adds the counts to r. It returns the longest time that a row covers, and the number of
// samples. A sum needs all rows, and `transaction` excludes failed transactions.
func (g *group) count(r *tool.Report) (covered float64, samples uint64) {
	var good, failed uint64
	counted := true
	for i := range g.rows {
		w := &g.rows[i]
		covered = math.Max(covered, w.covers())
		counted = counted && w.hasCount
		samples += w.count
		if w.op.failed {
			failed += w.count
		} else {
			good += w.count
		}
	}
	sums := counted && !g.broken
	sum := tool.Transaction
	if g.rows[0].queries {
		sum = tool.Query
	}
	if sums {
		r.AddCount(sum, good)
	}
	for i := range g.rows {
		if w := &g.rows[i]; w.hasCount {
			r.AddCount(w.op.name, w.count)
		}
	}
	if sums {
		r.AddCount(tool.ErrorCount, failed)
	}
	return covered, samples
}

// rates adds the rate of each count in r, rounded to three decimals, the precision of TPM per
// second.
func (g *group) rates(r *tool.Report, seconds float64) {
	for _, c := range r.Counts {
		r.AddKnownRate(c.Operation, series.Some(math.Round(float64(c.N)/seconds*1000)/1000))
	}
}

// A time within these bounds counts as whole seconds: it starts with the first sample of the
// interval, and the ticker may be late.
const (
	below = 0.1
	above = 0.02
)

// enough is the number of samples at which the time since the first sample is within about 5 % of
// the interval's length.
const enough = 20

// lengths are the apparent lengths of the intervals of a run in whole seconds, each with its number
// of intervals. The list is bounded.
type lengths []struct {
	seconds float64
	votes   int
}

const maxLengths = 8

// usual returns the length of most intervals if at least two had it, otherwise 0.
func (l lengths) usual() float64 {
	seconds, votes := 0.0, 1
	for _, c := range l {
		if c.votes > votes {
			seconds, votes = c.seconds, c.votes
		}
	}
	return seconds
}

func (l *lengths) vote(seconds float64) {
	for i := range *l {
		if (*l)[i].seconds == seconds {
			(*l)[i].votes++
			return
		}
	}
	if len(*l) < maxLengths {
		*l = append(*l, struct {
			seconds float64
			votes   int
		}{seconds, 1})
	}
}

// length estimates the length of the interval in seconds, which go-tpc does not print. Its ticker
// runs on --interval, and the longest row covers all of it except the time before the first
// transaction ended. Without the command line, a time close to whole seconds is rounded to them.
// With few or slow transactions the time is far from that: then the interval is as long as the
// others of the run, or unknown.
func (p *Parser) length(r *tool.Report, covered float64, samples uint64) {
	if p.interval > 0 && covered <= p.interval*(1+above) {
		r.IntervalSeconds = series.Some(p.interval)
		return
	}
	if covered <= 0 {
		return
	}
	whole := math.Round(covered)
	near := whole >= 1 && covered >= whole*(1-below) && covered <= whole*(1+above)
	if samples >= enough && near {
		p.run.lengths.vote(whole)
	}
	switch usual := p.run.lengths.usual(); {
	case usual > 0 && covered <= usual*(1+above):
		r.IntervalSeconds = series.Some(usual)
	case samples < enough:
	case near:
		r.IntervalSeconds = series.Some(whole)
	default:
		r.IntervalSeconds = series.Some(math.Round(covered*1000) / 1000)
	}
}
