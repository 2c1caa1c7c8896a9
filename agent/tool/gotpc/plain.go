package gotpc

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/scan"
)

// plain reads a row of the plain form:
//
//	[Current] NEW_ORDER - Takes(s): 1.0, Count: 97, TPM: 6065.7, Sum(ms): 2149.1, Avg(ms): 22.2, 50th(ms): 22.0, …, Max(ms): 75.5
//	[Current] KEYINGTIME-PAYMENT - 3.0s      TPC-C with --wait: no operation
//	[Current] Q1 - Count: 5, Sum(ms): 210.0, Avg(ms): 42.0      CH-benCHmark
//	[Current] Q1: 1.23s      TPC-H
func (p *Parser) plain(text []byte, emit func(*tool.Report)) tool.Verdict {
	l := scan.Line(text)
	r := &p.row
	*r = row{}
	if r.summary = l.Literal(whole); !r.summary && !l.Literal(current) {
		return tool.Malformed
	}
	if !l.Literal(" ") {
		return tool.Malformed
	}
	if bytes.HasPrefix(l, []byte("KEYINGTIME-")) || bytes.HasPrefix(l, []byte("THINKINGTIME-")) {
		p.pause(emit)
		return tool.Ignored
	}
	name, ok := l.Until(" - ")
	if !ok {
		rest := l
		if name, ok = l.Until(": "); !ok || !r.seconds(l) {
			return p.unreadable(rest, r.summary, emit)
		}
		l = nil
	}
	r.op = p.names.Find(bytes.TrimRight(name, " "), newOperation)
	for len(l) > 0 {
		key, ok := l.Until(": ")
		if !ok {
			return p.unreadable(name, r.summary, emit)
		}
		value := []byte(l)
		if i := bytes.Index(l, []byte(", ")); i >= 0 {
			value = l[:i]
			l = l[i+2:]
			if len(l) == 0 {
				return p.unreadable(name, r.summary, emit)
			}
		} else {
			l = nil
		}
		if r.fields > maxFields || !r.set(key, value) {
			return p.unreadable(name, r.summary, emit)
		}
	}
	if !r.complete() {
		return p.unreadable(name, r.summary, emit)
	}
	return p.take(emit)
}

// maxFields bounds the fields of a row.
const maxFields = 16

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
