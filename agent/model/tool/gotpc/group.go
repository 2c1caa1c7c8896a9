package gotpc

import (
	"math"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// maxRows limits a group: TPC-C has ten operations, TPC-H 22.
const maxRows = 64

// group is the rows that go-tpc prints at once, sorted by name. In the plain style nothing marks
// the end of a group. CH-benCHmark prints two groups at each tick, transactions and queries, in any order: they are one.
type group struct {
	rows    []row // of transactions
	queries []row // of TPC-H or CH-benCHmark
	summary bool
	block   bool // from a table or a line of JSON, after which queries may come in another one
	broken  bool // a row was unreadable: sums would be too small
}

// kinds is which rows a run prints.
type kinds int

const (
	unknownKinds kinds = iota
	oneKind
	bothKinds
)

func (g *group) reset() { *g = group{rows: g.rows[:0], queries: g.queries[:0]} }

func (g *group) empty() bool { return len(g.rows)+len(g.queries) == 0 }

// list returns the rows of one kind.
func (g *group) list(queries bool) *[]row {
	if queries {
		return &g.queries
	}
	return &g.rows
}

// accepts reports whether r can follow the rows of g.
func (g *group) accepts(r *row, run kinds) bool {
	if g.empty() {
		return !g.broken || g.summary == r.summary
	}
	if g.summary != r.summary || run != bothKinds && len(*g.list(!r.queries)) > 0 {
		return false
	}
	same := *g.list(r.queries)
	return len(same) == 0 || same[len(same)-1].op.printed < r.op.printed && len(same) < maxRows
}

// take adds p.row to its group.
func (p *Parser) take(emit func(*tool.Report)) tool.Verdict {
	r := &p.row
	p.sees(r, emit)
	if !p.group.accepts(r, p.run.kinds) {
		p.settle(emit)
	}
	if p.group.empty() {
		p.rowOpens(r, emit)
		p.sees(r, emit)
	}
	if r.summary {
		p.run.ended = true
	}
	p.group.summary = r.summary
	rows := p.group.list(r.queries)
	*rows = append(*rows, *r)
	return tool.Reported
}

// sees notes what a row reveals about the kinds of rows of its run: only CH-benCHmark counts queries.
func (p *Parser) sees(r *row, emit func(*tool.Report)) {
	switch {
	case p.number == 0 || !r.queries || !r.summary && p.over():
	case !r.hasCount:
		p.run.kinds = oneKind
	default:
		p.both(emit)
	}
}

// both notes that the run is of CH-benCHmark.
func (p *Parser) both(emit func(*tool.Report)) {
	p.run.kinds = bothKinds
	if p.run.workload != mixed {
		p.startReport(mixed, "", series.Optional[int]{}, emit)
	}
}

// unreadable notes that p.row was unreadable.
func (p *Parser) unreadable(emit func(*tool.Report)) tool.Verdict {
	r, rows := &p.row, *p.group.list(p.row.queries)
	if n := len(rows); n > 0 && len(r.name) > 0 && (p.group.summary != r.summary || string(r.name) <= rows[n-1].op.printed) {
		p.settle(emit)
	}
	if p.group.empty() {
		p.group.summary = r.summary
	}
	p.group.broken = true
	return tool.Malformed
}

// pause ends a group of rows unless more of it may follow: queries beside transactions, or the tpmC line after a
// summary.
func (p *Parser) pause(emit func(*tool.Report)) {
	g := &p.group
	other := p.run.kinds == bothKinds || p.run.kinds == unknownKinds && g.block
	if !g.summary && !(other && len(g.rows) > 0 != (len(g.queries) > 0)) {
		p.settle(emit)
	}
}

// settle reports the group, which is now complete.
func (p *Parser) settle(emit func(*tool.Report)) {
	g := &p.group
	if !g.empty() {
		r := &p.report
		if g.summary {
			p.summarise(r)
		} else {
			p.measure(r)
		}
		if len(r.Counts)+len(r.Latencies) > 0 {
			emit(r)
		}
		if p.run.kinds == unknownKinds {
			p.run.kinds = oneKind
		}
	}
	g.reset()
}

// total takes tpmC, the last line of a summary of transactions.
func (p *Parser) total(tpmC float64, emit func(*tool.Report)) tool.Verdict {
	if len(p.group.rows) == 0 || !p.group.summary {
		return tool.Malformed
	}
	p.run.tpmC = series.Some(tpmC)
	if p.run.kinds != bothKinds {
		p.settle(emit)
	}
	return tool.Reported
}

// measure turns the group into an interval.
func (p *Parser) measure(r *tool.Report) {
	g := &p.group
	r.Reset(tool.Interval, p.number)
	r.Phase = tool.Measure
	covered, samples := g.count(r)
	switch {
	case len(g.rows) > 0:
		p.length(r, covered, samples)
	case p.run.kinds == bothKinds: // no transaction ended in this interval
		r.AddCount(tool.Transaction, 0)
		p.length(r, 0, 0)
	}
	if r.IntervalSeconds.Known {
		g.rates(r, r.IntervalSeconds.Value)
	}
	g.add(r)
}

// summarise turns the group into the run's summary.
func (p *Parser) summarise(r *tool.Report) {
	g := &p.group
	r.Reset(tool.Summary, p.number)
	if len(g.rows) == 0 && p.run.summarised {
		return
	}
	p.run.summarised = true
	covered, _ := g.count(r)
	if len(g.rows) > 0 {
		printed := 0.0
		for i := range g.rows {
			printed = math.Max(printed, g.rows[i].takes)
		}
		r.Threads = p.run.threads
		r.ElapsedSeconds = series.Some(printed)
		r.Values.Set(tool.TpmC, p.run.tpmC)
		if covered > 0 {
			g.rates(r, covered)
		}
		if n := r.Count(tool.Transaction); n.Known && n.Value == 0 {
			r.Failed, r.Message = true, p.run.failure("no transaction succeeded")
		}
	}
	g.add(r)
	if p.run.gaveUp > 0 && !r.Failed {
		r.Failed, r.Message = true, p.run.failure("threads gave up")
	}
}

// add adds the latencies of all rows.
func (g *group) add(r *tool.Report) {
	for _, rows := range [][]row{g.rows, g.queries} {
		for i := range rows {
			rows[i].add(r)
		}
	}
}

// count adds the counts to r. It returns the longest time that a row of transactions covers, and the number of their
// samples. A sum needs all rows, and `transaction` excludes failed transactions.
func (g *group) count(r *tool.Report) (covered float64, samples uint64) {
	var failed uint64
	counted := !g.broken
	for _, kind := range []struct {
		rows []row
		sum  string
	}{{g.rows, tool.Transaction}, {g.queries, tool.Query}} {
		var good uint64
		sums := !g.broken && len(kind.rows) > 0
		for i := range kind.rows {
			w := &kind.rows[i]
			sums = sums && w.hasCount
			if !w.queries {
				covered = math.Max(covered, w.covers())
				samples += w.count
			}
			if w.op.failed {
				failed += w.count
			} else {
				good += w.count
			}
		}
		if sums {
			r.AddCount(kind.sum, good)
		}
		for i := range kind.rows {
			if w := &kind.rows[i]; w.hasCount {
				r.AddCount(w.op.name, w.count)
			}
		}
		counted = counted && (sums || len(kind.rows) == 0)
	}
	if counted {
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
