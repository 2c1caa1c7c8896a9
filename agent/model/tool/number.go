package tool

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Number declares how a number that tools print for an interval or a run is exposed and added up.
// The ID of the measure is its key in JSON and the name of its column in CSV.
type Number struct {
	*measure.Measure
	// AtEnd: only summaries have the number. Otherwise intervals have it, and perhaps summaries.
	AtEnd bool
	// OfGroup: no tool prints the number; it describes the generators of a group.
	OfGroup bool
	// Live exposes the value of the last interval, Final the value of the summary; nil: not
	// exposed.
	Live, Final *measure.Metric
	// Combine returns the number of a group from the numbers of its generators; nil: their sum.
	Combine func(generators []float64) float64
}

// numbers are in the order of declaration, in which `parse` prints them.
var numbers []*Number

// declare declares a measure of a run whose value tools print as a number.
func declare(n Number, m measure.Measure) *measure.Measure {
	m.Scope = measure.Run
	n.Measure = measure.New(m)
	numbers = append(numbers, &n)
	return n.Measure
}

// metric describes a gauge of a run. Package metrics exposes it.
func metric(name, help string) *measure.Metric { return &measure.Metric{Name: name, Help: help} }

// Numbers returns the numbers that tools print, in the order in which `parse` prints them.
func Numbers() []*Number { return slices.Clip(numbers) }

// NumberOf returns the Number behind a measure, nil if the measure is not a number.
func NumberOf(m *measure.Measure) *Number {
	for _, n := range numbers {
		if n.Measure == m {
			return n
		}
	}
	return nil
}

// Joined returns the number of a group from the numbers of its generators, at least one.
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

// Equal reports whether both are the same measure with the same value.
func (v Value) Equal(other Value) bool { return v == other }

// Values are known values, at most one per measure.
type Values []Value

// Of returns the value of a measure; unknown if there is none.
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
