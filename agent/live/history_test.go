package live

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/launch"
	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool/sysbench"
)

var historyStart = time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)

// recorded makes a run directory of an ended run with these contents.
func recorded(t testing.TB, stdout string, status []string) rundir.Directory {
	t.Helper()
	end := historyStart.Add(10 * time.Second)
	clock := historyStart.Add(500 * time.Millisecond)
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{
		ID: "r", Tool: "sysbench", StartedAt: historyStart, ClockStartedAt: &clock, EndedAt: &end, ClosedAt: &end, Outcome: rundir.Succeeded,
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

func read(t testing.TB, dir rundir.Directory) *history.History {
	t.Helper()
	h, err := history.Read(context.Background(), dir, sysbench.Tool)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func statusLine(t testing.TB, second int, target string, values map[string]float64) string {
	t.Helper()
	tick := historyStart.Add(time.Duration(second) * time.Second)
	asked := tick.Add(time.Millisecond)
	data, err := json.Marshal(history.Status{
		Tick: tick, Asked: &asked, Answered: tick.Add(3 * time.Millisecond), Target: target, Engine: "galera", Cluster: "c",
		Role: "member", Version: "10.11", Up: true, Values: values,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

func down(second int, target string) string {
	tick := historyStart.Add(time.Duration(second) * time.Second).Format(time.RFC3339)
	return fmt.Sprintf(`{"tick":%q,"answered":%q,"target":%q,"engine":"galera","cluster":"c","up":false,"error":"no answer"}`+"\n", tick, tick, target)
}

// TestHistory guards the common axis: reports by the tool's clock, answers by
// the wall clock, both from the start of the tool's clock.
func TestHistory(t *testing.T) {
	dir := recorded(t, banner+intervalLine(1, 100)+intervalLine(2, 110)+summaryText(210, 2), []string{
		statusLine(t, 1, "n1", map[string]float64{"db_queries_total": 100, `db_operations_total{op="select"}`: 7}),
		statusLine(t, 1, "n2", map[string]float64{"db_queries_total": 5}),
		statusLine(t, 2, "n1", map[string]float64{"db_queries_total": 300, "galera_ready": 1}),
		down(2, "n2"),
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
	if d := cmp.Diff([]float64{100, 110}, h.Intervals.Rate("transaction")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{100, 210}, h.Intervals.Total("transaction")); d != "" {
		t.Error(d)
	}
	if got := h.Intervals.Latency("transaction", "p95"); len(got) != 2 || got[0] != 0.00104 {
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

// TestHistoryDamage guards that what can't be read is counted and ends nothing.
func TestHistoryDamage(t *testing.T) {
	whole := statusLine(t, 5, "n1", map[string]float64{"a": 1})
	dir := recorded(t, banner+intervalLine(2, 100)+intervalLine(1, 90)+intervalLine(3, 1)[:9], []string{
		"garbage\n", "{}\n", "\n", `{"tick":"2026-11-21T02:14:04Z","target":"n1","up":true,"values":{"a":1e999}}` + "\n",
		strings.Repeat("x", history.LongestStatus+5) + "\n",
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

// TestHistoryOfLiveRun guards that half of what is being written is not taken
// for damage, nor for a value.
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

// TestHistoryOfTwoParts guards that a second run of the tool in one output
// comes behind the first.
func TestHistoryOfTwoParts(t *testing.T) {
	one := banner + intervalLine(1, 100) + intervalLine(2, 100) + summaryText(200, 2)
	h := read(t, recorded(t, one+one, nil))
	if d := cmp.Diff([]float64{1, 2, 3, 4}, h.Intervals.Elapsed); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{1, 1, 2, 2}, h.Intervals.Part); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{100, 200, 300, 400}, h.Intervals.Total("transaction")); d != "" {
		t.Error(d)
	}
}

// TestClockStart guards that what a tool needs before its clock begins to run
// is not taken for its time.
func TestClockStart(t *testing.T) {
	dir := recorded(t, banner+intervalLine(1, 100)+summaryText(100, 4), nil)
	if _, err := dir.Update(func(m *rundir.Meta) { m.ClockStartedAt = nil }); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir).Elapsed(historyStart); got != -6 { // 10 s in all, 4 s by its clock
		t.Errorf("the process began at %v", got)
	}
}

// TestClockStartIsRecorded guards that the start of the tool's clock is seen
// while it runs: here the tool took nearly an hour to begin.
func TestClockStartIsRecorded(t *testing.T) {
	data := t.TempDir()
	began := time.Now()
	dir, claim, err := rundir.Create(data, rundir.Meta{ID: "one", Tool: "sysbench", StartedAt: began.Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Release)
	gate, open := fifo(t)
	p, err := launch.Start(dir, []string{"sh", "-c", script(t, banner) + "; cat " + gate + "; " + script(t, intervalLine(1, 10))})
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t, Options{DataDir: data})
	w.until("one", "the banner", func(s ingest.Snapshot) bool { return s.Lines.Reported+s.Lines.Ignored > 3 })
	open()
	if _, err := p.Wait(nil); err != nil {
		t.Fatal(err)
	}
	s := w.until("one", "over", over)
	clock := s.Meta.ClockStartedAt
	if clock == nil || clock.Before(began.Add(-2*time.Second)) || clock.After(time.Now()) {
		t.Fatalf("the clock began at %v, the test at %v", clock, began)
	}
	if h := read(t, dir); !h.Zero.Equal(*clock) {
		t.Errorf("zero %v, want %v", h.Zero, clock)
	}
}

// FuzzStatusLine guards that the quick way to read a line and the general one
// agree.
func FuzzStatusLine(f *testing.F) {
	f.Add(statusLine(f, 1, "n1", map[string]float64{"a": 1, `b{c="\"\\\n"}`: -2.5e-9, "ü<": 1e21}))
	f.Add(down(1, "n"))
	f.Add(`{"tick":"2026-11-21T02:14:04Z","target":"n","up":true,"values":{"a":1,"a":2}}`)
	f.Add(`{"tick":"2026-11-21T02:14:04Z","target":"n","values":{"a":1},"up":true}`)
	f.Fuzz(func(t *testing.T, line string) {
		var s history.Status
		if json.Unmarshal([]byte(line), &s) != nil || s.Target == "" || s.Tick.IsZero() || s.Tick.Year() < 1980 || s.Tick.Year() > 2200 {
			return // the quick way may let pass a number that JSON does not
		}
		// A server's first line is always read the general way.
		first := history.Status{Tick: s.Tick.Add(-time.Second), Target: s.Target, Up: true, Values: map[string]float64{"a": 7}}
		quick, general := &history.History{Zero: historyStart}, &history.History{Zero: historyStart}
		quick.AddStatus(&first)
		general.AddStatus(&first)
		if !history.NewStatusDecoder().Add(quick, []byte(line)) {
			t.Fatalf("unreadable: %s", line)
		}
		general.AddStatus(&s)
		a, b := quick.Servers[0], general.Servers[0]
		if d := cmp.Diff(b, a, cmpopts.IgnoreUnexported(series.Table[string]{}, history.Timeline{}), cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s: %s", line, d)
		}
		for _, name := range b.Names() {
			if a.Values(name) == nil {
				t.Errorf("%s: %q is missing", line, name)
			}
			// A name that stands there twice: JSON takes the last, we the first.
			if d := cmp.Diff(b.Values(name), a.Values(name), cmpopts.EquateNaNs()); d != "" && len(s.Values) == strings.Count(line, ":")-strings.Count(strings.SplitN(line, `"values"`, 2)[0], ":")-1 {
				t.Errorf("%s %q: %s", line, name, d)
			}
		}
	})
}

// TestStatusLines guards that lines after a server's first are read like it: what
// stands in them and what does not, and that a line cut short or with something
// else in it takes nothing of the others with it.
func TestStatusLines(t *testing.T) {
	one := statusLine(t, 1, "n1", map[string]float64{"a": 1, "b": 2, "c": 3})
	dir := recorded(t, "", []string{
		one,
		statusLine(t, 2, "n1", map[string]float64{"a": 10, "c": 30}),
		statusLine(t, 3, "n1", map[string]float64{"a": 100, "b": 200, "c": 300, "d": 400}),
		down(4, "n1") + "\n",
		strings.Replace(statusLine(t, 5, "n1", map[string]float64{"a": 5}), ":5}", ":x}", 1),
		`{"tick":"2026-11-21T02:14:04Z","target":"n2","values":{"a":nothing}}` + "\n",
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

func BenchmarkReadHistory(b *testing.B) {
	var out, status strings.Builder
	out.WriteString(banner)
	values := map[string]float64{}
	for i := range 80 {
		values[fmt.Sprintf("galera_some_status_counter_%d_total", i)] = float64(i) * 1234567.25
	}
	const seconds = 36000
	for i := 1; i <= seconds; i++ {
		out.WriteString(intervalLine(i, float64(i)))
	}
	for _, target := range []string{"n1", "n2", "n3"} {
		line := statusLine(b, 0, target, values)
		head, rest, _ := strings.Cut(line, historyStart.Format(time.RFC3339))
		for i := range seconds {
			status.WriteString(head + historyStart.Add(time.Duration(i)*time.Second).Format(time.RFC3339) + rest)
		}
	}
	dir := recorded(b, out.String(), []string{status.String()})
	few := func(name string) bool { return strings.HasSuffix(name, "7_total") }
	for _, what := range []struct {
		name string
		keep func(string) bool
	}{{"all", nil}, {"few", few}} {
		b.Run(what.name, func(b *testing.B) {
			b.SetBytes(int64(out.Len() + status.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := history.ReadHistoryOf(context.Background(), dir, sysbench.Tool, what.keep); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
