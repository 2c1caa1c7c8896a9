package sysbench

import (
	"bytes"
	"math"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// sysbench's histogram (src/sb_histogram.c of 1.0): a value v in ms is counted in element round((ln
// v - ln 0.001) * scale). sysbench prints the middle of the element on this scale, with three
// decimals.
const (
	elements   = 1024
	lowestMS   = 0.001
	highestMS  = 100000
	maxBuckets = 2 * elements // of the rows of one table
)

var (
	elementScale = (elements - 1) / (math.Log(highestMS) - math.Log(lowestMS))
	lowestLog    = math.Log(lowestMS)
)

// middle returns the printed value of element i in ms. Half a step from an element is one of its
// bounds.
func middle(i float64) float64 { return math.Exp(i/elementScale + lowestLog) }

// elementsPrinted returns the first and the last element printed as this value in ms; ok is false
// if there is none.
func elementsPrinted(ms float64) (first, last int, ok bool) {
	at := 0.0
	if ms > 0 {
		at = (math.Log(ms) - lowestLog) * elementScale
	}
	prints := func(i int) bool { return math.Abs(middle(float64(i))-ms) <= 0.0005000001 }
	i := int(math.Round(at))
	if i < 0 || i >= elements || !prints(i) {
		return 0, 0, false
	}
	first, last = i, i
	for first > 0 && prints(first-1) {
		first--
	}
	for last < elements-1 && prints(last+1) {
		last++
	}
	return first, last, true
}

// span returns the bucket formed by the elements first to last, in seconds. The first and the last
// element also count all values beyond them.
func span(first, last int, n uint64) histogram.Bucket {
	b := histogram.Bucket{Low: middle(float64(first)-0.5) / 1e3, High: middle(float64(last)+0.5) / 1e3, N: n}
	if first == 0 {
		b.Low = 0
	}
	if last == elements-1 {
		b.High = math.Inf(1)
	}
	return b
}

// distribution is the table of --histogram while it is being read.
type distribution struct {
	open    bool
	damaged bool
	rows    []tool.Bucket // only Bound and N are set
}

// histogramHeading begins a table.
func (p *Parser) histogramHeading(text []byte, emit func(*tool.Report)) bool {
	if !is(text, "Latency histogram (values are in milliseconds)") {
		return false
	}
	p.start(emit)
	p.release(emit)
	p.hook.settle(p, summaryComes, emit)
	p.distribution = distribution{open: true, rows: p.distribution.rows[:0]}
	return true
}

// histogramRow reads a row, `0.030 |*** 34`, the heading of the columns, or the line with one blank
// that ends the table.
func (p *Parser) histogramRow(text []byte, emit func(*tool.Report)) (tool.Verdict, bool) {
	d := &p.distribution
	trimmed := bytes.TrimLeft(text, " ")
	switch {
	case !d.open:
		return 0, false
	case len(trimmed) == 0:
		p.endHistogram(emit)
		return tool.Ignored, true
	case scan.HasPrefix(trimmed, "value  ---"):
		return tool.Ignored, true
	case trimmed[0] < '0' || trimmed[0] > '9':
		return 0, false
	}
	s := scan.New(trimmed)
	v, ok := s.Fixed(3, 0)
	ok = ok && s.Literal(" |")
	if ok {
		s.Skip(len(s.Rest()) - len(bytes.TrimLeft(s.Rest(), "*")))
		s.Blanks()
	}
	n, whole := uint64(0), false
	if ok {
		n, whole = count(&s)
	}
	if !whole || !s.End() || len(d.rows) == maxBuckets {
		d.damaged = true
		return tool.Malformed, true
	}
	d.rows = append(d.rows, tool.Bucket{Bound: v, Bucket: histogram.Bucket{N: n}})
	return tool.Reported, true
}

// endHistogram reports the table if it is complete. An incomplete table would be a different
// distribution.
func (p *Parser) endHistogram(emit func(*tool.Report)) {
	d := &p.distribution
	if !d.open {
		return
	}
	d.open = false
	if d.damaged || len(d.rows) == 0 {
		return
	}
	r := &p.report
	r.Reset(tool.Histogram, p.number)
	r.Operation, r.Cumulative = tool.Transaction, true
	for from := 0; from < len(d.rows); {
		to := from + 1
		for to < len(d.rows) && d.rows[to].Bound == d.rows[from].Bound {
			to++
		}
		first, last, ok := elementsPrinted(d.rows[from].Bound)
		if !ok || to-from > last-first+1 || to < len(d.rows) && d.rows[to].Bound < d.rows[from].Bound {
			return // another layout, or two interleaved tables
		}
		for i := from; i < to; i++ {
			b := span(first, last, d.rows[i].N)
			if to-from == last-first+1 { // all elements were printed: each is one row
				b = span(first+i-from, first+i-from, d.rows[i].N)
			}
			r.Buckets = append(r.Buckets, tool.Bucket{Bound: math.Round(d.rows[i].Bound*1e3) / 1e6, Bucket: b})
		}
		from = to
	}
	emit(r)
}
