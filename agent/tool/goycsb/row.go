package goycsb

import (
	"bytes"
	"math"
	"strings"

	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/tool/scan"
)

// row is what go-ycsb prints of one operation, cumulative.
type row struct {
	op *operation
	// takes is the time since the operation's first sample, ops its average
	// rate, each rounded to one decimal.
	takes, ops float64
	count      uint64
	latencies  [maxColumns]latency
	n          int // of latencies
	columns    int
}

type latency struct {
	stat    string
	seconds float64
}

const maxColumns = 16

// operation is a name that go-ycsb prints.
type operation struct {
	raw  []byte
	name string // as in reports; TOTAL is transaction
	// failed: a kind of errors, READ_ERROR.
	failed bool
	// parts: a read-modify-write, of which TOTAL counts the read and the
	// update.
	parts bool
}

const (
	maxOperations = 64
	maxName       = 64
)

// operations remembers the names, so that a line costs no allocation.
type operations struct {
	known []*operation
	next  int
}

func (o *operations) find(raw []byte) *operation {
	if o.next < len(o.known) && bytes.Equal(o.known[o.next].raw, raw) {
		o.next++
		return o.known[o.next-1]
	}
	for i, op := range o.known {
		if bytes.Equal(op.raw, raw) {
			o.next = i + 1
			return op
		}
	}
	if len(o.known) == maxOperations || len(raw) > maxName || !isOperation(raw) {
		return nil
	}
	op := &operation{raw: bytes.Clone(raw), name: strings.ToLower(string(raw))}
	op.failed = strings.HasSuffix(op.name, "_error")
	op.parts = op.name == "read_modify_write"
	switch op.name {
	case "total":
		op.name = tool.Transaction
	case tool.Transaction, "error":
		return nil // would be mistaken for the totals
	}
	o.known = append(o.known, op)
	return op
}

func isOperation(raw []byte) bool {
	for _, c := range raw {
		if c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(raw) > 0
}

// columns remembers what the headers 50th(us), Avg(us) … stand for.
type columns struct {
	known []column
	next  int
}

type column struct {
	raw  []byte
	kind columnKind
	stat string // of a latency: avg, p99.9
}

type columnKind uint8

const (
	unknown columnKind = iota
	takesColumn
	countColumn
	opsColumn
	latencyColumn
)

func newColumn(raw []byte) column {
	c := column{raw: bytes.Clone(raw)}
	switch header := strings.ToLower(string(raw)); header {
	case "takes(s)":
		c.kind = takesColumn
	case "count":
		c.kind = countColumn
	case "ops":
		c.kind = opsColumn
	default:
		if c.stat = statistic(header); c.stat != "" {
			c.kind = latencyColumn
		}
	}
	return c
}

func (c *columns) find(raw []byte) *column {
	if c.next < len(c.known) && bytes.Equal(c.known[c.next].raw, raw) {
		c.next++
		return &c.known[c.next-1]
	}
	for i := range c.known {
		if bytes.Equal(c.known[i].raw, raw) {
			c.next = i + 1
			return &c.known[i]
		}
	}
	if len(c.known) == maxOperations || len(raw) > maxName {
		return nil
	}
	c.known = append(c.known, newColumn(raw))
	return &c.known[len(c.known)-1]
}

// statistic returns the name of a latency by its header in lower case: avg(us),
// 99.9th(us).
func statistic(header string) string {
	s, ok := strings.CutSuffix(header, "(us)")
	if !ok {
		return ""
	}
	switch s {
	case "avg", "min", "max":
		return s
	}
	p, ok := strings.CutSuffix(s, "th")
	if !ok || p == "" || strings.Trim(p, "0123456789.") != "" {
		return ""
	}
	return "p" + p
}

// maxLatency bounds what is taken for a latency, in seconds. go-ycsb measures
// up to a day.
const maxLatency = 1e6

// set takes one value of a row under its header.
func (r *row) set(c *columns, header, value []byte) (ok bool) {
	r.columns++
	if r.columns > maxColumns {
		return false
	}
	col := c.find(header)
	if col == nil {
		return false
	}
	switch col.kind {
	case takesColumn:
		r.takes, ok = decimal.Parse(value, 0)
		return ok && r.takes >= 0 && r.takes < 1e9
	case countColumn:
		l := scan.Line(value)
		r.count, ok = l.Count()
		return ok && len(l) == 0 && r.count <= 1e15
	case opsColumn:
		r.ops, ok = decimal.Parse(value, 0)
		// The rate of the very first samples is infinite.
		return ok && r.ops >= 0 || string(value) == "+Inf" || string(value) == "NaN"
	case latencyColumn:
		v, ok := decimal.Parse(value, -6)
		r.latencies[r.n] = latency{col.stat, v}
		r.n++
		return ok && v >= 0 && v <= maxLatency
	}
	return true
}

// bounds returns between which values the time since the operation's first
// sample lies: the printed time is rounded to 0.1 s, but count / ops, of which
// both are of the same instant, tells more.
func (r *row) bounds() (low, high float64) {
	low, high = math.Max(r.takes-0.05, 0), r.takes+0.05
	if r.count == 0 || r.ops <= 0.05 {
		return low, high
	}
	n := float64(r.count)
	l, h := math.Max(low, n/(r.ops+0.05)), math.Min(high, n/(r.ops-0.05))
	if l > h {
		return low, high
	}
	return l, h
}
