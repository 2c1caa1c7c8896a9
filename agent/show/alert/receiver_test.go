package alert

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/alerts"
)

// webhook is a message as Alertmanager 0.28 posts it.
const webhook = `{
  "receiver": "benchwatch", "status": "%[1]s", "version": "4", "groupKey": "{}:{}", "truncatedAlerts": 0,
  "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {}, "externalURL": "http://alertmanager.test",
  "alerts": [{
    "status": "%[1]s",
    "labels": {"alertname": "GaleraFlowControl", "severity": "critical", "target": "node2"%[2]s},
    "annotations": {"summary": "node2 was paused", "description": "longer"},
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
	t           *testing.T
	data, token string
}

func newAlertLab(t *testing.T) *alertLab {
	l := &alertLab{t: t, data: t.TempDir(), token: filepath.Join(t.TempDir(), "token")}
	if err := os.WriteFile(l.token, []byte("good\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.restart()
	return l
}

// restart makes the receiver of a new process.
func (l *alertLab) restart() {
	l.Receiver = &Receiver{DataDir: l.data, TokenFile: func() string { return l.token }, Log: slog.New(slog.DiscardHandler)}
}

// run makes a run directory or changes it. times are times of the day at which the run starts, its tool ends and it is
// closed; a missing time has not come yet. A run in a log file needs no process to continue.
func (l *alertLab) run(id string, times ...string) {
	l.t.Helper()
	l.runOn(id, `{"target":"node2","cluster":"blue","nodename":"db2"}`, times...)
}

// runOn makes a run that has these servers.
func (l *alertLab) runOn(id, servers string, times ...string) {
	l.t.Helper()
	dir := rundir.At(l.data, id)
	if err := os.MkdirAll(string(dir), 0o755); err != nil {
		l.t.Fatal(err)
	}
	meta := fmt.Sprintf(`{"id":%q,"title":"t","generator":"gen","log":{"path":"x"},"servers":{"source":"matched","targets":[%s]}`, id, servers)
	for i, at := range times {
		meta += fmt.Sprintf(`,"%s_at":"2026-11-21T%sZ"`, []string{"started", "ended", "closed"}[i], at)
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
	markers, err := marker.Read(rundir.At(l.data, id))
	if err != nil {
		l.t.Fatal(err)
	}
	return markers
}

// accept posts a message that must be accepted.
func (l *alertLab) accept(body string) {
	l.t.Helper()
	if code := l.post(body, "Bearer good"); code != http.StatusOK {
		l.t.Fatal("answered", code)
	}
}

// lines is how many lines the queue of a run has.
func (l *alertLab) lines(id string) int {
	l.t.Helper()
	queue, err := os.ReadFile(rundir.At(l.data, id).Path(rundir.MarkersFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.t.Fatal(err)
	}
	return bytes.Count(queue, []byte("\n"))
}

// TestAlertMarksTheRunsThatItOverlaps, whenever its messages arrive and however
// often: it fires from 02:14:03 to 02:15:33.
func TestAlertMarksTheRunsThatItOverlaps(t *testing.T) {
	l := newAlertLab(t)
	l.run("closed-before", "01:00:00", "02:00:00", "02:14:02")
	l.run("drains-meanwhile", "02:00:00", "02:14:00", "02:14:10")
	l.run("is-within", "02:14:10", "02:14:20", "02:14:21")
	l.run("lasts-longer", "02:00:00", "02:20:00", "02:20:10")
	l.run("goes-on", "02:00:00")
	l.run("was-never-closed", "02:00:00", "02:14:30")
	want := []string{"drains-meanwhile", "goes-on", "is-within", "lasts-longer", "was-never-closed"}
	l.accept(firing(""))
	if got := l.marked(); !slices.Equal(got, want) {
		t.Errorf("firing: marked %q, want %q", got, want)
	}
	l.run("began-after", "02:15:34")
	l.run("began-meanwhile", "02:15:30")
	want = slices.Insert(want, 0, "began-meanwhile")
	for range 2 { // Alertmanager sends it again, perhaps to another agent
		l.accept(resolved(""))
		if got := l.marked(); !slices.Equal(got, want) {
			t.Errorf("resolved: marked %q, want %q", got, want)
		}
		l.restart()
		l.run("began-much-later", "09:00:00")
	}
}

// marked returns the runs that have markers, sorted.
func (l *alertLab) marked() (ids []string) {
	l.t.Helper()
	entries, err := os.ReadDir(rundir.Root(l.data))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		if len(l.markers(e.Name())) > 0 {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// TestAlertMarksTheRunsThatItConcerns guards that an alert marks the runs that it concerns among those that it
// overlaps.
func TestAlertMarksTheRunsThatItConcerns(t *testing.T) {
	for labels, want := range map[string]string{
		`"target": "n1", "cluster": "blue"`:                 "blue both",
		`"cluster": "blue"`:                                 "blue both",
		`"target": "n3"`:                                    "green both",
		`"target": "n1", "cluster": "green"`:                "",
		`"target": "n9", "cluster": "blue"`:                 "",
		`"target": "n9", "nodename": "db1"`:                 "",
		`"cluster": "prod", "nodename": "db1"`:              "blue both",
		`"nodename": "gen"`:                                 "blue green both unknown",
		`"nodename": "proxy", "instance": "db1:9100"`:       "",
		`"instance": "db3:9100"`:                            "green both",
		`"instance": "db3"`:                                 "green both",
		`"instance": "127.0.0.1:9838", "job": "benchwatch"`: "",
		`"job": "tidb"`:                                     "",
		`"run": "unknown", "cluster": "blue"`:               "unknown",
		`"run": "gone", "cluster": "blue"`:                  "",
	} {
		l := newAlertLab(t)
		const blue, green = `{"target":"n1","cluster":"blue","nodename":"db1"},{"target":"n2","cluster":"blue","nodename":"db2"}`, `{"target":"n3","cluster":"green","nodename":"db3"}`
		l.runOn("blue", blue, "02:00:00")
		l.runOn("green", green, "02:00:00")
		l.runOn("both", blue+","+green, "02:00:00", "02:20:00", "02:20:00")
		l.runOn("unknown", "", "02:00:00")
		l.runOn("before", blue, "01:00:00", "01:01:00", "01:01:00")
		l.accept(strings.Replace(resolved(""), `"target": "node2"`, labels, 1))
		got := l.marked()
		expected := strings.Fields(want)
		slices.Sort(expected)
		if !slices.Equal(got, expected) {
			t.Errorf("%s: marked %q, want %q", labels, got, expected)
		}
	}
}

// TestAlertIsOneMarker: an alert that fires, is repeated and resolved is one
// marker on each of its runs, also if the messages get other texts or arrive in
// another order.
func TestAlertIsOneMarker(t *testing.T) {
	l := newAlertLab(t)
	l.run("one", "02:00:00")
	l.run("two", "02:00:00")
	for _, description := range []string{"It is 43 %.", "It is 41 %."} {
		l.accept(strings.Replace(firing(""), "longer", description, 1))
		l.restart()
	}
	for _, id := range []string{"one", "two"} {
		if n := l.lines(id); n != 1 {
			t.Errorf("run %s: %d lines written", id, n)
		}
	}
	l.run("two", "02:00:00", "02:15:00", "02:15:00")
	for range 2 {
		l.accept(strings.Replace(resolved(""), "longer", "It is 12 %.", 1))
		l.accept(firing("")) // late
	}
	for _, id := range []string{"one", "two"} {
		markers := l.markers(id)
		if len(markers) != 1 {
			t.Fatalf("run %s: %+v", id, markers)
		}
		s := markers[0]
		if want := "alert GaleraFlowControl (critical)\nnode2 was paused\nIt is 43 %.\nresolved after 1m30s"; s.Text != want {
			t.Errorf("text %q", s.Text)
		}
		if got := strings.Join(s.Tags, " "); got != "alert:GaleraFlowControl severity:critical target:node2" {
			t.Errorf("tags %s", got)
		}
		if s.Kind != marker.Alert || s.Run != id || s.End.Sub(s.Start).Round(time.Second) != 90*time.Second {
			t.Errorf("%+v", s)
		}
	}
}

// TestAlertStartsAgain: Prometheus and Alertmanager, restarted together, send an
// alert that continues with a new start. One that was resolved before is another.
func TestAlertStartsAgain(t *testing.T) {
	l := newAlertLab(t)
	l.run("one", "02:00:00")
	l.accept(firing(""))
	again := strings.NewReplacer("02:14:03.123456789", "02:14:50", "02:14:03", "02:14:50")
	l.accept(again.Replace(firing("")))
	l.accept(again.Replace(resolved("")))
	l.accept(again.Replace(resolved("")))
	if markers := l.markers("one"); len(markers) != 1 || markers[0].Start.Second() != 3 || markers[0].End.Second() != 33 {
		t.Errorf("restarted: %+v", markers)
	}
	l.accept(strings.Replace(firing(""), "02:14:03.123456789", "02:16:40", 1))
	if markers := l.markers("one"); len(markers) != 2 || !markers[1].End.IsZero() {
		t.Errorf("fired again: %+v", markers)
	}
	l.accept(strings.Replace(firing(""), "c0ffee", "decaf", 1))
	if markers := l.markers("one"); len(markers) != 3 {
		t.Errorf("other labels: %+v", markers)
	}
}

// TestAlertWithoutTexts: a missing text of an alert is not an empty line.
func TestAlertWithoutTexts(t *testing.T) {
	for annotations, want := range map[string]string{
		`{}`:                        "alert GaleraFlowControl (critical)",
		`{"description": "longer"}`: "alert GaleraFlowControl (critical)\nlonger",
		`{"summary": "short"}`:      "alert GaleraFlowControl (critical)\nshort",
		`{"summary": "one", "description": "one"}`: "alert GaleraFlowControl (critical)\none",
	} {
		l := newAlertLab(t)
		l.run("one", "02:00:00")
		l.accept(strings.Replace(firing(""), `{"summary": "node2 was paused", "description": "longer"}`, annotations, 1))
		if markers := l.markers("one"); len(markers) != 1 || markers[0].Text != want {
			t.Errorf("%s: %+v, want %q", annotations, markers, want)
		}
	}
}

// TestAlertPauses: the agent is stopped for some seconds, so that the alert resolves and fires again. That is one
// cause, and its marker ends with the second resolution.
func TestAlertPauses(t *testing.T) {
	l := newAlertLab(t)
	l.run("one", "02:00:00")
	l.accept(resolved(""))
	again := strings.NewReplacer("02:14:03.123456789", "02:15:46", "02:15:33.5", "02:15:58")
	l.accept(again.Replace(firing("")))
	l.accept(again.Replace(resolved("")))
	l.restart()
	for _, late := range []string{resolved(""), firing(""), again.Replace(firing("")), again.Replace(resolved(""))} {
		l.accept(late)
	}
	markers := l.markers("one")
	if len(markers) != 1 || markers[0].End.Second() != 58 {
		t.Fatalf("%+v", markers)
	}
	if want := "alert GaleraFlowControl (critical)\nnode2 was paused\nlonger\nresolved after 1m55s"; markers[0].Text != want {
		t.Errorf("text %q, want %q", markers[0].Text, want)
	}
	if n := l.lines("one"); n != 2 {
		t.Errorf("%d lines written", n)
	}
}

// TestAlertOfTheSameCause: an alert that fires longer than the alert that inhibits it is sent when the latter has
// ended.
func TestAlertOfTheSameCause(t *testing.T) {
	named := func(name, labels, body string) string {
		return strings.NewReplacer(`"GaleraFlowControl"`, `"`+name+`"`, `"target": "node2"`, labels, "c0ffee", name+strings.ReplaceAll(labels, `"`, "")).Replace(body)
	}
	later := strings.NewReplacer("02:14:03.123456789", "02:15:34")
	for name, c := range map[string]struct {
		cause, causeLabels, alert, labels string
		firing                            string
		own                               bool
	}{
		"inhibited":            {"GaleraFlowControlCritical", `"cluster": "blue"`, "GaleraNodeSlow", `"cluster": "blue", "target": "node2"`, firing(""), false},
		"by a pattern":         {"DatabaseDown", `"cluster": "blue", "target": "node2"`, "ReplicationLagHigh", `"cluster": "blue", "target": "node2"`, firing(""), false},
		"by the run":           {"RunStalled", `"run": "one"`, "RunLatencyHigh", `"run": "one"`, firing(""), false},
		"by the host":          {"GeneratorSaturated", `"run": "one", "nodename": "gen"`, "HostCPUSaturated", `"run": "one", "nodename": "gen"`, firing(""), false},
		"of another host":      {"GeneratorSaturated", `"run": "one", "nodename": "gen"`, "HostCPUSaturated", `"run": "one", "nodename": "db2"`, firing(""), true},
		"began afterwards":     {"GaleraFlowControlCritical", `"cluster": "blue"`, "GaleraNodeSlow", `"cluster": "blue", "target": "node2"`, later.Replace(firing("")), true},
		"the other way around": {"GaleraNodeSlow", `"cluster": "blue", "target": "node2"`, "GaleraFlowControlCritical", `"cluster": "blue"`, firing(""), true},
		"unrelated":            {"RunErrors", `"run": "one"`, "RunLatencyHigh", `"run": "one"`, firing(""), true},
	} {
		l := newAlertLab(t)
		l.run("one", "02:00:00")
		l.accept(named(c.cause, c.causeLabels, resolved("")))
		l.accept(named(c.alert, c.labels, c.firing))
		if n := len(l.markers("one")); n != 1 && !c.own || n != 2 && c.own {
			t.Errorf("%s: %+v", name, l.markers("one"))
		}
		l.run("began-later", "02:15:35") // after the cause, without a marker of it
		l.accept(named(c.alert, c.labels, strings.Replace(c.firing, `"one"`, `"began-later"`, 1)))
		if n := len(l.markers("began-later")); n != 1 && !strings.Contains(c.labels, "run") {
			t.Errorf("%s: a later run has %+v", name, l.markers("began-later"))
		}
	}
}

