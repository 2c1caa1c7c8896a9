package series

import (
	"maps"
	"math"
	"slices"
)

// Tally summarises any number of finite values of a column.
// Without any, all but the counts is unknown.
type Tally struct {
	Count    int
	Min, Max float64
	// MaxAt is where the first largest value is on the axis.
	MaxAt float64
	Last  float64
	// Zeros counts the values that are 0, from FirstZero to LastZero, and Changes are
	// the first ones that differ from the value before; none lies before 0.
	Zeros               int
	FirstZero, LastZero float64
	Changes             []Change

	last   float64 // not before 0
	sum    float64 // of those that are wholly about the time in which the tool ran
	whole  int
	sorted *sorted // those between 0 and the tool's end
}

// Change is where a value differs from the previous one.
type Change struct{ From, To, At float64 }

// mostChanges bounds the changes that are kept.
const mostChanges = 8

// NewTally returns a tally without values. One that is sorted has a median.
func NewTally(isSorted bool) Tally {
	u := Unknown()
	t := Tally{Min: u, Max: u, MaxAt: u, Last: u, FirstZero: u, LastZero: u, last: u}
	if isSorted {
		t.sorted = &sorted{}
	}
	return t
}

// TallyOf returns the tally of values over an axis, sorted, with means until toolEnd.
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

// Add adds a value that counts in everything.
func (t *Tally) Add(at, v float64) { t.add(at, v, true, true) }

// add adds a value. running: the row lies between 0 and the tool's end; whole: so
// does all of the time that it is about.
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

// Mean returns the mean of the values that are wholly about the time in which the
// tool ran: a row is about the time since the previous one, so the first one after 0
// is left out if another lies before 0.
func (t *Tally) Mean() float64 {
	if t.whole == 0 {
		return Unknown()
	}
	return t.sum / float64(t.whole)
}

// Extent returns the tally without the values of the whole time in which the tool ran: its
// mean, median and shares are unknown.
func (t Tally) Extent() Tally {
	t.sum, t.whole, t.sorted = 0, 0, nil
	return t
}

// Whole returns how many values Mean is of.
func (t *Tally) Whole() int { return t.whole }

// Median returns the median of the values in the time in which the tool ran. Of more
// than mostRows values it is right to 0.1 %. It is unknown of a column that is not
// sorted.
func (t *Tally) Median() float64 {
	if t.sorted == nil {
		return Unknown()
	}
	return t.sorted.median()
}

// Share returns the share of the values in the time in which the tool ran that are
// least or more.
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

// Each goes through the values of a sorted column in the time in which the tool ran,
// in no order: a value and how often it is there. Values that differ by less than
// 0.2 % may be one.
func (t *Tally) Each(yield func(v float64, count int) bool) {
	if t.sorted != nil {
		t.sorted.each(yield)
	}
}

// sorted is values without their order in time: each one or, of more than mostRows,
// how many are about the same.
type sorted struct {
	values []float64
	groups map[int64]group // by the first bits of the value
}

// group is values that share their sign, their exponent and the first groupBits of
// their fraction.
type group struct {
	count int
	sum   float64
}

const groupBits = 9

func (s *sorted) add(v float64) {
	if s.groups == nil {
		if s.values = append(s.values, v); len(s.values) <= mostRows {
			return
		}
		s.groups = map[int64]group{}
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
	g := s.groups[key]
	s.groups[key] = group{g.count + 1, g.sum + v}
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
	if s.groups == nil {
		return Median(s.values)
	}
	n := 0
	for _, g := range s.groups {
		n += g.count
	}
	lower, upper := Unknown(), Unknown()
	seen := 0
	for _, key := range slices.Sorted(maps.Keys(s.groups)) {
		g := s.groups[key]
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

// clone returns a copy, nil of nil.
func (s *sorted) clone() *sorted {
	if s == nil {
		return nil
	}
	return &sorted{slices.Clip(s.values), maps.Clone(s.groups)}
}
