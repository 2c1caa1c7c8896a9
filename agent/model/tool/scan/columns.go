package scan

import "bytes"

// Columns reads named values in the three styles of Go tools. Each method calls set for each value.
// It returns false if the text is damaged or set returns false. A column is nil if its name is too
// long or there are too many.
type Columns[T any] struct {
	create func(name string) *T
	known  Memo[T]
	head   []*T // columns of the current table
	cells  [][]byte
}

// NewColumns returns a reader. create returns the column for a name.
func NewColumns[T any](create func(name string) *T) Columns[T] { return Columns[T]{create: create} }

// Fields reads the rest of a line, "name: value, name: value".
func (c *Columns[T]) Fields(l *Line, set func(column *T, value []byte) bool) bool {
	c.known.Rewind()
	for {
		column, ok := c.known.expected(l)
		if !ok {
			name, ok := l.Until(": ")
			if !ok {
				return false
			}
			column = c.known.Find(name, c.create)
		}
		value, more := l.Until(", ")
		if !more {
			value = l.Rest()
			l.at = len(l.text)
		}
		if !set(column, value) {
			return false
		}
		if !more {
			return true
		}
	}
}

// Objects reads the rest of a line as a JSON array of objects whose values are all strings. It
// calls end after each object and returns false if end does.
func (c *Columns[T]) Objects(l *Line, set func(column *T, value []byte) bool, end func() bool) bool {
	if !l.Literal("[") {
		return false
	}
	for first := true; first || l.Literal(","); first = false {
		if !l.Literal("{") {
			return false
		}
		c.known.Rewind()
		for first := true; first || l.Literal(","); first = false {
			name, ok := l.Quoted()
			if !ok || !l.Literal(":") {
				return false
			}
			if value, ok := l.Quoted(); !ok || !set(c.known.Find(name, c.create), value) {
				return false
			}
		}
		if !l.Literal("}") || !end() {
			return false
		}
	}
	return l.Literal("]") && l.End()
}

// Head reads the headings of a table, "| a | b |"; false if text is not a row.
func (c *Columns[T]) Head(text []byte) (ok bool) {
	c.head = c.head[:0]
	c.cells, ok = cells(c.cells[:0], text)
	for _, name := range c.cells {
		c.head = append(c.head, c.known.Find(name, c.create))
	}
	return ok
}

// Row reads a row of a table; false if it is not a row or has a different number of cells than
// headings.
func (c *Columns[T]) Row(text []byte, set func(column *T, value []byte) bool) (ok bool) {
	if c.cells, ok = cells(c.cells[:0], text); !ok || len(c.cells) != len(c.head) {
		return false
	}
	for i, cell := range c.cells {
		if !set(c.head[i], cell) {
			return false
		}
	}
	return true
}

const maxCells = 16 // per row

func cells(dst [][]byte, text []byte) ([][]byte, bool) {
	n := len(text)
	if n < 3 || text[0] != '|' || text[n-1] != '|' {
		return dst, false
	}
	for cell := range bytes.SplitSeq(text[1:n-1], []byte("|")) {
		if len(dst) == maxCells {
			return dst, false
		}
		dst = append(dst, bytes.TrimSpace(cell))
	}
	return dst, true
}
