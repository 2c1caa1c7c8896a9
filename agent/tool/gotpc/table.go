package gotpc

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/scan"
)

// table is the table being read:
//
//	+------------+--------------+----------+-------+
//	|   PREFIX   |  OPERATION   | TAKES(S) | COUNT |  …
//	+------------+--------------+----------+-------+
//	| [Current]  | DELIVERY     |      1.7 |    12 |  …
//	+------------+--------------+----------+-------+
//
// Widths vary, headings are in capitals.
type table struct {
	columns []string // their names in the plain form, "" for others
	tpmC    bool     // it is the one below the summary
	rows    int
}

// headings are the columns' names in a table and in the other forms.
var headings = map[string]string{
	"PREFIX": "Prefix", "OPERATION": "Operation", "TAKES(S)": "Takes(s)", "COUNT": "Count", "TPM": "TPM", "SUM(MS)": "Sum(ms)",
	"AVG(MS)": "Avg(ms)", "50TH(MS)": "50th(ms)", "90TH(MS)": "90th(ms)", "95TH(MS)": "95th(ms)", "99TH(MS)": "99th(ms)",
	"99.9TH(MS)": "99.9th(ms)", "MAX(MS)": "Max(ms)", "AVG(S)": "Avg(s)",
}

// border reads a line of a table that is no row.
func (p *Parser) border(text []byte, emit func(*tool.Report)) tool.Verdict {
	if p.table.rows > 0 {
		p.table.rows = 0
		p.pause(emit)
	}
	if len(bytes.Trim(text, "+-")) > 0 {
		return tool.Malformed
	}
	return tool.Ignored
}

// tableRow reads a row, which may be the headings.
func (p *Parser) tableRow(text []byte, emit func(*tool.Report)) tool.Verdict {
	t := &p.table
	cells, ok := scan.Cells(p.cells[:0], text, maxFields)
	p.cells = cells
	if !ok {
		p.group.broken = true
		return tool.Malformed
	}
	switch string(cells[0]) {
	case "PREFIX":
		t.tpmC, t.rows = false, 0
		t.columns = t.columns[:0]
		for _, c := range cells {
			t.columns = append(t.columns, headings[string(c)])
		}
		return tool.Reported
	case "TPMC":
		t.tpmC, t.rows = true, 0
		return tool.Reported
	}
	if t.tpmC {
		l := scan.Line(cells[0])
		v, _, ok := l.Number(0)
		if !ok || !l.End() {
			return tool.Malformed
		}
		return p.total(v, emit)
	}
	r := &p.row
	*r = row{summary: string(cells[0]) == whole}
	if len(cells) != len(t.columns) || !r.summary && string(cells[0]) != current || len(cells) < 3 {
		p.group.broken = true
		return tool.Malformed
	}
	t.rows++
	if bytes.HasPrefix(cells[1], []byte("KEYINGTIME-")) || bytes.HasPrefix(cells[1], []byte("THINKINGTIME-")) {
		return tool.Ignored
	}
	r.op = p.names.Find(cells[1], newOperation)
	for i, c := range cells[2:] {
		ok := false
		if t.columns[i+2] == "Avg(s)" {
			ok = r.seconds(c)
		} else {
			ok = r.set([]byte(t.columns[i+2]), c)
		}
		if !ok {
			return p.unreadable(cells[1], r.summary, emit)
		}
	}
	if !r.complete() {
		return p.unreadable(cells[1], r.summary, emit)
	}
	return p.take(emit)
}
