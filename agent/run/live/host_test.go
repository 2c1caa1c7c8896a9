package live

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/host"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestHostIsRecorded guards that the load generator's CPU stands beside a run,
// also where no server is sampled, and that it is read back.
func TestHostIsRecorded(t *testing.T) {
	data := t.TempDir()
	began := time.Now().Add(-time.Second)
	dir, claim, err := rundir.Create(data, rundir.Meta{ID: "one", Tool: "sysbench", StartedAt: began})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Release)
	w := watch(t, Options{DataDir: data})
	w.until("one", "followed", func(ingest.Snapshot) bool { return true })
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for lines := 0; lines < 3; {
		select {
		case <-deadline:
			t.Fatal("nothing recorded")
		case now := <-tick.C:
			w.Frame(engine.Frame{Tick: now})
		}
		text, _ := os.ReadFile(dir.Path(host.File))
		lines = strings.Count(string(text), "\n")
	}
	w.stop()
	f, err := os.OpenFile(dir.Path(host.File), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"at":"2026-`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	v := readHistory(t, dir).Host
	if len(v.Elapsed()) < 3 || v.Cores < 1 {
		t.Fatalf("%+v", v)
	}
	for i, b := range v.Values(host.Busy) {
		if b < 0 || b > 1 || v.Elapsed()[i] < 0 || v.Elapsed()[i] > 60 {
			t.Errorf("%v at %v", b, v.Elapsed()[i])
		}
	}
}
