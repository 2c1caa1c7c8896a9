package live

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/hammerdb"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/model/tool/ycsb"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/toollog"
)

// logging is a log file that a tool writes by itself.
type logging struct {
	t    *testing.T
	path string
	data string
}

func newLogging(t *testing.T) *logging {
	return &logging{t, filepath.Join(t.TempDir(), "bench.log"), t.TempDir()}
}

func (l *logging) append(text string) {
	l.t.Helper()
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		l.t.Fatal(err)
	}
}

func (l *logging) watch(adapt ...func(*Watcher)) *watching {
	return watch(l.t, Options{DataDir: l.data, Logs: func() []toollog.Log {
		return []toollog.Log{{Glob: filepath.Join(filepath.Dir(l.path), "*.log"), Tool: "sysbench", Labels: map[string]string{"host": "a"}}}
	}}, adapt...)
}

// hasty makes a Watcher immediately treat files that are not open as unchanged.
func hasty(w *Watcher) { w.recentLog, w.settledLog = 300*time.Millisecond, 50*time.Millisecond }

// runs waits until as many runs as totals are known and have these totals, in
// the order of the log.
func (w *watching) runs(totals ...float64) []ingest.Snapshot {
	w.t.Helper()
	var snaps []ingest.Snapshot
	w.until("", "all runs", func(ingest.Snapshot) bool {
		snaps = nil
		for _, s := range w.Snapshots() {
			if s.Meta.Log != nil {
				snaps = append(snaps, s)
			}
		}
		if len(snaps) != len(totals) {
			return false
		}
		sortByOffset(snaps)
		for i := range snaps {
			if snaps[i].Totals["transaction"] != totals[i] {
				return false
			}
		}
		return true
	})
	return snaps
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.After(30 * time.Second); !ok(); {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

func sortByOffset(snaps []ingest.Snapshot) {
	for i := range snaps {
		for j := i + 1; j < len(snaps); j++ {
			if snaps[j].Meta.Log.Offset < snaps[i].Meta.Log.Offset {
				snaps[i], snaps[j] = snaps[j], snaps[i]
			}
		}
	}
}

func TestLogOfSeveralRuns(t *testing.T) {
	l := newLogging(t)
	l.append("")
	w := l.watch()
	l.append(banner + intervalLine(1, 10))
	first := w.runs(10)[0]
	if first.Phase != ingest.Measuring || first.Meta.Labels["host"] != "a" || first.Meta.Tool != "sysbench" || first.Meta.Threads != 4 {
		t.Errorf("first run: %+v", first.Meta)
	}
	l.append(intervalLine(2, 12) + summaryText(23, 2.1) + banner + intervalLine(1, 40))
	both := w.runs(23, 40)
	if both[0].Meta.ID != first.Meta.ID {
		t.Errorf("the first run's id changed from %s to %s", first.Meta.ID, both[0].Meta.ID)
	}
	w.until(first.Meta.ID, "over", over)
	if m, err := rundir.At(l.data, first.Meta.ID).Load(); err != nil || m.Outcome != rundir.Succeeded {
		t.Errorf("first run: %+v, %v", m, err)
	}
}

// Lines that were read before a restart do not become new runs, and lines that came meanwhile are not lost.
func TestLogAfterRestart(t *testing.T) {
	l := newLogging(t)
	l.append("")
	w := l.watch()
	l.append(banner + intervalLine(1, 10))
	w.runs(10)
	l.append(summaryText(11, 1.1) + banner + intervalLine(1, 40))
	before := w.runs(11, 40)
	w.until(before[0].Meta.ID, "over", over)
	w.stop()
	l.append(intervalLine(2, 44) + summaryText(90, 2.2) + banner + intervalLine(1, 7))
	w = l.watch()
	after := w.runs(11, 90, 7)
	for i := range before {
		if after[i].Meta.ID != before[i].Meta.ID {
			t.Errorf("run %d was %s, is %s", i, before[i].Meta.ID, after[i].Meta.ID)
		}
	}
}

// An old log that is found when the agent starts is not made into runs.
func TestOldLogIsLeftAlone(t *testing.T) {
	l := newLogging(t)
	l.append(banner + intervalLine(1, 10) + summaryText(11, 1.1))
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(l.path, old, old); err != nil {
		t.Fatal(err)
	}
	var said lockedBuilder
	w := l.watch(func(w *Watcher) {
		w.opts.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	waitFor(t, "the log is found", func() bool { return strings.Contains(said.String(), "next file found") })
	l.append(banner + intervalLine(1, 5))
	s := w.runs(5)
	if s[0].Meta.Log.Offset == 0 {
		t.Error("the old run is part of the new one")
	}
}

// If a log is being written when the agent starts, the current run counts from its beginning.
func TestLiveLogIsPickedUp(t *testing.T) {
	l := newLogging(t)
	l.append(banner + intervalLine(1, 10) + summaryText(11, 1.1) + banner + intervalLine(1, 20) + intervalLine(2, 22))
	w := l.watch()
	s := w.runs(42)[0]
	if !s.Meta.StartEstimated || time.Since(s.Meta.StartedAt) < 2*time.Second {
		t.Errorf("started %s, estimated %v: want at least its two seconds ago", s.Meta.StartedAt, s.Meta.StartEstimated)
	}
}

// A complete log that appears is as old as its lines, and its run as long as the tool measured.
func TestWholeLogAppears(t *testing.T) {
	l := newLogging(t)
	w := l.watch()
	text := "2026-01-02T03:04:05Z starting\n" + banner + intervalLine(1, 10) + intervalLine(2, 12) + summaryText(23, 2.1)
	write(t, l.path+".new", text)
	if err := os.Rename(l.path+".new", l.path); err != nil {
		t.Fatal(err)
	}
	w.runs(23)
	m := w.until("", "over", over).Meta
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if length := m.EndedAt.Sub(m.StartedAt); length < 2*time.Second || length > 3*time.Second || m.StartedAt.Sub(start).Abs() > 2*time.Second {
		t.Errorf("started %s, took %s: want %s and 2.1 s", m.StartedAt, length, start)
	}
}

func TestRotatedLog(t *testing.T) {
	l := newLogging(t)
	l.append("")
	w := l.watch()
	l.append(banner + intervalLine(1, 10))
	w.runs(10)
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		t.Fatal(err)
	}
	l.append(banner + intervalLine(1, 30))
	var ids []string
	w.until("", "the new file's run", func(ingest.Snapshot) bool {
		ids = nil
		for _, s := range w.Snapshots() {
			ids = append(ids, s.Meta.ID)
		}
		return len(ids) == 2
	})
}

// TestRenamedLogIsNotReadAgain guards that a log which gets another name that the pattern matches, while no agent runs or
// while it is followed, is still the log of its run.
func TestRenamedLogIsNotReadAgain(t *testing.T) {
	for name, isStopped := range map[string]bool{"without an agent": true, "followed": false, "another log has its name": true} {
		t.Run(name, func(t *testing.T) {
			l := newLogging(t)
			l.append("")
			w := l.watch(hasty)
			l.append(banner + intervalLine(1, 10))
			first := w.runs(10)[0]
			if isStopped {
				w.stop()
			}
			other := filepath.Join(filepath.Dir(l.path), "try1.log")
			if err := os.Rename(l.path, other); err != nil {
				t.Fatal(err)
			}
			if name == "another log has its name" {
				l.append("another log\n")
			}
			l.path = other
			l.append(intervalLine(2, 12))
			if isStopped {
				w = l.watch(hasty)
			}
			if s := w.runs(22)[0]; s.Meta.ID != first.Meta.ID {
				t.Errorf("run %s continues as %s", first.Meta.ID, s.Meta.ID)
			}
			l.append(summaryText(23, 2.1))
			w.runs(23)
			w.until("", "over", over)
			l.append(banner + intervalLine(1, 7))
			w.runs(23, 7)
		})
	}
}

// TestHeldBackSummary guards that a summary which a tool's parser gives only
// when the next run begins stays with its own run, also when it is read again.
func TestHeldBackSummary(t *testing.T) {
	run := func(operations int) string {
		return fmt.Sprintf(`Command line: -db site.ycsb.BasicDB -P workloads/workloada -s -threads 4 -t
YCSB Client 0.17.0

Loading workload...
Starting test.
2026-11-21 01:44:20:100 0 sec: 0 operations; est completion in 0 second 
2026-11-21 01:44:21:100 1 sec: %[1]d operations; %[1]d current ops/sec; [READ: Count=%[1]d, Max=2, Min=0, Avg=1.00, 90=1, 99=1, 99.9=1, 99.99=1] 
[OVERALL], RunTime(ms), 1000
[OVERALL], Throughput(ops/sec), %[1]d.0
[READ], Operations, %[1]d
[READ], AverageLatency(us), 1.0
[READ], Return=OK, %[1]d
`, operations)
	}
	l := newLogging(t)
	l.append("")
	w := watch(t, Options{DataDir: l.data, Logs: func() []toollog.Log {
		return []toollog.Log{{Glob: l.path, Tool: "ycsb"}}
	}, Tools: func() tool.Set { return tool.Set{ycsb.Tool} }})
	l.append(run(100))
	w.runs(100)
	l.append(run(200))
	snaps := w.runs(100, 200)
	w.until(snaps[0].Meta.ID, "ended", over)
	meta, err := rundir.At(l.data, snaps[0].Meta.ID).Load()
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(len(run(100))); meta.Log.End != want || snaps[1].Meta.Log.Offset != want {
		t.Errorf("the first run ends at %d, the second begins at %d, want %d", meta.Log.End, snaps[1].Meta.Log.Offset, want)
	}
	w.stop()
	for i, s := range snaps {
		again, err := ingest.Read(context.Background(), rundir.At(l.data, s.Meta.ID), tool.Set{ycsb.Tool})
		if err != nil || again.Totals["transaction"] != float64(100*(i+1)) {
			t.Errorf("read again: %v, %v", again.Totals, err)
		}
	}
}

// TestEndBySilence guards that a run whose log does not show its end, such as hammerdb.log after the result, ends when the
// last line came, not when the agent had waited for more.
func TestEndBySilence(t *testing.T) {
	l := newLogging(t)
	l.append("")
	w := watch(t, Options{DataDir: l.data, Logs: func() []toollog.Log {
		return []toollog.Log{{Glob: l.path, Tool: "hammerdb"}}
	}, Tools: func() tool.Set { return tool.Set{hammerdb.Tool} }}, func(w *Watcher) { w.recentLog, w.settledLog = 2*time.Second, 50*time.Millisecond })
	text, err := os.ReadFile("../../model/tool/hammerdb/testdata/4.12/mariadb-hammerdb/stdout.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, run, _ := strings.Cut(strings.Split(string(text), "Hammerdb Log @ ")[1], "\n") // without its time, the run begins now
	l.append(run)
	last := time.Now()
	snap := w.runs(0)[0]
	w.until(snap.Meta.ID, "ended", over)
	meta, err := rundir.At(l.data, snap.Meta.ID).Load()
	if err != nil {
		t.Fatal(err)
	}
	if late := meta.EndedAt.Sub(last); meta.Outcome != rundir.Succeeded || late > time.Since(last)-2*time.Second {
		t.Errorf("%s, ended %s after the last line", meta.Outcome, late)
	}
}

// A run without a summary has the same outcome whether its log was followed, its
// directory was found after its agent died, or the log is imported later.
func TestSameOutcomeFollowedAndImported(t *testing.T) {
	for name, tt := range map[string]struct {
		rest  string
		total float64
		want  rundir.Outcome
	}{
		"an error":    {"FATAL: mysql_stmt_execute() returned error 1213\n", 10, rundir.Failed},
		"no error":    {"", 10, rundir.Lost},
		"the summary": {summaryText(11, 1.1), 11, rundir.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			text := banner + intervalLine(1, 10) + tt.rest
			l := newLogging(t)
			l.append("")
			w := l.watch(hasty)
			l.append(text)
			w.runs(tt.total)
			followed := w.until("", "over", over).Meta

			orphan, claim, err := rundir.Create(t.TempDir(), rundir.Meta{
				ID:        "orphan",
				Benchmark: rundir.Benchmark{Tool: "sysbench"},
				Timing:    rundir.Timing{StartedAt: time.Now()},
			})
			if err != nil {
				t.Fatal(err)
			}
			claim.Release()
			write(t, orphan.Path(rundir.StdoutFile), text)
			found, err := CloseOrphan(t.Context(), orphan, tool.Set{sysbench.Tool})
			if err != nil {
				t.Fatal(err)
			}

			parts, err := ingest.SplitLog(t.Context(), io.NewSectionReader(strings.NewReader(text), 0, int64(len(text))), sysbench.Tool, 0, time.Time{})
			if err != nil || len(parts) != 1 {
				t.Fatalf("%d parts, %v", len(parts), err)
			}
			imported := rundir.Meta{}
			imported.Conclude(parts[0].Feed.Output())
			for how, m := range map[string]rundir.Meta{"followed": followed, "found": found, "imported": imported} {
				if m.Outcome != tt.want || m.Reason != imported.Reason {
					t.Errorf("%s: %s (%s), want %s (%s)", how, m.Outcome, m.Reason, tt.want, imported.Reason)
				}
			}
		})
	}
}
