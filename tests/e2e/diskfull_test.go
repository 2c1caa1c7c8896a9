//go:build e2e

package e2e

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
)

// The disk with the run directory is full from the middle of the run until after its end.
// The tool continues and keeps its exit status; the agent counts the failures, logs them
// without flooding the log, and closes the run when there is space again.
func TestDiskFull(t *testing.T) {
	const id = "disk-full"
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("can't mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	a := startAgent(t, env.Targets())
	a.Kill(t)
	a.DataDir = filepath.Join(disk, "data")
	config, err := os.ReadFile(a.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(config), "\n")
	write(t, a.Config, "data_dir: "+a.DataDir+"\n"+rest)
	a.Again(t)

	wrapper := a.Run(t, id, env.Load(8)...)
	a.reports(t, id, 2)
	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	agents.Wait(t, 20*time.Second, "failures counted", func() error {
		v, err := a.Scrape(t).Value("benchwatch_run_record_failures_total", "run", id)
		if err == nil && v == 0 {
			err = errors.New("none")
		}
		return err
	})
	select {
	case <-wrapper.Exited:
		t.Fatal("benchwatch run has ended with the disk")
	default:
	}
	// The end of the tool, found without the agent.
	meta := a.Meta(t, id)
	agents.Wait(t, 30*time.Second, "the tool has ended", func() error {
		if err := syscall.Kill(meta.PID, 0); !errors.Is(err, syscall.ESRCH) {
			return errors.New("still runs")
		}
		return nil
	})
	if _, err := agents.Get("http://" + a.Address + "/metrics"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if status := wrapper.Status(t, 60*time.Second); status != 0 {
		t.Errorf("benchwatch run exited with %d", status)
	}
	if meta := a.Closed(t, id, 60*time.Second); meta.ExitCode == nil || *meta.ExitCode != 0 || meta.Outcome != rundir.Succeeded {
		t.Errorf("run.json: exit code %v, result %q", meta.ExitCode, meta.Outcome)
	}
	if n := strings.Count(a.Output(t), "the disk is nearly full"); n == 0 || n > 6 {
		t.Errorf("the log reports the full disk %d times", n)
	}
	// The tool's output is whole, up to its summary, and the gap of the servers is marked.
	out, err := exec.Command(a.Binary, "report", "--data-dir="+a.DataDir, "--format=markdown", id).Output()
	if err != nil || !strings.Contains(string(out), "the disk is nearly full") {
		t.Errorf("%v: %s", err, out)
	}
	if output, err := os.ReadFile(filepath.Join(a.DataDir, "runs", id, rundir.StdoutFile)); err != nil || !strings.Contains(string(output), "95th percentile:") {
		t.Errorf("%v: the output ends with %q", err, output[max(0, len(output)-200):])
	}
}

// fill writes until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
