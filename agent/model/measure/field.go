package measure

import (
	"cmp"
	"strings"
)

// Field returns the name of the measure's current value in JSON and CSV: the ID
// with the base unit, such as queries_per_second or lag_seconds. A count has none,
// nor has tpmC, which is per minute by its name.
func (m *Measure) Field() string {
	if m.Unit == Count || m.Unit == PerMinute {
		return m.ID
	}
	return m.Base() + "_" + string(m.Unit)
}

// SummaryField returns the name of the one number by which a run is summed up:
// Field, but the plain ID for an increase and with _max for the largest value.
func (m *Measure) SummaryField() string {
	switch m.Summary {
	case Increase:
		return m.ID
	case Max:
		return m.Field() + "_max"
	}
	return m.Field()
}

// Label returns the measure's name in a chart of several measures.
func (m *Measure) Label() string {
	return cmp.Or(m.Line, m.Short, strings.ToLower(m.Title))
}

// Name returns the ID as words, without the unit.
func (m *Measure) Name() string { return strings.ReplaceAll(m.Base(), "_", " ") }

// Base is the ID without the unit: measures of the same thing in two units have
// one of them in their IDs.
func (m *Measure) Base() string {
	return cmp.Or(m.Noun, strings.TrimSuffix(m.ID, "_"+string(m.Unit)))
}
