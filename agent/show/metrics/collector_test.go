package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

var start = time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)

func expose(t *testing.T, sources Sources) string {
	t.Helper()
	g := NewGatherer(sources)
	g.now = func() time.Time { return start.Add(30 * time.Second) }
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error(d)
	}
}

// sampleRun is a run in the middle of its measurement.
func sampleRun() ingest.Snapshot {
	r := &tool.Report{Kind: tool.Interval, Run: 1}
	r.Set(tool.QueueLength, 3)
	r.AddRate("transaction", 21532.38)
	r.AddLatency("transaction", "p95", 0.00104)
	return ingest.Snapshot{
		Meta: rundir.Meta{
			ID: "20261121T021403Z-oltp_read_write-t16", Title: "first \"try\"\n", Tool: "sysbench", ToolVersion: "1.0.20",
			Workload: "oltp_read_write", Threads: 16, Target: "127.0.0.1:3306", Labels: map[string]string{"via": "direct"},
			Generator: "loadgen", StartedAt: start, DurationSeconds: 60, RatePerSecond: 22000,
			Servers: &rundir.Servers{
				Source: rundir.ServersMatched,
				Targets: []rundir.Server{
					{Target: "n1", Cluster: "blue", Engine: "mysql", Nodename: "node1"},
					{Target: "n2", Cluster: "blue", Engine: "mysql", Nodename: "node1"},
					{Target: "n3", Cluster: "blue", Engine: "mysql"},
					{Target: "atlas", Engine: "atlas", Proxy: true, Nodename: "loadgen"},
				},
				Proxies: []rundir.Proxy{{Address: "vip", Nodename: "proxy1"}, {Address: "vip2"}},
			},
		},
		Phase: ingest.Measuring, Threads: series.Some(16), Interval: r, LastReport: start.Add(29 * time.Second),
		IntervalSeconds: series.Some(1.0), Totals: map[string]float64{"transaction": 600000.5}, Errors: 2,
		Lines: ingest.Lines{Reported: 30, Ignored: 11, Malformed: 1},
	}
}

func ended(s ingest.Snapshot, phase ingest.Phase) ingest.Snapshot {
	end := start.Add(20 * time.Second)
	code, seconds := 0, 1.25
	s.Meta.EndedAt, s.Meta.ExitCode, s.Meta.Outcome = &end, &code, rundir.Succeeded
	s.Meta.Drain = map[string]rundir.Drain{"n2": {Seconds: &seconds}, "n3": {TimedOut: true}}
	s.Phase, s.Interval = phase, nil
	s.Summary = &ingest.Summary{
		ElapsedSeconds: series.Some(20.01),
		Rates:          []tool.Rate{{Operation: "transaction", PerSecond: 21000}},
		Counts:         []tool.Count{{Operation: "transaction", N: 420210}, {Operation: "error", N: 2}, {Operation: "reconnect", N: 1}},
		Latencies:      []tool.Latency{{Operation: "transaction", Stat: "p95", Seconds: 0.0011}},
	}
	return s
}

func runs(s ...ingest.Snapshot) Sources { return Sources{Runs: func() []ingest.Snapshot { return s }} }

func TestRunWhileItLasts(t *testing.T) { golden(t, "run_active.prom", expose(t, runs(sampleRun()))) }

func TestRunWhileReplicasCatchUp(t *testing.T) {
	golden(t, "run_draining.prom", expose(t, runs(ended(sampleRun(), ingest.Draining))))
}

func TestRunOver(t *testing.T) {
	golden(t, "run_over.prom", expose(t, runs(ended(sampleRun(), ingest.Over))))
}

// A run whose last report is old says nothing of now, but when that was.
func TestStalledRun(t *testing.T) {
	s := sampleRun()
	s.Interval = nil
	got := expose(t, runs(s))
	for _, name := range []string{"run_operations_per_second", "run_latency_seconds", "run_queue_length"} {
		if strings.Contains(got, name+"{") {
			t.Errorf("%s is still exposed", name)
		}
	}
	if !strings.Contains(got, "run_last_report_timestamp_seconds{") {
		t.Error("when the last report came is not exposed")
	}
}

