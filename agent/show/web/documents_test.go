package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

const someOutput = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 2\n\nThreads started!\n\n[ 1s ] thds: 2 tps: 10.00 qps: 20.00 (r/w/o: 20.00/0.00/0.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00\n" +
	"[ 2s ] thds: 2 tps: 10.00 qps: 20.00 (r/w/o: 20.00/0.00/0.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00\n"

// TestDocuments guards the report, the export and the findings of a run, and that
// foreign text in them is no markup.
func TestDocuments(t *testing.T) {
	s := newSite(t)
	s.ended(rundir.Meta{ID: "one", Title: "<script>x</script>"}, someOutput)
	for path, want := range map[string]string{
		"/runs/one/report":                 "&lt;script&gt;",
		"/runs/one/report?format=markdown": `## \<script\>`,
		"/runs/one/report?format=json":     `"runs":[{"id":"one"`,
		"/runs/one/export":                 "one,2026-11-21T02:14:05.000Z,2,1,measure",
		"/runs/one/export?format=servers":  "run,time,elapsed_seconds,target",
		"/runs/one/export?format=json":     `"transaction":10`,
		"/api/runs/one/findings":           `"level":"warning"`,
	} {
		resp, err := s.server.Client().Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if _, body := s.get(path); resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d, %s is missing in %.300s", path, resp.StatusCode, want, body)
		}
		if policy := resp.Header.Get("Content-Security-Policy"); strings.HasPrefix(path, "/runs") && !strings.HasPrefix(policy, "default-src 'none'; style-src 'unsafe-inline'; ") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: its type may be guessed", path)
		}
	}
	for path, want := range map[string]int{
		"/runs/one/report?format=exe": 400, "/runs/one/export?format=exe": 400, "/runs/none/report": 404, "/runs/%2e%2e/export": 400,
		"/api/runs/none/findings": 404, "/api/compare": 400, "/api/compare?group=one": 400, "/api/compare?group=one&group=none": 404,
		"/api/compare?group=one&group=%2e%2e":                        400,
		"/api/compare?group=one&group=" + strings.Repeat("one,", 20): 400,
	} {
		if code, body := s.get(path); code != want || !json.Valid(body) {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
}

// TestRequirements guards that a live run's files are read once for all pages that show what is required of it, and
// that a run of hours is not read all the time.
func TestRequirements(t *testing.T) {
	s := newSite(t)
	dir := s.ended(rundir.Meta{
		ID:         "one",
		Conditions: rundir.Conditions{Required: []string{"tps>1", "tps>1000", "drain<10s"}},
	}, someOutput)
	ask := func() string {
		code, body := s.get("/api/runs/one/requirements")
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		return string(body)
	}
	first := ask()
	for _, want := range []string{"tps\\u003e1 is met now: ", "tps\\u003e1000 is not met now: ", "drain\\u003c10s has no value yet"} {
		if !strings.Contains(first, want) {
			t.Errorf("%s is missing in %s", want, first)
		}
	}
	if err := os.Remove(dir.Path(rundir.StdoutFile)); err != nil {
		t.Fatal(err)
	}
	if ask() != first {
		t.Error("the run was read again at once")
	}
}

// TestCompare guards that the page gets the comparison that the command prints.
func TestCompare(t *testing.T) {
	s := newSite(t)
	s.ended(rundir.Meta{ID: "a", Title: "same", Labels: map[string]string{"via": "direct"}}, someOutput)
	s.ended(rundir.Meta{ID: "b", Title: "same", Labels: map[string]string{"via": "proxy"}}, strings.ReplaceAll(someOutput, "tps: 10", "tps: 20"))
	code, body := s.get("/api/compare?group=a&group=b&name=" + url.QueryEscape("<b>") + "&name=")
	var v compareView
	if err := json.Unmarshal(body, &v); code != http.StatusOK || err != nil {
		t.Fatal(code, err, string(body))
	}
	if v.Groups[0].Name != "<b>" || v.Groups[1].Name != "b" || v.Groups[1].Runs[0].ID != "b" {
		t.Errorf("groups: %+v", v.Groups)
	}
	if row := strings.Join(blockOf(t, v.Sections, "measures").Rows[0], "|"); row != "tps|10.00|20.00|2.000|+100.0 %, too short to tell" {
		t.Errorf("first row: %s of %s", row, body)
	}
	if differs := blockOf(t, v.Sections, "summary").Facts; len(differs) != 1 || differs[0] != (document.Term{Name: "via", Value: "direct → proxy"}) {
		t.Errorf("differs %+v", differs)
	}
	if charts := blockOf(t, v.Sections, document.Time).Drawings; len(charts) != 3 || charts[0].SVG != "" || charts[0].Chart != "run-transactions" {
		t.Errorf("charts %+v", charts)
	}
	if _, body := s.get("/api/compare?group=a&group=b&name=&name="); json.Unmarshal(body, &v) != nil || v.Groups[0].Name != "via=direct" || v.Groups[1].Name != "via=proxy" {
		t.Errorf("without names: %s", body)
	}
	if code, body := s.get("/api/compare?group=a&group=b&width=x"); code != http.StatusBadRequest {
		t.Errorf("no width: %d %s", code, body)
	}
}

// blockOf returns the first block of a section.
func blockOf(t *testing.T, sections []document.Section, id string) document.Block {
	t.Helper()
	for _, s := range sections {
		if s.ID == id {
			return s.Blocks[0]
		}
	}
	t.Fatalf("no section %s", id)
	return document.Block{}
}

// TestDocumentOfPage guards that the page gets the sections of the report, with drawings except for the charts over
// time, which it draws itself.
func TestDocumentOfPage(t *testing.T) {
	s := newSite(t)
	s.ended(rundir.Meta{ID: "one"}, someOutput)
	var page documentView
	var data struct{ Runs []documentView }
	for path, v := range map[string]any{"/api/runs/one/findings": &page, "/runs/one/report?format=json": &data} {
		if code, body := s.get(path); code != http.StatusOK || json.Unmarshal(body, v) != nil {
			t.Fatalf("%s: %d %s", path, code, body)
		}
	}
	if page.Note.Strong != "succeeded" || !strings.HasPrefix(page.Note.Text, "one, started ") {
		t.Errorf("note %+v", page.Note)
	}
	if d := cmp.Diff(data.Runs[0].Sections, page.Sections, cmpopts.IgnoreUnexported(document.Block{})); d != "" {
		t.Error(d)
	}
	if charts := blockOf(t, page.Sections, document.Time); len(charts.Lines) == 0 {
		t.Errorf("no charts: %+v", charts)
	}
}

func (s *site) mark(id, token, body string) int {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.url+"/api/runs/"+id+"/markers", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestMark guards that a marker can be set with the token and in no other way.
func TestMark(t *testing.T) {
	s := newSite(t)
	dir, claim := s.create(rundir.Meta{ID: "one", Timing: rundir.Timing{StartedAt: time.Now()}})
	defer claim.Release()
	const good = `{"text":"buffers <b>doubled</b>"}`
	if code := s.mark("one", "secret", good); code != http.StatusNotFound {
		t.Errorf("without a configured token: %d", code)
	}
	s.token = filepath.Join(t.TempDir(), "token")
	if code := s.mark("one", "secret", good); code != http.StatusServiceUnavailable {
		t.Errorf("without the token's file: %d", code)
	}
	if err := os.WriteFile(s.token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		id, token, body string
		want            int
	}{
		{"one", "", good, 401}, {"one", "wrong", good, 401}, {"one", "secret", "x", 400}, {"one", "secret", `{"text":" "}`, 400},
		{"one", "secret", `{"text":"` + strings.Repeat("x", maxMark) + `"}`, 400}, {"none", "secret", good, 404}, {"%2e%2e", "secret", good, 400},
		{"one", "secret", good, 204},
	} {
		if code := s.mark(test.id, test.token, test.body); code != test.want {
			t.Errorf("%s %q %.30s: %d, want %d", test.id, test.token, test.body, code, test.want)
		}
	}
	markers, err := marker.Read(dir)
	if err != nil || len(markers) != 1 || markers[0].Text != "buffers <b>doubled</b>" || time.Since(markers[0].Start).Abs() > time.Minute {
		t.Errorf("markers %+v, %v", markers, err)
	}
}

// TestAlerts guards that alerts without an end are shown as firing while their run
// is live, and only then.
func TestAlerts(t *testing.T) {
	s := newSite(t)
	alert := func(id string) marker.Marker {
		return marker.Marker{ID: id, Kind: marker.Alert, Text: "alert " + id, Start: begin}
	}
	dir, claim := s.create(rundir.Meta{ID: "live", Timing: rundir.Timing{StartedAt: begin}})
	defer claim.Release()
	over := s.ended(rundir.Meta{ID: "over"}, "")
	resolved := alert("resolved")
	resolved.End = begin.Add(time.Second)
	for _, m := range []marker.Marker{alert("firing"), resolved, {Kind: marker.Point, Text: "point", Start: begin}} {
		if err := marker.Append(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := marker.Append(over, alert("ended")); err != nil {
		t.Fatal(err)
	}
	s.until("the live run", func() bool { return len(s.watcher.Snapshots()) == 2 })
	_, body := s.get("/api/agent")
	var v agentView
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Alerts) != 1 || v.Alerts[0].Run != "live" || v.Alerts[0].Marker.Text != "alert firing" || v.Health.Token {
		t.Errorf("%s", body)
	}
}

// TestDistributions guards that the page gets the drawings and percentiles of the report.
func TestDistributions(t *testing.T) {
	s := newSite(t)
	output, err := os.ReadFile("../../model/tool/sysbench/testdata/1.0.20/oltp_point_select-th4-histogram.txt")
	if err != nil {
		t.Fatal(err)
	}
	s.ended(rundir.Meta{ID: "one"}, string(output))
	code, body := s.get("/api/runs/one/findings?width=400")
	var v documentView
	if err := json.Unmarshal(body, &v); code != http.StatusOK || err != nil {
		t.Fatal(code, err)
	}
	var plots []document.Drawing
	var rows [][]string
	for _, section := range v.Sections {
		for _, b := range section.Blocks {
			if section.ID == "distributions" {
				plots, rows = append(plots, b.Drawings...), append(rows, b.Rows...)
			}
		}
	}
	if len(plots) != 2 || !strings.Contains(plots[1].SVG, `viewBox="0 0 400 `) || len(rows) != 8 || strings.Join(rows[3][:2], " ") != "transaction p95" {
		t.Errorf("distributions: %d plots, %q", len(plots), rows)
	}
	if code, _ := s.get("/api/runs/one/findings?width=x"); code != http.StatusBadRequest {
		t.Errorf("no width: %d", code)
	}
}
