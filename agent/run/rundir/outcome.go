package rundir

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Outcome is how a run ended.
type Outcome string

const (
	Succeeded   Outcome = "succeeded"
	Failed      Outcome = "failed"
	Interrupted Outcome = "interrupted" // by SIGINT, SIGTERM or SIGHUP
	// Aborted: a condition of --abort-when held, and benchwatch ended the tool.
	Aborted Outcome = "aborted"
	// Lost: the exit status is unknown, and the output has neither a summary
	// nor an error. A preparation needs no summary.
	Lost Outcome = "lost"
)

// Output is what a run's output shows about how the run ended.
type Output struct {
	// Complete: the tool printed its final summary.
	Complete bool
	// Failure is why the run failed according to the tool's output, which takes precedence over its
	// exit status: YCSB and the TPC-C tools exit 0 for almost everything.
	Failure string
	// Complaint is the tool's first error message. The tool may have continued
	// after it.
	Complaint string
	// Verb is the tool's own command according to the output; empty if it does not show it.
	Verb string
	// Labels are facts that the output shows.
	Labels []tool.Label
	// Missing is why the rest of a copied run's output will never arrive.
	Missing string
}

// Conclude sets the outcome of an ended run and its reason from the exit status or signal in m, if
// known, and from the run's output. It is the only place where an outcome is decided, so runs that
// are followed, found after a restart, imported, or left as an incomplete copy have the same
// outcome.
//
// A run that a condition ended is aborted. Interrupted is always kept, since only the sender of the
// signal knows about it. Any other outcome in m applies if neither exit status nor output decides,
// as for a run that an older version recorded.
//
// It also sets a verb and labels that only the output shows.
func (m *Meta) Conclude(out Output) {
	m.Verb = cmp.Or(m.Verb, out.Verb)
	m.AddLabels(out.Labels)
	switch {
	case m.Aborted != "":
		m.Outcome, m.Reason = Aborted, m.Aborted
	case m.Outcome == Interrupted:
	case m.Group.failure() != "":
		m.Outcome, m.Reason = Failed, m.Group.failure()
	case m.Group.interrupted():
		m.Outcome, m.Reason = Interrupted, ""
	case out.Failure != "":
		m.Outcome, m.Reason = Failed, out.Failure
	case m.Signal != "":
		m.Outcome, m.Reason = Failed, because("ended by "+m.Signal, out.Complaint)
	case m.ExitCode != nil && *m.ExitCode != 0:
		m.Outcome, m.Reason = Failed, because(fmt.Sprintf("exit status %d", *m.ExitCode), out.Complaint)
	case m.OutputLost:
		m.Outcome, m.Reason = Failed, because("the disk was full: a part of the tool's output may be lost", out.Complaint)
	case m.ExitCode != nil, out.Complete:
		m.Outcome, m.Reason = Succeeded, ""
	case out.Complaint != "":
		m.Outcome, m.Reason = Failed, out.Complaint
	case m.IsPreparation() && out.Missing == "": // such a command prints no summary, and an error if it fails
		m.Outcome, m.Reason = Succeeded, ""
	case m.Outcome == "":
		m.Outcome, m.Reason = Lost, cmp.Or(out.Missing, "no exit status was seen and the output has no summary")
	}
}

// AddLabels adds labels that the tool's output shows and the run does not have, as options of the tool. What m shared
// with other copies of it is not changed.
func (m *Meta) AddLabels(labels []tool.Label) {
	var added map[string]string
	for _, l := range labels {
		if _, known := m.Labels[l.Name]; known || CheckLabel(l.Name) != nil {
			continue
		}
		if added == nil {
			added = maps.Clone(m.Labels)
			if added == nil {
				added = map[string]string{}
			}
			m.Parameters = slices.Clone(m.Parameters)
		}
		if _, known := added[l.Name]; !known {
			added[l.Name] = l.Value
			m.Parameters = append(m.Parameters, l.Name)
		}
	}
	if added != nil {
		m.Labels = added
	}
}

// because joins how a run ended with the cause that the tool printed, if any.
func because(end, cause string) string {
	if cause == "" {
		return end
	}
	return end + ": " + cause
}
