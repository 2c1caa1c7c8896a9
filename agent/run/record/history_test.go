package record

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const banner = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 4\nReport intermediate results every 1 second(s)\n\nThreads started!\n\n"

func intervalLine(second int, tps float64) string {
	return fmt.Sprintf("[ %ds ] thds: 4 tps: %.2f qps: %.2f (r/w/o: 0.00/%.2f/0.00) lat (ms,95%%): 1.04 err/s: 0.00 reconn/s: 0.00\n", second, tps, tps, tps)
}

func summaryText(n int, seconds float64) string {
	return fmt.Sprintf("SQL statistics:\n    transactions:                        %-6d (%.2f per sec.)\n\nGeneral statistics:\n    total time:                          %.4fs\n    total number of events:              %d\n\n",
		n, float64(n)/seconds, seconds, n)
}

var historyStart = time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)

// recorded makes a run directory of an ended run with these contents.
func recorded(t testing.TB, stdout string, status []string) rundir.Directory {
	t.Helper()
	end := historyStart.Add(10 * time.Second)
	clock := historyStart.Add(500 * time.Millisecond)
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{
		ID:        "r",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: historyStart, ClockStartedAt: &clock},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Closing:   rundir.Closing{ClosedAt: &end},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	write(t, dir.Path(rundir.StdoutFile), stdout)
	write(t, dir.Path(rundir.StatusFile), strings.Join(status, ""))
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readBack is a short run with all rows.
type readBack struct {
	*History
	Rows    *ingest.Intervals
	Servers []*ServerRows
}

func (r *readBack) Server(target string) *ServerRows {
	for _, s := range r.Servers {
		if s.Target == target {
			return s
		}
	}
	return nil
}

func read(t testing.TB, dir rundir.Directory) *readBack {
	t.Helper()
	h, err := Read(context.Background(), dir, tool.Set{sysbench.Tool})
	if err != nil {
		t.Fatal(err)
	}
	r := &readBack{History: h}
	if err := h.EachTotal(context.Background(), func(rows *ingest.Intervals) error { r.Rows = rows; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := h.EachSample(context.Background(), func(servers []*ServerRows) error { r.Servers = servers; return nil }); err != nil {
		t.Fatal(err)
	}
	return r
}

// statusLine is a header with the values' names and a row.
func statusLine(t testing.TB, second int, target string, values map[string]float64) string {
	t.Helper()
	columns := slices.Sorted(maps.Keys(values))
	header, err := json.Marshal(statusHeader{Target: target, Engine: "galera", Cluster: "c", Role: "member", Version: "10.11", Columns: columns})
	if err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf(`[%q,%d,0,0.001,0.003,""`, target, historyStart.Add(time.Duration(second)*time.Second).Unix())
	for _, name := range columns {
		row += fmt.Sprintf(",%v", values[name])
	}
	return string(header) + "\n" + row + "]\n"
}

func downLine(second int, target string) string {
	return fmt.Sprintf("[%q,%d,0,\"no answer\"]\n", target, historyStart.Add(time.Duration(second)*time.Second).Unix())
}

// TestHistory guards the common axis: reports by the tool's clock, answers by
// the wall clock, both from the start of the tool's clock.
func TestHistory(t *testing.T) {
	dir := recorded(t, banner+intervalLine(1, 100)+intervalLine(2, 110)+summaryText(210, 2), []string{
		statusLine(t, 1, "n1", map[string]float64{"db_queries_total": 100, `db_operations_total{op="select"}`: 7}),
		statusLine(t, 1, "n2", map[string]float64{"db_queries_total": 5}),
		statusLine(t, 2, "n1", map[string]float64{"db_queries_total": 300, "galera_ready": 1}),
		downLine(2, "n2"),
		statusLine(t, 3, "n2", map[string]float64{"db_queries_total": 9}),
	})
	mark := marker.Marker{Kind: marker.Point, Run: "r", Text: "fc_limit=1000", Start: historyStart.Add(time.Second)}
	if err := marker.Append(dir, mark); err != nil {
		t.Fatal(err)
	}
	h := read(t, dir)
	if want := historyStart.Add(500 * time.Millisecond); !h.Zero.Equal(want) {
		t.Errorf("zero %v, want %v", h.Zero, want)
	}
	if d := cmp.Diff([]float64{1, 2}, h.Intervals.Elapsed); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{100, 110}, h.Rows.Rate("transaction")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{100, 210}, h.Rows.Values(ingest.Column{Kind: ingest.OperationsTotal, Operation: "transaction"})); d != "" {
		t.Error(d)
	}
	if got := h.Rows.Values(ingest.LatencyOf("transaction", "p95")); len(got) != 2 || got[0] != 0.00104 {
		t.Errorf("p95 %v", got)
	}
	n1, n2 := h.Server("n1"), h.Server("n2")
	nan := math.NaN()
	for _, c := range []struct {
		what      string
		got, want []float64
	}{
		{"ticks", n1.Elapsed, []float64{0.5, 1.5}},
		{"rate", n1.Rate("db_queries_total"), []float64{nan, 200}},
		{"gone", n1.Values(`db_operations_total{op="select"}`), []float64{7, nan}},
		{"new", n1.Values("galera_ready"), []float64{nan, 1}},
		{"down", n2.Values("db_queries_total"), []float64{5, nan, 9}},
		{"rate over a gap", n2.Rate("db_queries_total"), []float64{nan, nan, nan}},
		{"never told", n2.Values("galera_ready"), nil},
		{"answered", n2.Answered, []float64{0.503, nan, 2.503}},
	} {
		if d := cmp.Diff(c.want, c.got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-9)); d != "" {
			t.Errorf("%s: %s", c.what, d)
		}
	}
	if d := cmp.Diff([]string{"no answer"}, n2.Errors); d != "" {
		t.Error(d)
	}
	if len(h.Markers) != 1 || h.Elapsed(h.Markers[0].Start) != 0.5 {
		t.Errorf("markers %v", h.Markers)
	}
	if lines := h.DamageLines(); len(lines) != 0 {
		t.Errorf("damage %q", lines)
	}
}

// TestHistoryDamage guards that unreadable lines are counted and do not end the reading.
func TestHistoryDamage(t *testing.T) {
	whole := statusLine(t, 5, "n1", map[string]float64{"a": 1})
	dir := recorded(t, banner+intervalLine(2, 100)+intervalLine(1, 90)+intervalLine(3, 1)[:9], []string{
		"garbage\n", "{}\n", "\n", `["n1",1795227244,0,0,0,"",1e999]` + "\n",
		strings.Repeat("x", LongestStatus+5) + "\n",
		whole, whole, whole[:40],
	})
	write(t, dir.Path(rundir.MarkersFile), "{\"marker\":\n")
	h := read(t, dir)
	want := []string{
		"1 line of the tool's output is damaged",
		"4 lines of status.jsonl are unreadable",
		"1 server status out of order left out",
		"the tool's output ends within a line",
		"status.jsonl ends within a line",
	}
	if d := cmp.Diff(want, h.DamageLines()); d != "" {
		t.Error(d)
	}
	if got := h.Server("n1").Values("a"); len(got) != 1 || got[0] != 1 {
		t.Errorf("values %v", got)
	}
}

// TestHistoryOfLiveRun guards that a partly written line is neither damage nor a value.
func TestHistoryOfLiveRun(t *testing.T) {
	dir := recorded(t, banner+intervalLine(1, 100)+intervalLine(2, 1234)[:30], []string{
		statusLine(t, 1, "n1", map[string]float64{"a": 1}), statusLine(t, 2, "n1", map[string]float64{"a": 1})[:50],
	})
	if _, err := dir.Update(func(m *rundir.Meta) { m.EndedAt, m.ClosedAt = nil, nil }); err != nil {
		t.Fatal(err)
	}
	h := read(t, dir)
	if n := len(h.Intervals.Elapsed); n != 1 || len(h.DamageLines()) != 0 {
		t.Errorf("%d intervals, damage %q", n, h.DamageLines())
	}
	if h.Snapshot.Phase != ingest.Measuring {
		t.Errorf("phase %s", h.Snapshot.Phase)
	}
}

// TestHistoryOfTwoParts guards that a second run of the tool in one output comes after the first.
func TestHistoryOfTwoParts(t *testing.T) {
	one := banner + intervalLine(1, 100) + intervalLine(2, 100) + summaryText(200, 2)
	h := read(t, recorded(t, one+one, nil))
	if d := cmp.Diff([]float64{1, 2, 3, 4}, h.Intervals.Elapsed); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{1, 1, 2, 2}, h.Rows.Part); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{100, 200, 300, 400}, h.Rows.Values(ingest.Column{Kind: ingest.OperationsTotal, Operation: "transaction"})); d != "" {
		t.Error(d)
	}
}

