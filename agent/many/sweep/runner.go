package sweep

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

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/secret"
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

// seeking is the course of a Seek.
type seeking struct{ rate func(*Step) int }

func (seeking) Announce(s *Sweep) string {
	return fmt.Sprintf("seek %s: the highest %s with %s", s.ID, s.Sets[0].Name, strings.Join(s.Seek.SubjectTo, ", "))
}

func (c seeking) Judge(s *Sweep, step *Step, row *review.Row) []string {
	if row == nil {
		return nil
	}
	if err := s.Seek.setJudgement(step, row, c.rate(step)); err != nil {
		step.State, step.Reason = Failed, err.Error()
		return []string{err.Error()}
	}
	return []string{fmt.Sprintf("%s: %s", step.Judgement, step.Reason)}
}

func (seeking) Extend(s *Sweep) bool { return s.Extend() }

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

func (r *Runner) exists(step *Step) bool {
	_, err := os.Stat(rundir.At(r.DataDir, step.RunID).Path(rundir.MetaFile))
	return err == nil
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

// Execute runs the hooks and the benchmark of a step that is not one of the sweep's, until its end or
// until ctx is done, which interrupts it. problem is why there is no run.
func (r *Runner) Execute(ctx context.Context, step *Step) (problem string, err error) {
	problem, err = r.start(ctx, step)
	r.afterwards(context.WithoutCancel(ctx), step)
	return problem, err
}

// start runs the hook and the benchmark to their end. problem is why there is no run; err is an
// error of the sweep itself, or an interruption.
func (r *Runner) start(ctx context.Context, step *Step) (problem string, err error) {
	log, closeLog, err := r.log()
	if err != nil {
		return "", err
	}
	defer closeLog()
	if err := r.hook(ctx, log, "before", r.Commands.Before, step); err != nil {
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
		// In its own process group the run receives the terminal's signals once, from this process.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if r.Err != nil {
		cmd.Stdout, cmd.Stderr = r.Out, io.MultiWriter(log, printed, r.Err)
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
		// Some tools exit with 0 when interrupted, so the run may look complete although it is not.
		step.State = Pending
		return "", errors.Join(ctx.Err(), r.Sweep.Save())
	}
	if err != nil && !r.exists(step) { // there is no run
		return printed.text(err), nil
	}
	return "", nil
}

// log opens the log for the output of runs and hooks, without secrets.
func (r *Runner) log() (log io.Writer, closeLog func(), err error) {
	f, err := os.OpenFile(r.Sweep.Path(logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("sweep: %w", err)
	}
	return secret.Writer{W: f}, func() { f.Close() }, nil
}

// end interrupts a run and, after the tool has ended, its wait for replicas. The run itself decides
// by the signal whether to wait for generators that do not answer.
func (r *Runner) end(cmd *exec.Cmd, step *Step, done <-chan error) {
	r.Notice("  ending run %s", step.RunID)
	var first os.Signal = syscall.SIGINT
	select {
	case first = <-r.Signals:
	default:
	}
	_ = cmd.Process.Signal(first) // it may have just ended
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case sig := <-r.Signals:
			_ = cmd.Process.Signal(sig)
		case <-tick.C:
			meta, err := rundir.At(r.DataDir, step.RunID).Load()
			if err == nil && meta.Ended() {
				_ = cmd.Process.Signal(syscall.SIGINT)
			}
		}
	}
}

// arguments returns the arguments of the step's `benchwatch run`.
func (r *Runner) arguments(step *Step) []string {
	s := r.Sweep
	args := []string{"run", "--run-id=" + step.RunID, "--linger=0s", "--data-dir=" + r.DataDir}
	args = append(args, s.RunOptions...)
	if s.Tool != "" {
		args = append(args, "--tool="+s.Tool)
	}
	if s.Title != "" {
		args = append(args, "--title="+Fill(s.Title, step.Values))
	}
	labels := s.labels(step)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		args = append(args, "--label="+name+"="+labels[name])
	}
	args = append(args, "--")
	return append(args, r.Commands.filled(step.filling())...)
}

// agentAway is how long an agent may be away before a run that only it could close is accepted as
// it is.
const agentAway = 10 * time.Second

