package cli

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// requiring are the conditions of --require.
type requiring struct {
	texts []string
	// results are unknown until the run has ended and is read.
	results []review.Requirement
}

func addRequiring(cmd command) *requiring {
	r := &requiring{}
	cmd.texts(&r.texts, "require", "CONDITION",
		"Exit with 3 unless this is met, such as 'p95<50ms'; also 'errors<1%' or 'drain<10s'; repeatable")
	return r
}

// check reads the conditions.
func (r *requiring) check() error {
	for _, text := range r.texts {
		if _, err := review.ParseCondition(text); err != nil {
			return &exitError{Status: exitUsage, Err: fmt.Errorf("--require %w", err)}
		}
	}
	r.results = review.Requirements(r.texts, &review.Row{})
	return nil
}

// apply applies the conditions to the run that has ended.
func (r *requiring) apply(h *record.History) {
	if len(r.texts) > 0 {
		row := review.NewObservedRow(h)
		r.results = review.Requirements(r.texts, &row)
	}
}

// verdict returns the error of a run that does not meet its requirements, nil if it does.
func (r *requiring) verdict() error {
	var failed []string
	unmet, unknown := review.CountUnmet(r.results)
	for i := range r.results {
		if one := &r.results[i]; !one.IsMet.Known || !one.IsMet.Value {
			failed = append(failed, one.String())
		}
	}
	switch err := fmt.Errorf("--require: %s", strings.Join(failed, "; ")); {
	case unmet > 0:
		return &exitError{Status: exitLimit, Err: err}
	case unknown > 0:
		return &exitError{Status: exitUnclear, Err: err}
	}
	return nil
}
