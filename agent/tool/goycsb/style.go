package goycsb

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/tool/scan"
)

// reader reads rows in the three output styles.
type reader struct {
	operations operations
	columns    columns
	// headers of the table that is being read.
	headers [][]byte
	memory  []byte
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
	if r.op = d.operations.find(bytes.TrimRight(text[:i], " ")); r.op == nil {
		return false
	}
	d.columns.next = 0
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

// cells calls take with the index and the text of each cell of a table's line.
func cells(text []byte, take func(i int, cell []byte) bool) bool {
	if len(text) < 2 || text[0] != '|' || text[len(text)-1] != '|' {
		return false
	}
	text = text[1 : len(text)-1]
	for i := 0; ; i++ {
		cell, rest, more := bytes.Cut(text, []byte("|"))
		if !take(i, bytes.TrimSpace(cell)) {
			return false
		}
		if !more {
			return true
		}
		text = rest
	}
}

// header remembers the head of a table.
func (d *reader) header(text []byte) bool {
	d.headers, d.memory = d.headers[:0], append(d.memory[:0], text...)
	return cells(d.memory, func(_ int, cell []byte) bool {
		d.headers = append(d.headers, cell)
		return len(d.headers) <= maxColumns
	})
}

// table reads a table's row.
func (d *reader) table(text []byte, r *row) bool {
	*r = row{}
	d.columns.next = 0
	n := 0
	ok := cells(text, func(i int, cell []byte) bool {
		n = i + 1
		switch {
		case i >= len(d.headers):
			return false
		case i == 0:
			r.op = d.operations.find(cell)
			return r.op != nil
		}
		return r.set(&d.columns, d.headers[i], cell)
	})
	return ok && n == len(d.headers)
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
	d.operations.next = 0
	for {
		*r = row{}
		d.columns.next = 0
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
		key, ok := quoted(l)
		if !ok || !l.Literal(":") {
			return false
		}
		value, ok := quoted(l)
		if !ok {
			return false
		}
		if string(key) == "Operation" {
			r.op = d.operations.find(value)
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

// quoted takes a string without escapes.
func quoted(l *scan.Line) ([]byte, bool) {
	if !l.Literal(`"`) {
		return nil, false
	}
	end := bytes.IndexByte(*l, '"')
	if end < 0 {
		return nil, false
	}
	s := (*l)[:end]
	*l = (*l)[end+1:]
	return s, true
}
