package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/report"
	"github.com/benchwatch/benchwatch/agent/sweep"
)

// hook runs a shell command with the step's values put in, each quoted, and in
// the environment as SWEEP_name.
func (r *sweepRunner) hook(ctx context.Context, log io.Writer, name, command string, step *sweep.Step) error {
	if command == "" {
		return nil
	}
	quoted := map[string]string{}
	env := append(os.Environ(), "SWEEP_ID="+r.sweep.ID, "SWEEP_RUN="+step.RunID)
	for k, v := range step.Values {
		quoted[k] = shellWord(v)
		env = append(env, "SWEEP_"+strings.ToUpper(k)+"="+v)
	}
	said := &lastLines{}
	cmd := exec.CommandContext(ctx, "sh", "-c", sweep.Fill(command, quoted))
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = io.MultiWriter(log, said), io.MultiWriter(log, said)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second // what it left running may hold its output open
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // a daemon that it started
	}
	if err != nil {
		return fmt.Errorf("--%s: %s", name, said.text(err))
	}
	return nil
}

// shellWord quotes a value for sh unless it needs no quotes.
func shellWord(v string) string {
	if v != "" && strings.Trim(v, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:=,@%+") == "" {
		return v
	}
	return "'" + strings.ReplaceAll(v, "'", `'\''`) + "'"
}

// lastLines keeps the end of what a program prints, for its error message.
type lastLines struct{ tail []byte }

func (l *lastLines) Write(p []byte) (int, error) {
	const kept = 2000
	l.tail = append(l.tail, p...)
	if n := len(l.tail) - kept; n > 0 {
		l.tail = append(l.tail[:0], l.tail[n:]...)
	}
	return len(p), nil
}

// text is the last line, an error of ours before others, with the exit status.
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
	return report.Clip(last, 300) + " (" + err.Error() + ")"
}
