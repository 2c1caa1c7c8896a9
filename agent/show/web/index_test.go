package web

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestIndex guards what the page shows without JavaScript: the headline latency of
// live and ended runs, not the last one that the tool printed; servers that are
// down; and all text escaped.
func TestIndex(t *testing.T) {
	latencies := []tool.Latency{
		{Operation: tool.Transaction, Stat: "avg", Seconds: 0.001}, {Operation: tool.Transaction, Stat: "p95", Seconds: 0.0025},
		{Operation: tool.Transaction, Stat: "p99.99", Seconds: 0.9},
	}
	end := begin.Add(time.Minute)
	live := ingest.Snapshot{
		Meta: rundir.Meta{
			ID: "live", Title: `<script>alert("x")</script>`,
			Timing: rundir.Timing{StartedAt: begin},
		}, Phase: ingest.Measuring,
		Threads:  series.Some(8),
		Interval: &tool.Report{Rates: []tool.Rate{{Operation: tool.Transaction, PerSecond: 1234.5}}, Latencies: latencies},
	}
	ended := ingest.Snapshot{
		Meta: rundir.Meta{
			ID:      "ended",
			Timing:  rundir.Timing{StartedAt: begin},
			End:     rundir.End{EndedAt: &end, Outcome: rundir.Failed},
			Closing: rundir.Closing{ClosedAt: &end},
		},
		Phase: ingest.Over, Summary: &ingest.Summary{Latencies: latencies},
	}
	s := newSite(t)
	s.page.opts.Runs = func() []ingest.Snapshot { return []ingest.Snapshot{ended, live} }
	target := engine.Target{Name: "db1", Engine: "mysql", Cluster: "c"}
	s.page.Frame(engine.Frame{Tick: end, Samples: []engine.Sample{{Target: &target, Tick: end}}})
	code, body := s.get("/")
	if code != 200 {
		t.Fatal(code)
	}
	page := string(body)
	if n := strings.Count(page, "p95 2.50 ms"); n != 2 {
		t.Errorf("the headline latency is shown %d times, want 2", n)
	}
	if strings.Contains(page, "p99.99") {
		t.Error("another latency is shown")
	}
	for _, want := range []string{"&lt;script&gt;", "1234.5", ">8<", "<td>failed<", "1m0s", "db1", "<td>down<"} {
		if !strings.Contains(page, want) {
			t.Errorf("missing %s", want)
		}
	}
	if strings.Contains(page, `<script>`) {
		t.Error("a title is not escaped")
	}
	if strings.Index(page, "&lt;script") > strings.Index(page, ">ended<") {
		t.Error("the newest run is not the first")
	}
}

// TestServers guards that the list of servers has those that did not answer.
func TestServers(t *testing.T) {
	s := newSite(t)
	now := time.Now()
	up := engine.Sample{Target: &engine.Target{Name: "n1", Engine: "mysql", Cluster: "c"}, Tick: now, Status: &engine.Status{Version: "10.11"}}
	down := engine.Sample{Target: &engine.Target{Name: "n2", Engine: "mysql"}, Tick: now, Err: errors.New("connection refused")}
	s.page.Frame(engine.Frame{Tick: now, Samples: []engine.Sample{up, down}})
	code, body := s.get("/api/agent")
	var got agentView
	if err := json.Unmarshal(body, &got); code != 200 || err != nil {
		t.Fatal(code, err)
	}
	want := []serverView{{Name: "n1", Engine: "mysql", Cluster: "c", State: "up", Version: "10.11", Up: true}, {Name: "n2", Engine: "mysql", State: "down: connection refused"}}
	if !slices.Equal(got.Servers, want) {
		t.Errorf("%+v, want %+v", got.Servers, want)
	}
}
