package compare

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// aaLogs names a folder with real logs of sysbench, one run each, of ten minutes and more.
const aaLogs = "BENCHWATCH_AA_LOGS"

var intervalOf = regexp.MustCompile(`(?m)^\[ (\d+)s \] (thds: .*\n)`)

// TestSplitsOfRealRuns compares real runs with themselves: of 100 runs, each divided into
// its odd and its even minutes after the first two, at most 2 pairs may be called different.
// Whatever drifts or recurs over the run is in both parts.
func TestSplitsOfRealRuns(t *testing.T) {
	folder := os.Getenv(aaLogs)
	if folder == "" {
		t.Skip("set " + aaLogs + " to a folder of logs of sysbench: make aa AA_LOGS=…")
	}
	var logs []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			logs = append(logs, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(logs), func(i, j int) { logs[i], logs[j] = logs[j], logs[i] })
	pairs, judged, different := 0, 0, 0
	for _, log := range logs {
		if pairs == 100 {
			break
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		rows, ok := splitMinutes(t, text)
		if !ok {
			continue
		}
		pairs++
		c := Compare([]Group{{Name: "odd", Runs: rows[:1]}, {Name: "even", Runs: rows[1:]}}, nil)
		for _, line := range c.Lines[:1] { // the throughput
			switch s := line.Samples[1]; s.Verdict {
			case RunsDiffer, RunsApart, RunsStall:
				different++
				t.Logf("%s: %s", log, s.difference())
				judged++
			case RunsAlike, RunsUnclear:
				judged++
			}
		}
	}
	t.Logf("%d of %d pairs are called different; of %d one run each can tell", different, pairs, judged)
	if pairs < 100 {
		t.Errorf("%d logs of ten minutes and more in %s, 100 are needed", pairs, folder)
	}
	if different > 2 {
		t.Errorf("%d of %d pairs of one run each are called different, 2 at most may be", different, pairs)
	}
}

// splitMinutes returns the two parts of a log as runs.
func splitMinutes(t *testing.T, text []byte) ([]review.Row, bool) {
	t.Helper()
	begin := bytes.Index(text, []byte("Threads started!"))
	intervals := intervalOf.FindAllSubmatch(text, -1)
	if begin < 0 || len(intervals) < 600 {
		return nil, false
	}
	head := string(text[:begin]) + "Threads started!\n\n"
	parts, seconds := [2]string{head, head}, [2]int{}
	for _, m := range intervals {
		second, err := strconv.Atoi(string(m[1]))
		if err != nil || second <= 120 {
			continue
		}
		part := (second - 1) / 60 % 2
		seconds[part]++
		parts[part] += fmt.Sprintf("[ %ds ] %s", seconds[part], m[2])
	}
	var rows []review.Row
	for i, part := range parts {
		start := time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC)
		end := start.Add(time.Duration(seconds[i]) * time.Second)
		dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{
			ID:        fmt.Sprintf("part%d", i),
			Benchmark: rundir.Benchmark{Tool: sysbench.Name},
			Timing:    rundir.Timing{StartedAt: start, ClockStartedAt: &start},
			End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
			Closing:   rundir.Closing{ClosedAt: &end},
		})
		if err != nil {
			t.Fatal(err)
		}
		claim.Release()
		if err := os.WriteFile(dir.Path(rundir.StdoutFile), []byte(part), 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := record.Read(t.Context(), dir, tool.Set{sysbench.Tool})
		if err != nil {
			t.Fatal(err)
		}
		row := review.NewObservedRow(h)
		if !row.Values.Of(tool.Throughput).Known {
			t.Fatal("a part of a run has no throughput")
		}
		rows = append(rows, row)
	}
	return rows, true
}
