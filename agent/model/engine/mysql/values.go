package mysql

import (
	"database/sql"
	"database/sql/driver"
	"math"
	"strconv"
	"strings"
)

// Values are status or system variables by name, as the server returns them: numbers, words, dates,
// or nothing. Variables that the server does not have are missing in the map.
type Values map[string]string

// Uint returns an unsigned whole number, exact up to 2^64-1; false for anything else (words, dates,
// -1, -nan, empty).
func (v Values) Uint(name string) (uint64, bool) {
	n, err := strconv.ParseUint(v[name], 10, 64)
	return n, err == nil
}

// Number returns a finite decimal number; false for anything else.
func (v Values) Number(name string) (float64, bool) { return number(v[name]) }

// Bool returns a switch in any spelling that servers use.
func (v Values) Bool(name string) (value, ok bool) { return boolean(v[name]) }

func number(text string) (float64, bool) {
	if text == "" || strings.IndexByte("+-.0123456789", text[0]) < 0 || strings.ContainsAny(text, "xX_pP") {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return 0, false
	}
	return n, true
}

func boolean(text string) (value, ok bool) {
	switch strings.ToLower(text) {
	case "on", "yes", "true", "1", "enabled":
		return true, true
	case "off", "no", "false", "0", "disabled":
		return false, true
	}
	return false, false
}

// Row is one row of an answer. Methods accept several names for a column, since versions rename
// columns (Slave_…, Replica_…).
type Row struct {
	columns map[string]int // never changes
	values  []sql.NullString
}

// NewRow returns a row. It ignores values beyond the columns.
func NewRow(columns []string, values []sql.NullString) Row {
	return Row{columns: newHeader(columns).index, values: values}
}

// header is the columns of an answer.
type header struct {
	names []string
	index map[string]int
}

func newHeader(names []string) header {
	h := header{names, make(map[string]int, len(names))}
	for i, name := range names {
		h.index[name] = i
	}
	return h
}

// readRows reads a whole answer.
func readRows(rows driver.Rows, columns header) (answer []Row, err error) {
	var text []byte
	err = eachRow(rows, func(values []driver.Value) error {
		row := Row{columns: columns.index, values: make([]sql.NullString, len(values))}
		for i, v := range values {
			text = appendText(text[:0], v)
			row.values[i] = sql.NullString{String: string(text), Valid: v != nil}
		}
		answer = append(answer, row)
		return nil
	})
	return answer, err
}

// Has reports whether one of the columns exists, even with NULL.
func (r Row) Has(names ...string) bool {
	for _, name := range names {
		if i, ok := r.columns[name]; ok && i < len(r.values) {
			return true
		}
	}
	return false
}

// Lookup returns the value of the first of these columns that exists; false if none exists or the
// value is NULL.
func (r Row) Lookup(names ...string) (string, bool) {
	for _, name := range names {
		if i, ok := r.columns[name]; ok && i < len(r.values) {
			return r.values[i].String, r.values[i].Valid
		}
	}
	return "", false
}

// Text is Lookup with an empty text if there is no value.
func (r Row) Text(names ...string) string {
	text, _ := r.Lookup(names...)
	return text
}

// Number is Lookup as a finite decimal number.
func (r Row) Number(names ...string) (float64, bool) {
	return number(r.Text(names...))
}

// Uint is Lookup as an unsigned whole number.
func (r Row) Uint(names ...string) (uint64, bool) {
	n, err := strconv.ParseUint(r.Text(names...), 10, 64)
	return n, err == nil
}
