package goycsb

import (
	"fmt"
	"math"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// block is the rows that go-ycsb prints at once.
type block struct {
	rows []row
	// broken: a row among them was unreadable.
	broken bool
}

func (b *block) reset() { b.rows, b.broken = b.rows[:0], false }

// find returns the row of an operation, nil if there is none.
func (b *block) find(name string) *row {
	for i := range b.rows {
		if b.rows[i].op.name == name {
			return &b.rows[i]
		}
	}
	return nil
}

// elapsed returns the printed time since the first sample of any operation, in seconds.
func (b *block) elapsed() float64 {
	t := 0.0
	for i := range b.rows {
		t = math.Max(t, b.rows[i].takes)
	}
	return t
}

// before is the state of a run's rows up to the previous block.
type before struct {
	blocks int
	rows   []past // one per known operation
	// transactions so far, and the number of the block that contained them.
	transactions      uint64
	transactionsBlock int
}

// past is an operation's last row.
type past struct {
	op        *operation
	count     uint64
	low, high float64 // bounds of the time since its first sample
	block     int     // the number of its block
}

func (p *before) reset() { *p = before{rows: p.rows[:0]} }

func (p *before) find(op *operation) *past {
	for i := range p.rows {
		if p.rows[i].op == op {
			return &p.rows[i]
		}
	}
	return nil
}

// count returns the operation's count so far.
func (p *before) count(op *operation) uint64 {
	if past := p.find(op); past != nil {
		return past.count
	}
	return 0
}

// isAfter reports whether b can follow: cumulative counts never decrease.
func (p *before) isAfter(b *block) bool {
	for i := range b.rows {
		if r := &b.rows[i]; r.count < p.count(r.op) {
			return false
		}
	}
	return true
}

// seconds returns the time in seconds between the previous block and b; 0 if unknown. The rows of a
// block are from the same instant, so each pair of rows bounds this time, and all bounds hold
// together.
func (p *before) seconds(b *block) float64 {
	low, high := 0.0, math.Inf(1)
	best := math.Inf(1)
	bestLow, bestHigh := 0.0, 0.0
	for i := range b.rows {
		r := &b.rows[i]
		l, h := r.bounds()
		switch past := p.find(r.op); {
		case p.blocks == 0:
			// The row that has run longest started with the first sample of all.
			if r.takes < b.elapsed() {
				continue
			}
		case past == nil || past.block != p.blocks:
			continue
		default:
			l, h = math.Max(l-past.high, 0), h-past.low
		}
		if h-l < best {
			best, bestLow, bestHigh = h-l, l, h
		}
		low, high = math.Max(low, l), math.Min(high, h)
	}
	if low > high {
		low, high = bestLow, bestHigh
	}
	if math.IsInf(high, 1) {
		return 0
	}
	return math.Round((low+high)/2*1000) / 1000
}

// add makes b the previous block.
func (p *before) add(b *block) {
	p.blocks++
	for i := range b.rows {
		r := &b.rows[i]
		at := p.find(r.op)
		if at == nil {
			p.rows = append(p.rows, past{op: r.op})
			at = &p.rows[len(p.rows)-1]
		}
		at.count, at.block = r.count, p.blocks
		at.low, at.high = r.bounds()
	}
}

// transactions returns the number of successful transactions so far. TOTAL counts a
// read-modify-write twice, as a read and an update.
func (b *block) transactions() (n uint64, known bool) {
	total, rmw := b.find(tool.Transaction), b.find("read_modify_write")
	switch {
	case total == nil:
		for i := range b.rows {
			known = known || b.rows[i].op.failed
			if !b.rows[i].op.failed && !b.rows[i].op.parts {
				return 0, false
			}
		}
		return 0, known && !b.broken // only errors
	case rmw == nil:
		return total.count, true
	}
	return total.count - min(rmw.count, total.count), true
}

// interval fills r with the differences between b and the previous blocks.
func (p *before) interval(b *block, run int, r *tool.Report) {
	r.Reset(tool.Interval, run)
	r.Phase = tool.Measure
	r.ElapsedSeconds = series.Some(b.elapsed())
	seconds := p.seconds(b)
	if seconds > 0 {
		r.IntervalSeconds = series.Some(seconds)
	}
	p.addTransactions(b, r, seconds)
	var failed series.Optional[uint64]
	for i := range b.rows {
		row := &b.rows[i]
		if row.op.name == tool.Transaction {
			continue
		}
		n := row.count - p.count(row.op)
		switch past := p.find(row.op); {
		case row.op.failed:
			failed = series.Some(failed.Value + n)
			r.AddCount(row.op.name, n)
		case past != nil && past.block != p.blocks: // missing in the previous block: counts from an earlier one
			r.AddCount(row.op.name, n)
		default:
			r.AddCountOver(row.op.name, n, seconds)
		}
	}
	if failed.Known {
		r.AddCountOver(tool.ErrorCount, failed.Value, seconds)
	}
}

func (p *before) addTransactions(b *block, r *tool.Report, seconds float64) {
	n, known := b.transactions()
	if !known {
		return
	}
	n, p.transactions = n-min(n, p.transactions), max(n, p.transactions)
	if p.transactionsBlock != p.blocks { // n covers several intervals
		seconds = 0
	}
	p.transactionsBlock = p.blocks + 1
	if !p.unclear(b) {
		r.AddCountOver(tool.Transaction, n, seconds)
	}
}

// unclear reports whether the number of successful transactions cannot be derived from b. A
// read-modify-write whose read fails is in no total, and the output does not show how many of the
// failed reads were part of one.
func (p *before) unclear(b *block) bool {
	grown := func(name string) bool {
		r := b.find(name)
		return r != nil && r.count > p.count(r.op)
	}
	return grown("read_modify_write") && grown("read_error") && grown(tool.Transaction)
}

// summary fills r with the final block.
func (b *block) summary(r *tool.Report) {
	n, known := b.transactions()
	whole := b.find("read_modify_write") == nil // otherwise TOTAL counts parts of transactions
	if rmw, e := b.find("read_modify_write"), b.find("read_error"); rmw != nil && e != nil && n > 0 {
		known = false
	}
	var errors uint64
	var list []string
	for i := range b.rows {
		row := &b.rows[i]
		rate, count := row.ops, row.count
		if row.op.name == tool.Transaction {
			if !known {
				continue
			}
			if !whole {
				rate, count = rate*float64(n)/math.Max(float64(count), 1), n
			}
		}
		r.AddCount(row.op.name, count)
		if row.op.failed {
			errors += count
			list = append(list, fmt.Sprintf("%s %d", row.op.name, count))
		} else if rate > 0 {
			r.AddRate(row.op.name, rate)
		}
		if row.op.name == tool.Transaction && !whole {
			continue // latencies of parts
		}
		for _, l := range row.latencies[:row.n] {
			r.AddLatency(row.op.name, l.stat, l.seconds)
		}
	}
	if errors == 0 {
		return
	}
	r.AddCount(tool.ErrorCount, errors)
	r.Failed = true
	if b.find(tool.Transaction) == nil && known {
		r.AddCount(tool.Transaction, 0)
		r.Message = "no operation succeeded: " + strings.Join(list, ", ")
		return
	}
	r.Message = fmt.Sprintf("%d operations failed: %s", errors, strings.Join(list, ", "))
}
