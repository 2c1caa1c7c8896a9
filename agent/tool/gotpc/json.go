package gotpc

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/scan"
)

// json reads a line of the form json: an array of flat objects, in which all
// values are strings. It is a whole interval, a summary, or what follows
// one:
//
//	[{"Avg(ms)":"44.7","Count":"16","Operation":"DELIVERY","Prefix":"[Current] ",…},…]
//	[{"efficiency":"33084.0%","tpmC":"4254.6","tpmTotal":"9651.8"}]
func (p *Parser) json(text []byte, emit func(*tool.Report)) tool.Verdict {
	// It is whole or nothing: no row is taken from a damaged line.
	rows, tpmC, ok := p.objects(text)
	if !ok {
		return tool.Malformed
	}
	if tpmC != nil {
		l := scan.Line(tpmC)
		v, _, _ := l.Number(0)
		return p.total(v, emit)
	}
	if len(rows) == 0 {
		return tool.Ignored
	}
	p.settle(emit)
	for i := range rows {
		p.row = rows[i]
		p.take(emit)
	}
	p.pause(emit)
	return tool.Reported
}

// objects reads all objects of a line. There are no rows in those of keying
// and thinking times.
func (p *Parser) objects(text []byte) (rows []row, tpmC []byte, ok bool) {
	l := scan.Line(text)
	if !l.Literal("[") {
		return nil, nil, false
	}
	rows = p.rows[:0]
	for first := true; first || l.Literal(","); first = false {
		total, ignored, ok := p.object(&l)
		if !ok || len(rows) >= maxRows {
			return nil, nil, false
		}
		switch {
		case ignored:
		case total != nil:
			tpmC = total
		default:
			rows = append(rows, p.row)
		}
	}
	p.rows = rows
	return rows, tpmC, l.Literal("]") && l.End()
}

// object takes one object. The keys are sorted, so that the name may come last.
func (p *Parser) object(l *scan.Line) (tpmC []byte, ignored, ok bool) {
	r := &p.row
	*r = row{}
	if !l.Literal("{") {
		return nil, false, false
	}
	prefix := false
	for first := true; first || l.Literal(","); first = false {
		key, ok := l.Quoted()
		if !ok || !l.Literal(":") {
			return nil, false, false
		}
		value, ok := l.Quoted()
		if !ok || r.fields > maxFields {
			return nil, false, false
		}
		switch string(key) {
		case "Prefix":
			value = bytes.TrimRight(value, " ")
			r.summary, prefix = string(value) == whole, true
			ok = r.summary || string(value) == current
		case "Operation":
			ignored = bytes.HasPrefix(value, []byte("KEYINGTIME-")) || bytes.HasPrefix(value, []byte("THINKINGTIME-"))
			r.op = p.names.Find(value, newOperation)
		case "tpmC":
			tpmC = value
			n := scan.Line(value)
			_, _, ok = n.Number(0)
			ok = ok && n.End()
		case "tpmTotal", "efficiency":
		case "Avg(s)":
			ok = r.seconds(value)
		default:
			ok = r.set(key, value)
		}
		if !ok {
			return nil, false, false
		}
	}
	r.ragged = false // a string that was cut has no end
	return tpmC, ignored, l.Literal("}") && (tpmC != nil || prefix && (ignored || r.complete()))
}
