package live

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/launch"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// stalling is a tool that waits for the gate, prints ten intervals, one without a transaction, and goes on after two
// seconds.
func stalling(t *testing.T, gate string) string {
	t.Helper()
	var before, after strings.Builder
	for i := 1; i <= 10; i++ {
		before.WriteString(intervalLine(i, 100))
	}
	before.WriteString(intervalLine(11, 0))
	for i := 12; i <= 14; i++ {
		after.WriteString(intervalLine(i, 100))
	}
	return script(t, banner) + "; cat " + gate + "; " + script(t, before.String()) + "; sleep 2; " + script(t, after.String())
}

// TestStallIsCaptured: the servers of a run are asked at once when it stalls, and again each second. What they said is
// recorded, explained, counted and marked.
func TestStallIsCaptured(t *testing.T) {
	data := t.TempDir()
	dir, claim, err := rundir.Create(data, rundir.Meta{ID: "one", Tool: "sysbench", StartedAt: time.Now(), Selection: &rundir.Selection{Clusters: []string{"blue"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Release)
	start, begin := fifo(t)
	gate, open := fifo(t)
	p, err := launch.Start(dir, []string{"sh", "-c", stalling(t, start) + "; cat " + gate})
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t, Options{
		DataDir: data, Topology: serversOf(twoClusters...), Limits: func() Limits { return Limits{DrainTimeout: time.Millisecond, MaxLive: 1, MaxKept: 1} },
		Witnesses: testimony(func(_ context.Context, run string) []evidence.Answer {
			a := evidence.Answer{Target: "b1", Engine: "mysql", Active: 4}
			for i := range 4 {
				a.Block(fmt.Sprint(i), "9", evidence.MetadataLock, "t")
			}
			a.Wait(evidence.MetadataLock, 4)
			return []evidence.Answer{a}
		}),
	})
	// What was printed before the run is followed is history, of which nothing can be captured.
	w.until("one", "followed", func(s ingest.Snapshot) bool { return s.Meta.ToolVersion != "" })
	begin()
	s := w.until("one", "stall", func(s ingest.Snapshot) bool { return len(s.Stalls) > 0 })
	if s.Stalls[0].Reason != "metadata lock" || s.Stalls[0].Count != 1 || s.Stalls[0].Seconds != 1 ||
		s.Stalls[0].Text != "1.0 s from 0:10: 4 of 4 clients waited for the metadata lock that session 9 held" {
		t.Errorf("%+v", s.Stalls)
	}
	open()
	if _, err := p.Wait(nil); err != nil {
		t.Fatal(err)
	}
	w.until("one", "over", func(s ingest.Snapshot) bool { return s.Phase == ingest.Over })
	w.stop()
	all, err := record.ReadCaptures(dir)
	if err != nil || len(all) != 1 || len(all[0].Moments) < 2 || all[0].Trigger != "throughput 0/s, usually 100/s" || all[0].Clients != 4 {
		t.Errorf("%+v, %v", all, err)
	}
	h := readHistory(t, dir)
	if len(h.Markers) != 1 || h.Markers[0].Text != "stalled for 1.0 s: 4 of 4 clients waited for the metadata lock that session 9 held" {
		t.Errorf("%+v", h.Markers)
	}
}

// testimony is what Witnesses without connections testify.
type testimony func(ctx context.Context, run string) []evidence.Answer

func (testimony) Arm(string, []engine.Target) {}
func (testimony) Disarm(string)               {}
func (t testimony) Testify(ctx context.Context, run string) []evidence.Answer {
	return t(ctx, run)
}
