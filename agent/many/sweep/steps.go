package sweep

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// State of a step.
type State string

const (
	Pending State = "pending"
	// Running: the run was started, or is about to be.
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
	// Skipped: a step with fewer threads met --stop-when.
	Skipped State = "skipped"
)

// Step is one run of a sweep.
type Step struct {
	Number int               `json:"number"`
	Values map[string]string `json:"values"`
	Repeat int               `json:"repeat"`
	Warmup bool              `json:"warmup,omitempty"`
	// Arm is what {arm} means in command and hooks if the values name the control of an A/B comparison.
	Arm   string `json:"arm,omitempty"`
	State State  `json:"state"`
	// RunID is the run of the last attempt. An attempt that was cut off is repeated with another
	// id.
	RunID   string `json:"run_id,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Began is when the first hook started, Seconds how long hooks and run took.
	Began   time.Time `json:"began,omitzero"`
	Seconds float64   `json:"seconds,omitempty"`
	// Reason is why the step failed or was skipped.
	Reason string `json:"reason,omitempty"`
	// Throughput is the throughput of the run, in transactions per second.
	Throughput series.Optional[float64] `json:"throughput,omitzero"`
	// Judgement is whether the run met the conditions of seek; Reason then has the values.
	Judgement Judgement `json:"judgement,omitempty"`
	// Measured are values of the run by the name of the measure, where the next step depends on them.
	Measured map[string]float64 `json:"measured,omitempty"`
}

// filling returns the values for the placeholders of the command and the hooks.
func (s *Step) filling() map[string]string {
	if s.Arm == "" {
		return s.Values
	}
	values := maps.Clone(s.Values)
	values[ArmSet] = s.Arm
	return values
}

// Over reports whether nothing is left to do for the step.
func (s *Step) Over() bool { return s.State == Done || s.State == Failed || s.State == Skipped }

// Sweep is the content of sweep.json: what to do, and how much of it is done. Secrets in its
// commands are blanked.
type Sweep struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Sets      []Set     `json:"sets"`
	Repeat    int       `json:"repeat"`
	Order     Order     `json:"order"`
	Commands
	// Redacted: secrets in the commands were blanked, so they must be given again to resume the
	// sweep.
	Redacted bool `json:"redacted,omitempty"`

	CooldownSeconds float64 `json:"cooldown_seconds,omitempty"`
	StopWhen        string  `json:"stop_when,omitempty"`
	// Seek is set if the sweep is a search.
	Seek *Seek `json:"seek,omitempty"`
	// Plan is what a [Course] of another package keeps here: the plan of an A/B comparison.
	Plan json.RawMessage `json:"plan,omitempty"`

	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Tool   string            `json:"tool,omitempty"`
	// RunOptions are passed on to each run.
	RunOptions []string `json:"run_options,omitempty"`

	Steps []Step `json:"steps"`

	dir string
}

// Next returns the next step, nil if all are over. A step that was running comes first.
func (s *Sweep) Next() *Step {
	for _, want := range []State{Running, Pending} {
		for i := range s.Steps {
			if s.Steps[i].State == want {
				return &s.Steps[i]
			}
		}
	}
	return nil
}

// NewAttempt gives a step the id of its next run.
func (s *Sweep) NewAttempt(step *Step) {
	step.Attempt++
	step.RunID = fmt.Sprintf("%s-%03d", s.ID, step.Number)
	if step.Attempt > 1 {
		step.RunID += fmt.Sprintf("-try%d", step.Attempt)
	}
	step.State = Running
}

// Left estimates the duration of the remaining steps, from the finished ones or from the requested
// duration of one; 0 if both are unknown.
func (s *Sweep) Left(requested time.Duration) time.Duration {
	done, left, sum := 0, 0, 0.0
	for i := range s.Steps {
		step := &s.Steps[i]
		switch {
		case step.Seconds > 0:
			done++
			sum += step.Seconds
		case !step.Over():
			left++
		}
	}
	pause := s.CooldownSeconds * float64(max(0, left-1))
	switch {
	case left == 0:
		return 0
	case done > 0:
		return time.Duration((sum/float64(done)*float64(left) + pause) * float64(time.Second))
	case requested > 0:
		return requested*time.Duration(left) + time.Duration(pause*float64(time.Second))
	}
	return 0
}
