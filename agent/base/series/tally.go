package series

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Tally summarises the finite values of a column, any number of them. Before the first value
// everything but the counts is unknown.
type Tally struct {
	Count    int
	Min, Max float64
	// MaxAt is the place of the largest value on the axis, the first one if there are several.
	MaxAt float64
	Last  float64
	// Zeros counts values of 0, between FirstZero and LastZero. Changes are the first values that
	// differ from the previous one. Rows before 0 do not count in either.
	Zeros               int
	FirstZero, LastZero float64
	Changes             []Change

	last   float64 // the last one at or after 0
	sum    float64 // of values that only cover time in which the tool ran
	whole  int
	sorted *sorted // the values between 0 and the tool's end
}

// Change is a value that differs from the previous one.
type Change struct{ From, To, At float64 }

// mostChanges limits how many changes are kept.
const mostChanges = 8

// NewTally returns a tally without values. Median, Share and Each need a sorted one.
func NewTally(isSorted bool) Tally {
	u := Unknown()
	t := Tally{Min: u, Max: u, MaxAt: u, Last: u, FirstZero: u, LastZero: u, last: u}
	if isSorted {
		t.sorted = &sorted{}
	}
	return t
}

// TallyOf returns a sorted tally of values over an axis, with means until toolEnd.
func TallyOf(axis, values []float64, toolEnd float64) Tally {
	t := Thinned[struct{}]{ToolEnd: toolEnd, Sorted: func(struct{}) bool { return true }}
	for i, at := range axis {
		if t.Row(at) {
			t.Set(struct{}{}, values[i])
		}
	}
	t.Settle()
	return t.Tally(struct{}{})
}

// Add adds a value that counts in every summary.
func (t *Tally) Add(at, v float64) { t.add(at, v, true, true) }

// add adds a value. running: the row is between 0 and the tool's end. whole: so is all the time
// that the row covers.
func (t *Tally) add(at, v float64, running, whole bool) {
	if !IsKnown(v) || math.IsInf(v, 0) {
		return
	}
	if t.Count == 0 || v < t.Min {
		t.Min = v
	}
	if t.Count == 0 || v > t.Max {
		t.Max, t.MaxAt = v, at
	}
	t.Count++
	t.Last = v
	if at >= 0 {
		if v == 0 {
			if t.Zeros == 0 {
				t.FirstZero = at
			}
			t.Zeros, t.LastZero = t.Zeros+1, at
		}
		if IsKnown(t.last) && v != t.last && len(t.Changes) < mostChanges {
			t.Changes = append(slices.Clip(t.Changes), Change{t.last, v, at})
		}
		t.last = v
	}
	if whole {
		t.sum += v
		t.whole++
	}
	if running && t.sorted != nil {
		t.sorted.add(v)
	}
}

// Mean returns the mean of the values that only cover time in which the tool ran. A row covers the
// time since the previous row, so the first row after 0 is left out if another row is before 0.
func (t *Tally) Mean() float64 {
	if t.whole == 0 {
		return Unknown()
	}
	return t.sum / float64(t.whole)
}

// Extent returns the tally without mean, median and shares, which become unknown.
func (t Tally) Extent() Tally {
	t.sum, t.whole, t.sorted = 0, 0, nil
	return t
}

// Whole returns the number of values in Mean.
func (t *Tally) Whole() int { return t.whole }

// Median returns the median of the values between 0 and the tool's end. Beyond mostRows values its
// relative error is up to 0.1 %. It is unknown in a tally that is not sorted.
func (t *Tally) Median() float64 {
	if t.sorted == nil {
		return Unknown()
	}
	return t.sorted.median()
}

// Share returns the share (0 to 1) of the values between 0 and the tool's end that are at or above
// least. It is unknown in a tally that is not sorted.
func (t *Tally) Share(least float64) float64 {
	if t.sorted == nil {
		return Unknown()
	}
	n, all := 0, 0
	for v, count := range t.sorted.each {
		if all += count; v >= least {
			n += count
		}
	}
	return float64(n) / float64(all)
}

// Each iterates over the values between 0 and the tool's end, in no particular order, with the
// number of times each occurs. It may combine values that differ by less than 0.2 %. A tally that
// is not sorted has none.
func (t *Tally) Each(yield func(v float64, count int) bool) {
	if t.sorted != nil {
		t.sorted.each(yield)
	}
}

// sorted keeps values without their order in time: each value or, beyond mostRows, groups of about
// equal values.
type sorted struct {
	values []float64
	groups []group       // in the order of their first values
	index  map[int64]int // of a group, by its key
	last   int           // index of the group that got the last value
}

// group is a set of values with the same sign, exponent and first groupBits of the fraction.
type group struct {
	key   int64 // the first bits of the value
	count int
	sum   float64
}

const groupBits = 9

func (s *sorted) add(v float64) {
	if s.index == nil {
		if s.values = append(s.values, v); len(s.values) <= mostRows {
			return
		}
		s.index = map[int64]int{}
		values := s.values
		s.values = nil
		for _, v := range values {
			s.add(v)
		}
		return
	}
	key := int64(math.Float64bits(math.Abs(v)) >> (52 - groupBits))
	if v < 0 {
		key = -key
	}
	if len(s.groups) == 0 || s.groups[s.last].key != key {
		i, ok := s.index[key]
		if !ok {
			i = len(s.groups)
			s.index[key], s.groups = i, append(s.groups, group{key: key})
		}
		s.last = i
	}
	g := &s.groups[s.last]
	g.count, g.sum = g.count+1, g.sum+v
}

func (s *sorted) each(yield func(v float64, count int) bool) {
	for _, v := range s.values {
		if !yield(v, 1) {
			return
		}
	}
	for _, g := range s.groups {
		if !yield(g.sum/float64(g.count), g.count) {
			return
		}
	}
}

func (s *sorted) median() float64 {
	if s.index == nil {
		return Median(s.values)
	}
	n := 0
	for _, g := range s.groups {
		n += g.count
	}
	lower, upper := Unknown(), Unknown()
	seen := 0
	for _, g := range slices.SortedFunc(slices.Values(s.groups), func(a, b group) int { return cmp.Compare(a.key, b.key) }) {
		mean := g.sum / float64(g.count)
		if seen <= (n-1)/2 {
			lower = mean
		}
		if seen <= n/2 {
			upper = mean
		}
		seen += g.count
	}
	return (lower + upper) / 2
}

// clone returns a copy, nil for nil.
func (s *sorted) clone() *sorted {
	if s == nil {
		return nil
	}
	return &sorted{slices.Clip(s.values), slices.Clone(s.groups), maps.Clone(s.index), s.last}
}
