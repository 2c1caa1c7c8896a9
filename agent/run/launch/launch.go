// Package launch starts the benchmark tool with its output redirected into the run directory, and
// shows the output on the terminal from there.
package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// toolLockFD is the descriptor of the lock that the tool inherits. It is high, so that a script
// that uses 3 or 4 for itself does not close it.
const toolLockFD = 99

// Process is a benchmark tool that was started in a run directory. It runs in its own session and
// writes directly to the directory's files, so it continues if this process ends.
type Process struct {
	dir   rundir.Directory
	Cmd   *exec.Cmd
	asked bool               // an ending signal was passed on
	end   func(*rundir.Meta) // what record writes after the tool has ended

	// Terminated: SIGTERM was passed on. Its sender waits for this process.
	Terminated bool

	// OnEnd, if not nil, is called when the tool has ended, before that is written to run.json. Its
	// ctx is done when a signal arrives.
	OnEnd func(ctx context.Context)

	reserved []*rundir.Reservation // space reserved for the output files
}

// Start starts args in dir and writes its process id to run.json.
func Start(dir rundir.Directory, args []string) (*Process, error) {
	p := &Process{dir: dir}
	return p, p.start(args)
}

func (p *Process) start(args []string) error {
	stdout, err := p.dir.OpenOutput(rundir.StdoutFile)
	if err != nil {
		return err
	}
	defer stdout.Close()
	stderr, err := p.dir.OpenOutput(rundir.StderrFile)
	if err != nil {
		return err
	}
	defer stderr.Close()
	lock, err := p.dir.Lock(rundir.ToolLock, true)
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, name := range []string{rundir.StdoutFile, rundir.StderrFile} {
		reserved, err := p.dir.Reserve(name)
		if err != nil {
			return err
		}
		p.reserved = append(p.reserved, reserved)
	}

	p.Cmd = exec.Command(args[0], args[1:]...)
	p.Cmd.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = os.Stdin, stdout, stderr
	p.Cmd.ExtraFiles = make([]*os.File, toolLockFD-2)
	p.Cmd.ExtraFiles[toolLockFD-3] = lock
	// In its own session the tool receives the terminal's Ctrl-C only once, from this process, and
	// survives a closed terminal.
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.Cmd.Start(); err != nil {
		lock.Close()
		p.releaseReserve()
		return fmt.Errorf("start the benchmark tool: %w", err)
	}
	boot, pid := clock.System.Boot(), p.Cmd.Process.Pid
	ticks, _ := rundir.StartTicks(pid) // it may have ended; then the lock shows that
	_, err = p.dir.Update(func(m *rundir.Meta) {
		m.PID, m.PIDStartTicks, m.BootID = pid, ticks, clock.BootID()
		if m.Group != nil { // the generators' starts are compared
			m.StartedAt = m.Axis(clock.System).At(boot).UTC()
		}
	})
	return err // the tool continues; the caller decides
}

// Signal sends a signal to the tool and all of its children.
func (p *Process) Signal(sig syscall.Signal) error {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		p.asked = true
		p.Terminated = p.Terminated || sig == syscall.SIGTERM
	}
	if err := unix.Kill(-p.Cmd.Process.Pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal the benchmark tool: %w", err)
	}
	return nil
}

// renewReserve is the interval for reserving space for the tool's output.
const renewReserve = 500 * time.Millisecond

// Wait waits for the tool's end and writes it to run.json. It returns the exit status, 128+n for
// signal n, and an error if the end could not be written. Meanwhile it passes signals on to the
// tool.
func (p *Process) Wait(signals <-chan os.Signal) (int, error) {
	done := make(chan error, 1)
	go func() { done <- p.Cmd.Wait() }()
	renew := time.NewTicker(renewReserve)
	defer renew.Stop()
	for {
		select {
		case <-renew.C:
			for _, r := range p.reserved {
				r.Renew()
			}
		case sig := <-signals:
			if s, ok := sig.(syscall.Signal); ok {
				_ = p.Signal(s) // it may have just ended
			}
		case err := <-done:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return 125, fmt.Errorf("wait for the benchmark tool: %w", err)
			}
			return p.ended(p.Cmd.ProcessState.Sys().(syscall.WaitStatus), signals)
		}
	}
}

