package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"

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
	text := scrape(t, g, Text)
	if d := cmp.Diff(encoded(t, text, Text), text); d != "" {
		t.Errorf("Prometheus' encoder and the text differ: %s", d)
	}
	if d := cmp.Diff(encoded(t, text, OpenMetrics), scrape(t, g, OpenMetrics)); d != "" {
		t.Errorf("Prometheus' encoder and the OpenMetrics differ: %s", d)
	}
	return text
}

func scrape(t *testing.T, g *Gatherer, format Format) string {
	t.Helper()
	text, err := g.Append(nil, format)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// encoded reads a text and writes its content with Prometheus' encoder.
func encoded(t *testing.T, text string, format Format) string {
	t.Helper()
	all := map[Format]expfmt.Format{Text: expfmt.FmtText, OpenMetrics: expfmt.FmtOpenMetrics_1_0_0}
	var b bytes.Buffer
	encoder := expfmt.NewEncoder(&b, all[format])
	families := parsed(t, text)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if err := encoder.Encode(families[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := encoder.(expfmt.Closer).Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parsed(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return families
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
			ID: "20261121T021403Z-oltp_read_write-t16", Title: "first \"try\"\n", Labels: map[string]string{"via": "direct"},
			Benchmark: rundir.Benchmark{Tool: "sysbench", ToolVersion: "1.0.20", Workload: "oltp_read_write", Threads: 16, Target: "127.0.0.1:3306", DurationSeconds: 60, RatePerSecond: 22000},
			Process:   rundir.Process{Generator: "loadgen"},
			Timing:    rundir.Timing{StartedAt: start},
			Placement: rundir.Placement{Servers: &rundir.Servers{
				Source: rundir.ServersMatched,
				Targets: []rundir.Server{
					{Target: "n1", Cluster: "blue", Engine: "mysql", Nodename: "node1"},
					{Target: "n2", Cluster: "blue", Engine: "mysql", Nodename: "node1"},
					{Target: "n3", Cluster: "blue", Engine: "mysql"},
					{Target: "atlas", Engine: "atlas", Proxy: true, Nodename: "loadgen"},
				},
				Proxies: []rundir.Proxy{{Address: "vip", Nodename: "proxy1"}, {Address: "vip2"}},
			}},
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

// TestRunThatStalled: stalls are counted by reason, and the last one is described for a minute.
func TestRunThatStalled(t *testing.T) {
	s := sampleRun()
	s.Stalls = []ingest.StallCount{
		{Reason: "metadata lock", Count: 2, Seconds: 9.5},
		{Reason: "row lock", Count: 1, Seconds: 3, Ended: time.Now(),
			Text: "3.0 s from 0:41: 31 of 32 clients waited for the row lock that session 9 (UPDATE \"t\" SET a = ?, app@10.0.0.5) held"},
	}
	golden(t, "run_stalled.prom", lines(expose(t, runs(s)), "benchwatch_run_stall"))
	s.Stalls[1].Ended = time.Unix(0, 0)
	if got := expose(t, runs(s)); strings.Contains(got, "run_stall_info{") || !strings.Contains(got, "run_stalls_total{") {
		t.Errorf("after a minute:\n%s", lines(got, "benchwatch_run_stall"))
	}
}

// lines returns the lines of an exposition about the metrics with a prefix.
func lines(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// A run whose last report is old has no current values, only the time of that report.
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
	scrape(t, g, Text)
	sample = engine.Sample{Target: target, Err: errors.New("gone")}
	for _, f := range parsed(t, scrape(t, g, Text)) {
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

// Titles, labels and operations come from outside: none of their bytes may break a scrape.
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
	sources := runs(snaps...)
	sources.Process = NewProcess()
	g := NewGatherer(sources)
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if text, err = g.Append(text[:0], Text); err != nil {
			b.Fatal(err)
		}
	}
}

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
			text, err := g.Append(nil, Text)
			if err == nil {
				t.Errorf("a series of the target %q was dropped without an error", targets[0].Name)
			}
			if !strings.Contains(string(text), `target="good"`) {
				t.Error("the other series were dropped too")
			}
		}
	}
}

// TestSeriesThatIsGone guards that an ended series is absent, and that its memory is released.
func TestSeriesThatIsGone(t *testing.T) {
	snaps := []ingest.Snapshot{sampleRun()}
	g := NewGatherer(Sources{Runs: func() []ingest.Snapshot { return snaps }})
	if text := scrape(t, g, Text); !strings.Contains(text, sampleRun().Meta.ID) {
		t.Errorf("the first scrape has:\n%s", text)
	}
	snaps = []ingest.Snapshot{sampleRun()}
	snaps[0].Meta.ID, snaps[0].Errors = "other", 77
	if text := scrape(t, g, Text); strings.Contains(text, sampleRun().Meta.ID) || !strings.Contains(text, "} 77\n") {
		t.Errorf("the second scrape has:\n%s", text)
	}
	for range forgottenAfter + 1 {
		scrape(t, g, Text)
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

// TestEndedRunsAreMadeOnce guards that the series of ended runs are made anew only for another edition, even if the run
// was absent for long, and that a run without an edition is made at each scrape.
func TestEndedRunsAreMadeOnce(t *testing.T) {
	var snaps []ingest.Snapshot
	g := NewGatherer(Sources{Runs: func() []ingest.Snapshot { return snaps }})
	run := func(edition uint64, variant int) ingest.Snapshot {
		s := ended(sampleRun(), ingest.Over)
		s.Edition, s.Meta.Labels = edition, map[string]string{"variant": strconv.Itoa(variant)}
		return s
	}
	expect := func(variants ...string) {
		t.Helper()
		text := scrape(t, g, Text)
		if want := expose(t, Sources{Runs: g.sources.Runs}); text != want {
			t.Errorf("a first scrape of the same runs has other series:\n%s", cmp.Diff(want, text))
		}
		for _, n := range []string{"1", "2", "3"} {
			if strings.Contains(text, `variant="`+n+`"`) != slices.Contains(variants, n) {
				t.Errorf("want the variants %v:\n%s", variants, text)
			}
		}
	}
	snaps = []ingest.Snapshot{run(7, 1)}
	expect("1")
	expect("1")
	snaps = []ingest.Snapshot{run(8, 2)}
	expect("2")
	snaps = nil
	for range forgottenAfter + 2 {
		expect()
	}
	snaps = []ingest.Snapshot{run(8, 2)}
	expect("2")
	snaps = []ingest.Snapshot{run(0, 3)}
	expect("3")
	snaps[0].Meta.Labels["variant"] = "1"
	expect("1")

	snaps = nil
	for i := range 100 {
		s := run(uint64(10+i), 1)
		s.Meta.ID = fmt.Sprint("run", i)
		snaps = append(snaps, s)
	}
	text, _ := g.Append(nil, Text)
	if n := testing.AllocsPerRun(5, func() { text, _ = g.Append(text[:0], Text) }); n > 20 {
		t.Errorf("%v allocations for 100 ended runs", n)
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

// TestProcess compares the exposed values of this process with procfs.
func TestProcess(t *testing.T) {
	self, err := procfs.Self()
	if err != nil {
		t.Skip("no procfs here")
	}
	g := NewGatherer(Sources{Process: NewProcess()})
	families := parsed(t, scrape(t, g, Text))
	stat, err := self.Stat()
	if err != nil {
		t.Fatal(err)
	}
	files, err := self.FileDescriptorsLen()
	if err != nil {
		t.Fatal(err)
	}
	limits, err := self.Limits()
	if err != nil {
		t.Fatal(err)
	}
	for family, want := range map[*Family]float64{
		processCPU: stat.CPUTime(), processSize: float64(stat.VirtualMemory()), processMemory: float64(stat.ResidentMemory()),
		processFiles: float64(files), processMaximum: float64(limits.OpenFiles), goGoroutines: float64(runtime.NumGoroutine()),
		processStart: float64(time.Now().Unix()), buildInfo: 1, goInfo: 1,
	} {
		got := math.NaN()
		if f := families[family.Name]; f != nil {
			got = f.Metric[0].GetGauge().GetValue() + f.Metric[0].GetCounter().GetValue()
		}
		// The second reading is later.
		if tolerance := max(0.2*want, 5); !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s is %v, procfs has %v", family.Name, got, want)
		}
	}
	for _, f := range runtimeFamilies {
		if families[f.Name] == nil {
			t.Errorf("Go's runtime does not know %s", f.Name)
		}
	}
}

func TestNegotiate(t *testing.T) {
	const prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4," +
		"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
	for accept, want := range map[string]string{
		"":         "text/plain; version=0.0.4",
		"*/*":      "text/plain; version=0.0.4",
		prometheus: "application/openmetrics-text; version=1.0.0",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,text/plain;q=0.2": "text/plain; version=0.0.4",
	} {
		format, contentType := Negotiate(http.Header{"Accept": {accept}})
		if !strings.HasPrefix(contentType, want) || (format == OpenMetrics) != strings.Contains(want, "openmetrics") {
			t.Errorf("%q: format %d as %q, want %s", accept, format, contentType, want)
		}
	}
}
