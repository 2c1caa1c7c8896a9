package generator

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/rundir"
)

// TestServeRefusesForeignRuns: the run of another user names the processes that a signal
// is sent to.
func TestServeRefusesForeignRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a directory away")
	}
	victim := exec.Command("sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = victim.Wait(); close(ended) }()
	t.Cleanup(func() { _ = victim.Process.Kill(); <-ended })
	data := t.TempDir()
	dir, claim, err := rundir.Create(data, rundir.Meta{
		ID: "g-g1", StartedAt: time.Now(), Group: &rundir.Group{Name: "g", Generators: 1, Generator: 1, Wrapper: rundir.ThisProcess(victim.Process.Pid)},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	ask := func() answer {
		var out bytes.Buffer
		server := Server{DataDir: data}
		if err := server.Serve(t.Context(), strings.NewReader(`{"run":"g-g1","signal":15}`+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		var a answer
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if err := os.Chown(string(dir), 47603, 47603); err != nil {
		t.Fatal(err)
	}
	if a := ask(); !strings.Contains(a.Error, "belongs to another user") {
		t.Errorf("%+v", a)
	}
	if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
		t.Error("the process was ended")
	}
	if err := os.Chown(string(dir), 0, 0); err != nil {
		t.Fatal(err)
	}
	if a := ask(); a.Error != "" {
		t.Errorf("%+v", a)
	}
	<-ended // so the signal is sent to an own one
}
