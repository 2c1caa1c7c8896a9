package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// The page gets the history that the command prints, drawn with links to its runs, and
// foreign text in it is no markup.
func TestTrend(t *testing.T) {
	s := newSite(t)
	for i := range 20 {
		tps, version := 1000+float64(i*7%11), "old"
		if i >= 10 {
			tps, version = tps/2, "<b>new</b>"
		}
		start := begin.Add(time.Duration(i) * 24 * time.Hour)
		end := start.Add(time.Minute)
		meta := rundir.Meta{
			ID: fmt.Sprintf("r%02d", i), Labels: map[string]string{"version": version, "even": fmt.Sprint(i%2 == 0)},
			Benchmark: rundir.Benchmark{Tool: "sysbench", Workload: "oltp"},
			Timing:    rundir.Timing{StartedAt: start, ClockStartedAt: &start},
			End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
			Closing:   rundir.Closing{ClosedAt: &end},
		}
		dir, claim := s.create(meta)
		claim.Release()
		write(t, dir.Path(rundir.StdoutFile), banner+interval(1, tps)+interval(2, tps))
	}
	get := func(query string) trendView {
		t.Helper()
		code, body := s.get("/api/trend" + query)
		var v trendView
		if err := json.Unmarshal(body, &v); code != http.StatusOK || err != nil {
			t.Fatal(code, err, string(body))
		}
		return v
	}
	v := get("?width=390")
	if len(v.Series) != 1 || len(v.Series[0].Changes) != 1 || v.Series[0].Changes[0].After != "r10" || v.Series[0].Changes[0].Text != "version old → <b>new</b>" {
		t.Fatalf("series: %+v", v.Series)
	}
	if svg := v.Series[0].Plot.SVG; strings.Count(svg, `<a href="#/runs/r`) != 20 || !strings.Contains(svg, `viewBox="0 0 390 `) || strings.Contains(svg, "<b>") {
		t.Errorf("drawing: %s", svg)
	}
	if v := get("?by=even&where=version%3Dold"); len(v.Series) != 2 || len(v.Series[0].Changes) != 0 || v.Series[0].Title != "even false" {
		t.Errorf("by a label: %+v", v.Series)
	}
	if v := get("?runs=5"); len(v.Notes) == 0 || !strings.Contains(strings.Join(v.Notes, " "), "15 older runs left out") {
		t.Errorf("notes: %q", v.Notes)
	}
	if v := get("?measure=p99"); len(v.Series) != 0 || len(v.Notes) != 1 {
		t.Errorf("a measure that no run has: %+v", v)
	}
	if v := get("?where=tool%3Dnone"); len(v.Series) != 0 || len(v.Names) == 0 {
		t.Errorf("no run: %+v", v)
	}
	for _, bad := range []string{"?measure=speed", "?width=x", "?where=x", "?runs=0", "?runs=x"} {
		if code, body := s.get("/api/trend" + bad); code != http.StatusBadRequest || !json.Valid(body) {
			t.Errorf("%s: %d %s", bad, code, body)
		}
	}
}
