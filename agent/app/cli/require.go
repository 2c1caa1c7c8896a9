package cli

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// requiring are the conditions of --require.
type requiring struct{ texts []string }

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
	return nil
}

// didFail reports whether the run failed or was lost.
func didFail(h *record.History) bool {
	return h.Snapshot.Meta.Outcome == rundir.Failed || h.Snapshot.Meta.Outcome == rundir.Lost
}

// verdict returns the error of a run that does not meet its requirements, nil if it does. They are unknown if the run
// could not be read (nil).
func (r *requiring) verdict(h *record.History) error {
	if len(r.texts) == 0 {
		return nil
	}
	row := review.Row{}
	if h != nil {
		row = review.NewObservedRow(h)
	}
	if h != nil && h.Snapshot.Meta.Outcome == rundir.Lost {
		return &exitError{Status: exitUnclear, Err: fmt.Errorf("--require: the run is lost: %s", h.Snapshot.Meta.Reason)}
	}
	results := review.Requirements(r.texts, &row)
	var failed []string
	unmet, unknown := review.CountUnmet(results)
	for i := range results {
		if one := &results[i]; !one.IsMet.Known || !one.IsMet.Value {
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
