package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/live"
	"github.com/benchwatch/benchwatch/agent/report"
	"github.com/benchwatch/benchwatch/agent/rundir"

	"github.com/benchwatch/benchwatch/agent/sweep"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// sweepRunner does a sweep's steps, each with a `benchwatch run` of its own.
// Where a step stands is on disk before and after everything that it does, so
// whoever goes on with the sweep neither loses a step nor does one twice.
type sweepRunner struct {
	sweep   *sweep.Sweep
	dataDir string
	tools   tool.Set
	streams Streams
	verbose bool
	asked   time.Duration

	command       []string
	before, after string
}

func (r *sweepRunner) say(format string, args ...any) {
	fmt.Fprintf(r.streams.Err, "benchwatch: "+format+"\n", args...)
}

func (r *sweepRunner) run(ctx context.Context) error {
	total := len(r.sweep.Steps)
	if r.sweep.Next() != nil {
		r.say("sweep %s: %d steps", r.sweep.ID, total)
	}
	for first := true; ; first = false {
		step := r.sweep.Next()
		if step == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !first && step.State == sweep.Pending && r.sweep.CooldownSeconds > 0 {
			if err := pause(ctx, time.Duration(r.sweep.CooldownSeconds*float64(time.Second))); err != nil {
				return err
			}
		}
		left := ""
		if d := r.sweep.Left(r.asked); d > 0 {
			left = ", about " + d.Round(time.Second).String() + " left"
		}
		r.say("[%d/%d] %s%s", step.Number, total, r.title(step), left)
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
}

func (r *sweepRunner) title(step *sweep.Step) string {
	text := report.Plain(sweep.Describe(r.sweep.Sets, step.Values))
	switch {
	case step.Warmup:
		text += ", warm-up"
	case r.sweep.Repeat > 1:
		text += fmt.Sprintf(", repeat %d", step.Repeat)
	}
	return text
}

// step does one step, or what is left of it.
func (r *sweepRunner) step(ctx context.Context, step *sweep.Step) error {
	problem, begun := "", false
	if step.State == sweep.Running {
		if err := r.closeOrphan(ctx, step); err != nil {
			return err
		}
		begun = r.begun(step)
	}
	switch {
	case begun:
		r.say("  run %s was begun before", step.RunID)
	case step.State == sweep.Running && !r.exists(step): // it was not begun: the same id is free
		step.Began = time.Now().UTC()
	default:
		r.sweep.NewAttempt(step)
		step.Began = time.Now().UTC()
	}
	if err := r.sweep.Save(); err != nil {
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
		if begun && !r.begun(step) { // cut off while we waited for it: once more
			step.State = sweep.Pending
			return r.sweep.Save()
		}
	}
	return r.finish(ctx, step, problem)
}

func (r *sweepRunner) exists(step *sweep.Step) bool {
	_, err := os.Stat(rundir.At(r.dataDir, step.RunID).Path(rundir.MetaFile))
	return err == nil
}

// adoption is how long an agent has to take up a run whose wrapper is gone.
const adoption = 2 * time.Second

// closeOrphan has a run that nobody closed say by its output how it ended: a crash
// may have come between the tool's end and its record.
func (r *sweepRunner) closeOrphan(ctx context.Context, step *sweep.Step) error {
	dir := rundir.At(r.dataDir, step.RunID)
	for began := time.Now(); ; {
		meta, err := dir.Load()
		if err != nil || meta.Ended() || dir.Busy(&meta) {
			return nil // begun says what that means
		}
		if time.Since(began) >= adoption {
			_, err := live.CloseOrphan(ctx, dir, r.tools.ByName(meta.Tool))
			return err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// begun reports whether a step's run, which an earlier process started, goes on
// or came to its end. One that was cut off is done again.
func (r *sweepRunner) begun(step *sweep.Step) bool {
	dir := rundir.At(r.dataDir, step.RunID)
	meta, err := dir.Load()
	if err != nil {
		return false
	}
	if dir.Busy(&meta) {
		return true
	}
	return meta.Ended() && meta.Outcome != rundir.Interrupted && meta.Outcome != rundir.Lost
}

// start runs the hook and the benchmark to its end. The text says why there is
// no run; an error is one of ours, or an interruption.
func (r *sweepRunner) start(ctx context.Context, step *sweep.Step) (problem string, err error) {
	log, err := os.OpenFile(r.sweep.Path("sweep.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("sweep: %w", err)
	}
	defer log.Close()
	if err := r.hook(ctx, log, "before", r.before, step); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return err.Error(), nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("sweep: %w", err)
	}
	said := &lastLines{}
	cmd := &exec.Cmd{
		Path: self, Args: append([]string{os.Args[0]}, r.arguments(step)...), Stderr: io.MultiWriter(log, said),
		// A group of its own: what the terminal sends goes through us, once.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if r.verbose {
		cmd.Stdout, cmd.Stderr = r.streams.Out, io.MultiWriter(log, said, r.streams.Err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("sweep: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err = <-done:
	case <-ctx.Done():
		r.end(cmd, step, done)
		// Some tools end in good order when they are interrupted: the run may
		// look whole and is not.
		step.State = sweep.Pending
		return "", errors.Join(ctx.Err(), r.sweep.Save())
	}
	if err != nil && !r.exists(step) { // it did not come to a run
		return said.text(err), nil
	}
	return "", nil
}

// end interrupts a run and, once the tool has ended, its wait for replicas.
func (r *sweepRunner) end(cmd *exec.Cmd, step *sweep.Step, done <-chan error) {
	r.say("  ending run %s", step.RunID)
	_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended this moment
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			meta, err := rundir.At(r.dataDir, step.RunID).Load()
			if err == nil && meta.Ended() {
				_ = cmd.Process.Signal(syscall.SIGINT)
			}
		}
	}
}

// arguments of the step's `benchwatch run`.
func (r *sweepRunner) arguments(step *sweep.Step) []string {
	s := r.sweep
	args := []string{"run", "--run-id=" + step.RunID, "--linger=0s", "--data-dir=" + r.dataDir}
	args = append(args, s.RunOptions...)
	if s.Tool != "" {
		args = append(args, "--tool="+s.Tool)
	}
	if s.Title != "" {
		args = append(args, "--title="+sweep.Fill(s.Title, step.Values))
	}
	labels := labelsOf(s, step)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		args = append(args, "--label="+name+"="+labels[name])
	}
	args = append(args, "--")
	for _, a := range r.command {
		args = append(args, sweep.Fill(a, step.Values))
	}
	return args
}

// agentAway is how long an agent may be gone before a run that only it could
// close is taken as it is.
const agentAway = 10 * time.Second

// await waits until the run is closed, or nobody is left who would close it.
func (r *sweepRunner) await(ctx context.Context, step *sweep.Step) error {
	dir := rundir.At(r.dataDir, step.RunID)
	idle := time.Now()
	for {
		meta, err := dir.Load()
		if errors.Is(err, fs.ErrNotExist) || err == nil && meta.Closed() {
			return nil
		}
		if err == nil && dir.Busy(&meta) {
			idle = time.Now()
		}
		if time.Since(idle) > agentAway || meta.Ended() && time.Since(idle) > time.Second {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// finish writes what became of a step. problem is why it came to no run.
func (r *sweepRunner) finish(ctx context.Context, step *sweep.Step, problem string) error {
	var row report.Row
	if problem == "" {
		dir := rundir.At(r.dataDir, step.RunID)
		meta, err := dir.Load()
		if err != nil {
			problem = err.Error()
		} else {
			snap, err := ingest.Read(ctx, dir, r.tools.ByName(meta.Tool))
			if ctx.Err() != nil {
				return ctx.Err() // looked at again when the sweep goes on
			}
			if err != nil {
				r.say("  %v", err)
			}
			row = report.RowOf(&snap)
			problem = whyFailed(&row, snap.Complaint())
		}
	}
	r.afterwards(ctx, step)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	step.State, step.Reason = sweep.Done, ""
	step.Seconds = time.Since(step.Began).Seconds()
	if problem != "" {
		step.State, step.Reason = sweep.Failed, problem
		r.say("  failed: %s", report.Clip(problem, 300))
	} else {
		r.say("  %s", outcome(&row))
		r.stopWhen(step, &row)
	}
	return r.sweep.Save()
}

func whyFailed(row *report.Row, complaint string) string {
	switch row.Result {
	case rundir.Succeeded:
		return ""
	case "":
		return "nobody saw how the run ended"
	}
	text := "the run " + row.Became()
	if row.Reason != "" {
		text += ": " + row.Reason
	}
	if !strings.Contains(text, complaint) {
		text += ": " + complaint
	}
	return text
}

func outcome(row *report.Row) string {
	text := fmt.Sprintf("%.1f s", row.DurationSeconds)
	if row.TPS != nil {
		text = fmt.Sprintf("%.2f tps, ", *row.TPS) + text
	}
	if stat, v, ok := row.Percentile(); ok {
		text += fmt.Sprintf(", %s %.2f ms", stat, v*1000)
	}
	if row.Errors != nil && *row.Errors > 0 {
		text += fmt.Sprintf(", %.0f errors", *row.Errors)
	}
	return text
}

// afterwards runs the hook behind a run; its failure changes no result.
func (r *sweepRunner) afterwards(ctx context.Context, step *sweep.Step) {
	log, err := os.OpenFile(r.sweep.Path("sweep.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.say("  %v", err)
		return
	}
	defer log.Close()
	if err := r.hook(ctx, log, "after", r.after, step); err != nil && ctx.Err() == nil {
		r.say("  %v", err)
	}
}

func (r *sweepRunner) stopWhen(step *sweep.Step, row *report.Row) {
	if r.sweep.StopWhen == "" || step.Warmup {
		return
	}
	c, err := sweep.ParseCondition(r.sweep.StopWhen)
	if err != nil {
		r.say("  %v", err)
		return
	}
	if text, met := c.Met(row); met {
		n := r.sweep.Skip(step, fmt.Sprintf("%s at %s", text, sweep.Describe(r.sweep.Sets, step.Values)))
		r.say("  %s: %d steps with more are left out", text, n)
	}
}

// pause waits, not longer than ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
