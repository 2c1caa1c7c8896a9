package goycsb

import (
	"bytes"
	"math"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// row is what go-ycsb prints about one operation, cumulatively.
type row struct {
	op *operation
	// takes is the time since the operation's first sample in seconds, ops its average rate; both
	// are rounded to one decimal.
	takes, ops float64
	count      uint64
	latencies  [maxColumns]latency
	n          int // number of latencies
	columns    int
}

type latency struct {
	stat    string
	seconds float64
}

const maxColumns = 16

// operation is a name that go-ycsb prints.
type operation struct {
	raw  string
	name string // as in reports; TOTAL is "transaction"
	// failed: counts errors, such as READ_ERROR.
	failed bool
	// parts: read-modify-write, whose read and update TOTAL counts separately.
	parts bool
}

const maxOperations = 64 // per block

// newOperation returns the operation printed as raw, nil for an impossible name.
func newOperation(raw string) *operation {
	if !scan.Only(raw, scan.Capital+scan.Digits+"_") {
		return nil
	}
	op := &operation{raw: raw, name: strings.ToLower(raw)}
	op.failed = strings.HasSuffix(op.name, "_error")
	op.parts = op.name == "read_modify_write"
	switch op.name {
	case "total":
		op.name = tool.Transaction
	case tool.Transaction, tool.ErrorCount:
		return nil // would be taken for the totals
	}
	return op
}

// column is the meaning of a header such as 50th(us) or Avg(us).
type column struct {
	kind columnKind
	stat string // statistic of a latency: avg, p99.9
}

type columnKind uint8

const (
	unknown columnKind = iota
	operationColumn
	takesColumn
	countColumn
	opsColumn
	latencyColumn
)

func newColumn(raw string) *column {
	c := new(column)
	switch header := strings.ToLower(raw); header {
	case "operation":
		c.kind = operationColumn
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

// statistic returns the statistic for a header in lower case: avg(us), 99.9th(us).
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
	if !ok || !scan.Only(p, scan.Digits+".") {
		return ""
	}
	return "p" + p
}

// maxLatency is the largest plausible latency in seconds. go-ycsb measures up to a day.
const maxLatency = 1e6

// set sets the value of a row under a header.
func (d *reader) set(r *row, col *column, value []byte) (ok bool) {
	if r.columns++; col == nil || r.columns > maxColumns {
		return false
	}
	switch col.kind {
	case operationColumn:
		r.op = d.operations.Find(value, newOperation)
		r.columns-- // missing in the plain style
	case takesColumn:
		r.takes, ok = decimal.Parse(value, 0)
		return ok && r.takes >= 0 && r.takes < 1e9
	case countColumn:
		l := scan.New(value)
		r.count, ok = l.Count()
		return ok && l.End() && r.count <= 1e15
	case opsColumn:
		r.ops, ok = decimal.Parse(value, 0)
		// The rate of the first samples is infinite.
		return ok && r.ops >= 0 || string(value) == "+Inf" || string(value) == "NaN"
	case latencyColumn:
		v, ok := decimal.Parse(value, -6)
		r.latencies[r.n] = latency{col.stat, v}
		r.n++
		return ok && v >= 0 && v <= maxLatency
	}
	return true
}

// bounds returns the bounds of the time since the operation's first sample. The printed time is
// rounded to 0.1 s; count / ops, both from the same instant, is more precise.
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

// reader reads rows in the three output styles.
type reader struct {
	operations scan.Memo[operation]
	columns    scan.Columns[column]
}

var takesIs = []byte(" - Takes(s): ")

// isPlain reports whether text looks like a row of the plain style.
func isPlain(text []byte) bool { return bytes.Contains(text, takesIs) }

// plain reads "READ   - Takes(s): 1.0, Count: 190, OPS: 191.2, Avg(us): 2269, …".
func (d *reader) plain(text []byte, r *row) bool {
	l := scan.New(text)
	name, ok := l.Until(" - ")
	*r = row{op: d.operations.Find(bytes.TrimRight(name, " "), newOperation)}
	return ok && r.op != nil && d.columns.Fields(&l, func(c *column, value []byte) bool { return d.set(r, c, value) })
}

// isRule reports whether text is a border of a table: +-----+----+.
func isRule(text []byte) bool {
	return len(text) > 2 && text[0] == '+' && text[len(text)-1] == '+' && scan.Only(text, "+-")
}

// isHeader reports whether text is the head of a table.
func isHeader(text []byte) bool {
	return bytes.HasPrefix(text, []byte("| OPERATION |"))
}

// row reads a table's row.
func (d *reader) row(text []byte, r *row) bool {
	*r = row{}
	return d.columns.Row(text, func(c *column, cell []byte) bool { return d.set(r, c, cell) }) && r.op != nil
}

// isJSON reports whether text looks like a block of the JSON style.
func isJSON(text []byte) bool {
	return bytes.HasPrefix(text, []byte(`[{"`)) && bytes.Contains(text[:min(len(text), 4096)], []byte(`"Takes(s)"`))
}

// json reads a block and calls take after each object.
func (d *reader) json(text []byte, r *row, take func()) bool {
	*r = row{}
	d.operations.Rewind()
	l := scan.New(text)
	return d.columns.Objects(&l, func(c *column, value []byte) bool { return d.set(r, c, value) }, func() bool {
		if r.op == nil {
			return false
		}
		take()
		*r = row{}
		return true
	})
}
