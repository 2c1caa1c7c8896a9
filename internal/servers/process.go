package servers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// process is a background program, identified by its pid file. The file contains "PID START BOOT",
// since a pid alone may meanwhile belong to another process: nothing is signalled unless its start
// time and the machine's boot id still match.
type process string

// program is what a process executes.
type program struct {
	args []string
	env  []string // added to the caller's environment
	user *syscall.Credential
	log  string // appended to; empty: discarded
	// attached: the kernel kills the process when the caller dies.
	attached bool
}

// launcher runs functions on one thread that never ends: the kernel sends a parent death signal
// when the thread that started the child ends, not when its process does.
var launcher = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// StartAttached starts a command that the kernel kills when the caller dies.
func StartAttached(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return startOnLauncher(cmd)
}

func startOnLauncher(cmd *exec.Cmd) error {
	started := make(chan error)
	launcher() <- func() { started <- cmd.Start() }
	return <-started
}

// start runs a program in its own session and without the caller's input, so that a Ctrl-C meant
// for the caller does not reach it.
func (p process) start(prog program) error {
	path, err := lookPath(prog.args[0])
	if err != nil {
		return err
	}
	if prog.log == "" {
		prog.log = os.DevNull
	}
	log, err := os.OpenFile(prog.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(path, prog.args[1:]...)
	cmd.Env = append(environment(), prog.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: prog.user}
	launch := startOnLauncher
	if prog.attached {
		launch = StartAttached
	}
	if err := launch(cmd); err != nil {
		return fmt.Errorf("start %s: %w", prog.args[0], err)
	}
	go func() { _ = cmd.Wait() }() // reaps it; only the pid file counts
	stat, err := statOf(cmd.Process.Pid)
	if err != nil { // it has already ended; its log has the reason
		return nil
	}
	text := fmt.Sprintf("%d %d %s\n", stat.PID, stat.Starttime, bootID())
	return writeFile(string(p), text, 0o644)
}

// pid returns the process id if this very process is still running, otherwise 0. A zombie is not
// running, unless other threads of it are: they still have its ports.
func (p process) pid() int {
	pid, start, boot := p.recorded()
	if boot != bootID() {
		return 0
	}
	if stat, err := statOf(pid); err != nil || stat.Starttime != start || stat.State == "Z" && stat.NumThreads <= 1 {
		return 0
	}
	return pid
}

func (p process) recorded() (pid int, start uint64, boot string) {
	text, err := os.ReadFile(string(p))
	if err != nil {
		return 0, 0, ""
	}
	if _, err := fmt.Sscan(string(text), &pid, &start, &boot); err != nil {
		return 0, 0, ""
	}
	return pid, start, boot
}

// stopped reports whether a signal has suspended the process.
func (p process) stopped() bool {
	stat, err := statOf(p.pid())
	return err == nil && stat.State == "T"
}

var errNotRunning = errors.New("not running")

func (p process) signal(s syscall.Signal) error {
	pid := p.pid()
	if pid == 0 {
		return errNotRunning
	}
	return syscall.Kill(pid, s)
}

// stop asks the process to end, kills it after the grace period, and kills its remaining children
// in its session, such as the rsync of a state transfer.
func (p process) stop(grace time.Duration) error {
	session, _, boot := p.recorded()
	if p.signal(syscall.SIGTERM) == nil {
		_ = p.signal(syscall.SIGCONT)
		if !p.waitEnd(grace) {
			_ = p.signal(syscall.SIGKILL)
			if !p.waitEnd(10 * time.Second) {
				return fmt.Errorf("process %d does not end, not even by SIGKILL", session)
			}
		}
	}
	if session != 0 && boot == bootID() {
		killSession(session, filepath.Dir(string(p)))
	}
	if err := os.Remove(string(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (p process) waitEnd(limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return poll(ctx, func() bool { return p.pid() == 0 }) == nil
}

// killSession kills the processes of a session whose command line contains a folder. Both are
// required, since the session's number may meanwhile belong to other processes.
func killSession(session int, dir string) {
	all, err := procfs.AllProcs()
	if err != nil {
		return
	}
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil || stat.Session != session {
			continue
		}
		if line, err := p.CmdLine(); err == nil && strings.Contains(strings.Join(line, " "), dir) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}

func statOf(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

var bootID = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
})

// sbin are the folders with daemons, which an ordinary user's PATH may lack.
const sbin = "/usr/local/sbin:/usr/sbin:/sbin"

func environment() []string {
	return append(os.Environ(), "PATH="+os.Getenv("PATH")+":"+sbin)
}

// lookPath finds a program, including daemons.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, dir := range filepath.SplitList(sbin) {
		if err != nil && !strings.Contains(name, "/") {
			path, err = exec.LookPath(filepath.Join(dir, name))
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s is not installed; scripts/packages.sh installs what the servers need", name)
	}
	return path, nil
}

// run executes a program to its end. The error contains the end of its output.
func run(ctx context.Context, user *syscall.Credential, args ...string) error {
	path, err := lookPath(args[0])
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Env = environment()
	if user != nil {
		cmd.Env = append(cmd.Env, "HOME=/nonexistent")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, tail(string(out), 20))
	}
	return nil
}

// poll calls a function every 50 ms until it returns true.
func poll(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// await waits until a check of a started process succeeds. If the process ends or takes too long, the error contains the
// end of its log.
func (p process) await(ctx context.Context, limit time.Duration, log string, ready func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	gone := false
	err := poll(ctx, func() bool {
		gone = p.pid() == 0
		return gone || ready(ctx)
	})
	if err == nil && !gone {
		return nil
	}
	if gone {
		err = errors.New("did not start")
	}
	text, _ := os.ReadFile(log)
	return fmt.Errorf("%w; the end of its log:\n%s", err, tail(string(text), 15))
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// writeFile replaces a file atomically.
func writeFile(path, text string, mode fs.FileMode) error {
	if err := os.WriteFile(path+".new", []byte(text), mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
