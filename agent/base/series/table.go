package series

import (
	"slices"
	"sort"
)

// Table is a set of columns on one axis, with a row for each instant. A value that was not set is
// [Unknown]. The zero Table is empty and ready to use.
//
// Rows are only appended, and only the last row changes, except in Keep. A [Table.Snapshot] taken
// between two rows can therefore be read while rows are appended.
type Table[K comparable] struct {
	// Elapsed is the axis: seconds on a run's axis, never falling. All columns have its length.
	Elapsed []float64
	// MaxColumns limits the number of columns, whatever a file contains; 0: 1024.
	MaxColumns int
	// Dropped counts values left out because of MaxColumns.
	Dropped int

	keys    []K
	columns [][]float64
	index   map[K]int
}

const defaultMaxColumns = 1024

// Row appends a row. It returns false and appends nothing if elapsed is before the last row or not
// a number.
func (t *Table[K]) Row(elapsed float64) bool {
	if n := len(t.Elapsed); !(n == 0 && IsKnown(elapsed) || n > 0 && elapsed >= t.Elapsed[n-1]) {
		return false
	}
	t.Elapsed = append(t.Elapsed, elapsed)
	for i := range t.columns {
		t.columns[i] = append(t.columns[i], Unknown())
	}
	return true
}

// IsNext reports whether elapsed is after the last row.
func (t *Table[K]) IsNext(elapsed float64) bool {
	n := len(t.Elapsed)
	return n == 0 && IsKnown(elapsed) || n > 0 && elapsed > t.Elapsed[n-1]
}

// Column returns the index of a column for SetAt. A new column is unknown in all rows. It returns
// -1 if there are too many columns.
func (t *Table[K]) Column(key K) int {
	if i, ok := t.index[key]; ok {
		return i
	}
	values := make([]float64, len(t.Elapsed), cap(t.Elapsed))
	for i := range values {
		values[i] = Unknown()
	}
	return t.add(key, values)
}

// Add adds a whole column, which the table then owns. It keeps the existing column if there is one.
// It panics if the column and the axis differ in length.
func (t *Table[K]) Add(key K, values []float64) {
	if len(values) != len(t.Elapsed) {
		panic("series: column and axis differ in length")
	}
	if _, ok := t.index[key]; !ok {
		t.add(key, values)
	}
}

func (t *Table[K]) add(key K, values []float64) int {
	most := t.MaxColumns
	if most == 0 {
		most = defaultMaxColumns
	}
	if len(t.keys) >= most {
		return -1
	}
	if t.index == nil {
		t.index = map[K]int{}
	}
	t.index[key] = len(t.keys)
	t.keys, t.columns = append(t.keys, key), append(t.columns, values)
	return len(t.keys) - 1
}

// Set sets a value in the last row and creates the column if necessary. It ignores unknown values.
func (t *Table[K]) Set(key K, v float64) {
	if IsKnown(v) {
		t.SetAt(t.Column(key), v)
	}
}

// SetAt sets a value in the last row; column is an index that Column returned. The first known
// value counts, in case a tool prints a value twice.
func (t *Table[K]) SetAt(column int, v float64) {
	if column < 0 {
		t.Dropped++
		return
	}
	if last := &t.columns[column][len(t.Elapsed)-1]; !IsKnown(*last) {
		*last = v
	}
}

// Replace overwrites a value in the last row.
func (t *Table[K]) Replace(key K, v float64) { t.ReplaceAt(t.Column(key), v) }

// ReplaceAt overwrites a value in the last row; column is an index that Column returned.
func (t *Table[K]) ReplaceAt(column int, v float64) {
	if column < 0 {
		t.Dropped++
		return
	}
	t.columns[column][len(t.Elapsed)-1] = v
}

// Keys returns the keys of the columns in the order in which they were added.
func (t *Table[K]) Keys() []K { return slices.Clip(t.keys) }

// Values returns a column, nil if there is none. Callers must not change it.
func (t *Table[K]) Values(key K) []float64 {
	i, ok := t.index[key]
	if !ok {
		return nil
	}
	return t.columns[i]
}

// At returns one value, unknown if there is no such column.
func (t *Table[K]) At(key K, row int) float64 {
	if values := t.Values(key); values != nil {
		return values[row]
	}
	return Unknown()
}

// Snapshot returns a copy that appending rows to t does not change.
func (t *Table[K]) Snapshot() Table[K] {
	c := *t
	c.columns = slices.Clone(t.columns)
	c.keys = t.Keys()
	c.index = make(map[K]int, len(t.keys))
	for i, key := range t.keys {
		c.index[key] = i
	}
	return c
}

// Keep removes all but the last n rows. The columns stay.
func (t *Table[K]) Keep(n int) {
	from := max(0, len(t.Elapsed)-n)
	t.Elapsed = append(t.Elapsed[:0], t.Elapsed[from:]...)
	for i, c := range t.columns {
		t.columns[i] = append(c[:0], c[from:]...)
	}
}

// Between returns the rows (end excluded) between two instants, and one more row on either side, so
// that lines lead out of the picture.
func (t *Table[K]) Between(from, to float64) (begin, end int) {
	begin = max(0, sort.SearchFloat64s(t.Elapsed, from)-1)
	end = min(len(t.Elapsed), sort.Search(len(t.Elapsed), func(i int) bool { return t.Elapsed[i] > to })+1)
	return begin, max(begin, end)
}

// Scaled returns values multiplied by factor.
func Scaled(values []float64, factor float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v * factor
	}
	return out
}
