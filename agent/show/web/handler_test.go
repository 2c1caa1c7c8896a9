package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestBadRequests guards ids and numbers from outside.
func TestBadRequests(t *testing.T) {
	s := newSite(t)
	s.ended(rundir.Meta{ID: "one"}, "")
	write(t, filepath.Join(s.dataDir, "secret"), "x")
	for path, want := range map[string]int{
		"/api/runs/nothing":                    404,
		"/api/runs/nothing/history":            404,
		"/api/runs/..%2fsecret":                400,
		"/api/runs/%2e%2e":                     400,
		"/api/runs/.hidden/history":            400,
		"/api/runs/a%00b":                      400,
		"/api/runs/one/history?points=x":       400,
		"/api/runs/one/history?from=NaN":       400,
		"/api/runs/one/history?from=9&to=1":    200,
		"/api/runs/one/history?points=-5":      200,
		"/api/runs/one/history?points=9999999": 200,
		"/api/nothing":                         404,
	} {
		code, body := s.get(path)
		if code != want {
			t.Errorf("%s: %d, want %d: %s", path, code, want, body)
		}
		if want == 400 && !json.Valid(body) {
			t.Errorf("%s: not JSON: %s", path, body)
		}
	}
	resp, err := s.server.Client().Post(s.url+"/api/runs", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

// TestOnly guards that a run that serves its own page shows no other runs.
func TestOnly(t *testing.T) {
	s := newSite(t, "mine")
	_, claim := s.create(rundir.Meta{ID: "other", Timing: rundir.Timing{StartedAt: begin}})
	claim.Release()
	s.ended(rundir.Meta{ID: "mine"}, "")
	s.stream().next("hello", has(`"only":"mine"`))
	if code, _ := s.get("/api/runs/other"); code != http.StatusNotFound {
		t.Errorf("another run: %d", code)
	}
}

// TestOldRun guards that a run beyond the kept ones opens by its id.
func TestOldRun(t *testing.T) {
	s := newSite(t)
	s.stop() // nobody keeps it
	end := begin.Add(time.Minute)
	dir, claim := s.create(rundir.Meta{
		ID:        "old",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: begin},
		End:       rundir.End{EndedAt: &end},
		Closing:   rundir.Closing{ClosedAt: &end},
	})
	claim.Release()
	write(t, dir.Path(rundir.StdoutFile), banner+interval(1, 10))
	if h := s.history("old", ""); len(h.Tables["intervals"].X) != 1 {
		t.Errorf("%+v", h)
	}
}

// TestHostileText guards that titles, labels and tool output are JSON strings in
// which no script can hide.
func TestHostileText(t *testing.T) {
	s := newSite(t)
	const evil, shown = "</script><script>alert(1)</script>\u2028\"'&\n\ndata: x", "</script><script>alert(1)</script> \"'&  data: x"
	s.ended(rundir.Meta{ID: "evil", Title: evil, Labels: map[string]string{"k": evil}}, "FATAL: "+evil+"\n")
	code, body := s.get("/api/runs/evil")
	var d runDetail
	if err := json.Unmarshal(body, &d); code != 200 || err != nil {
		t.Fatal(code, err)
	}
	if d.Title != shown || d.Labels["k"] != shown {
		t.Errorf("%q", d.Title)
	}
	if bytes.ContainsAny(body, "<>\u2028\n") {
		t.Errorf("not escaped: %s", body)
	}
}

// TestGzip guards that a history is compressed for clients that accept it.
func TestGzip(t *testing.T) {
	s := newSite(t)
	var b strings.Builder
	for i := range 200 {
		b.WriteString(interval(i+1, 1000))
	}
	s.ended(rundir.Meta{ID: "one"}, banner+b.String())
	req, err := http.NewRequest(http.MethodGet, s.url+"/api/runs/one/history", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := s.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Encoding") != "gzip" {
		t.Error("not compressed")
	}
}
