//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// process is a program that a test started. Its output is in a file, and it ends with the
// test at the latest.
type process struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
}

func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), filepath.Base(name)+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := &process{cmd: exec.Command(name, args...), log: log.Name(), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := servers.StartAttached(p.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the tests look at ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill(t)
		if t.Failed() {
			t.Logf("%s printed:\n%s", filepath.Base(name), p.output(t))
		}
	})
	return p
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	<-p.exited
}

// status waits for the end and returns the exit status.
func (p *process) status(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatalf("%s is still running after %s", p.cmd.Path, limit)
		return -1
	}
}

func (p *process) output(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// agent is a `benchwatch agent` that can be started again.
type agent struct {
	*process
	config  string
	dataDir string
	address string
}

// startAgent starts an agent with a new data directory. more is added to its configuration.
func startAgent(t *testing.T, more string) *agent {
	t.Helper()
	dir := t.TempDir()
	a := &agent{config: filepath.Join(dir, "benchwatch.yml"), dataDir: filepath.Join(dir, "data"), address: freeAddress(t)}
	text := fmt.Sprintf("data_dir: %s\nsample_interval: 1s\n%s", a.dataDir, more)
	if err := os.WriteFile(a.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a.again(t)
	return a
}

// again starts the agent again after kill.
func (a *agent) again(t *testing.T) {
	t.Helper()
	a.process = start(t, env.binary, "agent", "--config.file="+a.config, "--web.listen-address="+a.address)
	wait(t, 10*time.Second, "agent ready", func() error {
		_, err := get("http://" + a.address + "/-/ready")
		return err
	})
}

// clusterTargets returns the part of a configuration that names the nodes.
func clusterTargets() string {
	var b strings.Builder
	b.WriteString("targets:\n")
	for n := 1; n <= nodes; n++ {
		fmt.Fprintf(&b, "  - {name: n%d, engine: mysql, cluster: e2e, address: '%s', user: monitor, password_file: %s/monitor.password}\n",
			n, env.cluster.Address(n), env.cluster.Dir)
	}
	return b.String()
}

// run starts `benchwatch run` on the agent's data directory and waits until the
// agent reports the run.
func (a *agent) run(t *testing.T, id string, command ...string) *process {
	t.Helper()
	args := append([]string{"run", "--config.file=" + a.config, "--run-id=" + id, "--"}, command...)
	p := start(t, env.binary, args...)
	t.Cleanup(func() {
		// The tool outlives a killed wrapper, but must not disturb the next test.
		if meta, err := rundir.At(a.dataDir, id).Load(); err == nil && !meta.Ended() && meta.PID > 0 {
			_ = syscall.Kill(meta.PID, syscall.SIGKILL)
		}
	})
	wait(t, 10*time.Second, "run live", func() error {
		_, err := a.scrape(t).value("benchwatch_run_active", "run", id)
		return err
	})
	return p
}

// meta reads run.json.
func (a *agent) meta(t *testing.T, id string) rundir.Meta {
	t.Helper()
	meta, err := rundir.At(a.dataDir, id).Load()
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// closed waits until the run is over, drain included, and returns its facts.
func (a *agent) closed(t *testing.T, id string, limit time.Duration) rundir.Meta {
	t.Helper()
	var meta rundir.Meta
	wait(t, limit, "run "+id+" closed", func() (err error) {
		if meta, err = rundir.At(a.dataDir, id).Load(); err != nil {
			return err
		}
		if !meta.Closed() {
			return errors.New("still open")
		}
		return nil
	})
	return meta
}
