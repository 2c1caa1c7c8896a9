package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/longrun"
)

// TestMemoryOfLongRuns guards that commands that read a run, and the agent that shows it, need no more memory for a run
// ten times as long.
func TestMemoryOfLongRuns(t *testing.T) {
	data := t.TempDir()
	for _, r := range []longrun.Run{{ID: "short", Intervals: 10_000, Ticks: 1000, Targets: 1}, {ID: "long", Intervals: 100_000, Ticks: 10_000, Targets: 1}} {
		if _, err := r.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"report"}, {"compare", "--format=html", "short"}, {"export", "--format=csv"}, {"export", "--format=csv", "--servers"}, {"export"}, {"page"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			peak := peakOfCommand
			if args[0] == "page" {
				peak = peakOfPage
			}
			short, long := peak(t, data, "short", args), peak(t, data, "long", args)
			if long > short*3/2 {
				t.Errorf("%d MiB, of a tenth of the run %d MiB", long>>10, short>>10)
			}
		})
	}
}

// peakOfCommand returns the peak resident memory of a command, in KiB.
func peakOfCommand(t *testing.T, data, run string, args []string) int64 {
	cmd := exec.Command("benchwatch", append(args, run, "--data-dir="+data)...)
	var messages bytes.Buffer
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOGC=50"), &messages
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, &messages)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
}

// peakOfPage returns the peak of an agent whose page shows a run, whole and in part.
func peakOfPage(t *testing.T, data, run string, _ []string) int64 {
	t.Helper()
	own := t.TempDir()
	if err := os.MkdirAll(rundir.Root(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(string(rundir.At(data, run)), filepath.Join(rundir.Root(own), run)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("benchwatch", "agent", "--data-dir="+own, "--web.listen-address=127.0.0.1:0")
	cmd.Env = append(os.Environ(), "GOGC=50")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	address := ""
	for deadline := time.Now().Add(30 * time.Second); address == "" && time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if info, ok := rundir.Agent(own); ok {
			address = info.Address
		}
	}
	for _, query := range []string{"", "?from=1000&to=1100"} {
		res, err := http.Get(fmt.Sprintf("http://%s/api/runs/%s/history%s", address, run, query))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v: %s", res.StatusCode, err, body)
		}
		if query != "" && !bytes.Contains(body, []byte(`"x":[999,1000,1001,1002,`)) {
			t.Errorf("a part is thinned: %.300s", body)
		}
		if spike := fmt.Sprintf(",%d,", longrun.Spike); query == "" && !bytes.Contains(body, []byte(spike)) {
			t.Error("no extreme on the page")
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kib := int64(0)
	if _, err := fmt.Sscan(peak, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