// TestRunBeginsWhileAnAlertFires: it is marked as soon as its servers are known, not when
// Alertmanager repeats the alert after hours.
func TestRunBeginsWhileAnAlertFires(t *testing.T) {
	l := newAlertLab(t)
	l.run("before", "02:00:00")
	l.accept(firing(""))
	l.accept(strings.Replace(firing(`, "cluster": "green"`), "c0ffee", "decaf", 1))
	identify := func(id string) {
		dir := rundir.At(l.data, id)
		meta, err := dir.Load()
		if err != nil {
			t.Fatal(err)
		}
		l.Identified(dir, meta)
		l.Identified(dir, meta) // the names of machines were recorded too
	}
	l.runOn("unknown", "", "02:14:30")
	identify("unknown")
	l.run("one", "02:14:30")
	identify("one")
	l.accept(resolved(""))
	l.accept(firing("")) // overtaken
	l.run("later", "02:15:40")
	identify("later")
	if got := l.marked(); !slices.Equal(got, []string{"before", "one"}) || len(l.markers("one")) != 1 {
		t.Errorf("marked %q, %+v", got, l.markers("one"))
	}
}

// TestInhibitions: the inhibitions of the program's own file can be read, and a rule that can't be applied is refused.
func TestInhibitions(t *testing.T) {
	if own, err := parseInhibitions(alerts.Alertmanager); err != nil || len(own) < 10 {
		t.Errorf("%d of alertmanager.yml, %v", len(own), err)
	}
	for _, matchers := range []string{`[severity = high]`, `[alertname != A]`, `[alertname = A, cluster = b]`, `["alertname =~ \"(\""]`} {
		for _, rule := range []string{"{source_matchers: %s, target_matchers: [alertname = B]}", "{target_matchers: %s, source_matchers: [alertname = B]}"} {
			if all, err := parseInhibitions(fmt.Appendf(nil, "inhibit_rules: ["+rule+"]", matchers)); err == nil {
				t.Errorf("%s: %v", matchers, all)
			}
		}
	}
}

