package gotpc

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// plain reads a row of the plain form:
//
//	[Current] NEW_ORDER - Takes(s): 1.0, Count: 97, TPM: 6065.7, Sum(ms): 2149.1, Avg(ms): 22.2, 50th(ms): 22.0, …, Max(ms): 75.5
//	[Current] KEYINGTIME-PAYMENT - 3.0s      TPC-C with --wait: no operation
//	[Current] Q1 - Count: 5, Sum(ms): 210.0, Avg(ms): 42.0      CH-benCHmark
//	[Current] Q1: 1.23s      TPC-H
func (p *Parser) plain(text []byte, emit func(*tool.Report)) tool.Verdict {
	l := scan.New(text)
	r := &p.row
	*r = row{}
	if r.summary = l.Literal(whole + " "); !r.summary && !l.Literal(current+" ") {
		return tool.Malformed
	}
	r.name = l.Rest()
	if isPause(r.name) {
		p.pause(emit)
		return tool.Ignored
	}
	name, ok := l.Until(" - ")
	if ok {
		r.name = bytes.TrimRight(name, " ")
		ok = p.columns.Fields(&l, p.set)
	} else if name, ok = l.Until(": "); ok {
		ok = r.seconds(l.Rest())
	}
	r.op = p.names.Find(bytes.TrimRight(name, " "), newOperation)
	if !ok || !r.complete() {
		return p.unreadable(emit)
	}
	return p.take(emit)
}

// tpmC reads the last line of a TPC-C summary:
//
//	tpmC: 12941.7, tpmTotal: 28665.4, efficiency: 100635.1%
func (p *Parser) tpmC(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	v, _, ok := l.Number(0)
	if !ok || !(l.Literal(", ") || l.End()) {
		return tool.Malformed
	}
	return p.total(v, emit)
}

// border reads a line of a table that is not a row.
func (p *Parser) border(text []byte, emit func(*tool.Report)) tool.Verdict {
	if p.tableRows > 0 {
		p.tableRows = 0
		p.pause(emit)
	}
	if len(bytes.Trim(text, "+-")) > 0 {
		return tool.Malformed
	}
	return tool.Ignored
}

// tableRow reads a row of a table, which may be the headings:
//
//	+------------+--------------+----------+-------+
//	|   PREFIX   |  OPERATION   | TAKES(S) | COUNT |  …
//	+------------+--------------+----------+-------+
//	| [Current]  | DELIVERY     |      1.7 |    12 |  …
//	+------------+--------------+----------+-------+
func (p *Parser) tableRow(text []byte, emit func(*tool.Report)) tool.Verdict {
	l := scan.New(text)
	l.Literal("|")
	l.Blanks()
	if totals := l.Literal("TPMC "); totals || l.Literal("PREFIX ") {
		p.tableRows, p.totals = 0, totals
		if !p.columns.Head(text) {
			p.group.broken = true
			return tool.Malformed
		}
		return tool.Reported
	}
	p.tableRows++
	r := &p.row
	*r = row{}
	ok := p.columns.Row(text, p.set)
	switch {
	case p.totals && ok && r.tpmC.Known:
		return p.total(r.tpmC.Value, emit)
	case p.totals:
		return tool.Malformed
	case ok && r.pause:
		return tool.Ignored
	case !ok || !r.complete():
		return p.unreadable(emit)
	}
	v := p.take(emit)
	p.group.block = true
	return v
}

// json reads a line of the form json. It is a whole interval, a summary, or what
// follows one:
//
//	[{"Avg(ms)":"44.7","Count":"16","Operation":"DELIVERY","Prefix":"[Current] ",…},…]
//	[{"efficiency":"33084.0%","tpmC":"4254.6","tpmTotal":"9651.8"}]
func (p *Parser) json(text []byte, emit func(*tool.Report)) tool.Verdict {
	p.row, p.rows = row{}, p.rows[:0]
	var tpmC series.Optional[float64]
	l := scan.New(text)
	ok := p.columns.Objects(&l, p.set, func() bool {
		r := p.row
		p.row = row{}
		r.ragged = false // a truncated string has no end
		switch {
		case r.tpmC.Known:
			tpmC = r.tpmC
		case !r.prefixed || !r.pause && !r.complete() || len(p.rows) == maxRows:
			return false
		case !r.pause:
			p.rows = append(p.rows, r)
		}
		return true
	})
	switch {
	case !ok: // no row of a damaged line counts
		return tool.Malformed
	case tpmC.Known:
		return p.total(tpmC.Value, emit)
	case len(p.rows) == 0:
		return tool.Ignored
	}
	if queries := p.rows[0].queries; p.run.kinds == oneKind || len(*p.group.list(queries)) > 0 {
		p.settle(emit)
	}
	for i := range p.rows {
		p.row = p.rows[i]
		p.take(emit)
	}
	p.group.block = true
	p.pause(emit)
	return tool.Reported
}