func TestServers(t *testing.T) {
	lag := 12.0
	up := engine.Sample{
		Target: &engine.Target{Name: "n1", Engine: "mysql", Cluster: "c", Address: "127.0.0.1:3306"},
		Asked:  start, Answered: start.Add(3 * time.Millisecond), Restarts: 1, LagTransactions: series.Some(lag),
		Status: &engine.Status{Version: "10.11.19-MariaDB", Flavour: "mariadb", Role: "primary"},
	}
	up.Status.Set(engine.QueriesTotal, 1234)
	up.Status.Set(engine.OperationsTotal, 7, "select")
	down := engine.Sample{Target: &engine.Target{Name: "n2", Engine: "mysql", Cluster: "c"}, Err: errors.New("no route")}
	frame := engine.Frame{Tick: start, Samples: []engine.Sample{up, down}}
	golden(t, "servers.prom", expose(t, Sources{Samples: func() engine.Frame { return frame }}))
}

// What a server called itself stays its label while it is down.
func TestRoleOfADownServer(t *testing.T) {
	target := &engine.Target{Name: "n1", Engine: "mysql"}
	sample := engine.Sample{Target: target, Status: &engine.Status{Role: "replica"}}
	g := NewGatherer(Sources{Samples: func() engine.Frame { return engine.Frame{Samples: []engine.Sample{sample}} }})
	if _, err := g.Gather(); err != nil {
		t.Fatal(err)
	}
	sample = engine.Sample{Target: target, Err: errors.New("gone")}
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, l := range f.Metric[0].Label {
			if l.GetName() == "role" && l.GetValue() != "replica" {
				t.Errorf("%s has role %q", f.GetName(), l.GetValue())
			}
		}
	}
}

func TestMarkers(t *testing.T) {
	got := expose(t, Sources{
		MissedTicks: func() uint64 { return 3 },
		Space:       func() (rundir.Space, error) { return rundir.Space{Free: 5, Size: 7}, nil },
		Deliveries:  func() marker.Stats { return marker.Stats{Queued: 2, Delivered: 5} },
		Points: func() []marker.Marker {
			return []marker.Marker{
				{Run: "r", Text: "same text", Start: start}, {Run: "r", Text: "same\n text ", Start: start.Add(time.Second)},
				{Text: strings.Repeat("x", 500), Start: start},
			}
		},
	})
	for _, want := range []string{
		`benchwatch_agent_missed_ticks_total 3`,
		`benchwatch_data_free_bytes 5`,
		`benchwatch_data_size_bytes 7`,
		`benchwatch_marker_queue_length 2`,
		`benchwatch_marker_deliveries_total{result="delivered"} 5`,
		`benchwatch_marker_timestamp_seconds{run="r",text="same text"} 1.795227244e+09`,
		strings.Repeat("x", 199) + `…"} 1.795227243e+09`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s in\n%s", want, got)
		}
	}
}