// TestAlertHoldsNoSecret: texts and labels are redacted.
func TestAlertHoldsNoSecret(t *testing.T) {
	l := newAlertLab(t)
	l.run("one", "02:00:00")
	l.accept(strings.Replace(firing(`, "instance": "mongodb://u:hunter2@db/"`), "longer", "mysql --password=hunter2 fails", 1))
	queue, err := os.ReadFile(rundir.At(l.data, "one").Path(rundir.MarkersFile))
	if err != nil || bytes.Contains(queue, []byte("hunter2")) || !bytes.Contains(queue, []byte("fails")) {
		t.Errorf("%s, %v", queue, err)
	}
}

// TestAlertOfARun: only the label run selects the run.
func TestAlertOfARun(t *testing.T) {
	l := newAlertLab(t)
	l.run("one", "02:00:00")
	l.run("two", "01:00:00", "01:01:00", "01:01:00")
	for _, id := range []string{"two", "gone", "../../x", ""} {
		l.accept(firing(fmt.Sprintf(`, "run": %q`, id)))
		if n := len(l.markers("two")); n != 1 {
			t.Errorf("%q: run two has %d markers", id, n)
		}
		if n := len(l.markers("one")); n != 0 && id != "" {
			t.Errorf("%q: run one has %d markers", id, n)
		}
	}
	if entries, err := filepath.Glob(l.data + "/*"); err != nil || len(entries) != 1 {
		t.Errorf("in the data directory: %v, %v", entries, err)
	}
}

