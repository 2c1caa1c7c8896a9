package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// sampled replaces the samples of the recorded run by 15 of one server, a second
// apart. values returns them for each second.
func sampled(t *testing.T, values func(second float64) map[string]float64) *record.History {
	t.Helper()
	return recorded.Read(t, sampledRun(t, values))
}

// sampledRun is the directory of such a run.
func sampledRun(t *testing.T, values func(second float64) map[string]float64) rundir.Directory {
	t.Helper()
	dir := recorded.Galera(t)
	var lines strings.Builder
	for i := range 15 {
		at := time.Date(2026, 11, 21, 11, 15, 39+i, 0, time.UTC)
		all := values(float64(i))
		names := slices.Sorted(maps.Keys(all))
		columns, err := json.Marshal(names)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, `{"target":"n1","engine":"mysql","columns":%s}`+"\n"+`["n1",%d,0,0,0,""`, columns, at.Unix())
		for _, name := range names {
			fmt.Fprintf(&lines, ",%v", all[name])
		}
		lines.WriteString("]\n")
	}
	if err := os.WriteFile(dir.Path(rundir.StatusFile), []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCommitsOfGaleraNode guards that a node under autocommit, which counts no
// COMMIT statement, has commits in the report as it has on the page.
func TestCommitsOfGaleraNode(t *testing.T) {
	h := sampled(t, func(second float64) map[string]float64 {
		return map[string]float64{"db_commits_total": 7, "galera_local_commits_total": 250 * second}
	})
	r := New(h)
	if v := r.Servers[0].Value(engine.CommitRate); v != 250 {
		t.Errorf("%v commits per second, want 250", v)
	}
	if !slices.ContainsFunc(r.Charts, func(c Chart) bool { return c.Title == "Commits" && c.Lines[0].Y[5] == 250 }) {
		t.Error("no chart of them")
	}
}

// TestMeansAreOfTheRun guards that a server's rate is about the seconds that lie
// wholly in the run, in the table and in the chart's legend: it is compared with the
// tool's.
func TestMeansAreOfTheRun(t *testing.T) {
	const began, ended = 2.6, 11.5 // by the seconds of the samples
	dir := sampledRun(t, func(second float64) map[string]float64 {
		return map[string]float64{"db_queries_total": 1000 * max(0, min(second, ended)-began)}
	})
	if _, err := dir.Update(func(m *rundir.Meta) {
		first := time.Date(2026, 11, 21, 11, 15, 39, 0, time.UTC)
		start, end := first.Add(2600*time.Millisecond), first.Add(11500*time.Millisecond)
		m.ClockStartedAt, m.EndedAt = &start, &end
	}); err != nil {
		t.Fatal(err)
	}
	r := New(recorded.Read(t, dir))
	if v := r.Servers[0].Value(engine.QueryRate); v < 999.9 || v > 1000.1 {
		t.Errorf("%v queries per second, want 1000", v)
	}
	for _, c := range r.Charts {
		if c.Title == engine.QueryRate.Title && !strings.HasPrefix(c.Legend()[0].Values, "mean 1000,") {
			t.Errorf("the legend has %q", c.Legend()[0].Values)
		}
	}
}

// TestShareOfTime guards that no share of time is above 1, wherever it is shown: the
// times of two answers are not exactly those of the server's own readings.
func TestShareOfTime(t *testing.T) {
	h := sampled(t, func(second float64) map[string]float64 {
		return map[string]float64{"galera_flow_control_paused_seconds_total": 1.2 * second}
	})
	r := New(h)
	if v := r.Servers[0].Value(engine.FlowControl); v != 1 {
		t.Errorf("share %v in the report", v)
	}
	for _, m := range review.Measures([]review.Row{r.Row}) {
		if m.Name == "flow control" && m.Value(&r.Row) != 1 {
			t.Errorf("share %v in tables", m.Value(&r.Row))
		}
	}
	for _, c := range r.Charts {
		if c.Title == engine.FlowControl.Title && !strings.HasSuffix(c.Legend()[0].Values, " to 100.0") {
			t.Errorf("%q in the chart", c.Legend()[0].Values)
		}
	}
	if !slices.ContainsFunc(r.Observed, func(text string) bool { return strings.Contains(text, "for 100 % of the time") }) {
		t.Errorf("observed %q", r.Observed)
	}
}

// TestPausesAndWaitsTogether guards that waits in the seconds in which writes were held back count for
// flow control, and those in the other seconds do not.
func TestPausesAndWaitsTogether(t *testing.T) {
	captured := recorded.Read(t, recorded.Galera(t))
	threads := float64(captured.Snapshot.Threads.Value)
	h := sampled(t, func(second float64) map[string]float64 {
		waiting := threads
		if second > 8 {
			waiting = threads / 2
		}
		return map[string]float64{
			"galera_flow_control_paused_seconds_total": min(second, 8), `db_active_sessions{class="replication",event="certification"}`: waiting,
			`db_active_sessions{class="running",event="updating"}`: threads - waiting,
		}
	})
	shares := map[cause.Limit]float64{}
	for _, f := range New(h).Limits.Findings {
		shares[f.Limit] = f.Share
	}
	held, certified := shares[cause.FlowControl], shares[cause.Replication]
	if math.Abs(held-8.0/14) > 0.1 || math.Abs(certified-3.0/14) > 0.06 {
		t.Errorf("flow control %.2f, certification %.2f, want 0.57 and 0.21: %v", held, certified, shares)
	}
}

// TestMeasuresOfEveryEngine guards that what an engine declares has a chart and a row
// without further code.
func TestMeasuresOfEveryEngine(t *testing.T) {
	for _, id := range []string{"kv_backoffs", "commit_latency", "backend_connections", "certification_queue", "write_conflicts"} {
		m := declared(t, id)
		h := sampled(t, func(second float64) map[string]float64 {
			values := map[string]float64{}
			source := m.Sources()[0]
			for i, metric := range slices.Concat(append(source.Added, source.Metric), source.Divisors) {
				name := metric.Name
				for j, label := range metric.Labels {
					name += string("{,"[min(j, 1)]) + label + `="x"`
				}
				if len(metric.Labels) > 0 {
					name += "}"
				}
				values[name] = second*second + float64(i)
			}
			return values
		})
		r := New(h)
		if !slices.ContainsFunc(r.Charts, func(c Chart) bool { return c.Title == m.Title }) {
			t.Errorf("%s has no chart", id)
		}
		if servers := review.ServerTable(r.Servers); !slices.ContainsFunc(servers.Rows, func(row []table.Cell) bool { return strings.HasPrefix(row[0].String(), m.Title) }) {
			t.Errorf("%s has no row", id)
		}
	}
}

// TestGaps guards that no line spans seconds in which nothing was sampled or reported, and that missed samples are
// reported as missed.
func TestGaps(t *testing.T) {
	dir := recorded.Galera(t)
	status := `{"target":"n1","engine":"mysql","interval":1,"columns":["db_threads_running"]}` + "\n"
	for _, second := range []int{39, 40, 41, 45, 46, 47, 48, 49, 50, 51, 52, 53} {
		status += fmt.Sprintf(`["n1",%d,0,0,0,"",8]`+"\n", time.Date(2026, 11, 21, 11, 15, second, 0, time.UTC).Unix())
	}
	stdout, err := os.ReadFile(dir.Path(rundir.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(stdout), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "[ 5s ]") || strings.HasPrefix(line, "[ 6s ]")
	})
	for name, data := range map[string]string{rundir.StatusFile: status, rundir.StdoutFile: strings.Join(lines, "")} {
		if err := os.WriteFile(dir.Path(name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := recorded.Read(t, dir)
	r := New(h)
	gaps := 0
	for _, c := range r.Charts {
		if c.Title != "Threads running" && c.Title != "Throughput" {
			continue
		}
		gaps++
		d := path(c.Lines[0], func(v float64) float64 { return v }, func(v float64) float64 { return v })
		if n := strings.Count(d, "M"); n != 2 {
			t.Errorf("%s is drawn in %d parts: %s", c.Title, n, d)
		}
	}
	if gaps != 2 {
		t.Errorf("%d charts, want throughput and threads running", gaps)
	}
	if s := r.Servers[0]; s.Missed != 3 || s.Unanswered != 0 || s.Ticks != 12 {
		t.Errorf("missed %d, unanswered %d of %d", s.Missed, s.Unanswered, s.Ticks)
	}
	said := fmt.Sprint(r.Trust, r.Observed)
	if !strings.Contains(said, "the agent missed 3 samples") || strings.Contains(said, "did not answer") {
		t.Error(said)
	}
}

// declared returns a measure of servers.
func declared(t *testing.T, id string) *measure.Measure {
	t.Helper()
	all := measure.All(measure.Server)
	i := slices.IndexFunc(all, func(m *measure.Measure) bool { return m.ID == id })
	if i < 0 {
		t.Fatalf("no measure %s", id)
	}
	return all[i]
}