// Titles, labels and operations come from outside: no bytes of theirs may break
// a scrape.
func TestHostileText(t *testing.T) {
	s := sampleRun()
	s.Meta.Title = "\xff\x00\"}\n# TYPE x counter" + strings.Repeat("y", 10_000)
	s.Meta.Labels = map[string]string{"note": "\xc3\x28"}
	got := expose(t, runs(s))
	if len(got) > 20_000 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestLint(t *testing.T) {
	text := expose(t, runs(sampleRun(), func() ingest.Snapshot {
		s := ended(sampleRun(), ingest.Draining)
		s.Meta.ID = "other"
		return s
	}()))
	var all strings.Builder
	for _, f := range Families() {
		fmt.Fprintf(&all, "# HELP %s help\n# TYPE %s %s\n%s 1\n", f.Name, f.Name, f.Type, f.Name)
	}
	for _, text := range []string{text, all.String()} {
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func BenchmarkScrape(b *testing.B) {
	var snaps []ingest.Snapshot
	for i := range 7 { // about 200 series
		s := sampleRun()
		s.Meta.ID += string(rune('a' + i))
		for op := range 5 {
			s.Totals[string(rune('a'+op))] = 1
			s.Interval.AddRate(string(rune('a'+op)), 1)
		}
		snaps = append(snaps, s)
	}
	g := NewGatherer(runs(snaps...))
	b.ReportAllocs()
	for b.Loop() {
		families, err := g.Gather()
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(discard{}, f); err != nil {
				b.Fatal(err)
			}
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Labels in an old or edited run.json that can't be labels of run_info are left
// out; the run's other facts are still exposed.
func TestRunInfoSurvivesBadLabels(t *testing.T) {
	s := sampleRun()
	s.Meta.Labels = map[string]string{"verb": "x", "not-a-label": "x", "via": "direct"}
	got := expose(t, runs(s))
	if !strings.Contains(got, `benchwatch_run_info{`) || !strings.Contains(got, `via="direct"`) {
		t.Errorf("run_info is not exposed:\n%s", got)
	}
}

func TestSeriesThatCannotBeMadeIsAnError(t *testing.T) {
	bad, twice := &engine.Target{Name: "bad \xff"}, &engine.Target{Name: "twice"}
	for _, targets := range [][]*engine.Target{{bad}, {twice, twice}} {
		g := NewGatherer(Sources{Samples: func() engine.Frame {
			frame := engine.Frame{Samples: []engine.Sample{{Target: &engine.Target{Name: "good"}}}}
			for _, target := range targets {
				frame.Samples = append(frame.Samples, engine.Sample{Target: target})
			}
			return frame
		}})
		for range 2 { // also if the first scrape has made the other series
			families, err := g.Gather()
			if err == nil {
				t.Errorf("a series of the target %q was dropped without an error", targets[0].Name)
			}
			if len(families) == 0 {
				t.Error("the other series were dropped too")
			}
		}
	}
}

// TestScrapesAtOnce guards that a scrape does not change what an earlier one is still
// writing, and that a series that is gone is absent and its memory is given back.
func TestScrapesAtOnce(t *testing.T) {
	snaps := []ingest.Snapshot{sampleRun()}
	g := NewGatherer(Sources{Runs: func() []ingest.Snapshot { return snaps }})
	text := func(families []*dto.MetricFamily) string {
		var b bytes.Buffer
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	first, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	was := text(first)
	snaps = []ingest.Snapshot{sampleRun()}
	snaps[0].Meta.ID, snaps[0].Errors = "other", 77
	second, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if now := text(first); now != was {
		t.Errorf("a later scrape changed the first one:\n%s", cmp.Diff(was, now))
	}
	if now := text(second); strings.Contains(now, sampleRun().Meta.ID) || !strings.Contains(now, "} 77\n") {
		t.Errorf("the second scrape has:\n%s", now)
	}
	for range forgottenAfter + 1 {
		if _, err := g.Gather(); err != nil {
			t.Fatal(err)
		}
	}
	for name, family := range g.families {
		if len(family.series) != len(family.order) {
			t.Errorf("%s: %d series by key, %d in order", name, len(family.series), len(family.order))
		}
		for _, series := range family.order {
			if strings.Contains(series.key, sampleRun().Meta.ID) {
				t.Errorf("%s keeps a series of a run that is gone", name)
			}
		}
	}
}

// TestTimesOfARunAreOnPrometheusClock guards what rules subtract from time() after
// the wall clock was set during a run.
func TestTimesOfARunAreOnPrometheusClock(t *testing.T) {
	s := sampleRun()
	was := expose(t, runs(s))
	s.ClockAhead = time.Hour
	s.Meta.StartedAt, s.LastReport = s.Meta.StartedAt.Add(-time.Hour), s.LastReport.Add(-time.Hour)
	if now := expose(t, runs(s)); now != was {
		t.Errorf("with a clock that was set forward: %s\nwant: %s", now, was)
	}
}