// TestAlertRefuses: wrong tokens, methods and bodies, each with its status.
func TestAlertRefuses(t *testing.T) {
	l := newAlertLab(t)
	l.run("one", "02:00:00")
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
	if err := os.WriteFile(l.token, nil, 0o600); err != nil {
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

// TestAlertNotStored: Alertmanager repeats an alert that could not be stored.
func TestAlertNotStored(t *testing.T) {
	l := newAlertLab(t)
	l.run("one", "02:00:00")
	if err := os.Mkdir(rundir.At(l.data, "one").Path(rundir.MarkersFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if code := l.post(firing(""), "Bearer good"); code != http.StatusInternalServerError {
		t.Error(code)
	}
}

// FuzzReceiver: whatever is posted is answered, and never with an error of ours. It leaves only a few markers with
// short texts without secrets.
func FuzzReceiver(f *testing.F) {
	f.Add(firing(""))
	f.Add(resolved(`, "run": "one"`))
	f.Add(strings.ReplaceAll(firing(`, "run": "one"`), "node2 was paused", `mysql://u:hunter2@h/ \u001b[2J\u202e password=x`))
	f.Add(`{"version":"4","alerts":[{"startsAt":"9999-12-31T23:59:59-23:59","endsAt":"9999-12-31T23:59:59-23:59","status":"resolved","labels":{"a":"b"}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		l := newAlertLab(t)
		l.run("one", "02:00:00")
		if code := l.post(body, "Bearer good"); code >= 500 {
			t.Errorf("answered %d", code)
		}
		markers := l.markers("one")
		if len(markers) > maxAlerts {
			t.Errorf("%d markers", len(markers))
		}
		for _, m := range markers {
			if secret.Text(m.Text) != m.Text || len(m.Text) > 20_000 || strings.ContainsFunc(strings.ReplaceAll(m.Text, "\n", ""), unicode.IsControl) {
				t.Errorf("text %q", m.Text)
			}
		}
		if files, err := filepath.Glob(filepath.Join(l.data, "*")); err != nil || len(files) != 1 {
			t.Errorf("files %q, %v", files, err)
		}
	})
}
