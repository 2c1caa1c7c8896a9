package goycsb

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

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
