// Package agents runs the built binary for tests from outside: agents that are killed and
// restarted, runs, and the metrics that they expose.
package agents

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/servers"
)

// Build builds a package of the repository, "." for the binary. Without flags it has no debug information, which
// takes the linker half of its time.
func Build(binary, folder string, flags ...string) error {
	root, err := servers.Repository()
	if err != nil {
		return err
	}
	if len(flags) == 0 {
		flags = []string{"-ldflags=-s -w"}
	}
	cmd := exec.Command("go", append(append([]string{"build", "-o", binary}, flags...), filepath.Join(root, folder))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return nil
}

// FreeAddress returns a loopback address that is free now.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Wait polls until check returns nil, and fails the test with its last error.
func Wait(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: not after %s: %v", what, limit, err)
		case <-tick.C:
		}
	}
}

// maxShown is the number of bytes of a process's output that a failed test shows.
const maxShown = 8 << 10

// Process is a program that a test started. It ends with the test at the latest.
type Process struct {
	Cmd *exec.Cmd
	// Log is the file with its output.
	Log string
	// Exited is closed when it has ended.
	Exited chan struct{}
}

// Start starts a program with its output in a file.
func Start(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	return StartCommand(t, exec.Command(name, args...))
}

// StartCommand starts a command. Output without a destination goes to a file.
func StartCommand(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), filepath.Base(cmd.Path)+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := &Process{Cmd: cmd, Log: log.Name(), Exited: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	if cmd.Stderr == nil {
		cmd.Stderr = log
	}
	if err := servers.StartAttached(cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // the tests look at ProcessState
		close(p.Exited)
	}()
	t.Cleanup(func() {
		p.Kill(t)
		if t.Failed() {
			text := p.Output(t)
			t.Logf("%s printed:\n%s", filepath.Base(cmd.Path), text[max(0, len(text)-maxShown):])
		}
	})
	return p
}

// Signal sends a signal unless the process has ended.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// Kill kills the process and waits for its end.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	<-p.Exited
}

// Status waits for the end and returns the exit status.
func (p *Process) Status(t testing.TB, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.Exited:
		return p.Cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatalf("%s is still running after %s", p.Cmd.Path, limit)
		return -1
	}
}

// Output returns the content of the process's log.
func (p *Process) Output(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
