package agents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Agent is a `benchwatch agent` that can be restarted.
type Agent struct {
	*Process
	Binary  string
	Config  string // its configuration file
	DataDir string
	Address string
	// Env is added to the environment of the agent and of its runs.
	Env []string
	// Within is a command that starts the agent: a program with arguments, followed by the agent's
	// command line.
	Within []string
}

// New returns an agent with a new data directory, without starting it. more is added to its
// configuration.
func New(t testing.TB, binary, more string) *Agent {
	t.Helper()
	dir := t.TempDir()
	a := &Agent{Config: filepath.Join(dir, "benchwatch.yml"),
		DataDir: filepath.Join(dir, "data"), Address: FreeAddress(t), Binary: binary}
	a.Configure(t, more)
	return a
}

// Configure writes the configuration file, with more added to it.
func (a *Agent) Configure(t testing.TB, more string) {
	t.Helper()
	text := fmt.Sprintf("data_dir: %s\nsample_interval: 1s\n%s", a.DataDir, more)
	if err := os.WriteFile(a.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Again starts the agent, even after Kill, and waits until it is ready.
func (a *Agent) Again(t testing.TB) {
	t.Helper()
	a.Launch(t)
	a.Ready(t)
}

// Launch starts the agent.
func (a *Agent) Launch(t testing.TB) {
	t.Helper()
	args := append(slices.Clone(a.Within), a.Binary, "agent", "--config.file="+a.Config, "--web.listen-address="+a.Address)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(cmd.Environ(), a.Env...)
	a.Process = StartCommand(t, cmd)
}

// Ready waits until the agent answers.
func (a *Agent) Ready(t testing.TB) {
	t.Helper()
	Wait(t, time.Minute, "agent ready", func() error {
		_, err := Get("http://" + a.Address + "/-/ready")
		return err
	})
}

// Command returns a `benchwatch run` of command with these flags, in the agent's data directory.
func (a *Agent) Command(flags []string, command ...string) *exec.Cmd {
	args := slices.Concat([]string{"run", "--config.file=" + a.Config}, flags, []string{"--"}, command)
	cmd := exec.Command(a.Binary, args...)
	cmd.Env = append(cmd.Environ(), a.Env...)
	return cmd
}

// Run starts `benchwatch run` and waits until the agent reports the run.
func (a *Agent) Run(t testing.TB, id string, command ...string) *Process {
	t.Helper()
	p := StartCommand(t, a.Command([]string{"--run-id=" + id}, command...))
	t.Cleanup(func() { a.EndTool(id) })
	Wait(t, 10*time.Second, "run live", func() error {
		_, err := a.Scrape(t).Value("benchwatch_run_active", "run", id)
		return err
	})
	return p
}

// EndTool kills the tool of a run that has not ended. The tool outlives a killed wrapper, but must
// not disturb the next test.
func (a *Agent) EndTool(id string) {
	if meta, err := rundir.At(a.DataDir, id).Load(); err == nil && !meta.Ended() && meta.PID > 0 {
		_ = syscall.Kill(meta.PID, syscall.SIGKILL)
	}
}

// Meta reads run.json.
func (a *Agent) Meta(t testing.TB, id string) rundir.Meta {
	t.Helper()
	meta, err := rundir.At(a.DataDir, id).Load()
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// Closed waits until the run is over, drain included, and returns its facts.
func (a *Agent) Closed(t testing.TB, id string, limit time.Duration) rundir.Meta {
	t.Helper()
	var meta rundir.Meta
	Wait(t, limit, "run "+id+" closed", func() (err error) {
		if meta, err = rundir.At(a.DataDir, id).Load(); err != nil {
			return err
		}
		if !meta.Closed() {
			return errors.New("still open")
		}
		return nil
	})
	return meta
}
