package dashboards

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/need"
)

// successive is a Prometheus with two runs on one server, a second apart, at one sample a
// second: the first lasts from 10 s to 39 s, the second from 41 s to 69 s. The scrape at
// 55 s failed: the agent has no series then. Recorded series lag a second behind.
type successive struct {
	Prometheus
	begin time.Time
}

const (
	firstRun, secondRun = "first", "second"
	failedScrape        = 55
	peak                = 24 // of the first run's threads
)

// lasts reports whether the run is active at a second.
func lasts(run string, second int) bool {
	if run == firstRun {
		return second >= 10 && second < 40
	}
	return second >= 41 && second < 70
}

func newSuccessive(t *testing.T) successive {
	t.Helper()
	const length = 90
	begin := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	var text bytes.Buffer
	family := func(name, labels string, has func(second int) (float64, bool)) {
		for second := range length {
			if v, ok := has(second); ok {
				fmt.Fprintf(&text, "%s{%s} %g %d\n", name, labels, v, begin.Add(time.Duration(second)*time.Second).Unix())
			}
		}
	}
	scraped := func(v func(second int) (float64, bool)) func(int) (float64, bool) {
		return func(second int) (float64, bool) {
			x, ok := v(second)
			return x, ok && second != failedScrape
		}
	}
	during := func(run string, v float64) func(int) (float64, bool) {
		return func(second int) (float64, bool) { return v, lasts(run, second) }
	}
	each := func(name, labels string, values func(run string) func(int) (float64, bool)) {
		fmt.Fprintf(&text, "# TYPE %s unknown\n", name)
		for _, run := range []string{firstRun, secondRun} {
			family(name, fmt.Sprintf(labels, run), values(run))
		}
	}
	const ofRun = `run="%s"`
	each("benchwatch_run_active", ofRun, func(run string) func(int) (float64, bool) { return scraped(during(run, 1)) })
	each("benchwatch_run_elapsed_seconds", ofRun, func(run string) func(int) (float64, bool) {
		return scraped(func(second int) (float64, bool) { return float64(second), lasts(run, second) })
	})
	each("benchwatch_run_info", ofRun+`,title="Run",threads="8"`, func(run string) func(int) (float64, bool) {
		return scraped(func(second int) (float64, bool) { return 1, second >= 41 || run == firstRun && second >= 10 })
	})
	each("benchwatch_run_operations_per_second", ofRun+`,op="transaction"`, func(run string) func(int) (float64, bool) { return scraped(during(run, 100)) })
	each("benchwatch_run_phase", ofRun+`,phase="measure"`, func(run string) func(int) (float64, bool) { return scraped(during(run, 1)) })
	each("benchwatch_run_result", ofRun+`,result="succeeded"`, func(run string) func(int) (float64, bool) {
		return scraped(func(second int) (float64, bool) { return 1, second >= 70 || run == firstRun && second >= 40 })
	})
	each("run:benchwatch_run_info:line", ofRun+`,line="Run, 8 threads"`, func(run string) func(int) (float64, bool) {
		return func(second int) (float64, bool) { return 1, second >= 42 || run == firstRun && second >= 11 }
	})
	each("run:benchwatch_run_latency_seconds:headline", ofRun+`,op="transaction",stat="p95"`, func(run string) func(int) (float64, bool) {
		return func(second int) (float64, bool) { return 0.01, lasts(run, second-1) }
	})
	each("run_cluster_target:benchwatch_run_active", ofRun+`,cluster="c",target="n1"`, func(run string) func(int) (float64, bool) { return during(run, 1) })
	text.WriteString("# TYPE benchwatch_db_up unknown\n")
	family("benchwatch_db_up", `cluster="c",target="n1"`, scraped(func(int) (float64, bool) { return 1, true }))
	text.WriteString("# TYPE benchwatch_db_threads_running unknown\n")
	family("benchwatch_db_threads_running", `cluster="c",target="n1",engine="mysql"`, scraped(func(second int) (float64, bool) {
		switch {
		case second == peak:
			return 42, true
		case lasts(firstRun, second) || lasts(secondRun, second):
			return 5, true
		}
		return 50, true
	}))
	text.WriteString("# EOF\n")

	// A series without a sample is absent in that second, as after a failed scrape.
	const absent = "--query.lookback-delta=500ms"
	scrapes, dir := t.TempDir(), t.TempDir()
	input := filepath.Join(dir, "series")
	if err := os.WriteFile(input, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	create := func(arguments ...string) {
		arguments = append([]string{"tsdb", "create-blocks-from"}, arguments...)
		if out, err := exec.CommandContext(t.Context(), "promtool", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("promtool %v: %v\n%s", arguments, err, out)
		}
	}
	create("openmetrics", input, scrapes+"/data")
	create("openmetrics", input, dir+"/data")
	create("rules", "--url="+started(t, scrapes, absent).URL, "--start="+seconds(begin), "--end="+seconds(begin.Add((length-1)*time.Second)),
		"--eval-interval=1s", "--output-dir="+dir+"/data", "../../prometheus/rules/run.yml")
	return successive{started(t, dir, absent), begin}
}

// line is a series of a query's result, the seconds at which it has a value, and the last value.
type line struct {
	labels  map[string]string
	seconds []int
	last    any
}

// lines returns what a query has over time with a run selected.
func (s successive) lines(t *testing.T, target *Target, run string) []line {
	t.Helper()
	w := Window{From: s.begin, To: s.begin.Add(89 * time.Second), Variables: map[string]string{"run": run}}
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	form := url.Values{"query": {w.expand(target.Expr, time.Second)}, "start": {seconds(w.From)}, "end": {seconds(w.To)}, "step": {"1"}}
	if err := s.get(t.Context(), http.MethodPost, "/api/v1/query_range", form, &data); err != nil {
		t.Fatalf("%v\n%s", err, target.Expr)
	}
	var found []line
	for _, series := range data.Result {
		one := line{labels: series.Metric}
		for _, value := range series.Values {
			if at, ok := value[0].(float64); ok {
				one.seconds, one.last = append(one.seconds, int(int64(at)-s.begin.Unix())), value[1]
			}
		}
		found = append(found, one)
	}
	return found
}

// panelNamed returns a panel of a dashboard, also in a closed row.
func panelNamed(t *testing.T, dashboard, title string) Panel {
	t.Helper()
	for _, d := range dashboards(t) {
		if d.Name != dashboard {
			continue
		}
		for _, p := range d.Graphs() {
			if p.Title == title {
				return p
			}
		}
	}
	t.Fatalf("there is no panel %s: %s", dashboard, title)
	return Panel{}
}

// TestTimesOfRuns guards that a run's page shows its servers only while it lasts, that each of
// two successive runs has its name in the legend, that a failed scrape neither splits the
// region of a run nor empties the tile with its state, that each row of a chart over
// elapsed time has a place on the axis, and that the tile of a run that is over has its peak of
// a second and nothing of the next run, in a range of minutes and in one of hours.
func TestTimesOfRuns(t *testing.T) {
	need.Program(t, "promtool")
	need.Program(t, "prometheus")
	s := newSuccessive(t)

	threads := panelNamed(t, "live-run", "Connections and running threads").Targets[0]
	for _, run := range []string{firstRun, secondRun} {
		found := s.lines(t, &threads, run)
		if len(found) != 1 {
			t.Errorf("%d servers of the %s run, want 1", len(found), run)
		}
		for _, server := range found {
			outside := slices.DeleteFunc(server.seconds, func(second int) bool { return lasts(run, second) })
			if len(outside) > 0 {
				t.Errorf("the page of the %s run shows its server at the seconds %v, when it did not run", run, outside)
			}
		}
	}
	for _, server := range s.lines(t, &threads, ".*") {
		if len(server.seconds) != 89 {
			t.Errorf("without a selected run the server has %d of 89 seconds", len(server.seconds))
		}
	}

	running := panelNamed(t, "mysql", "Running").Targets[1]
	for _, length := range []time.Duration{15 * time.Minute, 6 * time.Hour} {
		for run, most := range map[string]string{firstRun: "42", secondRun: "5"} {
			to := s.begin.Add(89 * time.Second)
			w := Window{From: to.Add(-length), To: to, Variables: map[string]string{"run": run}}
			tile := slices.Collect(maps.Values(s.ask(t, "mysql: Running", &running, w)))
			if len(tile) != 1 || len(tile[0]) != 1 || tile[0][0] != most {
				t.Errorf("in a range of %s the tile of the %s run, which is over, has %v running threads, want %s", length, run, tile, most)
			}
		}
	}

	throughput := panelNamed(t, "live-run", "Throughput over time").Targets[0]
	named := map[string]bool{}
	for _, series := range s.lines(t, &throughput, firstRun+"|"+secondRun) {
		named[series.labels["of"]] = true
	}
	if len(named) != 2 || named[""] {
		t.Errorf("the legend of two runs has the names %v", named)
	}
	for _, series := range s.lines(t, &throughput, firstRun) {
		if series.labels["of"] != "" {
			t.Errorf("the legend of one run repeats its name: %v", series.labels)
		}
	}

	state := panelNamed(t, "live-run", "State").Targets[0]
	if at := s.lines(t, &state, secondRun); len(at) != 1 || !slices.Contains(at[0].seconds, failedScrape) {
		t.Errorf("after the failed scrape the tile has no state: %v", at)
	}
	if at := s.lines(t, &Target{Expr: annotationNamed(t, "live-run", "Runs")}, secondRun); len(at) != 1 || len(at[0].seconds) != 29 {
		t.Errorf("the region of the second run, from 41 to 69, is at %v", at)
	}

	chart := panelNamed(t, "runs", "Latency over elapsed time")
	elapsed, latency := s.lines(t, &chart.Targets[0], firstRun), s.lines(t, &chart.Targets[1], firstRun)
	if len(elapsed) != 1 || len(latency) != 1 {
		t.Fatalf("the chart over elapsed time has %d and %d lines, want 1", len(elapsed), len(latency))
	}
	for _, second := range latency[0].seconds {
		if !slices.Contains(elapsed[0].seconds, second) {
			t.Errorf("the latency of second %d has no place on the axis", second)
		}
	}
}

// annotationNamed returns the query of an annotation.
func annotationNamed(t *testing.T, dashboard, name string) string {
	t.Helper()
	for _, d := range dashboards(t) {
		for _, a := range d.Annotations.List {
			if d.Name == dashboard && a.Name == name {
				return a.Expr
			}
		}
	}
	t.Fatalf("there is no annotation %s: %s", dashboard, name)
	return ""
}