// TestClockStart guards that the time before the tool's clock starts does not count as its time.
func TestClockStart(t *testing.T) {
	dir := recorded(t, banner+intervalLine(1, 100)+summaryText(100, 4), nil)
	if _, err := dir.Update(func(m *rundir.Meta) { m.ClockStartedAt = nil }); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir).Elapsed(historyStart); got != -6 { // 10 s in all, 4 s by its clock
		t.Errorf("the process began at %v", got)
	}
}

// TestStatusLines guards that later lines of a server are read like its first one, with known and missing values, and
// that a line that is cut or invalid does not affect the others.
func TestStatusLines(t *testing.T) {
	one := statusLine(t, 1, "n1", map[string]float64{"a": 1, "b": 2, "c": 3})
	dir := recorded(t, "", []string{
		one,
		statusLine(t, 2, "n1", map[string]float64{"a": 10, "c": 30}),
		statusLine(t, 3, "n1", map[string]float64{"a": 100, "b": 200, "c": 300, "d": 400}),
		downLine(4, "n1") + "\n",
		strings.Replace(statusLine(t, 5, "n1", map[string]float64{"a": 5}), ",5]", ",x]", 1),
		`{"target":"n2","columns":nothing}` + "\n",
		statusLine(t, 6, "n1", map[string]float64{"a": 6, "b": -6.5e-3, "c": 6}),
	})
	h := read(t, dir)
	if len(h.Servers) != 1 || h.Damage.UnreadableStatus != 2 {
		t.Fatalf("%d servers, %d unreadable lines", len(h.Servers), h.Damage.UnreadableStatus)
	}
	nan := math.NaN()
	for name, want := range map[string][]float64{"a": {1, 10, 100, nan, 6}, "b": {2, nan, 200, nan, -6.5e-3}, "c": {3, 30, 300, nan, 6}, "d": {nan, nan, 400, nan, nan}} {
		if d := cmp.Diff(want, h.Servers[0].Values(name), cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
