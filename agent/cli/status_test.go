package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/measure"
)

// metricOf finds a metric of an engine, which are not exported.
func metricOf(t *testing.T, name string) *measure.Metric {
	t.Helper()
	for _, m := range measure.Metrics() {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no metric %s", name)
	return nil
}

// TestStatusLine guards the documented fields, that commits are the best ones that a
// server reports, and that no share of time is above 1 (issue 10, defects 5 and 6).
func TestStatusLine(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	target := &engine.Target{Name: "n1"}
	sample := func(second float64) *engine.Sample {
		s := &engine.Status{}
		s.Set(engine.QueriesTotal, 1000*second)
		s.Set(engine.CommitsTotal, 0)
		s.Set(engine.RollbacksTotal, 0)
		s.Set(metricOf(t, "galera_local_commits_total"), 50*second)
		s.Set(metricOf(t, "galera_flow_control_paused_seconds_total"), 1.2*second)
		s.Set(engine.Connections, 12)
		tick := at.Add(time.Duration(second) * time.Second)
		return &engine.Sample{Target: target, Tick: tick, Answered: tick, Status: s}
	}
	line := newStatusLine(sample(0), sample(1))
	data, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conforms("status", data); err != nil {
		t.Error(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"time": "2026-11-21T12:00:01Z", "target": "n1", "up": true, "queries_per_second": 1000.0, "commits_per_second": 50.0, "rollbacks_per_second": 0.0,
		"transactions_per_second": 50.0, "connections": 12.0, "flow_control_ratio": 1.0, "restarts": 0.0,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var b strings.Builder
	writeHeader(&b, len("n1"))
	line.write(&b, len("n1"))
	head, row, _ := strings.Cut(b.String(), "\n")
	if want := "Time Target QPS Commit Rollback TPS Conn Run RTT(ms) Paused Lag(trx) Lag(s) Queue"; strings.Join(strings.Fields(head), " ") != want {
		t.Errorf("head %q", head)
	}
	if fields := strings.Fields(row); strings.Join(fields[1:], " ") != "n1 1000 50 0 50 12 - - 100.0% - - -" {
		t.Errorf("row %q", row)
	}
}
