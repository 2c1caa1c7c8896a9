package live

import (
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// failed is an unclosed run whose tool has ended.
func failed(t *testing.T, data, id string) rundir.Directory {
	t.Helper()
	begin, end, status := time.Now().Add(-time.Minute).UTC(), time.Now().Add(-50*time.Second).UTC(), 1
	dir, claim, err := rundir.Create(data, rundir.Meta{
		ID:        id,
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: begin},
		End:       rundir.End{EndedAt: &end, ExitCode: &status, Outcome: rundir.Failed},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	write(t, dir.Path(rundir.StdoutFile), banner+intervalLine(1, 10)+summaryText(10, 1))
	write(t, dir.Path(rundir.StderrFile), "FATAL: no such table\n")
	return dir
}

// TestOutputIsReadWhenPossible guards that a run which is found while the agent has too many files
// open is closed with what its tool printed, on both streams.
func TestOutputIsReadWhenPossible(t *testing.T) {
	data, elsewhere := t.TempDir(), t.TempDir()
	failed(t, data, "first")
	var messages lockedBuilder
	w := watch(t, Options{DataDir: data}, func(w *Watcher) { w.opts.Logger = slog.New(slog.NewTextHandler(&messages, nil)) })
	first := w.until("first", "over", over)

	dir := failed(t, elsewhere, "second")
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = min(limit.Cur, 200)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var held []*os.File
	release := func() {
		for _, f := range held {
			f.Close()
		}
		held = nil
	}
	t.Cleanup(func() {
		release()
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	})
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		held = append(held, f)
	}
	held[0].Close() // enough to find the run and to read one of its streams
	if err := os.Rename(string(dir), string(rundir.At(data, "second"))); err != nil {
		t.Fatal(err)
	}
	w.until("second", "an error", func(s ingest.Snapshot) bool { return s.Faults > 0 })
	release()

	second := w.until("second", "over", over)
	if second.Totals["transaction"] != 10 || second.Totals["transaction"] != first.Totals["transaction"] || second.Meta.Reason != "exit status 1: FATAL: no such table" ||
		second.Meta.Reason != first.Meta.Reason || second.Meta.ToolVersion != first.Meta.ToolVersion {
		t.Errorf("%v, %+v\nnot %v, %+v\n%s", second.Totals, second.Meta, first.Totals, first.Meta, messages.String())
	}
}

// TestFactsAreWrittenWhenPossible guards that a run is not closed without the facts from its output,
// if run.json can't be written when the output has been read.
func TestFactsAreWrittenWhenPossible(t *testing.T) {
	data := t.TempDir()
	dir := failed(t, data, "one")
	lock := dir.Path(".meta.lock")
	if err := errors.Join(os.Remove(lock), os.Mkdir(lock, 0o700)); err != nil {
		t.Fatal(err)
	}
	w := watch(t, Options{DataDir: data})
	w.until("one", "an error", func(s ingest.Snapshot) bool { return s.Faults > 3 && s.Totals["transaction"] == 10 })
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	w.until("one", "over", over)
	meta, err := dir.Load()
	if err != nil || !meta.Closed() || meta.ToolVersion != "1.0.20" || meta.Reason != "exit status 1: FATAL: no such table" {
		t.Errorf("%+v, %v", meta, err)
	}
}
