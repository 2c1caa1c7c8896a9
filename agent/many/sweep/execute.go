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
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

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

// WarmupLabels are the labels of runs that warm up and do not count.
var WarmupLabels = []string{"sweep" + warmup, "ab" + warmup}

const warmup = "_warmup"

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
		labels[kind+warmup] = s.ID
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

func (r *Runner) exists(step *Step) bool {
	_, err := os.Stat(rundir.At(r.DataDir, step.RunID).Path(rundir.MetaFile))
	return err == nil
}

// log opens the log for the output of runs and hooks, without secrets.
func (r *Runner) log() (log io.Writer, closeLog func(), err error) {
	f, err := os.OpenFile(r.Sweep.Path(logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("sweep: %w", err)
	}
	return secret.Writer{W: f}, func() { f.Close() }, nil
}
