package review

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Requirement is a condition that a run has to meet, and whether it does.
type Requirement struct {
	Condition string `json:"condition"`
	// Value is the run's value in human-readable form; empty if it is unknown.
	Value string `json:"value,omitempty"`
	// IsMet is unknown if the value is.
	IsMet series.Optional[bool] `json:"met,omitzero"`
}

// Requirements applies conditions to a run. A text that is no condition has no value.
func Requirements(texts []string, r *Row) []Requirement {
	var all []Requirement
	for _, text := range texts {
		one := Requirement{Condition: text}
		if c, err := ParseCondition(text); err == nil {
			value, met := c.Met(r)
			if one.Condition, one.Value = c.String(), value; value != "" {
				one.IsMet = series.Some(met)
			}
		}
		all = append(all, one)
	}
	return all
}

// String returns a sentence without a period.
func (r *Requirement) String() string {
	return r.sentence("", "is not known: the run has no such value")
}

// Now returns a sentence without a period about a run that has not ended.
func (r *Requirement) Now() string { return r.sentence(" now", "has no value yet") }

func (r *Requirement) sentence(when, unknown string) string {
	switch {
	case !r.IsMet.Known:
		return r.Condition + " " + unknown
	case r.IsMet.Value:
		return r.Condition + " is met" + when + ": " + r.Value
	}
	return r.Condition + " is not met" + when + ": " + r.Value
}

// RequirementsText sums up requirements as a clause; empty if there are none.
func RequirementsText(all []Requirement) string {
	unmet, unknown := CountUnmet(all)
	switch {
	case len(all) == 0:
		return ""
	case unmet > 0:
		return fmt.Sprintf("%d of %s not met", unmet, table.Plural(len(all), "requirement"))
	case unknown > 0:
		return fmt.Sprintf("%d of %s not known", unknown, table.Plural(len(all), "requirement"))
	case len(all) == 1:
		return "the requirement is met"
	}
	return fmt.Sprintf("all %d requirements are met", len(all))
}

// CountUnmet returns how many requirements the run does not meet, and how many are not known.
func CountUnmet(all []Requirement) (unmet, unknown int) {
	for _, one := range all {
		switch {
		case !one.IsMet.Known:
			unknown++
		case !one.IsMet.Value:
			unmet++
		}
	}
	return unmet, unknown
}
