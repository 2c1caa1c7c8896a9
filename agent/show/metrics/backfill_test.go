package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestBackfillEqualsLive guards that a run that is backfilled has, at each of
// its reports and at its end, the series that it exposed while it was live.
func TestBackfillEqualsLive(t *testing.T) {
	for _, c := range []struct{ tool, capture string }{
		{"sysbench", "sysbench/testdata/1.0.20/oltp_read_write-th4-rate200.txt"},
		{"sysbench", "sysbench/testdata/1.0.20/oltp_read_write-th4-checkpoints.txt"},
		{"ycsb", "ycsb/testdata/0.17.0/jdbc-run-a-t10-int1/stderr.txt"},
		{"tpcc-mysql", "tpccmysql/testdata/2017-01/c4-r5-l30-i1/stdout.txt"},
	} {
		t.Run(filepath.Base(filepath.Dir(c.capture))+"/"+filepath.Base(c.capture), func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("../../model/tool", c.capture))
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			h, err := record.Read(ctx, runOf(t, c.tool, string(data), true), registry.Tools)
			if err != nil || h.Intervals.N == 0 {
				t.Fatalf("%d intervals, %v", h.Intervals.N, err)
			}
			var ends []float64
			if err := h.EachInterval(ctx, func(v *ingest.Intervals) error { ends = slices.Clone(v.Elapsed); return nil }); err != nil {
				t.Fatal(err)
			}
			filled := backfill(t, h)
			var prefix strings.Builder
			seen := 0
			for line := range strings.Lines(string(data)) {
				prefix.WriteString(line)
				dir := runOf(t, c.tool, prefix.String(), false)
				now, err := record.Read(ctx, dir, registry.Tools)
				if err != nil {
					t.Fatal(err)
				}
				if now.Intervals.N == seen || now.Intervals.N > seen+1 {
					continue
				}
				seen++
				snap := now.Snapshot
				equalAt(t, fmt.Sprintf("report %d", seen), scrapeLive(t, Sources{Runs: func() []ingest.Snapshot { return []ingest.Snapshot{snap} }}, start),
					filled, h.At(ends[seen-1]).UnixMilli())
			}
			if seen < len(ends)-1 { // a report held back is not live before the end
				t.Errorf("%d of %d reports compared", seen, len(ends))
			}
			over := h.Snapshot
			runs := Sources{Runs: func() []ingest.Snapshot { return []ingest.Snapshot{over} }}
			equalAt(t, "over", scrapeLive(t, runs, start), filled, over.Meta.ClosedAt.UnixMilli())
			over.Phase = ingest.Draining
			equalAt(t, "draining", scrapeLive(t, runs, start), filled, over.Meta.EndedAt.Add(3*time.Second).UnixMilli())
		})
	}
}

// TestBackfillInfo guards the labels of run_info, which are text of any kind.
func TestBackfillInfo(t *testing.T) {
	h, err := record.Read(context.Background(), runOf(t, "sysbench", "", true), registry.Tools)
	if err != nil {
		t.Fatal(err)
	}
	filled := backfill(t, h)
	for series := range scrapeLive(t, Sources{Runs: func() []ingest.Snapshot { return []ingest.Snapshot{h.Snapshot} }}, start) {
		if strings.HasPrefix(series, prefix+"run_info{") {
			if _, ok := filled[series]; !ok {
				t.Errorf("missing %s", series)
			}
		}
	}
}

