package sweep

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/live"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Runner runs a sweep's steps, each with its own `benchwatch run`. The state of a step is on disk
// before and after each action, so that resuming the sweep neither loses nor repeats a step.
type Runner struct {
	Sweep   *Sweep
	DataDir string
	Tools   tool.Set
	// Commands are the sweep's commands, including their secrets.
	Commands Commands
	// Notice prints a line about the progress.
	Notice func(format string, args ...any)
	// Out and Err show the output of the runs; nil: hidden.
	Out, Err io.Writer
	// Signals are passed on to the run that ends because ctx is done.
	Signals <-chan os.Signal
	// Course decides the steps of a sweep with its own plan; nil: all steps are known.
	Course Course
}

// Course decides the next steps of a sweep by the results of earlier ones, always in the same way: a
// resumed sweep continues as an uninterrupted one.
type Course interface {
	// Announce describes the sweep.
	Announce(s *Sweep) string
	// Judge records in a step the values of its run that later decisions need, and returns them in words. row is nil if
	// the step failed. It may skip pending steps.
	Judge(s *Sweep, step *Step, row *review.Row) []string
	// Extend adds the next steps; false if there are none.
	Extend(s *Sweep) bool
}

// Run runs the remaining steps. The error is ctx's error if ctx is done before the last step.
func (r *Runner) Run(ctx context.Context) error {
	total := len(r.Sweep.Steps)
	if r.Sweep.Seek != nil {
		r.Course = seeking{func(step *Step) int { return r.Commands.Describe(step.Values, r.Tools).Rate }}
	}
	switch {
	case r.Course != nil:
		r.Notice("%s", r.Course.Announce(r.Sweep))
	case r.Sweep.Next() != nil:
		r.Notice("sweep %s: %s", r.Sweep.ID, table.Plural(total, "step"))
	}
	requested := r.Commands.Describe(r.Sweep.Steps[0].Values, r.Tools).Duration
	for first := true; ; first = false {
		step := r.Sweep.Next()
		if step == nil {
			if r.Course == nil || !r.Course.Extend(r.Sweep) {
				return nil
			}
			if err := r.Sweep.Save(); err != nil {
				return err
			}
			step = r.Sweep.Next()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !first && step.State == Pending && r.Sweep.CooldownSeconds > 0 {
			if err := clock.Sleep(ctx, time.Duration(r.Sweep.CooldownSeconds*float64(time.Second))); err != nil {
				return err
			}
		}
		left, number := "", fmt.Sprintf("%d/%d", step.Number, total)
		if r.Course != nil {
			number = fmt.Sprint(step.Number)
		} else if d := r.Sweep.Left(requested); d > 0 {
			left = ", about " + d.Round(time.Second).String() + " left"
		}
		r.Notice("[%s] %s%s", number, r.title(step), left)
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
}

func (r *Runner) title(step *Step) string {
	text := table.Plain(Describe(r.Sweep.Sets, step.Values))
	switch {
	case step.Warmup:
		text += ", warm-up"
	case r.Sweep.Repeat > 1:
		text += fmt.Sprintf(", repeat %d", step.Repeat)
	}
	return text
}

// step runs a step, or the rest of it.
func (r *Runner) step(ctx context.Context, step *Step) error {
	problem, begun := "", false
	if step.State == Running {
		if err := r.closeOrphan(ctx, step); err != nil {
			return err
		}
		begun = r.begun(step)
	}
	switch {
	case begun:
		r.Notice("  run %s has already been started", step.RunID)
	case step.State == Running && !r.exists(step): // not started yet: the id is free
		step.Began = time.Now().UTC()
	default:
		r.Sweep.NewAttempt(step)
		step.Began = time.Now().UTC()
	}
	if err := r.Sweep.Save(); err != nil {
		return err
	}
	if !begun {
		var err error
		if problem, err = r.start(ctx, step); err != nil {
			return err
		}
	}
	if problem == "" {
		if err := r.await(ctx, step); err != nil {
			return err
		}
		if begun && !r.begun(step) { // cut off meanwhile: repeat it
			step.State = Pending
			return r.Sweep.Save()
		}
	}
	return r.finish(ctx, step, problem)
}

// adoption is how long an agent may take to adopt a run that lost its wrapper.
const adoption = 2 * time.Second

// closeOrphan records the outcome of an unclosed run from its output, since a crash may have
// happened between the tool's end and its record.
func (r *Runner) closeOrphan(ctx context.Context, step *Step) error {
	dir := rundir.At(r.DataDir, step.RunID)
	for began := time.Now(); ; {
		meta, err := dir.Load()
		if err != nil || meta.Ended() || dir.Busy(&meta) {
			return nil // begun decides
		}
		if time.Since(began) >= adoption {
			_, err := live.CloseOrphan(ctx, dir, r.Tools)
			return err
		}
		if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// begun reports whether a step's run, started by an earlier process, is active or has ended by
// itself. A run that was cut off is repeated.
func (r *Runner) begun(step *Step) bool {
	dir := rundir.At(r.DataDir, step.RunID)
	meta, err := dir.Load()
	if err != nil {
		return false
	}
	if dir.Busy(&meta) {
		return true
	}
	return meta.Ended() && meta.Outcome != rundir.Interrupted && meta.Outcome != rundir.Lost
}

// finish records how a step ended. problem is why there is no run.
func (r *Runner) finish(ctx context.Context, step *Step, problem string) error {
	var row review.Row
	if problem == "" {
		h, err := record.Read(ctx, rundir.At(r.DataDir, step.RunID), r.Tools)
		switch {
		case ctx.Err() != nil:
			return ctx.Err() // decided when the sweep is resumed
		case err != nil:
			problem = err.Error()
		default:
			for _, line := range h.Damage.Problems {
				r.Notice("  %s", line)
			}
			row = review.NewObservedRow(h)
			problem = whyFailed(&row, h.Snapshot.Complaint())
		}
	}
	r.afterwards(ctx, step)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	step.State, step.Reason = Done, ""
	step.Seconds = time.Since(step.Began).Seconds()
	if problem != "" {
		step.State, step.Reason = Failed, problem
		r.Notice("  failed: %s", table.Clip(problem, 300))
	} else {
		r.Notice("  %s", outcome(&row))
		r.stopWhen(step, &row)
	}
	if r.Course != nil {
		judged := &row
		if problem != "" {
			judged = nil
		}
		for _, line := range r.Course.Judge(r.Sweep, step, judged) {
			r.Notice("  %s", line)
		}
	}
	return r.Sweep.Save()
}

func whyFailed(row *review.Row, complaint string) string {
	switch row.Result {
	case rundir.Succeeded:
		return ""
	case "":
		return "how the run ended is unknown"
	}
	text := "the run " + row.Outcome()
	if row.Reason != "" {
		text += ": " + row.Reason
	}
	if !strings.Contains(text, complaint) {
		text += ": " + complaint
	}
	return text
}

func outcome(row *review.Row) string {
	text := fmt.Sprintf("%.1f s", row.DurationSeconds)
	if tps := row.Values.Of(tool.Throughput); tps.Known {
		text = fmt.Sprintf("%.2f tps, ", tps.Value) + text
	}
	if l := row.Headline(); l != "" {
		text += ", " + l
	}
	if n := int(row.Values.Of(tool.Errors).Value); n > 0 {
		text += ", " + table.Plural(n, "error")
	}
	return text
}
