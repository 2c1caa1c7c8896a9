package live

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// recording is the output of a tool in the tool's own tests.
type recording struct {
	path           string
	tool           *tool.Tool
	stdout, stderr []byte
}

// recordings returns the outputs in which one tool is recognised.
func recordings(t *testing.T) []recording {
	t.Helper()
	var found []recording
	err := filepath.WalkDir("../../model/tool", func(path string, d os.DirEntry, err error) error {
		match, _ := filepath.Match("../../model/tool/sysbench/testdata/*/*.txt", path)
		if err != nil || d.Name() != "stdout.txt" && !match {
			return err
		}
		r := recording{path: path}
		if r.stdout, err = os.ReadFile(path); err != nil {
			return err
		}
		if !match {
			r.stderr, _ = os.ReadFile(filepath.Join(filepath.Dir(path), "stderr.txt"))
		}
		if r.tool = registry.Tools.Sniff(append(bytes.Clone(r.stderr), r.stdout...)); r.tool != nil {
			found = append(found, r)
		}
		return nil
	})
	if err != nil || len(found) < 50 {
		t.Fatalf("%d recordings found, %v", len(found), err)
	}
	return found
}

// TestRecordingsHoweverRead guards that every recording gives the same outcome,
// counters and summary whether it is followed live by an agent that restarts in the
// middle, read from its directory, closed by another command or imported.
func TestRecordingsHoweverRead(t *testing.T) {
	all := recordings(t)
	data := t.TempDir()
	var claims []*rundir.Claim
	dirs := make([]rundir.Directory, len(all))
	appendTo := func(dir rundir.Directory, name string, text []byte) {
		f, err := dir.OpenOutput(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range all {
		dir, claim, err := rundir.Create(data, rundir.Meta{
			ID:        "r" + strconv.Itoa(i),
			Benchmark: rundir.Benchmark{Tool: r.tool.Name},
			Timing:    rundir.Timing{StartedAt: time.Now()},
		})
		if err != nil {
			t.Fatal(err)
		}
		dirs[i], claims = dir, append(claims, claim)
		appendTo(dir, rundir.StdoutFile, r.stdout[:len(r.stdout)/2])
		appendTo(dir, rundir.StderrFile, r.stderr[:len(r.stderr)/2])
	}
	opts := Options{DataDir: data, Tools: func() tool.Set { return registry.Tools }, Bounds: func() Bounds { return Bounds{MaxLive: len(all), MaxKept: len(all)} }}
	w := watch(t, opts)
	w.untilAll("followed", func(s []ingest.Snapshot) bool { return len(s) == len(all) })
	w.stop()
	for i, r := range all {
		appendTo(dirs[i], rundir.StdoutFile, r.stdout[len(r.stdout)/2:])
		appendTo(dirs[i], rundir.StderrFile, r.stderr[len(r.stderr)/2:])
	}
	w = watch(t, opts)
	w.untilAll("followed again", func(s []ingest.Snapshot) bool { return len(s) == len(all) })
	for _, c := range claims {
		c.Release()
	}
	followed := map[string]ingest.Snapshot{}
	w.untilAll("over", func(snaps []ingest.Snapshot) bool {
		for _, s := range snaps {
			followed[s.Meta.ID] = s
		}
		for _, s := range followed {
			if !over(s) {
				return false
			}
		}
		return true
	})
	w.stop()
	same := cmp.Options{cmpopts.IgnoreFields(ingest.Snapshot{}, "Meta", "Edition", "LastReport", "LastMessage"), cmpopts.EquateEmpty()}
	for i, r := range all {
		want := followed[dirs[i].ID()]
		read, err := ingest.Read(t.Context(), dirs[i], tool.Set{r.tool})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, read, same); d != "" {
			t.Errorf("%s: read again:\n%s", r.path, d)
		}
		orphan, claim, err := rundir.Create(t.TempDir(), rundir.Meta{
			ID:        "r",
			Benchmark: rundir.Benchmark{Tool: r.tool.Name},
			Timing:    rundir.Timing{StartedAt: time.Now()},
		})
		if err != nil {
			t.Fatal(err)
		}
		claim.Release()
		appendTo(orphan, rundir.StdoutFile, r.stdout)
		appendTo(orphan, rundir.StderrFile, r.stderr)
		closed, err := CloseOrphan(t.Context(), orphan, tool.Set{r.tool})
		if err != nil || closed.Outcome != want.Meta.Outcome || closed.Reason != want.Meta.Reason {
			t.Errorf("%s: %s (%s) as an orphan, want %s (%s), %v", r.path, closed.Outcome, closed.Reason, want.Meta.Outcome, want.Meta.Reason, err)
		}
		if len(r.stderr) > 0 && want.MessageCount > 0 {
			continue // how 2>&1 would have mixed the messages with the output was not recorded
		}
		log := filepath.Join(t.TempDir(), "log")
		write(t, log, string(r.stderr)+string(r.stdout))
		im := ingest.Import{DataDir: t.TempDir(), Log: ingest.Log{Path: log, Tool: r.tool}}
		runs, err := im.Run(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", r.path, err)
		}
		if len(runs) > 1 {
			continue // as one run directory it is a run of several parts
		}
		if m := runs[0].Meta; m.Outcome != want.Meta.Outcome || m.Reason != want.Meta.Reason {
			t.Errorf("%s: %s (%s) when imported, want %s (%s)", r.path, m.Outcome, m.Reason, want.Meta.Outcome, want.Meta.Reason)
		}
		if d := cmp.Diff(want, runs[0].Part.Snapshot(), same, cmpopts.IgnoreFields(ingest.Snapshot{}, "Lines")); d != "" {
			t.Errorf("%s: imported:\n%s", r.path, d)
		}
	}
}
