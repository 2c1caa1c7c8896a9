package pgbench

import (
	"math"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// log is the state of one file of --log, which one thread of pgbench writes. Latencies are in
// microseconds. Its memory does not grow with the file.
type log struct {
	transactions transactions
	aggregates   aggregates
}

func (g *log) active() bool { return g.transactions.begun || g.aggregates.begun }

// finish reports the totals.
func (g *log) finish(s *stream, emit func(*tool.Report)) {
	switch {
	case g.transactions.begun:
		g.transactions.finish(s, emit)
	case g.aggregates.begun:
		g.aggregates.finish(s, emit)
	}
	*g = log{}
}

const (
	// earliest and latest are the bounds of Unix times in lines: 2001 and 2286.
	earliest, latest = 1_000_000_000, 9_999_999_999
	// maxLatency is eleven days in microseconds.
	maxLatency = 1e12
	// maxGap is the number of seconds without a line after which the next line belongs to another
	// run.
	maxGap     = 86400
	maxClients = 1 << 16
	maxColumns = 16
)

// addLog reads a line of numbers.
func (s *stream) addLog(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	first := l
	if n, ok := first.Count(); !ok || !first.Literal(" ") {
		return tool.Ignored
	} else if n >= earliest {
		return s.addAggregate(l, emit)
	}
	return s.addTransaction(l, emit)
}

// transactions are the totals of the lines of a log.
type transactions struct {
	begun    bool
	start    int64 // start of the first transaction in microseconds of Unix time
	last     int64 // end of the newest one, relative to start
	interval int64 // the current second
	// numbers are the numbers of each client's last transaction. A missing number shows that the
	// log is a sample (--sampling-rate), whose counts mean nothing.
	numbers map[int]uint64
	sampled bool

	now, all tally
	scripts  []histogram.Recorder // per script, once there are two
}

// tally is the transactions of an interval or of the run.
type tally struct {
	n, failed, skipped, retries uint64
	sum, low, high              float64
	lagged                      uint64
	lag, mostLag                float64
	latencies                   histogram.Recorder
}

func newTally() tally { return tally{latencies: histogram.Recorder{Unit: 1e-6}} }

// entry is a line of the log:
//
//	client number latency script seconds microseconds [lag] [retries]
//
// A transaction that was skipped or failed has a word instead of the latency. The seventh column is
// the lag with --rate, or the retries with --max-tries; only a line with both shows which is which.
type entry struct {
	client, script  int
	number          uint64
	latency         int64
	skipped, failed bool
	at              int64 // in microseconds
	lag, retries    series.Optional[uint64]
}

func (e *entry) read(l scan.Line) bool {
	if !l.IntTo(&e.client) || !l.Literal(" ") || !l.CountTo(&e.number) || !l.Literal(" ") {
		return false
	}
	switch {
	case l.Literal("skipped"):
		e.skipped = true
	case l.Literal("failed"), l.Literal("serialization"), l.Literal("deadlock"), l.Literal("other"):
		e.failed = true
	default:
		n, ok := l.Count()
		if !ok || n > maxLatency {
			return false
		}
		e.latency = int64(n)
	}
	var seconds, micros uint64
	if !l.Literal(" ") || !l.IntTo(&e.script) || !l.Literal(" ") || !l.CountTo(&seconds) || !l.Literal(" ") || !l.CountTo(&micros) ||
		seconds < earliest || seconds > latest || micros > 999_999 {
		return false
	}
	e.at = int64(seconds*1e6 + micros)
	var more [2]uint64
	columns := 0
	for ; columns < 2 && l.Literal(" "); columns++ {
		if !l.CountTo(&more[columns]) || more[columns] > maxLatency {
			return false
		}
	}
	if columns == 2 {
		e.lag, e.retries = series.Some(more[0]), series.Some(more[1])
	}
	return l.End()
}

// addTransaction reads a line about one transaction.
func (s *stream) addTransaction(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	var e entry
	if !e.read(l) {
		return tool.Malformed
	}
	const second = 1_000_000
	t := &s.log.transactions
	switch at, last := e.at-t.start, t.numbers[e.client]; {
	case !t.begun && s.run > 0, t.begun && (at < (t.interval-2)*second || at > t.last+maxGap*second || e.number < last):
		s.next(emit)
	}
	if t = &s.log.transactions; !t.begun {
		*t = transactions{begun: true, start: e.at - e.latency, numbers: map[int]uint64{}, now: newTally(), all: newTally()}
		s.logStart(time.UnixMicro(t.start), emit)
	}
	t.follow(&e)
	if at := e.at - t.start; at/second > t.interval {
		t.finishInterval(s, at/second, emit)
		t.last = at
	} else {
		t.last = max(t.last, at)
	}
	t.ofScript(&e)
	t.now.add(&e)
	t.all.add(&e)
	return tool.Reported
}

// ofScript counts an entry before it is added to the totals. Until a second script appears, all
// entries belong to the first one.
func (t *transactions) ofScript(e *entry) {
	if e.skipped || e.failed || e.script >= maxScripts || e.script == 0 && len(t.scripts) == 0 {
		return
	}
	if len(t.scripts) == 0 {
		t.scripts = append(t.scripts, t.all.latencies.Clone())
	}
	for e.script >= len(t.scripts) {
		t.scripts = append(t.scripts, histogram.Recorder{Unit: 1e-6})
	}
	t.scripts[e.script].Record(e.latency, 1)
}

// logStart reports the start of the run that wrote this log.
func (s *stream) logStart(at time.Time, emit func(*tool.Report)) {
	s.begin()
	s.started = true
	s.report.Reset(tool.Start, s.run)
	s.report.Tool, s.report.Began = Name, at
	emit(&s.report)
}

// follow notes whether the client's transactions before this one are complete.
func (t *transactions) follow(e *entry) {
	last, known := t.numbers[e.client]
	switch {
	case !known && e.number > 1, known && e.number > last+1:
		t.sampled = true
	}
	if known || len(t.numbers) < maxClients {
		t.numbers[e.client] = e.number
	}
}

func (t *tally) add(e *entry) {
	if e.retries.Known {
		t.retries += e.retries.Value
	}
	switch {
	case e.skipped:
		t.skipped++
		return
	case e.failed:
		t.failed++
		return
	}
	v := float64(e.latency)
	if t.n == 0 || v < t.low {
		t.low = v
	}
	t.n++
	t.sum += v
	t.high = max(t.high, v)
	t.latencies.Record(e.latency, 1)
	if e.lag.Known {
		t.lagged++
		t.lag += float64(e.lag.Value)
		t.mostLag = max(t.mostLag, float64(e.lag.Value))
	}
}

// finishInterval reports the current second, and the empty time up to the second next.
func (t *transactions) finishInterval(s *stream, next int64, emit func(*tool.Report)) {
	end := float64(t.interval + 1)
	if t.now.n > 0 {
		emitHistogram(s, tool.Transaction, &t.now.latencies, series.Some(end), emit)
	}
	report := func(length, end float64) {
		r := &s.report
		r.Reset(tool.Interval, s.run)
		r.Phase = tool.Measure
		r.ElapsedSeconds, r.IntervalSeconds = series.Some(end), series.Some(length)
		t.fill(r, &t.now, length)
		emit(r)
		t.now = newTally()
	}
	report(1, end)
	if empty := float64(next) - end; empty > 0 {
		report(empty, float64(next))
	}
	t.interval = next
}

// emitHistogram reports the latencies of an operation: of the second that ends at end or, if end is
// unknown, of the whole run.
func emitHistogram(s *stream, operation string, latencies *histogram.Recorder, end series.Optional[float64], emit func(*tool.Report)) {
	r := &s.report
	r.Reset(tool.Histogram, s.run)
	r.Operation, r.Cumulative = operation, !end.Known
	if r.ElapsedSeconds = end; end.Known {
		r.IntervalSeconds = series.Some(1.0)
	}
	r.AddBuckets(latencies.Histogram())
	if len(r.Buckets) > 0 {
		emit(r)
	}
}

// fill adds a tally to r. A percentile is the upper bound of its bucket, limited to the maximum.
func (t *transactions) fill(r *tool.Report, n *tally, seconds float64) {
	if !t.sampled {
		r.AddCountOver(tool.Transaction, n.n, seconds)
		r.AddCountOver(tool.ErrorCount, n.failed, r.IntervalSeconds.Value)
		if t.all.skipped > 0 {
			r.AddCount(opSkipped, n.skipped)
		}
		if t.all.lagged > 0 {
			r.AddCount(opRetry, n.retries)
		}
	}
	if n.n == 0 {
		return
	}
	addMicroseconds(r, tool.Transaction, "min", n.low)
	addMicroseconds(r, tool.Transaction, "avg", n.sum/float64(n.n))
	r.AddPercentiles(tool.Transaction, n.latencies.Histogram(), n.high/1e6)
	addMicroseconds(r, tool.Transaction, "max", n.high)
	if n.lagged > 0 {
		addMicroseconds(r, tool.ScheduleLag, "avg", n.lag/float64(n.lagged))
		addMicroseconds(r, tool.ScheduleLag, "max", n.mostLag)
	}
}

// addMicroseconds adds a latency, exact to the nanosecond.
func addMicroseconds(r *tool.Report, operation, stat string, v float64) {
	r.AddLatency(operation, stat, math.Round(v*1e3)/1e9)
}

// finish reports the run. Only the summary includes the rest after the last whole second.
func (t *transactions) finish(s *stream, emit func(*tool.Report)) {
	emitHistogram(s, tool.Transaction, &t.all.latencies, series.Optional[float64]{}, emit)
	if len(t.scripts) > 1 {
		for i := range t.scripts {
			emitHistogram(s, scriptName(i+1), &t.scripts[i], series.Optional[float64]{}, emit)
		}
	}
	r := &s.report
	r.Reset(tool.Summary, s.run)
	seconds := float64(t.last) / 1e6
	r.ElapsedSeconds = series.Some(seconds)
	if !t.sampled {
		r.Threads = series.Some(len(t.numbers))
	}
	t.fill(r, &t.all, seconds)
	emit(r)
}

// aggregates are the totals of the lines of --aggregate-interval.
type aggregates struct {
	begun  bool
	start  int64 // start of the first interval, Unix time in whole seconds
	length int64 // seconds per interval, 0 before the second line
	held   aggregate
	n      int
	whole  uint64 // transactions since the second interval, the first complete one
	all    aggregate
}

// aggregate is a line (times in microseconds):
//
//	start transactions sum sum_of_squares min max [lag: sum sum_of_squares min max] [skipped] [retried retries serialization deadlock [other]]
//
// Versions 15 and later always print 15 columns, versions 19 and later 16. A column that was not
// measured is 0; without --failures-detailed that includes failures.
type aggregate struct {
	start                              int64
	n, skipped, retried, retry, failed uint64
	sum, squares, low, high            float64
	lag, mostLag                       float64
}

func (a *aggregate) read(l scan.Line) bool {
	c, columns, ok := readColumns(l)
	if !ok {
		return false
	}
	*a = aggregate{start: int64(c[0]), n: uint64(c[1]), sum: c[2], squares: c[3], low: c[4], high: c[5], lag: c[6], mostLag: c[9]}
	a.skipped = uint64(c[10])
	a.retried, a.retry = uint64(c[11]), uint64(c[12])
	a.failed = uint64(c[13] + c[14] + c[15])
	if columns == 11 { // versions before 15 also count skipped transactions
		if a.skipped > a.n {
			return false
		}
		a.n -= a.skipped
	}
	return a.n == 0 || a.low <= a.high && a.sum >= a.high
}

// readColumns reads the columns of an interval and returns their number.
func readColumns(l scan.Line) (c [maxColumns]float64, columns int, ok bool) {
	for ; columns < maxColumns; columns++ {
		if columns > 0 && !l.Literal(" ") {
			break
		}
		v, decimals, ok := l.Number(0)
		if !ok || decimals > 0 {
			return c, 0, false
		}
		c[columns] = v
	}
	if !l.End() || c[0] < earliest || c[0] > latest {
		return c, 0, false
	}
	switch columns {
	case 6, 10, 11, 15, 16:
	default:
		return c, 0, false
	}
	for i, v := range c {
		if isSum := i == 2 || i == 3 || i == 6 || i == 7; !isSum && v > maxLatency {
			return c, 0, false
		}
	}
	return c, columns, true
}

// add adds an interval.
func (a *aggregate) add(b *aggregate) {
	if b.n > 0 && (a.n == 0 || b.low < a.low) {
		a.low = b.low
	}
	a.high, a.mostLag = max(a.high, b.high), max(a.mostLag, b.mostLag)
	a.n += b.n
	a.sum += b.sum
	a.squares += b.squares
	a.lag += b.lag
	a.skipped += b.skipped
	a.retried += b.retried
	a.retry += b.retry
	a.failed += b.failed
}

// fill adds the values to r. It leaves out zeros that may mean "not measured".
func (a *aggregate) fill(r *tool.Report) {
	r.AddCount(tool.Transaction, a.n)
	if a.failed > 0 {
		r.AddCountOver(tool.ErrorCount, a.failed, r.IntervalSeconds.Value)
	}
	for _, c := range []tool.Count{{Operation: opSkipped, N: a.skipped},
		{Operation: opRetried, N: a.retried}, {Operation: opRetry, N: a.retry}} {
		if c.N > 0 {
			r.AddCount(c.Operation, c.N)
		}
	}
	if a.n == 0 {
		return
	}
	n := float64(a.n)
	mean := a.sum / n
	addMicroseconds(r, tool.Transaction, "min", a.low)
	addMicroseconds(r, tool.Transaction, "avg", mean)
	addMicroseconds(r, tool.Transaction, statStddev, math.Sqrt(max(0, a.squares/n-mean*mean)))
	addMicroseconds(r, tool.Transaction, "max", a.high)
	if a.lag > 0 {
		addMicroseconds(r, tool.ScheduleLag, "avg", a.lag/n)
		addMicroseconds(r, tool.ScheduleLag, "max", a.mostLag)
	}
}

// addAggregate reads a line about an interval. The first line is held back until the second one
// shows the length. pgbench prints every interval, so a different distance means another run.
func (s *stream) addAggregate(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	var a aggregate
	if !a.read(l) {
		return tool.Malformed
	}
	g := &s.log.aggregates
	if after := a.start - g.held.start; g.begun &&
		(after <= 0 || after > maxGap || g.length > 0 && after != g.length) || !g.begun && s.run > 0 {
		s.next(emit)
	}
	if g = &s.log.aggregates; !g.begun {
		*g = aggregates{begun: true, start: a.start, held: a, n: 1, all: a}
		s.logStart(time.Unix(a.start, 0), emit)
		return tool.Reported
	}
	if g.length == 0 {
		g.length = a.start - g.held.start
		g.report(s, &g.held, emit)
	}
	g.held = a
	g.n++
	g.whole += a.n
	g.all.add(&a)
	g.report(s, &a, emit)
	return tool.Reported
}

// report reports an interval. The first interval began some time after the second in its line, so
// its length is unknown.
func (g *aggregates) report(s *stream, a *aggregate, emit func(*tool.Report)) {
	r := &s.report
	r.Reset(tool.Interval, s.run)
	r.Phase = tool.Measure
	if g.length > 0 {
		r.ElapsedSeconds = series.Some(float64(a.start + g.length - g.start))
	}
	if a.start > g.start {
		r.IntervalSeconds = series.Some(float64(g.length))
		r.AddRate(tool.Transaction, float64(a.n)/float64(g.length))
	}
	a.fill(r)
	emit(r)
}

// finish reports the run. pgbench does not write its last interval unless it is complete.
func (g *aggregates) finish(s *stream, emit func(*tool.Report)) {
	r := &s.report
	if g.length == 0 {
		g.report(s, &g.held, emit)
	}
	if s.beside {
		return
	}
	r.Reset(tool.Summary, s.run)
	if g.length > 0 {
		r.ElapsedSeconds = series.Some(float64(g.held.start + g.length - g.start))
		r.AddRate(tool.Transaction, float64(g.whole)/float64(int64(g.n-1)*g.length))
	}
	g.all.fill(r)
	emit(r)
}