// TestBackfillServersEqualLive guards the same for servers: the record gives the same series as the samples.
func TestBackfillServersEqualLive(t *testing.T) {
	began := time.Now().Add(-time.Second)
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{
		ID:     "r",
		Timing: rundir.Timing{StartedAt: began, ClockStartedAt: &began},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	recorder := record.NewRecorder(dir, began)
	defer recorder.Close()

	n1 := &engine.Target{Name: "n1", Engine: "mysql", Cluster: "c"}
	n2 := &engine.Target{Name: "n\"2\n", Engine: "mysql", Role: "replica"}
	var frames []engine.Frame
	for i := range 4 {
		tick := began.Add(time.Duration(i+1) * time.Second).Truncate(time.Second)
		up := engine.Sample{Target: n1, Tick: tick, Asked: tick.Add(time.Millisecond), Answered: tick.Add(4 * time.Millisecond), Restarts: uint64(i / 2)}
		up.Status = &engine.Status{Version: fmt.Sprintf("10.%d", i/2), Flavour: "mariadb", Role: []string{"primary", "primary", "replica", "replica"}[i]}
		up.Status.Set(engine.QueriesTotal, float64(1000*i))
		up.Status.Set(engine.OperationsTotal, float64(i), "sel\"ect\\\n\x01ü")
		if i > 1 {
			lag := series.Some(float64(i) / 3)
			up.LagSeconds, up.LagTransactions = lag, lag
			up.Status.Set(engine.ThreadsRunning, 7)
		}
		frames = append(frames, engine.Frame{Tick: tick, Samples: []engine.Sample{up, {Target: n2, Tick: tick, Answered: tick, Err: errors.New("down")}}})
	}
	for _, f := range frames {
		if err := recorder.Record(f); err != nil {
			t.Fatal(err)
		}
	}
	h, err := record.Read(context.Background(), dir, nil)
	if err != nil || len(h.Servers) != 2 || len(h.DamageLines()) != 0 {
		t.Fatalf("%d servers, %v, %q", len(h.Servers), err, h.DamageLines())
	}
	filled := backfill(t, h)
	for i, f := range frames {
		for j := range f.Samples {
			one := engine.Frame{Tick: f.Tick, Samples: f.Samples[j : j+1]}
			exposed := scrapeLive(t, Sources{Samples: func() engine.Frame { return one }}, start)
			at := f.Samples[j].Answered.UnixMilli()
			for series, v := range exposed {
				got, when, ok := filled[series].at(at)
				if !ok || when != at || math.Abs(got-v) > 1e-6*max(1, math.Abs(v)) {
					t.Errorf("tick %d: %s was %v, backfilled %v", i, series, v, got)
				}
			}
			for series, s := range filled {
				_, when, ok := s.at(at)
				if _, was := exposed[series]; ok && when == at && !was && strings.HasPrefix(series, prefix+"db_") {
					t.Errorf("tick %d: %s is backfilled and was not exposed", i, series)
				}
			}
		}
	}
}

// TestBackfillMarks guards markers' series.
func TestBackfillMarks(t *testing.T) {
	dir := runOf(t, "sysbench", "", true)
	at := start.Add(90 * time.Second)
	if err := marker.Append(dir, marker.Marker{Kind: marker.Point, Run: "r", Text: "fc_limit=1", Start: at}); err != nil {
		t.Fatal(err)
	}
	h, err := record.Read(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := backfill(t, h)[prefix+`marker_timestamp_seconds{run="r",text="fc_limit=1"}`]
	if v, _, ok := s.at(at.Add(time.Minute).UnixMilli()); !ok || v != seconds(at) {
		t.Errorf("value %v, %v", v, ok)
	}
	if _, _, ok := s.at(at.Add(-time.Second).UnixMilli()); ok {
		t.Error("it is there before it was set")
	}
}

// TestBackfillOverlap guards that two runs that saw the same servers at once
// give each series once.
func TestBackfillOverlap(t *testing.T) {
	dir := runOf(t, "sysbench", "", true)
	var status strings.Builder
	status.WriteString(`{"target":"n1","engine":"mysql","interval":1,"columns":["db_queries_total","bad name","bad{x","bad{x=1}"]}` + "\n")
	for i := range 5 {
		fmt.Fprintf(&status, `["n1",%d,0,0,0,"",%d,1,1,1]`+"\n", start.Add(time.Duration(i)*time.Second).Unix(), i)
	}
	if err := os.WriteFile(dir.Path(rundir.StatusFile), []byte(status.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := record.Read(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	filled := backfill(t, h, h)
	if s := filled[prefix+`db_queries_total{cluster="",engine="mysql",role="",target="n1"}`]; len(s.times) != 5 {
		t.Errorf("%d samples", len(s.times))
	}
}

// TestPromtoolTakesBackfill guards the format with the program that reads it.
func TestPromtoolTakesBackfill(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian package prometheus)")
	}
	data, err := os.ReadFile("../../model/tool/sysbench/testdata/1.0.20/oltp_read_write-th4-rate200.txt")
	if err != nil {
		t.Fatal(err)
	}
	h, err := record.Read(context.Background(), runOf(t, "sysbench", string(data), true), registry.Tools)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBackfill()
	defer b.Close()
	if err := b.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := b.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "run.om")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(promtool, "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(dir, "blocks")).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("error")) {
		t.Errorf("%v: %s", err, out)
	}
}
