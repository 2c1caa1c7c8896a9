package ingest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/hammerdb"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestDecode imports a database of HammerDB's jobs, twice, and while a program writes it.
func TestDecode(t *testing.T) {
	content, err := os.ReadFile("../../model/tool/hammerdb/testdata/hammer.DB")
	if err != nil {
		t.Fatal(err)
	}
	folder, data := t.TempDir(), t.TempDir()
	path := filepath.Join(folder, "hammer.DB")
	write(t, path, string(content))
	found, err := ingest.Search(folder, tool.Set{hammerdb.Tool}, nil, nil, func(string) bool { return false })
	if err != nil || len(found.Logs) != 1 {
		t.Fatalf("%v: %+v", err, found)
	}
	im := ingest.Import{DataDir: data, Log: found.Logs[0]}
	write(t, path+"-journal", "x")
	if _, err := im.Run(t.Context()); !errors.Is(err, ingest.ErrBeingWritten) {
		t.Errorf("%v", err)
	}
	if err := os.Remove(path + "-journal"); err != nil {
		t.Fatal(err)
	}
	for _, existing := range []bool{false, true} {
		made, err := im.Run(t.Context())
		if err != nil || len(made) != 3 {
			t.Fatalf("%v: %+v", err, made)
		}
		for _, m := range made {
			if m.Existing != existing {
				t.Errorf("%s: existing %v", m.Meta.ID, m.Existing)
			}
		}
		if m := made[1]; m.Part.Snapshot().Summary.Report().Values.Of(tool.NOPM).Value != 7093 || !made[0].Meta.IsPreparation() {
			t.Errorf("%+v", m.Meta)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(data, ".import-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestRunsOfALoop imports the log of a script that sets the counter's refresh rate once and starts two runs.
func TestRunsOfALoop(t *testing.T) {
	const one = "2 Virtual Users Created with Monitor VU\nVuser 1:RUNNING\n0 MariaDB tpm\n600 MariaDB tpm\n1200 MariaDB tpm\n" +
		"Vuser 1:TEST RESULT : System achieved 10 NOPM from 20 MariaDB TPM\nALL VIRTUAL USERS COMPLETE\n"
	path := filepath.Join(t.TempDir(), "loop.log")
	write(t, path, "HammerDB CLI v4.12\nTransaction Counter refresh rate set to 2\n"+one+one)
	data := t.TempDir()
	im := ingest.Import{DataDir: data, Log: ingest.Log{Path: path, Tool: hammerdb.Tool}}
	made, err := im.Run(t.Context())
	if err != nil || len(made) != 2 {
		t.Fatalf("%v: %+v", err, made)
	}
	for _, m := range made {
		h, err := record.Read(t.Context(), rundir.At(data, m.Meta.ID), tool.Set{hammerdb.Tool})
		if err != nil || h.Intervals.N != 2 || h.Intervals.Last != 4 || m.Part.Seconds != 4 {
			t.Errorf("%v: %d intervals to %v s, %v s", err, h.Intervals.N, h.Intervals.Last, m.Part.Seconds)
		}
	}
}
