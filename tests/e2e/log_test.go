//go:build e2e

package e2e

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
)

// printed is the content of sysbench's output, read without the code under test.
type printed struct {
	intervals int
	// transactions up to the last interval line: the sum of what they printed.
	transactions float64
	// total is "transactions:" of the summary, 0 if there is none yet.
	total float64
	tps   float64
}

var (
	intervalLine = regexp.MustCompile(`(?m)^\[ \d+s \] thds: \d+ tps: ([\d.]+) `)
	totalLine    = regexp.MustCompile(`(?m)^    transactions: +(\d+) +\(([\d.]+) per sec\.\)`)
)

func readLog(t *testing.T, dataDir, id string) printed {
	t.Helper()
	data, err := os.ReadFile(rundir.At(dataDir, id).Path(rundir.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	var p printed
	for _, m := range intervalLine.FindAllSubmatch(data, -1) {
		p.intervals++
		p.transactions += number(t, m[1])
	}
	if m := totalLine.FindSubmatch(data); m != nil {
		p.total, p.tps = number(t, m[1]), number(t, m[2])
	}
	return p
}

func number(t *testing.T, text []byte) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// counted fails the test unless the agent's live counter agrees with the log. An agent that
// has just started may have no counter yet, but never a low one: Prometheus would take it
// for a reset. The log grows meanwhile, so it is read before and after. Each printed rate is
// rounded, and its interval is a second plus or minus some milliseconds.
func (a *agent) counted(t *testing.T, id string) {
	t.Helper()
	agents.Wait(t, 10*time.Second, "transactions counted", func() error {
		before := readLog(t, a.DataDir, id)
		v, err := a.Scrape(t).Value("benchwatch_run_operations_total", "run", id, "op", "transaction")
		after := readLog(t, a.DataDir, id)
		if err != nil {
			if before.intervals == 0 {
				return nil
			}
			return err
		}
		low, high := before.transactions*0.99-float64(before.intervals), after.transactions*1.01+float64(after.intervals)
		// The newest line may not have been read yet.
		if before.intervals > 0 {
			low -= before.transactions / float64(before.intervals) * 3
		}
		if after.total > 0 {
			high = max(high, after.total)
		}
		if v < low || v > high {
			t.Fatalf("run_operations_total is %g, the log has %g to %g", v, before.transactions, after.transactions)
		}
		return nil
	})
}

// summarised fails the test unless the run's summary equals the log's.
func (a *agent) summarised(t *testing.T, id string) {
	t.Helper()
	p := readLog(t, a.DataDir, id)
	if p.total == 0 {
		t.Fatalf("run %s: the log has no summary", id)
	}
	e := a.Scrape(t)
	if v := e.Must(t, "benchwatch_run_summary_operations_total", "run", id, "op", "transaction"); v != p.total {
		t.Errorf("run_summary_operations_total is %g, the log has %g", v, p.total)
	}
	if v := e.Must(t, "benchwatch_run_summary_operations_per_second", "run", id, "op", "transaction"); v != p.tps {
		t.Errorf("run_summary_operations_per_second is %g, the log has %g", v, p.tps)
	}
}
