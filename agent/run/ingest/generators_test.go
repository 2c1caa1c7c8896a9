package ingest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Logs belong together if their paths differ in {generator} only; other parts that the
// pattern does not name distinguish runs, too.
func TestGeneratorsOf(t *testing.T) {
	pattern, err := ParsePathLabels("{engine}/*/client-{generator}.log")
	if err != nil {
		t.Fatal(err)
	}
	var logs []Log
	for _, path := range []string{"r/a/1/client-1.log", "r/a/1/client-2.log", "r/a/2/client-1.log", "r/b/1/client-1.log", "r/a/1/client-3.log", "other.log"} {
		logs = append(logs, Log{Path: path, Tool: &tool.Tool{Name: "t"}})
	}
	joined := GeneratorsOf(logs, pattern)
	if len(joined) != 4 || !slices.Equal(joined[0].Generators, []string{"r/a/1/client-2.log", "r/a/1/client-3.log"}) || len(joined[1].Generators) > 0 {
		t.Errorf("%+v", joined)
	}
}

// The run of several logs has the sum of their summaries and of their intervals; it is made
// once, and a log with two runs is refused.
func TestImportGenerators(t *testing.T) {
	data, folder := t.TempDir(), t.TempDir()
	var paths []string
	for i := range 3 {
		paths = append(paths, filepath.Join(folder, fmt.Sprint(i)))
		text := "sysbench 1.0.20\n\nNumber of threads: 2\n\nThreads started!\n\n"
		for second := range 3 {
			text += fmt.Sprintf("[ %ds ] thds: 2 tps: %d.00 qps: 100.00 (r/w/o: 100.00/0.00/0.00) lat (ms,95%%): %d.00 err/s: 0.00 reconn/s: 0.00\n", second+1, 100+i, i+1)
		}
		text += fmt.Sprintf("SQL statistics:\n    transactions:                        %d   (%d.00 per sec.)\n\nGeneral statistics:\n    total time:                          3.0000s\n    total number of events:              %[1]d\n\nThreads fairness:\n", 3*(100+i), 100+i)
		if err := os.WriteFile(paths[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	im := Import{DataDir: data, Log: Log{Path: paths[0], Tool: sysbench.Tool, Generators: paths[1:]}}
	for _, existing := range []bool{false, true} {
		made, err := im.Run(t.Context())
		if err != nil || len(made) != 1 || made[0].Existing != existing || made[0].Meta.Threads != 6 || made[0].Meta.Group.Name != made[0].Meta.ID {
			t.Fatalf("%+v, %v", made, err)
		}
		for i, m := range made[0].Meta.Group.Members {
			if m.Log != paths[i] || m.Outcome != rundir.Succeeded {
				t.Errorf("generator %d is %+v", i+1, m)
			}
		}
		snap := made[0].Part.Snapshot()
		if tps := snap.Summary.Report().Rate(tool.Transaction); tps.Value != 303 || snap.Totals[tool.Transaction] != 909 {
			t.Errorf("%+v transactions per second, %v", tps, snap.Totals)
		}
	}
	if left, err := filepath.Glob(filepath.Join(data, ".journal-*")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if ids, err := rundir.List(data); err != nil || len(ids) != 1 {
		t.Errorf("%v, %v", ids, err)
	}
	one, err := os.ReadFile(paths[2])
	if err != nil {
		t.Fatal(err)
	}
	cut, _, _ := bytes.Cut(one, []byte("SQL statistics"))
	if err := os.WriteFile(paths[2], cut, 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := im.Run(t.Context())
	if err != nil || made[0].Meta.Outcome != rundir.Failed || !strings.HasPrefix(made[0].Meta.Reason, "generator 3 was lost: ") {
		t.Errorf("with a generator that was lost: %+v, %v", made, err)
	}
	if err := os.WriteFile(paths[2], append(one, one...), 0o600); err != nil {
		t.Fatal(err)
	}
	if made, err := im.Run(t.Context()); err == nil {
		t.Errorf("two runs of one generator are %+v", made)
	}
}

// The rate that an open loop asks for is in the output, too.
func TestImportOfRate(t *testing.T) {
	im := Import{DataDir: t.TempDir(), Log: Log{Path: "../../model/tool/sysbench/testdata/1.0.20/oltp_read_write-th4-rate200.txt", Tool: sysbench.Tool}}
	made, err := im.Run(t.Context())
	if err != nil || len(made) != 1 || made[0].Meta.RatePerSecond != 200 {
		t.Errorf("%+v, %v", made, err)
	}
}
