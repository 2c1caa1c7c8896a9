package measure

import (
	"cmp"
	"strings"
)

// Field returns the name of the current value in JSON and CSV: the ID with the base unit, such as
// queries_per_second or lag_seconds. Counts and tpmC, which means "per minute", have no unit.
func (m *Measure) Field() string {
	if m.Unit == Count || m.Unit == PerMinute {
		return m.ID
	}
	return m.Base() + "_" + string(m.Unit)
}

// SummaryField returns the name of the value that summarises a run: Field, or the plain ID for an
// increase, or Field with _max for the largest value.
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

// Base returns the ID without the unit. Two measures of the same thing in different units have the
// unit in their IDs.
func (m *Measure) Base() string {
	return cmp.Or(m.Noun, strings.TrimSuffix(m.ID, "_"+string(m.Unit)))
}
