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
	"github.com/benchwatch/benchwatch/agent/table"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// sweepRunner runs a sweep's steps, each with a `benchwatch run` of its own. The
// state of a step is on disk before and after everything that it does, so that
// resuming the sweep neither loses a step nor repeats one.
type sweepRunner struct {
	sweep     *sweep.Sweep
	dataDir   string
	tools     tool.Set
	streams   Streams
	verbose   bool
	requested time.Duration // of one run; 0 if unknown

	command       []string
	before, after string
}

func (r *sweepRunner) run(ctx context.Context) error {
	total := len(r.sweep.Steps)
	if r.sweep.Next() != nil {
		r.streams.notice("sweep %s: %s", r.sweep.ID, table.Plural(total, "step"))
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
		if d := r.sweep.Left(r.requested); d > 0 {
			left = ", about " + d.Round(time.Second).String() + " left"
		}
		r.streams.notice("[%d/%d] %s%s", step.Number, total, r.title(step), left)
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
}

func (r *sweepRunner) title(step *sweep.Step) string {
	text := table.Plain(sweep.Describe(r.sweep.Sets, step.Values))
	switch {
	case step.Warmup:
		text += ", warm-up"
	case r.sweep.Repeat > 1:
		text += fmt.Sprintf(", repeat %d", step.Repeat)
	}
	return text
}

// step runs one step, or the rest of it.
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
		r.streams.notice("  run %s has already been started", step.RunID)
	case step.State == sweep.Running && !r.exists(step): // not started yet: the id is free
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
		if begun && !r.begun(step) { // cut off meanwhile: repeat it
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

// adoption is how long an agent may take to adopt a run whose wrapper is gone.
const adoption = 2 * time.Second

// closeOrphan records the outcome of an unclosed run from its output: a crash may
// have happened between the tool's end and its record.
func (r *sweepRunner) closeOrphan(ctx context.Context, step *sweep.Step) error {
	dir := rundir.At(r.dataDir, step.RunID)
	for began := time.Now(); ; {
		meta, err := dir.Load()
		if err != nil || meta.Ended() || dir.Busy(&meta) {
			return nil // begun decides
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

// begun reports whether a step's run, which an earlier process started, is active or
// has ended by itself. One that was cut off is repeated.
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

// start runs the hook and the benchmark to its end. problem is why there is no run;
// err is an error of the sweep itself, or an interruption.
func (r *sweepRunner) start(ctx context.Context, step *sweep.Step) (problem string, err error) {
	log, err := os.OpenFile(r.sweep.Path(sweep.LogFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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
	printed := &lastLines{}
	cmd := &exec.Cmd{
		Path: self, Args: append([]string{os.Args[0]}, r.arguments(step)...), Stderr: io.MultiWriter(log, printed),
		// In a group of its own it gets the terminal's signals once, from us.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if r.verbose {
		cmd.Stdout, cmd.Stderr = r.streams.Out, io.MultiWriter(log, printed, r.streams.Err)
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
		// Some tools exit with 0 when they are interrupted: the run may look
		// complete and is not.
		step.State = sweep.Pending
		return "", errors.Join(ctx.Err(), r.sweep.Save())
	}
	if err != nil && !r.exists(step) { // there is no run
		return printed.text(err), nil
	}
	return "", nil
}

// end interrupts a run and, once the tool has ended, its wait for replicas.
func (r *sweepRunner) end(cmd *exec.Cmd, step *sweep.Step, done <-chan error) {
	r.streams.notice("  ending run %s", step.RunID)
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

// agentAway is how long an agent may be gone before a run that only it could close
// is taken as it is.
const agentAway = 10 * time.Second

// await waits until the run is closed, or no process is left that would close it.
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

// finish records how a step ended. problem is why there is no run.
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
				return ctx.Err() // decided when the sweep is resumed
			}
			if err != nil {
				r.streams.notice("  %v", err)
			}
			row = report.NewRow(&snap)
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
		r.streams.notice("  failed: %s", table.Clip(problem, 300))
	} else {
		r.streams.notice("  %s", outcome(&row))
		r.stopWhen(step, &row)
	}
	return r.sweep.Save()
}

func whyFailed(row *report.Row, complaint string) string {
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

func outcome(row *report.Row) string {
	text := fmt.Sprintf("%.1f s", row.DurationSeconds)
	if row.TPS.Known {
		text = fmt.Sprintf("%.2f tps, ", row.TPS.Value) + text
	}
	if l := row.Headline(); l != "" {
		text += ", " + l
	}
	if n := int(row.Errors.Value); n > 0 {
		text += ", " + table.Plural(n, "error")
	}
	return text
}

// afterwards runs the hook after a run. If it fails, the step is still done.
func (r *sweepRunner) afterwards(ctx context.Context, step *sweep.Step) {
	log, err := os.OpenFile(r.sweep.Path(sweep.LogFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.streams.notice("  %v", err)
		return
	}
	defer log.Close()
	if err := r.hook(ctx, log, "after", r.after, step); err != nil && ctx.Err() == nil {
		r.streams.notice("  %v", err)
	}
}

func (r *sweepRunner) stopWhen(step *sweep.Step, row *report.Row) {
	if r.sweep.StopWhen == "" || step.Warmup {
		return
	}
	c, err := sweep.ParseCondition(r.sweep.StopWhen)
	if err != nil {
		r.streams.notice("  %v", err)
		return
	}
	switch text, met := c.Met(row); {
	case text == "":
		r.streams.notice("  --stop-when %s can't apply: the run has no such value", r.sweep.StopWhen)
	case met:
		n := r.sweep.Skip(step, fmt.Sprintf("%s at %s", text, sweep.Describe(r.sweep.Sets, step.Values)))
		r.streams.notice("  %s: skipped %s with more %s", text, table.Plural(n, "step"), r.sweep.Scale())
	}
}

// pause waits. The error is that of ctx if it is done first.
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

// hook runs a shell command with the step's values: quoted in place of {name}, and
// as SWEEP_NAME in the environment.
func (r *sweepRunner) hook(ctx context.Context, log io.Writer, name, command string, step *sweep.Step) error {
	if command == "" {
		return nil
	}
	quoted := map[string]string{}
	env := append(os.Environ(), "SWEEP_ID="+r.sweep.ID, "SWEEP_RUN="+step.RunID)
	for k, v := range step.Values {
		quoted[k] = table.ShellWord(v)
		env = append(env, "SWEEP_"+strings.ToUpper(k)+"="+v)
	}
	printed := &lastLines{}
	cmd := exec.CommandContext(ctx, "sh", "-c", sweep.Fill(command, quoted))
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = io.MultiWriter(log, printed), io.MultiWriter(log, printed)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second // a daemon that it started may hold its output open
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("--%s: %s", name, printed.text(err))
	}
	return nil
}

// lastLines keeps the end of a program's output, for an error message.
type lastLines struct{ tail []byte }

func (l *lastLines) Write(p []byte) (int, error) {
	const kept = 2000
	l.tail = append(l.tail, p...)
	if n := len(l.tail) - kept; n > 0 {
		l.tail = append(l.tail[:0], l.tail[n:]...)
	}
	return len(p), nil
}

// text returns the last line that is no hint, with the exit status.
func (l *lastLines) text(err error) string {
	last := ""
	for line := range strings.Lines(string(l.tail)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "hint: ") {
			continue
		}
		last = strings.TrimPrefix(line, "benchwatch: ")
	}
	if last == "" {
		return err.Error()
	}
	return table.Clip(last, 300) + " (" + err.Error() + ")"
}
