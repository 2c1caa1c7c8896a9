package tool

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Number is how a number that tools print of an interval or of a run is exposed and added up. Its
// key in JSON and the name of its column in CSV are the ID of the measure.
type Number struct {
	*measure.Measure
	// AtEnd: only summaries have it, otherwise intervals and perhaps summaries.
	AtEnd bool
	// OfGroup: no tool prints it, the generators of a group are counted.
	OfGroup bool
	// Live is exposed of the last interval, Final of the summary; nil: it is not.
	Live, Final *measure.Metric
	// Combine returns the number of a group from those of its generators; nil: their sum.
	Combine func(generators []float64) float64
}

// numbers are in the order of declaration, which is that of the output of `parse`.
var numbers []*Number

// declare declares a measure of a run whose value tools print as a number.
func declare(n Number, m measure.Measure) *measure.Measure {
	m.Scope = measure.Run
	n.Measure = measure.New(m)
	numbers = append(numbers, &n)
	return n.Measure
}

// metric describes a gauge of a run, which package metrics exposes.
func metric(name, help string) *measure.Metric { return &measure.Metric{Name: name, Help: help} }

// Numbers returns the numbers that tools print, in the order of the output of `parse`.
func Numbers() []*Number { return slices.Clip(numbers) }

// NumberOf returns the declaration of a measure that is a number, otherwise nil.
func NumberOf(m *measure.Measure) *Number {
	for _, n := range numbers {
		if n.Measure == m {
			return n
		}
	}
	return nil
}

// Joined returns the number of a group whose generators have these numbers, of which there is one
// at least.
func (n *Number) Joined(generators []float64) float64 {
	if n.Combine != nil {
		return n.Combine(generators)
	}
	sum := 0.0
	for _, v := range generators {
		sum += v
	}
	return sum
}

// Value is the value of a measure in its base unit.
type Value struct {
	Measure *measure.Measure
	Value   float64
}

// Equal reports whether both have the same number of the same measure.
func (v Value) Equal(other Value) bool { return v == other }

// Values are values by measure, each at most once and none of them unknown.
type Values []Value

// Of returns the value of a measure, unknown if there is none.
func (all Values) Of(m *measure.Measure) series.Optional[float64] {
	for i := range all {
		if all[i].Measure == m {
			return series.Some(all[i].Value)
		}
	}
	return series.Optional[float64]{}
}

// Set sets the value of a measure, or removes it if v is unknown.
func (all *Values) Set(m *measure.Measure, v series.Optional[float64]) {
	for i := range *all {
		if (*all)[i].Measure == m {
			if v.Known {
				(*all)[i].Value = v.Value
			} else {
				*all = slices.Delete(*all, i, i+1)
			}
			return
		}
	}
	if v.Known {
		*all = append(*all, Value{m, v.Value})
	}
}