// await waits until the run is closed, or until no process is left to close it.
func (r *Runner) await(ctx context.Context, step *Step) error {
	dir := rundir.At(r.DataDir, step.RunID)
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
		if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
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

// afterwards runs the hook after a run. If the hook fails, the step is done nevertheless.
func (r *Runner) afterwards(ctx context.Context, step *Step) {
	log, closeLog, err := r.log()
	if err != nil {
		r.Notice("  %v", err)
		return
	}
	defer closeLog()
	if err := r.hook(ctx, log, "after", r.Commands.After, step); err != nil && ctx.Err() == nil {
		r.Notice("  %v", err)
	}
}

func (r *Runner) stopWhen(step *Step, row *review.Row) {
	if r.Sweep.StopWhen == "" || step.Warmup {
		return
	}
	step.Throughput = row.Values.Of(tool.Throughput)
	p, err := parsePlateau(r.Sweep.StopWhen)
	if err != nil {
		r.Notice("  %v", err)
		return
	}
	if p != nil {
		if last, gains := p.reached(r.Sweep, step); last != nil {
			r.skip(last, fmt.Sprintf("%s: %s", p.text, gains), "")
		}
		return
	}
	c, err := review.ParseCondition(r.Sweep.StopWhen)
	if err != nil {
		r.Notice("  %v", err)
		return
	}
	switch value, met := c.Met(row); {
	case value == "":
		r.Notice("  --stop-when %s can't apply: the run has no such value", r.Sweep.StopWhen)
	case met:
		r.skip(step, fmt.Sprintf("%s: %s", c, value), " at "+Describe(r.Sweep.Sets, step.Values))
	}
}

// skip leaves out the steps with more threads than met, for a reason. where is added to the reason of each step.
func (r *Runner) skip(met *Step, reason, where string) {
	n := r.Sweep.Skip(met, reason+where)
	r.Notice("  %s: skipped %s with more %s", reason, table.Plural(n, "step"), r.Sweep.Scale())
}

// hook runs a shell command with the step's values, quoted in place of {name} and in the
// environment.
func (r *Runner) hook(ctx context.Context, log io.Writer, name, command string, step *Step) error {
	if command == "" {
		return nil
	}
	if err := CheckHook(command, r.Sweep.Sets); err != nil { // from a sweep.json of another version
		return err
	}
	if err := Shell(ctx, hookText(command, step), r.Sweep.environment(step), log); err != nil {
		return fmt.Errorf("--%s: %w", name, err)
	}
	return nil
}

// Shell runs a command of the user with sh and copies its output to log. When the context ends, its
// processes get SIGTERM. The error has the last line that the command printed.
func Shell(ctx context.Context, command string, environment []string, log io.Writer) error {
	printed := &lastLines{}
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = environment
	cmd.Stdout, cmd.Stderr = io.MultiWriter(log, printed), io.MultiWriter(log, printed)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second // a daemon started by it may keep its output open
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return errors.New(printed.text(err))
}

// lastLines keeps the end of a program's output for an error message.
type lastLines struct{ tail []byte }

func (l *lastLines) Write(p []byte) (int, error) {
	const kept = 2000
	l.tail = append(l.tail, p...)
	if n := len(l.tail) - kept; n > 0 {
		l.tail = append(l.tail[:0], l.tail[n:]...)
	}
	return len(p), nil
}

// text returns the last line that is not a hint, with the exit status.
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
	return table.Clip(secret.Text(last), 300) + " (" + err.Error() + ")"
}

// labels returns the labels of a step's run. Sets with a name of benchwatch's own, such as threads,
// are facts of the run anyway.
func (s *Sweep) labels(step *Step) map[string]string {
	labels, kind := map[string]string{}, "sweep"
	maps.Copy(labels, s.Labels)
	if s.Plan != nil {
		kind = "ab"
		if step.Number > 0 {
			labels["block"] = fmt.Sprint(step.Number)
		}
	}
	if step.Warmup {
		labels[kind+"_warmup"] = s.ID
		return labels
	}
	for name, v := range step.Values {
		if rundir.CheckLabel(name) == nil {
			labels[name] = v
		}
	}
	labels[kind] = s.ID
	if s.Repeat > 1 {
		labels["repeat"] = fmt.Sprint(step.Repeat)
	}
	return labels
}
