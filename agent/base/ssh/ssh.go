// Package ssh runs commands on other machines through the system's ssh, with the user's own
// configuration, keys and known hosts. ssh asks for nothing: without a key it fails.
package ssh

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// closeTime is how long ssh may take to end by itself.
const closeTime = time.Second

// Connection is a command that runs on another machine. One goroutine uses it, but Kill may be called
// by any.
type Connection struct {
	// In is the command's standard input, Out its standard output; a read of it can have a deadline.
	In  io.WriteCloser
	Out *os.File

	cmd     *exec.Cmd
	printed lastLines     // output of ssh on standard error
	exited  chan struct{} // the process has ended
	killed  sync.Once
}

// ErrHost is returned for what can't be the name of a machine.
var ErrHost = errors.New("is not the name of a machine")

// CheckHost returns ErrHost unless host can be the name of a machine for ssh: it is no option.
func CheckHost(host string) error {
	if host == "" || strings.HasPrefix(host, "-") || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return ErrHost
	}
	return nil
}

// Start starts ssh, named with its options by command, and runs remote in the shell of host. It does
// not wait for the connection.
func Start(command []string, host, remote string) (*Connection, error) {
	if err := CheckHost(host); err != nil {
		return nil, err
	}
	c := &Connection{exited: make(chan struct{})}
	args := append([]string{}, command[1:]...)
	args = append(args, "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o",
		"ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "--", host, remote)
	c.cmd = exec.Command(command[0], args...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end the connection
	c.cmd.Stderr = &c.printed
	c.cmd.WaitDelay = 100 * time.Millisecond // its children may keep standard error open
	var err error
	if c.In, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	var out *os.File
	if c.Out, out, err = os.Pipe(); err != nil {
		return nil, err
	}
	c.cmd.Stdout = out
	err = c.cmd.Start()
	out.Close()
	if err != nil {
		c.Out.Close()
		return nil, err
	}
	go func() {
		_ = c.cmd.Wait() // the output shows how it ended
		close(c.exited)  // Close waits for it
	}()
	return c, nil
}

// Close closes the connection. The remote command sees the end of its input.
func (c *Connection) Close() {
	c.In.Close()
	select {
	case <-c.exited:
	case <-time.After(closeTime):
	}
	c.Kill()
	<-c.exited
}

// Kill ends ssh and its local children at once.
func (c *Connection) Kill() {
	c.killed.Do(func() {
		select {
		case <-c.exited:
		default:
			_ = unix.Kill(-c.cmd.Process.Pid, unix.SIGKILL)
		}
		c.Out.Close() // a process that left its process group may have the other end open
		c.In.Close()
	})
}

// Printed returns the last line that ssh or the remote command printed on standard error; empty if
// there is none. After Close it is complete.
func (c *Connection) Printed() string { return c.printed.text() }

// Hint returns what to do about a message of ssh; empty if that is not known.
func Hint(host, printed string) string {
	switch {
	case strings.Contains(printed, "Host key verification failed"), strings.Contains(printed, "REMOTE HOST IDENTIFICATION HAS CHANGED"):
		return "check the machine's host key, then connect once manually: ssh " + host
	case strings.Contains(printed, "Permission denied"):
		return "benchwatch asks for no password: use a key or an agent that ssh " + host + " works with"
	}
	return ""
}

// lastLines keeps the end of a program's output.
type lastLines struct {
	mu   sync.Mutex
	tail []byte
}

// Write implements io.Writer.
func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const kept = 4096
	l.tail = append(l.tail, p...)
	if n := len(l.tail) - kept; n > 0 {
		l.tail = append(l.tail[:0], l.tail[n:]...)
	}
	return len(p), nil
}

// text returns the last line that may be a reason: a benchwatch there prints a hint after it.
func (l *lastLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := ""
	for line := range bytes.Lines(l.tail) {
		line := strings.TrimPrefix(strings.TrimSpace(string(line)), "benchwatch: ")
		if line != "" && !strings.HasPrefix(line, "hint: ") && !strings.HasPrefix(line, "Warning: Permanently added ") {
			last = line
		}
	}
	return last
}
