package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/table"
)

// sampled replaces the samples of the recorded run by 15 of one server, a second
// apart. values returns them for each second.
func sampled(t *testing.T, values func(second float64) map[string]float64) *history.History {
	t.Helper()
	dir := captured(t)
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
	return readHistory(t, dir)
}

// TestCommitsOfGaleraNode guards that a node under autocommit, which counts no
// COMMIT statement, has commits in the report as it has on the page (issue 10,
// defect 5).
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

// TestShareOfTime guards that no share of time is above 1, wherever it is shown: the
// times of two answers are not exactly those of the server's own readings (issue 10,
// defect 6).
func TestShareOfTime(t *testing.T) {
	h := sampled(t, func(second float64) map[string]float64 {
		return map[string]float64{"galera_flow_control_paused_seconds_total": 1.2 * second}
	})
	r := New(h)
	if v := r.Servers[0].Value(engine.FlowControl); v != 1 {
		t.Errorf("share %v in the report", v)
	}
	for _, m := range Measures([]Row{r.Row}) {
		if m.Name == "flow control" && m.Value(&r.Row) != 1 {
			t.Errorf("share %v in tables", m.Value(&r.Row))
		}
	}
	for _, c := range r.Charts {
		if c.Title == engine.FlowControl.Title && c.largest() != 100 {
			t.Errorf("%v %% in the chart", c.largest())
		}
	}
	if !slices.ContainsFunc(r.Observed, func(text string) bool { return strings.Contains(text, "for 100.0 % of the time") }) {
		t.Errorf("observed %q", r.Observed)
	}
}

// TestMeasuresOfEveryEngine guards that what an engine declares has a chart and a row
// without further code.
func TestMeasuresOfEveryEngine(t *testing.T) {
	for _, id := range []string{"kv_backoffs", "commit_latency", "backend_connections", "certification_queue", "write_conflicts"} {
		m := measureByID(t, id)
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
		if servers := serverTable(r.Servers); !slices.ContainsFunc(servers.Rows, func(row []table.Cell) bool { return strings.HasPrefix(row[0].String(), m.Title) }) {
			t.Errorf("%s has no row", id)
		}
	}
}
