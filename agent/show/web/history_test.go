package web

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestHistory guards what is drawn for an ended run: the tool's reports and the servers' counters as growth per second,
// with a gap where one fell.
func TestHistory(t *testing.T) {
	s := newSite(t)
	dir := s.ended(rundir.Meta{ID: "one"}, banner+interval(1, 100)+interval(2, 110),
		statusLine(t, 1, "n1", 100), statusLine(t, 2, "n1", 300), statusLine(t, 3, "n1", 50), statusLine(t, 4, "n1", 90), statusLine(t, 4, "n2", 5))
	if err := marker.Append(dir, marker.Marker{Kind: marker.Point, Run: "one", Text: "fc_limit", Start: begin.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	write(t, dir.Path(host.File), `{"target":"vm","engine":"procfs","interval":1,"columns":["host_cpu_busy_ratio"]}
["vm",1795227244,0,0,0,"",0.25]
["vm",1795227245,0,0,0,"",1]
["vm",17952`)
	h := s.history("one", "")
	if h.Zero != begin.UnixMilli() || len(h.Markers) != 1 || h.Markers[0].Text != "fc_limit" || h.Run.ID != "one" {
		t.Errorf("%+v", h)
	}
	intervals, servers := h.Tables["intervals"], h.Tables["servers"]
	if got := intervals.values(t, tool.Throughput.ID, "transaction"); len(got) != 2 || got[0] != 100 || got[1] != 110 {
		t.Errorf("throughput %v", got)
	}
	if got := intervals.values(t, tool.HeadlineLatency.ID, "transaction"); got[0] != 0.00104 {
		t.Errorf("latency %v", got)
	}
	for _, v := range intervals.Series {
		if latency := v.Name[0] == tool.HeadlineLatency.ID; latency != (v.Median != nil) || latency && *v.Median != 0.00104 {
			t.Errorf("median of %v: %v", v.Name, v.Median)
		}
	}
	got := servers.values(t, "queries", "n1")
	if len(got) != 4 || !math.IsNaN(got[0]) || got[1] != 200 || !math.IsNaN(got[2]) || got[3] != 40 {
		t.Errorf("queries per second %v", got)
	}
	if got := h.Tables["host"].values(t, host.Busy.ID, "vm"); len(got) != 2 || got[0] != 0.25 || got[1] != 1 {
		t.Errorf("CPU %v", got)
	}
	for _, v := range servers.Series {
		if v.Name[0] != engine.QueryRate.ID && v.Name[0] != engine.Answered.ID {
			t.Errorf("unexpected series %v", v.Name)
		}
	}
	// Another file: read again.
	appendTo(t, dir.Path(rundir.StdoutFile), interval(3, 120))
	if got := s.history("one", "").Tables["intervals"]; len(got.X) != 3 {
		t.Errorf("not read again: %v", got.X)
	}
}

// TestThinning guards that few points are sent for a run of ten hours, including every extreme, and that a part of it
// is sent completely.
func TestThinning(t *testing.T) {
	s := newSite(t)
	var b strings.Builder
	b.WriteString(banner)
	for i := 1; i <= 36000; i++ {
		tps := 1000.0
		switch i {
		case 20000:
			tps = 5
		case 20001:
			tps = 9000
		}
		b.WriteString(interval(i, tps))
	}
	s.ended(rundir.Meta{ID: "long"}, b.String())
	all := s.history("long", "?points=1000").Tables["intervals"]
	if all.Rows != 36000 || len(all.X) > 1010 || len(all.X) < 900 {
		t.Errorf("%d points of %d rows", len(all.X), all.Rows)
	}
	if all.X[0] != 1 || all.X[len(all.X)-1] != 36000 {
		t.Errorf("from %v to %v", all.X[0], all.X[len(all.X)-1])
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range all.values(t, tool.Throughput.ID, "transaction") {
		low, high = min(low, v), max(high, v)
	}
	if low != 5 || high != 9000 {
		t.Errorf("extremes %v and %v", low, high)
	}
	for i := 1; i < len(all.X); i++ {
		if !(all.X[i] > all.X[i-1]) {
			t.Fatalf("time stands still at %v", all.X[i])
		}
	}
	part := s.history("long", "?points=1000&from=19990&to=20010").Tables["intervals"]
	if len(part.X) != 23 || part.Rows != 23 {
		t.Errorf("a part: %v", part.X)
	}
}

// TestThinnedGaps guards that a stretch without any value stays one.
func TestThinnedGaps(t *testing.T) {
	var tab table
	for i := range 1000 {
		tab.Row(float64(i))
		if i < 400 || i >= 600 {
			tab.Set(name{"k", "", ""}, float64(i))
		}
	}
	tab.Settle()
	var d drawnTable
	if err := json.Unmarshal(appendTable(nil, &tab, &tab, math.Inf(-1), math.Inf(1), 100), &d); err != nil {
		t.Fatal(err)
	}
	gaps := 0
	for i, v := range d.values(t, "k", "") {
		if math.IsNaN(v) {
			gaps++
			if d.X[i] < 400 || d.X[i] >= 600 {
				t.Errorf("a gap at %v", d.X[i])
			}
		}
	}
	if gaps < 16 {
		t.Errorf("only %d points of the gap", gaps)
	}
}

// TestFirstLook guards that a run with a large record of its servers is first sent without them, and with them at the
// next request.
func TestFirstLook(t *testing.T) {
	s := newSite(t)
	line := statusLine(t, 1, "n1", 100)
	var b strings.Builder
	for b.Len() <= longStatus {
		b.WriteString("{}" + strings.Repeat(" ", 1<<16) + "\n") // no status, but bytes
	}
	s.ended(rundir.Meta{ID: "one"}, banner+interval(1, 10), line, statusLine(t, 2, "n1", 300), b.String())
	first := s.history("one", "?first=1")
	if first.Whole || len(first.Tables["intervals"].X) != 1 || len(first.Tables["servers"].X) != 0 {
		t.Errorf("first look: %+v", first.Tables)
	}
	for _, query := range []string{"", "?first=1"} { // known by then
		if h := s.history("one", query); !h.Whole || len(h.Tables["servers"].X) != 2 {
			t.Errorf("%s: %+v", query, h.Tables)
		}
	}
}

// TestServersOfDifferentTimes guards that servers sampled at different times
// share an axis, each with gaps where it was not asked.
func TestServersOfDifferentTimes(t *testing.T) {
	s := newSite(t)
	s.ended(rundir.Meta{ID: "one"}, "",
		statusLine(t, 1, "n1", 0), statusLine(t, 2, "n1", 10), statusLine(t, 2, "n2", 0), statusLine(t, 3, "n2", 20))
	servers := s.history("one", "").Tables["servers"]
	nan := math.NaN()
	for target, want := range map[string][]float64{"n1": {nan, 10, nan}, "n2": {nan, nan, 20}} {
		if d := cmp.Diff(want, servers.values(t, "queries", target), cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s: %s", target, d)
		}
	}
}

// TestMeanIsOfTheRun guards that neither the second in which the tool started nor the
// drain is in a mean, as in a report.
func TestMeanIsOfTheRun(t *testing.T) {
	s := newSite(t)
	s.ended(rundir.Meta{ID: "one"}, "", statusLine(t, -1, "n1", 0), statusLine(t, 1, "n1", 50), statusLine(t, 2, "n1", 150),
		statusLine(t, 3599, "n1", 359850), statusLine(t, 3601, "n1", 359850))
	for _, c := range s.history("one", "").Tables["servers"].Series {
		if c.Name[0] == "queries" && *c.Mean != 100 {
			t.Errorf("mean %v, want 100", *c.Mean)
		}
	}
}

// TestLiveGap guards that a row which comes after missed ticks is drawn as after
// a gap, as it is when the history is read from the files later.
func TestLiveGap(t *testing.T) {
	var live table
	n := name{"queries", "n1", ""}
	for _, x := range []float64{1, 2, 2.3, 3, 6} {
		addRow(&live, x, 1, []cell{{n, x}})
	}
	addRow(&live, 6, 1, []cell{{n, 7}}) // known already
	got, _ := json.Marshal(json.RawMessage(appendTable(nil, &live, &live, 0, 10, 100)))
	if want := `"x":[1,2,2.3,3,4,5,6]`; !strings.Contains(string(got), want) {
		t.Errorf("no %s in %s", want, got)
	}
	if want := `"values":[1,2,2.3,3,null,null,6]`; !strings.Contains(string(got), want) {
		t.Errorf("no %s in %s", want, got)
	}
}

// TestNoTicks guards that a record without a tick, of a run that failed at once, is shown.
func TestNoTicks(t *testing.T) {
	s := newSite(t)
	dir := s.ended(rundir.Meta{ID: "one"}, banner, `{"target":"n1","engine":"mysql","interval":1,"columns":["db_queries_total"]}`+"\n")
	write(t, dir.Path(host.File), `{"target":"vm","engine":"procfs","interval":1,"columns":["host_cpu_busy_ratio"]}`+"\n")
	if h := s.history("one", ""); len(h.Tables["host"].X) != 0 || len(h.Tables["servers"].X) != 0 {
		t.Errorf("%+v", h.Tables)
	}
}
