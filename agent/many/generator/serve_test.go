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

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// serve returns the answer to a request.
func serve(t *testing.T, dataDir, request string) (a answer) {
	t.Helper()
	var out bytes.Buffer
	server := Server{DataDir: dataDir}
	if err := server.Serve(t.Context(), strings.NewReader(request+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestOnlyARemovedRunIsGone guards that only a removed run counts as gone, which ends its copy, and
// not a run that can't be read at the moment.
func TestOnlyARemovedRunIsGone(t *testing.T) {
	l := newLab(t, 1)
	dir := l.add(1)
	root := rundir.Root(l.dataDir)
	for _, away := range []string{root, l.dataDir, dir.Path(rundir.MetaFile)} {
		if err := os.Rename(away, away+".away"); err != nil {
			t.Fatal(err)
		}
		for _, request := range []string{`{"run":"g-g1"}`, `{"run":"g-g1","signal":15}`, `{"run":"g-g1","start_at":1}`} {
			if a := serve(t, l.dataDir, request); a.Gone || a.Error == "" {
				t.Errorf("without %s: %s: %+v", away, request, a)
			}
		}
		if err := os.Rename(away+".away", away); err != nil {
			t.Fatal(err)
		}
	}
	if err := dir.Remove(); err != nil {
		t.Fatal(err)
	}
	if a := serve(t, l.dataDir, `{"run":"g-g1"}`); !a.Gone {
		t.Errorf("%+v", a)
	}
}

// TestServeRefusesForeignRuns guards that no signal is sent to processes named by another user's
// run.
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
		ID:     "g-g1",
		Timing: rundir.Timing{StartedAt: time.Now()},
		Origin: rundir.Origin{Group: &rundir.Group{Name: "g", Generators: 1, Generator: 1, Wrapper: rundir.ThisProcess(victim.Process.Pid)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	ask := func() answer { return serve(t, data, `{"run":"g-g1","signal":15}`) }
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
	<-ended // so the signal goes to a process of this test
}
