package gotpc

import (
	"bytes"
	"math"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// row is what go-tpc prints about one operation, for an interval or for the whole run.
type row struct {
	op       *operation
	name     []byte // as printed, during the call that reads the row
	prefixed bool   // summary is set; always true for rows of the plain style
	summary  bool   // [Summary], not [Current]
	pause    bool   // a keying or thinking time, not an operation
	queries  bool   // from TPC-H or CH-benCHmark: without "Takes(s)"
	hasCount bool
	count    uint64
	hasTakes bool
	takes    float64 // seconds
	sum      float64 // of all latencies in milliseconds; 0: not printed
	tpm      float64
	tpmC     series.Optional[float64] // from the row below a summary

	latencies [maxStats]float64 // seconds, in the order of stats
	has       [maxStats]bool
	fields    int
	decimals  int  // decimals of the last latency
	ragged    bool // the last two latencies have different decimals
}

// maxFields limits the fields of a row.
const maxFields = 16

const maxStats = 7

// stats are the names of the latencies in reports, and in the output in lower case.
var stats = [maxStats]struct{ name, printed string }{
	{"avg", "avg(ms)"}, {"p50", "50th(ms)"}, {"p90", "90th(ms)"}, {"p95", "95th(ms)"},
	{"p99", "99th(ms)"}, {"p99.9", "99.9th(ms)"}, {"max", "max(ms)"},
}

// column is a heading in lower case (tables print capitals). For latencies it has the index in
// stats, otherwise -1.
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
	return scan.HasAnyPrefix(name, "KEYINGTIME-", "THINKINGTIME-")
}

// The two prefixes of rows.
const (
	current = "[Current]"
	whole   = "[Summary]"
)

// set sets one field of p.row. It skips unknown fields.
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
		return number(value, &r.sum)
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

// number reads all of value as a number. It treats a division by zero as 0.
func number(value []byte, to *float64) bool {
	if string(value) == "NaN" || string(value) == "+Inf" {
		return true
	}
	l := scan.New(value)
	v, _, ok := l.Number(0)
	*to = v
	return ok && l.End()
}

// complete reports whether the row is complete. Rows since 2022, and most older ones, end in Max;
// rows of 2020 end in the 99.9th percentile and have no 50th; rows of queries end in the average. A
// truncated number has fewer decimals.
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

// contradiction is by which share a mean may differ from sum and count: it comes from the buckets of a histogram.
const contradiction = 0.1

// settle replaces a mean that contradicts the sum and the count, which some builds print in another unit, and drops
// percentiles that belong to it.
func (r *row) settle() {
	if r.sum <= 0 || r.count == 0 || !r.has[0] {
		return
	}
	mean := r.sum / 1000 / float64(r.count)
	if d := math.Abs(mean - r.latencies[0]); d <= 0.001 || d <= contradiction*mean {
		return
	}
	r.latencies[0] = mean
	for i := 1; i < len(r.has); i++ {
		r.has[i] = false
	}
}

// add adds the row's values to a report.
func (r *row) add(to *tool.Report) {
	r.settle()
	for i := range stats {
		if r.has[i] {
			to.AddLatency(r.op.name, stats[i].name, r.latencies[i])
		}
	}
}

// covers returns the time in seconds that the row covers, which starts with the first sample of its
// operation. Takes has only one decimal; Count × 60 / TPM is more precise.
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

// seconds reads a number with the unit s: "1.23s".
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

// operation is what the name of a row means.
type operation struct {
	printed string // NEW_ORDER_ERR
	name    string // new_order_error
	failed  bool   // it counts failed transactions
}

// newOperation returns the operation with this printed name, nil for an impossible name.
func newOperation(printed string) *operation {
	if !scan.Only(printed, scan.Capital+scan.Digits+"_") {
		return nil
	}
	base, failed := strings.CutSuffix(printed, "_ERR")
	o := &operation{printed: printed, name: strings.ToLower(base), failed: failed}
	if failed {
		o.name += "_error"
	}
	return o
}
