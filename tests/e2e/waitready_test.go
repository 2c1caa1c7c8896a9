//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/tests/e2e/galera"
)

// A run with --wait-ready begins only after a node that was desynced is a full member again.
func TestWaitReady(t *testing.T) {
	waitSynced(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "benchwatch.yml")
	var targets strings.Builder
	for n := 1; n <= galera.Nodes; n++ {
		fmt.Fprintf(&targets, "  - {name: n%d, engine: mysql, cluster: e2e, address: '%s', user: monitor, password_file: %s/monitor.password}\n", n, env.Cluster.Address(n), env.Cluster.Dir)
	}
	write(t, config, fmt.Sprintf("data_dir: %s/data\nsample_interval: 1s\ntargets:\n%s", dir, targets.String()))

	sql(t, 3, "SET GLOBAL wsrep_desync = ON")
	desynced := true
	sync := func() {
		if desynced {
			sql(t, 3, "SET GLOBAL wsrep_desync = OFF")
			desynced = false
		}
	}
	t.Cleanup(sync)
	run := func(options ...string) *exec.Cmd {
		args := append([]string{"run", "--config.file=" + config, "--wait-ready", "--linger=0s", "--web.listen-address=127.0.0.1:0"}, options...)
		return exec.Command(env.Binary, append(append(args, "--"), env.Load(1)...)...)
	}
	out, err := run("--drain-timeout=3s", "--run-id=late").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the servers are not ready: n3 is donor or desynced\n") {
		t.Errorf("%v\n%s", err, out)
	}
	p := agents.StartCommand(t, run("--run-id=ready"))
	agents.Wait(t, 30*time.Second, "the wait for n3", func() error {
		if text := p.Output(t); !strings.Contains(text, "waiting: n3 is donor or desynced") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	synced := time.Now()
	sync()
	if status := p.Status(t, time.Minute); status != 0 {
		t.Fatalf("exit status %d\n%s", status, p.Output(t))
	}
	meta, err := rundir.At(filepath.Join(dir, "data"), "ready").Load()
	must(t, err)
	if meta.StartedAt.Before(synced.Truncate(time.Millisecond)) || meta.Outcome != rundir.Succeeded {
		t.Errorf("began %v, n3 was told to sync at %v; %s", meta.StartedAt, synced, meta.Outcome)
	}
	if _, err := rundir.At(filepath.Join(dir, "data"), "late").Load(); err == nil {
		t.Error("the run that was not ready has a directory")
	}
}
