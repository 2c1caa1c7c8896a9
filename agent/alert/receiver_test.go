package alert

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// webhook is a message as Alertmanager 0.28 posts it.
const webhook = `{
  "receiver": "benchwatch", "status": "%[1]s", "version": "4", "groupKey": "{}:{}", "truncatedAlerts": 0,
  "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {}, "externalURL": "http://alertmanager.test",
  "alerts": [{
    "status": "%[1]s",
    "labels": {"alertname": "GaleraFlowControl", "severity": "critical", "target": "node2"%[2]s},
    "annotations": {"summary": "node2 was paused 43 %% of the time", "description": "longer"},
    "startsAt": "2026-11-21T02:14:03.123456789Z", "endsAt": "%[3]s",
    "generatorURL": "http://prometheus.test/graph", "fingerprint": "c0ffee"
  }]
}`

func firing(labels string) string {
	return fmt.Sprintf(webhook, "firing", labels, "0001-01-01T00:00:00Z")
}

func resolved(labels string) string {
	return fmt.Sprintf(webhook, "resolved", labels, "2026-11-21T02:15:33.5Z")
}

type alertLab struct {
	*Receiver
	t *testing.T
}

func newAlertLab(t *testing.T) *alertLab {
	l := &alertLab{t: t}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("good\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Receiver = &Receiver{DataDir: t.TempDir(), TokenFile: token, Log: slog.New(slog.DiscardHandler)}
	return l
}

// run makes a run directory, of a run that goes on or has ended. A run in a log
// file needs no process to go on.
func (l *alertLab) run(id string, ended bool) {
	l.t.Helper()
	dir := rundir.At(l.DataDir, id)
	if err := os.MkdirAll(string(dir), 0o755); err != nil {
		l.t.Fatal(err)
	}
	meta := fmt.Sprintf(`{"id":%q,"title":"t","generator":"g","log":{"path":"x"},"started_at":"2026-11-21T02:00:00Z"`, id)
	if ended {
		meta += `,"ended_at":"2026-11-21T02:15:00Z"`
	}
	if err := os.WriteFile(dir.Path(rundir.MetaFile), []byte(meta+"}"), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *alertLab) post(body, auth string) int {
	l.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/alerts", strings.NewReader(body))
	r.Header.Set("Authorization", auth)
	w := httptest.NewRecorder()
	l.ServeHTTP(w, r)
	return w.Code
}

func (l *alertLab) markers(id string) []marker.Marker {
	l.t.Helper()
	markers, err := marker.Read(rundir.At(l.DataDir, id))
	if err != nil {
		l.t.Fatal(err)
	}
	return markers
}

// TestAlertIsOneMarker: an alert that fires, is repeated and resolved is one
// marker on each run that goes on; of one that has ended only if it fired then.
func TestAlertIsOneMarker(t *testing.T) {
	l := newAlertLab(t)
	l.run("before", true)
	l.run("one", false)
	l.run("two", false)
	for range 3 {
		if code := l.post(firing(""), "Bearer good"); code != 200 {
			t.Fatal(code)
		}
	}
	for _, id := range []string{"one", "two"} {
		queue, err := os.ReadFile(rundir.At(l.DataDir, id).Path(rundir.MarkersFile))
		if n := strings.Count(string(queue), "\n"); n != 1 || err != nil {
			t.Errorf("run %s: %d lines written, %v", id, n, err)
		}
	}
	l.run("two", true)
	l.run("after", false)
	for range 2 {
		if code := l.post(resolved(""), "Bearer good"); code != 200 {
			t.Fatal(code)
		}
		if code := l.post(firing(""), "Bearer good"); code != 200 { // late
			t.Fatal(code)
		}
	}
	for _, id := range []string{"one", "two", "after"} {
		markers := l.markers(id)
		if len(markers) != 1 {
			t.Fatalf("run %s: %+v", id, markers)
		}
		s := markers[0]
		if want := "alert GaleraFlowControl (critical)\nnode2 was paused 43 % of the time\nresolved after 1m30s"; s.Text != want {
			t.Errorf("text %q", s.Text)
		}
		if got := strings.Join(s.Tags, " "); got != "alert:GaleraFlowControl severity:critical target:node2" {
			t.Errorf("tags %s", got)
		}
		if s.Kind != marker.Alert || s.Run != id || s.End.Sub(s.Start).Round(time.Second) != 90*time.Second {
			t.Errorf("%+v", s)
		}
	}
	if markers := l.markers("before"); len(markers) != 0 {
		t.Errorf("marked a run that had ended: %+v", markers)
	}
}

// TestAlertOfARun: the label run says which run, and nothing else.
func TestAlertOfARun(t *testing.T) {
	l := newAlertLab(t)
	l.run("one", false)
	l.run("two", true)
	for _, id := range []string{"two", "gone", "../../x", ""} {
		if code := l.post(firing(fmt.Sprintf(`, "run": %q`, id)), "Bearer good"); code != 200 {
			t.Fatal(code)
		}
		if n := len(l.markers("two")); n != 1 {
			t.Errorf("%q: run two has %d markers", id, n)
		}
		if n := len(l.markers("one")); n != 0 && id != "" {
			t.Errorf("%q: run one has %d markers", id, n)
		}
	}
	if entries, err := filepath.Glob(l.DataDir + "/*"); err != nil || len(entries) != 1 {
		t.Errorf("in the data directory: %v, %v", entries, err)
	}
}

// TestAlertRefuses: wrong tokens, methods and bodies, each with its status.
func TestAlertRefuses(t *testing.T) {
	l := newAlertLab(t)
	l.run("one", false)
	for auth, want := range map[string]int{"": 401, "Bearer bad": 401, "Bearer ": 401, "Basic good": 401, "Bearer good2": 401} {
		if code := l.post(firing(""), auth); code != want {
			t.Errorf("%q: %d", auth, code)
		}
	}
	for body, want := range map[string]int{
		"": 400, "{": 400, "[]": 400, "null": 400, `{"version":"3"}`: 400, `{"version":"4"}`: 200,
		`{"version":"4","alerts":[{}]}`: 200, `{"version":"4","alerts":[{"startsAt":"x"}]}`: 400,
		`{"version":"4","alerts":[` + strings.Repeat("{},", maxAlerts) + `{}]}`: 400,
		`{"version":"4","x":"` + strings.Repeat("x", maxBody) + `"}`:            413,
	} {
		if code := l.post(body, "Bearer good"); code != want {
			t.Errorf("%.40q: %d, want %d", body, code, want)
		}
	}
	w := httptest.NewRecorder()
	l.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/alerts", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
	if err := os.WriteFile(l.TokenFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, auth := range []string{"", "Bearer ", "Bearer good"} {
		if code := l.post(firing(""), auth); code != http.StatusServiceUnavailable {
			t.Errorf("without a token, %q: %d", auth, code)
		}
	}
	if markers := l.markers("one"); len(markers) != 0 {
		t.Errorf("marked: %+v", markers)
	}
}

// TestAlertNotStored: what could not be stored is asked for again.
func TestAlertNotStored(t *testing.T) {
	l := newAlertLab(t)
	l.run("one", false)
	if err := os.Mkdir(rundir.At(l.DataDir, "one").Path(rundir.MarkersFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if code := l.post(firing(""), "Bearer good"); code != http.StatusInternalServerError {
		t.Error(code)
	}
}

// FuzzReceiver: whatever is posted is answered, and never with an error of ours.
func FuzzReceiver(f *testing.F) {
	f.Add(firing(""))
	f.Add(resolved(`, "run": "one"`))
	f.Add(`{"version":"4","alerts":[{"startsAt":"9999-12-31T23:59:59-23:59","endsAt":"9999-12-31T23:59:59-23:59","status":"resolved","labels":{"a":"b"}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		l := newAlertLab(t)
		l.run("one", false)
		if code := l.post(body, "Bearer good"); code >= 500 {
			t.Errorf("answered %d", code)
		}
	})
}
