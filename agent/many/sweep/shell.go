package sweep

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

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