func (p *Process) ended(status syscall.WaitStatus, signals <-chan os.Signal) (int, error) {
	boot := clock.System.Boot()
	code := status.ExitStatus()
	lost := p.releaseReserve()
	p.callOnEnd(signals)
	p.end = func(m *rundir.Meta) {
		now := m.Axis(clock.System).At(boot).UTC()
		m.EndedAt = &now
		if status.Signaled() {
			m.Signal = unix.SignalName(status.Signal())
		} else {
			m.ExitCode = &code
		}
		m.OutputLost = m.OutputLost || lost
		m.Conclude(rundir.Output{})
		if p.asked && m.Outcome == rundir.Failed {
			m.Outcome = rundir.Interrupted
		}
	}
	err := p.record()
	if status.Signaled() {
		return 128 + int(status.Signal()), err
	}
	return code, err
}

func (p *Process) callOnEnd(signals <-chan os.Signal) {
	if p.OnEnd == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.OnEnd(ctx)
	}()
	for {
		select {
		case <-done:
			return
		case <-signals:
			stop()
		}
	}
}

// releaseReserve releases the space that the tool did not need, and reports whether there was too
// little.
func (p *Process) releaseReserve() (lost bool) {
	for _, r := range p.reserved {
		r.Renew()
		lost = lost || r.Lost()
		_ = r.Close(p.dir) // a remaining reserve costs space, but no output
	}
	p.reserved = nil
	return lost
}

// record writes the tool's end to run.json.
func (p *Process) record() error {
	_, err := p.dir.Update(p.end)
	return err
}

// recordPatience is how long RecordAgain tries, for instance until a full disk has space again.
const recordPatience = 30 * time.Second

// RecordAgain tries to write the tool's end to run.json until it succeeds, recordPatience is over
// or a signal arrives, and reports whether it succeeded. Otherwise an agent later discovers the
// end, but not the exit status.
func (p *Process) RecordAgain(signals <-chan os.Signal) bool {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	patience := time.After(recordPatience)
	for {
		select {
		case <-tick.C:
			if p.record() == nil {
				return true
			}
		case <-patience:
			return false
		case <-signals:
			return false
		}
	}
}

// Pipe copies a tool's output from r to the directory's stdout file and to show, until r ends or
// ctx is done. It never stops reading because of a full disk or a closed terminal, since the tool
// must not be blocked. It returns the first error at the end.
func Pipe(ctx context.Context, dir rundir.Directory, r io.Reader, show io.Writer) error {
	out, err := dir.OpenOutput(rundir.StdoutFile)
	if err != nil {
		return err
	}
	defer out.Close()
	read := make(chan error, 1)
	go func() { read <- pump(r, out, show) }() // ends with r, or with the process
	select {
	case err = <-read:
	case <-ctx.Done():
		err = ctx.Err()
	}
	boot := clock.System.Boot()
	_, updateErr := dir.Update(func(m *rundir.Meta) {
		now := m.Axis(clock.System).At(boot).UTC()
		m.EndedAt = &now
		m.OutputLost = errors.Is(err, errWrite)
		if errors.Is(err, context.Canceled) {
			m.Outcome = rundir.Interrupted
		}
		m.Conclude(rundir.Output{}) // until the output has been read to its end
	})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, updateErr)
}

// errWrite is wrapped by errors of pump that lose output.
var errWrite = errors.New("write the tool's output")

func pump(r io.Reader, out, show io.Writer) error {
	buf := make([]byte, 64<<10)
	var first error
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := out.Write(buf[:n]); werr != nil && first == nil {
				first = fmt.Errorf("%w: %w", errWrite, werr)
			}
			if show != nil {
				if _, werr := show.Write(buf[:n]); werr != nil {
					show = nil // the terminal is gone, recording continues
				}
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && first == nil {
				first = fmt.Errorf("read the tool's output: %w", err)
			}
			return first
		}
	}
}
