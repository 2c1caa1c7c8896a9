package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// said is the answer of another machine.
type said News

func (s said) News(context.Context, string, *Have) (News, error) { return News(s), nil }

func (s said) List(context.Context, time.Duration) (List, error) { return List{}, nil }

// TestCopyNamesNothingOfThisMachine guards that a copy of any run names no log file and no process
// that would be used here.
func TestCopyNamesNothingOfThisMachine(t *testing.T) {
	for _, peer := range []bool{false, true} {
		data := t.TempDir()
		self := rundir.ThisProcess(os.Getpid())
		meta, err := json.Marshal(rundir.Meta{
			ID:      "g-g1",
			Timing:  rundir.Timing{StartedAt: time.Now()},
			Process: rundir.Process{PID: self.PID, PIDStartTicks: self.StartTicks, BootID: self.BootID},
			Origin:  rundir.Origin{Log: &rundir.LogSource{Path: "/etc/shadow"}, Group: &rundir.Group{Name: "g", Generators: 1, Generator: 1, Wrapper: self}},
		})
		if err != nil {
			t.Fatal(err)
		}
		m := &Mirror{Dir: rundir.At(data, "g-g1"), From: rundir.Mirror{Host: "h", Peer: peer}, Files: Outputs}
		if _, err := m.Update(t.Context(), said{Meta: meta}); err != nil {
			t.Fatal(err)
		}
		got, err := m.Dir.Load()
		if err != nil || got.Log != nil || got.Group.Wrapper != nil || got.ToolAlive() {
			t.Errorf("peer %t: %v %+v", peer, err, got)
		}
	}
}

// TestRefused guards that content which no run has ends a copy with a reason, and that a run with
// the same name that is not a copy stays as it is.
func TestRefused(t *testing.T) {
	run := func(id string) json.RawMessage {
		text, err := json.Marshal(rundir.Meta{ID: id, Timing: rundir.Timing{StartedAt: time.Now()}})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, news := range map[string]News{
		"another run":     {Meta: run("other")},
		"a path":          {Meta: run("r"), Files: Parts{{Name: "../x", Data: []byte("x\n")}}},
		"an unknown file": {Meta: run("r"), Files: Parts{{Name: ".connection.json", Data: []byte("x\n")}}},
		"no run":          {Meta: json.RawMessage(`[]`)},
		"a group of more generators than there are": {Meta: json.RawMessage(`{"id":"r","group":{"name":"r","generators":2000000000}}`)},
		"a group elsewhere":                         {Meta: json.RawMessage(`{"id":"r","group":{"name":"../../etc/r","generators":1}}`)},
	} {
		data := t.TempDir()
		m := &Mirror{Dir: rundir.At(data, "r"), From: rundir.Mirror{Host: "h"}, Files: Outputs}
		if _, err := m.Update(t.Context(), said{Meta: run("r")}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Update(t.Context(), said(news)); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if err := m.Abandon("refused"); err != nil {
			t.Fatal(err)
		}
		if meta, err := m.Dir.Load(); err != nil || meta.Outcome != rundir.Lost || meta.Reason != "refused" {
			t.Errorf("%s: %v %+v", name, err, meta)
		}
		found, err := filepath.Glob(filepath.Join(data, "*"))
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %q", name, found)
		}
	}
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{ID: "own", Timing: rundir.Timing{StartedAt: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	m := &Mirror{Dir: dir, From: rundir.Mirror{Host: "h"}}
	if err := m.Abandon("refused"); err != nil {
		t.Fatal(err)
	}
	if meta, err := dir.Load(); err != nil || meta.Ended() {
		t.Errorf("a run of this machine was ended: %v %+v", err, meta)
	}
}

// TestAbandonDecidesNoOutcome guards that the outcome is decided in one place, even for a copy that
// gets no more data: a known exit status counts.
func TestAbandonDecidesNoOutcome(t *testing.T) {
	at, code := time.Now().UTC(), 7
	for name, c := range map[string]struct {
		meta   rundir.Meta
		want   rundir.Outcome
		reason string
	}{
		"running": {rundir.Meta{}, rundir.Lost, "the reason"},
		"failed":  {rundir.Meta{End: rundir.End{EndedAt: &at, ExitCode: &code}}, rundir.Failed, "exit status 7"},
		"aborted": {rundir.Meta{End: rundir.End{EndedAt: &at, Aborted: "lag>10s"}}, rundir.Aborted, "lag>10s"},
	} {
		c.meta.ID, c.meta.StartedAt = "r", at
		meta, err := json.Marshal(c.meta)
		if err != nil {
			t.Fatal(err)
		}
		m := &Mirror{Dir: rundir.At(t.TempDir(), "r"), From: rundir.Mirror{Host: "h"}, Files: Outputs}
		if _, err := m.Update(t.Context(), said{Meta: meta}); err != nil {
			t.Fatal(err)
		}
		if err := m.Abandon("the reason"); err != nil {
			t.Fatal(err)
		}
		if got, err := m.Dir.Load(); err != nil || !got.Closed() || got.Outcome != c.want || got.Reason != c.reason {
			t.Errorf("%s: %v, %s: %s", name, err, got.Outcome, got.Reason)
		}
	}
}

// TestManyEmptyParts guards that a short text does not become a large list.
func TestManyEmptyParts(t *testing.T) {
	var n News
	if err := json.Unmarshal([]byte(`{"files":[`+strings.Repeat("{},", 1000)+`{}]}`), &n); err == nil || len(n.Files) > maxFiles {
		t.Errorf("%d files, %v", len(n.Files), err)
	}
	if err := json.Unmarshal([]byte(`{"files":[{"name":"stdout.log","data":"eA=="}]}`), &n); err != nil || len(n.Files) != 1 || string(n.Files[0].Data) != "x" {
		t.Errorf("%+v, %v", n.Files, err)
	}
}
