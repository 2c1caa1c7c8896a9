package series

import "slices"

const (
	// mostRows and mostCells limit a Thinned table. A table of up to leastRows is never thinned,
	// however many columns it has.
	mostRows, leastRows = 8192, 1024
	mostCells           = 1 << 20
)

// Thinned is a [Table] with bounded memory. Beyond a number of rows it repeatedly merges four rows
// into two, which keep the smallest and the largest value of each column in their order. All
// extremes remain. A column's [Tally] holds what depends on every row, such as the mean.
//
// A row is complete when the next one is appended or Settle is called.
type Thinned[K comparable] struct {
	Table[K]
	// ToolEnd is the last time that counts in means, see [Tally]. The caller has to set it; +Inf:
	// all rows count.
	ToolEnd float64
	// Sorted selects the columns whose tallies have medians and shares; nil: none.
	Sorted func(K) bool

	weights []uint32 // the number of original rows in each row
	weight  uint32   // the largest weight
	tallies []Tally  // by column
	settled int      // number of rows already in the tallies
	before  bool     // a row is before 0
	running bool     // a row is between 0 and ToolEnd
}

// Row appends a row, like [Table.Row].
func (t *Thinned[K]) Row(elapsed float64) bool {
	t.Settle()
	if !t.Table.Row(elapsed) {
		return false
	}
	t.weights = append(t.weights, 1)
	return true
}

// Settle completes the last row.
func (t *Thinned[K]) Settle() {
	n := len(t.Elapsed)
	if t.settled == n {
		return
	}
	at := t.Elapsed[n-1]
	running := at >= 0 && at <= t.ToolEnd
	whole := running && (t.running || !t.before)
	t.running, t.before = t.running || running, t.before || at < 0
	for i := len(t.tallies); i < len(t.columns); i++ {
		t.tallies = append(t.tallies, NewTally(t.Sorted != nil && t.Sorted(t.keys[i])))
	}
	for i, column := range t.columns {
		t.tallies[i].add(at, column[n-1], running, whole)
	}
	t.weight = max(t.weight, 1)
	for t.mergeLast() {
	}
	if n := len(t.Elapsed); n > mostRows || n > leastRows && n*len(t.columns) > mostCells {
		t.halve()
	}
	t.settled = len(t.Elapsed)
}

// mergeLast merges the last four rows if they have equal weights, lower than the weights of a thinned
// table.
func (t *Thinned[K]) mergeLast() bool {
	n := len(t.Elapsed)
	if n < 4 || t.weights[n-1] >= t.weight || t.weights[n-4] != t.weights[n-1] {
		return false
	}
	t.Elapsed[n-3] = t.Elapsed[n-1]
	for i, c := range t.columns {
		c[n-4], c[n-3] = two(c[n-4:])
		t.columns[i] = c[:n-2]
	}
	t.weights[n-4] *= 2
	t.weights[n-3] *= 2
	t.Elapsed, t.weights = t.Elapsed[:n-2], t.weights[:n-2]
	return true
}

// halve merges all rows with the largest weight. It creates new columns, since snapshots may use
// the old ones.
func (t *Thinned[K]) halve() {
	heavy := 0
	for heavy < len(t.weights) && t.weights[heavy] == t.weight {
		heavy++
	}
	heavy -= heavy % 4
	merge := func(column []float64, four func([]float64) (float64, float64)) []float64 {
		out := make([]float64, 0, cap(column))
		for i := 0; i < heavy; i += 4 {
			first, second := four(column[i:])
			out = append(out, first, second)
		}
		return append(out, column[heavy:]...)
	}
	t.Elapsed = merge(t.Elapsed, func(v []float64) (float64, float64) { return v[0], v[3] })
	for i := range t.columns {
		t.columns[i] = merge(t.columns[i], two)
	}
	weights := make([]uint32, 0, cap(t.weights))
	for range heavy / 2 {
		weights = append(weights, 2*t.weight)
	}
	t.weights = append(weights, t.weights[heavy:]...)
	t.weight *= 2
}

// two returns the smallest and the largest of four values in the order of their rows.
func two(v []float64) (float64, float64) {
	first, second := Extremes(v, Bucket{0, 4})
	if first < second {
		return v[first], v[second]
	}
	a, b := Unknown(), Unknown() // equal values, or only one known
	if IsKnown(v[0]) || IsKnown(v[1]) {
		a = v[first]
	}
	if IsKnown(v[2]) || IsKnown(v[3]) {
		b = v[first]
	}
	return a, b
}

// Weight returns how many original rows are in the rows from begin to end, end excluded.
func (t *Thinned[K]) Weight(begin, end int) int {
	sum := 0
	for _, w := range t.weights[begin:end] {
		sum += int(w)
	}
	return sum
}

// Tally returns the tally of all rows of a column.
func (t *Thinned[K]) Tally(key K) Tally {
	if i, ok := t.index[key]; ok && i < len(t.tallies) {
		return t.tallies[i]
	}
	return NewTally(false)
}

// KeepExtents makes the means, medians and shares of the selected columns unknown, see
// [Tally.Extent].
func (t *Thinned[K]) KeepExtents(of func(K) bool) {
	for i, key := range t.keys {
		if i < len(t.tallies) && of(key) {
			t.tallies[i] = t.tallies[i].Extent()
		}
	}
}

// Snapshot returns a copy that appending rows to t does not change.
func (t *Thinned[K]) Snapshot() Thinned[K] {
	c := *t
	c.Table = t.Table.Snapshot()
	c.tallies = slices.Clone(t.tallies)
	for i := range c.tallies {
		c.tallies[i].sorted = c.tallies[i].sorted.clone()
	}
	if t.weight > 1 { // otherwise no row changes
		c.Elapsed, c.weights = slices.Clone(c.Elapsed), slices.Clone(c.weights)
		for i := range c.columns {
			c.columns[i] = slices.Clone(c.columns[i])
		}
	}
	return c
}

// Rekey returns a table with the columns of t under other keys. It leaves out columns for which key
// returns false. t must not be used afterwards.
func Rekey[A, B comparable](t *Thinned[A], key func(A) (B, bool)) *Thinned[B] {
	out := &Thinned[B]{
		ToolEnd: t.ToolEnd, weights: t.weights, weight: t.weight, settled: t.settled, before: t.before, running: t.running,
	}
	out.Elapsed, out.MaxColumns = t.Elapsed, t.MaxColumns
	for i, k := range t.keys {
		if other, ok := key(k); ok {
			out.Add(other, t.columns[i])
			out.tallies = append(out.tallies, t.Tally(k)) // without a row there are none
		}
	}
	return out
}
