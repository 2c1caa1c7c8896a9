package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
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
		ID: fmt.Sprintf("r%03d-t%d", i, threads), Tool: sysbench.Name, Workload: "oltp", Verb: "run", Threads: threads, Labels: map[string]string{"version": version},
		StartedAt: start, ClockStartedAt: &start, EndedAt: &end, ClosedAt: &end, Outcome: rundir.Succeeded,
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

// months are 30 runs of two kinds, of which the last 15 are a fifth slower.
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

func newReader(dataDir string) *Reader {
	return NewReader(dataDir, nil, func() tool.Set { return tool.Set{sysbench.Tool} })
}

// Runs are read once, a changed one again; what was removed is gone.
func TestRows(t *testing.T) {
	dataDir := months(t)
	r := newReader(dataDir)
	rows, older, err := r.Rows(t.Context(), Query{Newest: 40})
	if err != nil || len(rows) != 40 || older != 20 || rows[39].ID != "r029-t16" {
		t.Fatalf("%d rows, %d older, %v", len(rows), older, err)
	}
	read := 0
	count := func() bool { read++; return false }
	if _, _, err := r.Rows(t.Context(), Query{Stop: count}); err != nil || read != 20 {
		t.Errorf("%d of 20 runs are read, %v", read, err)
	}
	if err := os.Remove(rundir.At(dataDir, "r029-t16").Path(rundir.MetaFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := rundir.At(dataDir, "r028-t16").Update(func(m *rundir.Meta) { m.Outcome, m.Title = rundir.Failed, "changed" }); err != nil {
		t.Fatal(err)
	}
	read = 0
	rows, _, err = r.Rows(t.Context(), Query{Stop: count, Wanted: func(m *rundir.Meta) bool { return m.Threads == 16 }})
	if err != nil || len(rows) != 28 || read != 0 || rows[27].ID != "r027-t16" {
		t.Errorf("%d rows after changes, %d read, %v", len(rows), read, err)
	}
	if _, _, err := newReader(dataDir).Rows(t.Context(), Query{Stop: func() bool { return true }}); !errors.Is(err, ErrStopped) {
		t.Errorf("stopped: %v", err)
	}
}

// The tracker has the level after the last change, waits while a run is in progress, and
// bounds the series.
func TestTracker(t *testing.T) {
	dataDir := months(t)
	levels, dropped, err := newReader(dataDir).Levels(t.Context(), Config{Measures: []string{"tps", "tpmc"}, By: []string{"version", "tool"}, MaxSeries: 3}, func() bool { return false })
	if err != nil || len(levels) != 3 || dropped != 1 {
		t.Fatalf("%d levels, %d dropped, %v", len(levels), dropped, err)
	}
	var busy atomic.Bool
	busy.Store(true)
	checked := make(chan struct{}, 1000)
	tracker := NewTracker(TrackerOptions{
		Reader: newReader(dataDir), Log: slog.New(slog.DiscardHandler), Every: time.Millisecond,
		Config: func() Config { return Config{Measures: []string{"tps"}, MaxSeries: 10} },
		Busy:   busy.Load,
		Ended: func() (int, time.Time) {
			select {
			case checked <- struct{}{}:
			default:
			}
			return 60, begin
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { tracker.Run(ctx) })
	for range 3 {
		<-checked
	}
	if levels, _ := tracker.Levels(); len(levels) != 0 {
		t.Errorf("%d levels while a run is in progress", len(levels))
	}
	busy.Store(false)
	for levels = nil; len(levels) == 0; levels, _ = tracker.Levels() {
		<-checked
	}
	stop()
	done.Wait()
	if len(levels) != 2 {
		t.Fatalf("%d levels", len(levels))
	}
	for _, l := range levels {
		if l.Runs != 15 || !l.Change.Known || l.Change.Value > -0.19 || l.Change.Value < -0.21 || l.Since.Sub(begin) < 300*time.Hour || len(l.Facts) != 4 {
			t.Errorf("%+v", l)
		}
	}
}

func TestCheck(t *testing.T) {
	for want, c := range map[string]Config{
		"": {Measures: []string{"tps", "p99.9"}, By: []string{"tool_version", "team"}}, "no measure speed": {Measures: []string{"speed"}},
		"metrics themselves": {By: []string{"measure"}}, "letters": {By: []string{"a-b"}},
	} {
		if err := c.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
