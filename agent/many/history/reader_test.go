package history

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// recordRun adds run i of a kind with this throughput.
func recordRun(t *testing.T, dataDir string, i, threads int, tps float64, version string) rundir.Directory {
	t.Helper()
	start := begin.Add(time.Duration(i)*20*time.Hour + time.Duration(threads)*time.Minute)
	end := start.Add(2 * time.Second)
	dir, claim, err := rundir.Create(dataDir, rundir.Meta{
		ID: fmt.Sprintf("r%03d-t%d", i, threads), Labels: map[string]string{"version": version},
		Benchmark: rundir.Benchmark{Tool: sysbench.Name, Workload: "oltp", Verb: "run", Threads: threads},
		Timing:    rundir.Timing{StartedAt: start, ClockStartedAt: &start},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Closing:   rundir.Closing{ClosedAt: &end},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	text := fmt.Sprintf("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: %d\n\nThreads started!\n\n", threads)
	for s := 1; s <= 2; s++ {
		text += fmt.Sprintf("[ %ds ] thds: %d tps: %.2f qps: %.2f (r/w/o: %.2f/0.00/0.00) lat (ms,95%%): 1.04 err/s: 0.00 reconn/s: 0.00\n", s, threads, tps, tps, tps)
	}
	if err := os.WriteFile(dir.Path(rundir.StdoutFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// months returns a folder with 30 runs of two kinds. The last 15 are slower by a fifth.
func months(t *testing.T) string {
	dataDir := t.TempDir()
	for i := range 30 {
		tps, version := 1000+float64(i*7%11), "1.2"
		if i >= 15 {
			tps, version = tps*0.8, "1.3"
		}
		recordRun(t, dataDir, i, 4, tps, version)
		recordRun(t, dataDir, i, 16, 4*tps, version)
	}
	return dataDir
}

// Runs are read once, and changed ones again; removed ones disappear.
func TestRows(t *testing.T) {
	dataDir := months(t)
	read := 0 // number of runs whose output was parsed
	counted := *sysbench.Tool
	counted.NewParser = func(d tool.Description) tool.Parser {
		read++
		return sysbench.Tool.NewParser(d)
	}
	r := NewReader(dataDir, nil, func() tool.Set { return tool.Set{&counted} })
	rows, older, err := r.Rows(t.Context(), Query{Newest: 40})
	if err != nil || len(rows) != 40 || older != 20 || rows[39].ID != "r029-t16" || read != 40 {
		t.Fatalf("%d rows, %d older, %d read, %v", len(rows), older, read, err)
	}
	read = 0
	if _, _, err := r.Rows(t.Context(), Query{}); err != nil || read != 20 {
		t.Errorf("%d of 20 runs are read, %v", read, err)
	}
	if err := os.Remove(rundir.At(dataDir, "r029-t16").Path(rundir.MetaFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := rundir.At(dataDir, "r028-t16").Update(func(m *rundir.Meta) { m.Outcome, m.Title = rundir.Failed, "changed" }); err != nil {
		t.Fatal(err)
	}
	read = 0
	rows, _, err = r.Rows(t.Context(), Query{Wanted: func(m *rundir.Meta) bool { return m.Threads == 16 }})
	if err != nil || len(rows) != 28 || read != 0 || rows[27].ID != "r027-t16" {
		t.Errorf("%d rows after changes, %d read, %v", len(rows), read, err)
	}
}
