package goycsb

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/tool/scan"
)

// reader reads rows in the three output styles.
type reader struct {
	operations scan.Memo[operation]
	columns    scan.Memo[column]
	// headers of the table that is being read.
	headers [][]byte
	memory  []byte   // of the headers
	cells   [][]byte // of the present row
}

var takesIs = []byte(" - Takes(s): ")

// isPlain reports whether text looks like a row of the plain style.
func isPlain(text []byte) bool { return bytes.Contains(text, takesIs) }

// plain reads "READ   - Takes(s): 1.0, Count: 190, OPS: 191.2, Avg(us): 2269, …".
func (d *reader) plain(text []byte, r *row) bool {
	*r = row{}
	i := bytes.Index(text, takesIs)
	if i < 0 {
		return false
	}
	if r.op = d.operations.Find(bytes.TrimRight(text[:i], " "), newOperation); r.op == nil {
		return false
	}
	d.columns.Rewind()
	rest := text[i+len(" - "):]
	for {
		colon := bytes.IndexByte(rest, ':')
		if colon < 0 || colon+1 == len(rest) || rest[colon+1] != ' ' {
			return false
		}
		header, value := rest[:colon], rest[colon+2:]
		comma := bytes.IndexByte(value, ',')
		if comma < 0 {
			return r.set(&d.columns, header, value)
		}
		if comma+1 == len(value) || value[comma+1] != ' ' || !r.set(&d.columns, header, value[:comma]) {
			return false
		}
		rest = value[comma+2:]
	}
}

// isRule reports whether text is a border of a table: +-----+----+.
func isRule(text []byte) bool {
	if len(text) < 3 || text[0] != '+' || text[len(text)-1] != '+' {
		return false
	}
	for _, c := range text {
		if c != '+' && c != '-' {
			return false
		}
	}
	return true
}

// isHeader reports whether text is the head of a table.
func isHeader(text []byte) bool {
	return bytes.HasPrefix(text, []byte("| OPERATION |"))
}

// header remembers the head of a table.
func (d *reader) header(text []byte) (ok bool) {
	d.memory = append(d.memory[:0], text...)
	d.headers, ok = scan.Cells(d.headers[:0], d.memory, maxColumns)
	return ok
}

// table reads a table's row.
func (d *reader) table(text []byte, r *row) (ok bool) {
	*r = row{}
	d.columns.Rewind()
	if d.cells, ok = scan.Cells(d.cells[:0], text, maxColumns); !ok || len(d.cells) != len(d.headers) {
		return false
	}
	r.op = d.operations.Find(d.cells[0], newOperation)
	for i, cell := range d.cells[1:] {
		if !r.set(&d.columns, d.headers[i+1], cell) {
			return false
		}
	}
	return r.op != nil
}

// isJSON reports whether text looks like a block of the JSON style.
func isJSON(text []byte) bool {
	return bytes.HasPrefix(text, []byte(`[{"`)) && bytes.Contains(text[:min(len(text), 4096)], []byte(`"Takes(s)"`))
}

// json reads a block: an array of objects whose values are all strings, the
// keys in order of the alphabet. take is called for each object.
func (d *reader) json(text []byte, r *row, take func()) bool {
	l := scan.Line(text)
	if !l.Literal("[") {
		return false
	}
	d.operations.Rewind()
	for {
		*r = row{}
		d.columns.Rewind()
		if !l.Literal("{") || !d.object(&l, r) || r.op == nil {
			return false
		}
		take()
		switch {
		case l.Literal(","):
		case l.Literal("]"):
			return l.End()
		default:
			return false
		}
	}
}

func (d *reader) object(l *scan.Line, r *row) bool {
	for {
		key, ok := l.Quoted()
		if !ok || !l.Literal(":") {
			return false
		}
		value, ok := l.Quoted()
		if !ok {
			return false
		}
		if string(key) == "Operation" {
			r.op = d.operations.Find(value, newOperation)
		} else if !r.set(&d.columns, key, value) {
			return false
		}
		switch {
		case l.Literal(","):
		case l.Literal("}"):
			return true
		default:
			return false
		}
	}
}
