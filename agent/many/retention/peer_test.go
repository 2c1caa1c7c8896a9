package retention

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/peer"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestBesidePeer guards that an agent which copies runs while they are removed has each of them whole or not at all, and
// that the run in progress goes on. The copies stay as long as the peer would send them again.
func TestBesidePeer(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	now := time.Now().UTC()
	content := bytes.Repeat([]byte("a line of the tool\n"), 1<<16) // several parts
	record := func(id string, closed *time.Time) rundir.Directory {
		m := rundir.Meta{ID: id, Process: rundir.Process{Generator: "there"}, Timing: rundir.Timing{StartedAt: now.Add(-time.Hour)}}
		if closed != nil {
			m.Closing, m.End = rundir.Closing{ClosedAt: closed}, rundir.End{EndedAt: closed, Outcome: rundir.Succeeded}
		}
		writeRun(t, there, &m, 0)
		dir := rundir.At(there, id)
		must(t, os.WriteFile(dir.Path(rundir.StdoutFile), content, 0o600))
		return dir
	}
	const closedRuns, kept = 20, 4
	for i := range closedRuns {
		closed := now.Add(time.Duration(i-closedRuns) * time.Minute)
		record("r"+strconv.Itoa(100+i), &closed)
	}
	live := record("live", nil)
	copyRuns(t, there, here)

	copied := func(id string) bool { _, err := rundir.At(here, id).Load(); return err == nil }
	eventually(t, "the first copy", func() bool { return copied("r119") || copied("r100") || copied("live") })
	plan, err := New(context.Background(), Options{DataDir: there, Rule: Rule{MaxCount: kept}, Now: now})
	must(t, err)
	must(t, plan.Remove(context.Background(), func(Run) {}))
	if ids, err := rundir.List(there); err != nil || len(ids) != kept+1 {
		t.Errorf("%s are left there: %v", ids, err)
	}

	_, err = live.Update(func(m *rundir.Meta) { m.EndedAt, m.ClosedAt, m.Outcome = &now, &now, rundir.Succeeded })
	must(t, err)
	ended := func(id string) func() bool {
		return func() bool { m, err := rundir.At(here, id).Load(); return err == nil && m.Closed() }
	}
	for _, id := range []string{"live", "r116", "r117", "r118", "r119"} {
		eventually(t, "the copy of "+id, ended(id))
	}
	ids, err := rundir.List(here)
	must(t, err)
	for _, id := range ids {
		m, err := rundir.At(here, id).Load()
		got, readErr := os.ReadFile(rundir.At(here, id).Path(rundir.StdoutFile))
		if err != nil || readErr != nil || m.Outcome != rundir.Succeeded || !bytes.Equal(got, content) {
			t.Errorf("%s: outcome %s, %d bytes of %d, %v, %v", id, m.Outcome, len(got), len(content), err, readErr)
		}
	}

	rule := Options{DataDir: here, Rule: Rule{MaxAge: time.Second}, CopiedFor: time.Hour, Now: time.Now()}
	if plan, err = New(context.Background(), rule); err != nil || plan.Count() > 0 {
		t.Errorf("%d copies are to be removed that the peer would send again: %v", plan.Count(), err)
	}
	rule.Now = rule.Now.Add(2 * time.Hour)
	if plan, err = New(context.Background(), rule); err != nil || plan.Count() != len(ids) {
		t.Errorf("%d of %d copies are to be removed: %v", plan.Count(), len(ids), err)
	}
}

// copyRuns copies the runs of a data directory over HTTP until the test ends.
func copyRuns(t *testing.T, from, to string) {
	t.Helper()
	server := &peer.Server{DataDir: from, Output: func() bool { return true }, Runs: func() (all []ingest.Snapshot) {
		ids, _ := rundir.List(from)
		for _, id := range ids {
			if m, err := rundir.At(from, id).Load(); err == nil {
				all = append(all, ingest.Snapshot{Meta: m})
			}
		}
		return all
	}}
	mux := http.NewServeMux()
	server.Register(mux)
	serving := httptest.NewServer(mux)
	set := peer.NewSet(to, slog.New(slog.DiscardHandler))
	set.Update([]peer.Config{{Name: "there", URL: serving.URL, Output: true, MaxAge: time.Hour}})
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { set.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait(); serving.Close() })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for patience := time.After(time.Minute); !holds(); {
		select {
		case <-tick.C:
		case <-patience:
			t.Fatal("waited in vain for " + what)
		}
	}
}
