//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
)

// reports waits until the tool has printed n interval lines.
func (a *agent) reports(t *testing.T, id string, n int) {
	t.Helper()
	agents.Wait(t, 30*time.Second, fmt.Sprintf("%d reports", n), func() error {
		if have := readLog(t, a.DataDir, id).intervals; have < n {
			return fmt.Errorf("have %d", have)
		}
		return nil
	})
}

// gone fails the test if an ended run still has series that only live runs have.
func (a *agent) gone(t *testing.T, id string) {
	t.Helper()
	for _, name := range a.Scrape(t).Families("run", id) {
		switch {
		case strings.HasPrefix(name, "benchwatch_run_summary_"):
		case strings.HasSuffix(name, "_info"), strings.HasPrefix(name, "benchwatch_run_requested_"), name == "benchwatch_run_drain_seconds", name == "benchwatch_run_exit_code",
			name == "benchwatch_run_result", name == "benchwatch_run_start_timestamp_seconds",
			name == "benchwatch_run_end_timestamp_seconds":
		default:
			t.Errorf("an ended run still has %s", name)
		}
	}
}

// The agent is killed during a run and started again. The tool does not notice, and nothing
// is lost or counted twice.
func TestAgentKilled(t *testing.T) {
	const id, seconds = "agent-killed", 9
	a := startAgent(t, env.Targets())
	wrapper := a.Run(t, id, env.Load(seconds)...)
	a.reports(t, id, 3)
	a.counted(t, id)
	a.Kill(t)
	a.reports(t, id, 5)
	a.Again(t)
	a.counted(t, id)
	a.reports(t, id, 7)
	a.counted(t, id)
	if status := wrapper.Status(t, 60*time.Second); status != 0 {
		t.Errorf("benchwatch run exited with %d", status)
	}
	if p := readLog(t, a.DataDir, id); p.intervals < seconds-1 {
		t.Errorf("the log has %d interval lines of %d", p.intervals, seconds)
	}
	a.Closed(t, id, 30*time.Second)
	a.summarised(t, id)
	a.gone(t, id)
	wholeLines(t, rundir.At(a.DataDir, id).Path(rundir.StatusFile))
}

// wholeLines fails the test unless every line of a file is JSON.
func wholeLines(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	for line := range strings.Lines(string(data)) {
		if !json.Valid([]byte(line)) {
			bad++
		}
	}
	// The kill may have cut one line.
	if bad > 1 {
		t.Errorf("%s: %d broken lines", path, bad)
	}
}

// The wrapper is killed during a run. The tool runs to its end, and the agent reports the
// outcome.
func TestWrapperKilled(t *testing.T) {
	const id, seconds = "wrapper-killed", 7
	a := startAgent(t, env.Targets())
	wrapper := a.Run(t, id, env.Load(seconds)...)
	a.reports(t, id, 2)
	wrapper.Kill(t)
	a.reports(t, id, 5)
	a.counted(t, id)
	meta := a.Closed(t, id, 60*time.Second)
	if meta.ExitCode != nil {
		t.Errorf("exit code %d, but no process could read it", *meta.ExitCode)
	}
	if meta.Outcome != rundir.Succeeded {
		t.Errorf("result %q; the log has a summary, so it succeeded", meta.Outcome)
	}
	a.summarised(t, id)
	a.gone(t, id)
}

// The agent is stopped and continued. Tool and wrapper continue, and the agent catches up.
func TestAgentStopped(t *testing.T) {
	const id, seconds = "agent-stopped", 8
	a := startAgent(t, env.Targets())
	wrapper := a.Run(t, id, env.Load(seconds)...)
	a.reports(t, id, 2)
	a.Signal(t, syscall.SIGSTOP)
	a.reports(t, id, 5)
	a.Signal(t, syscall.SIGCONT)
	a.reports(t, id, 6)
	a.counted(t, id)
	if status := wrapper.Status(t, 60*time.Second); status != 0 {
		t.Errorf("benchwatch run exited with %d", status)
	}
	a.Closed(t, id, 30*time.Second)
	a.summarised(t, id)
}

// A tool killed in mid-run leaves no flat lines, and the run counts as failed.
func TestToolKilled(t *testing.T) {
	const id = "tool-killed"
	a := startAgent(t, env.Targets())
	wrapper := a.Run(t, id, env.Load(60)...)
	a.reports(t, id, 2)
	meta := a.Meta(t, id)
	if err := syscall.Kill(meta.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status := wrapper.Status(t, 60*time.Second); status != 128+int(syscall.SIGKILL) {
		t.Errorf("benchwatch run exited with %d, want 128+9", status)
	}
	meta = a.Closed(t, id, 30*time.Second)
	if meta.Outcome != rundir.Failed || meta.Signal == "" {
		t.Errorf("result %q, signal %q", meta.Outcome, meta.Signal)
	}
	a.gone(t, id)
}

// One Ctrl-C ends the tool, and no process is left.
func TestInterrupted(t *testing.T) {
	const id = "interrupted"
	a := startAgent(t, env.Targets())
	wrapper := a.Run(t, id, env.Load(60)...)
	a.reports(t, id, 1)
	meta := a.Meta(t, id)
	wrapper.Signal(t, syscall.SIGINT)
	if status := wrapper.Status(t, 60*time.Second); status == 0 {
		t.Error("benchwatch run exited with 0")
	}
	if err := syscall.Kill(meta.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the tool is still running: %v", err)
	}
	if meta = a.Closed(t, id, 30*time.Second); meta.Outcome != rundir.Interrupted {
		t.Errorf("result %q", meta.Outcome)
	}
}

// No secret of the configuration or of the command line is stored or served.
func TestSecretsStayIn(t *testing.T) {
	const id, secret = "secrets", "s3cret-on-the-command-line"
	a := startAgent(t, env.Targets())
	command := append(env.Load(2), "--mysql-password="+secret)
	// The password is wrong, so the tool ends at once: the agent may never see it live.
	wrapper := agents.StartCommand(t, a.Command([]string{"--run-id=" + id}, command...))
	wrapper.Status(t, 60*time.Second)
	a.Closed(t, id, 30*time.Second)
	out, err := exec.Command("grep", "-rlF", secret, a.DataDir, wrapper.Log, a.Log).Output()
	if err == nil {
		t.Errorf("the password is in %s", out)
	}
	text, err := agents.Get("http://" + a.Address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, secret) {
		t.Error("the password is in /metrics")
	}
	for _, name := range []string{"bench", "monitor"} {
		password, err := env.Cluster.Password(name)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("grep", "-rlF", password, a.DataDir, a.Log).Output(); err == nil {
			t.Errorf("the password of %s is in %s", name, out)
		}
	}
}
