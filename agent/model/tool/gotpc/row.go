package gotpc

import (
	"bytes"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// row is what go-tpc prints about one operation, in an interval or in all.
type row struct {
	op       *operation
	name     []byte // as printed, during the call that reads the row
	prefixed bool   // summary is known; rows of the plain form all are
	summary  bool   // [Summary], not [Current]
	pause    bool   // a keying or thinking time, which is no operation
	queries  bool   // of TPC-H or CH-benCHmark: without "Takes(s)"
	hasCount bool
	count    uint64
	hasTakes bool
	takes    float64 // seconds
	tpm      float64
	tpmC     series.Optional[float64] // of the row below a summary

	latencies [maxStats]float64 // seconds, in the order of stats
	has       [maxStats]bool
	fields    int
	decimals  int  // of the last latency
	ragged    bool // the last two latencies differ in decimals
}

// maxFields bounds the fields of a row.
const maxFields = 16

const maxStats = 7

// stats are the latencies' names in reports and in the output, in lower case.
var stats = [maxStats]struct{ name, printed string }{
	{"avg", "avg(ms)"}, {"p50", "50th(ms)"}, {"p90", "90th(ms)"}, {"p95", "95th(ms)"},
	{"p99", "99th(ms)"}, {"p99.9", "99.9th(ms)"}, {"max", "max(ms)"},
}

// usual are the fields of a row of the plain form since 2020, with what is before
// each.
var usual = [...]string{
	"Takes(s): ", ", Count: ", ", TPM: ", ", Sum(ms): ",
	", Avg(ms): ", ", 50th(ms): ", ", 90th(ms): ", ", 95th(ms): ", ", 99th(ms): ", ", 99.9th(ms): ", ", Max(ms): ",
}

// quick takes the fields of a row that has exactly the usual ones, each with one
// decimal, without a search. It is false for any other row, of which it takes
// nothing.
func (r *row) quick(l scan.Line) bool {
	q := row{name: r.name, summary: r.summary, hasTakes: true, hasCount: true}
	for i, name := range usual {
		if !l.Literal(name) {
			return false
		}
		ok, decimals := false, 1
		switch i {
		case 0:
			q.takes, decimals, ok = l.Number(0)
		case 1:
			q.count, ok = l.Count()
		case 2:
			q.tpm, decimals, ok = l.Number(0)
		case 3:
			_, decimals, ok = l.Number(0)
		default:
			q.latencies[i-4], decimals, ok = l.Number(-3)
			q.has[i-4] = true
		}
		if !ok || decimals != 1 {
			return false
		}
	}
	if !l.End() {
		return false
	}
	*r = q
	return true
}

// column is a heading in lower case (tables have capitals) and, for latencies, its
// place in stats, else -1: most fields of a row are latencies.
type column struct {
	heading string
	stat    int
}

func newColumn(heading string) *column {
	c := &column{strings.ToLower(heading), -1}
	for i := range stats {
		if stats[i].printed == c.heading {
			c.stat = i
		}
	}
	return c
}

func isPause(name []byte) bool {
	return scan.HasPrefix(name, "KEYINGTIME-") || scan.HasPrefix(name, "THINKINGTIME-")
}

// heads are the two prefixes of rows.
const (
	current = "[Current]"
	whole   = "[Summary]"
)

// set takes one field of p.row. Unknown ones are passed over.
func (p *Parser) set(column *column, value []byte) (ok bool) {
	r := &p.row
	if r.fields++; column == nil || r.fields > maxFields {
		return false
	}
	if i := column.stat; i >= 0 {
		l := scan.New(value)
		v, decimals, ok := l.Number(-3)
		r.ragged = r.has[0] && decimals != r.decimals
		r.latencies[i], r.has[i], r.decimals = v, true, decimals
		return ok && l.End()
	}
	switch column.heading {
	case "prefix":
		value = bytes.TrimRight(value, " ")
		r.summary = string(value) == whole
		r.prefixed = r.summary || string(value) == current
		return r.prefixed
	case "operation":
		r.name, r.pause = value, isPause(value)
		r.op = p.names.Find(value, newOperation)
	case "takes(s)":
		r.hasTakes = true
		return number(value, &r.takes)
	case "tpm":
		return number(value, &r.tpm)
	case "sum(ms)":
		var sum float64
		return number(value, &sum)
	case "count":
		l := scan.New(value)
		r.count, ok = l.Count()
		r.hasCount = ok && l.End()
		return r.hasCount
	case "avg(s)":
		return r.seconds(value)
	case "tpmc":
		l := scan.New(value)
		v, _, ok := l.Number(0)
		r.tpmC = series.Some(v)
		return ok && l.End()
	}
	return true
}

// number takes all of value. A division by zero is as good as 0.
func number(value []byte, to *float64) bool {
	if string(value) == "NaN" || string(value) == "+Inf" {
		return true
	}
	l := scan.New(value)
	v, _, ok := l.Number(0)
	*to = v
	return ok && l.End()
}

// complete reports whether nothing is missing: rows of 2022 and later, and most
// before, end in Max, those of 2020 in the 99.9th percentile and have no 50th,
// those of queries in the average. A number that was cut has fewer decimals.
func (r *row) complete() bool {
	if r.op == nil || r.ragged {
		return false
	}
	if r.queries = !r.hasTakes; r.queries {
		return r.has[0]
	}
	if !r.hasCount || !r.has[0] {
		return false
	}
	return r.has[6] || !r.has[1] && r.has[5]
}

// add adds the row's values to a report.
func (r *row) add(to *tool.Report) {
	for i := range stats {
		if r.has[i] {
			to.AddLatency(r.op.name, stats[i].name, r.latencies[i])
		}
	}
}

// covers is the time in seconds that the row is about: from its operation's
// first sample on. TPM = Count × 60 / Takes is more exact than the one
// decimal of Takes.
func (r *row) covers() float64 {
	if r.tpm <= 0 || r.count == 0 {
		return r.takes
	}
	v := float64(r.count) * 60 / r.tpm
	if v < r.takes-0.06 || v > r.takes+0.06 {
		return r.takes
	}
	return v
}

// seconds takes a number with the unit s, "1.23s".
func (r *row) seconds(value []byte) bool {
	n := len(value)
	if n < 2 || value[n-1] != 's' {
		return false
	}
	v, ok := decimal.Parse(value[:n-1], 0)
	if !ok || v < 0 {
		return false
	}
	r.latencies[0], r.has[0] = v, true
	return true
}

// operation is a row's name.
type operation struct {
	printed string // NEW_ORDER_ERR
	name    string // new_order_error
	failed  bool   // it counts failed ones
}

// newOperation returns the operation with a printed name, nil if it can't be one.
func newOperation(printed string) *operation {
	if printed == "" {
		return nil
	}
	for i := range len(printed) {
		if c := printed[i]; c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return nil
		}
	}
	base, failed := strings.CutSuffix(printed, "_ERR")
	o := &operation{printed: printed, name: strings.ToLower(base), failed: failed}
	if failed {
		o.name += "_error"
	}
	return o
}
