package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/app/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// grafanaServer keeps dashboards and creates tokens. The admin's password is geheim; only the
// created token is valid.
type grafanaServer struct {
	*httptest.Server
	mu     sync.Mutex
	boards map[string]any
	token  string
	writes int
}

func newGrafana(t *testing.T) *grafanaServer {
	g := &grafanaServer{boards: map[string]any{}}
	answer := func(w http.ResponseWriter, status int, v any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		user, password, _ := r.BasicAuth()
		admin := user == "admin" && password == "geheim"
		if r.URL.Path != "/api/health" && !admin && (g.token == "" || r.Header.Get("Authorization") != "Bearer "+g.token) {
			answer(w, http.StatusUnauthorized, map[string]string{"message": "invalid API key"})
			return
		}
		var in map[string]any
		if r.Method == http.MethodPost {
			data, _ := io.ReadAll(r.Body)
			if err := json.Unmarshal(data, &in); err != nil {
				t.Error(err)
			}
		}
		switch p := r.URL.Path; {
		case p == "/api/health":
			answer(w, 200, map[string]any{"database": "ok"})
		case p == "/api/serviceaccounts/search":
			answer(w, 200, map[string]any{"serviceAccounts": []any{}})
		case p == "/api/serviceaccounts" && admin:
			answer(w, 201, map[string]any{"id": 7})
		case p == "/api/serviceaccounts/7/tokens" && admin:
			g.token = "glsa_made"
			answer(w, 200, map[string]any{"key": g.token})
		case p == "/api/annotations":
			answer(w, 200, []any{})
		case p == "/api/access-control/user/permissions":
			answer(w, 200, map[string]any{"annotations:create": []string{"annotations:*"}})
		case p == "/api/folders":
			answer(w, http.StatusPreconditionFailed, map[string]string{"message": "the folder exists"})
		case p == "/api/dashboards/db":
			board := in["dashboard"].(map[string]any)
			board["id"], board["version"] = 1, 1
			g.boards[board["uid"].(string)] = board
			g.writes++
			answer(w, 200, map[string]any{})
		case strings.HasPrefix(p, "/api/dashboards/uid/"):
			if board, ok := g.boards[path.Base(p)]; ok {
				answer(w, 200, map[string]any{"dashboard": board})
			} else {
				answer(w, 404, map[string]string{"message": "Dashboard not found"})
			}
		default:
			t.Errorf("%s %s", r.Method, p)
			answer(w, 500, nil)
		}
	}))
	t.Cleanup(g.Close)
	return g
}

func checks(d Diagnosis) string {
	var b strings.Builder
	for _, c := range d.Checks {
		fmt.Fprintf(&b, "%s %s: %s\n", c.Level, c.Name, c.Text)
	}
	return b.String()
}

// TestWrite guards that a plan becomes a configuration that the agent can read, that only the owner
// can read the files with passwords and tokens, and that failed steps are reported.
func TestWrite(t *testing.T) {
	g := newGrafana(t)
	dir := t.TempDir()
	target, err := ParseTarget("mysql://monitor@127.0.0.1:1?cluster=blue&name=db1")
	if err != nil {
		t.Fatal(err)
	}
	p := Plan{
		File: filepath.Join(dir, "etc", "bw.yml"), DataDir: dir, Targets: []PlannedTarget{{Target: target, Password: "s3cret"}},
		Grafana: PlannedGrafana{URL: g.URL, User: "admin", Password: "geheim", Folder: "benchwatch"},
	}
	done, err := p.Write(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Problems) != 1 || !strings.Contains(done.Problems[0], "db1 (127.0.0.1:1) does not answer") || len(done.Dashboards) < 10 {
		t.Errorf("%+v", done)
	}
	for _, file := range done.Secrets {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(file, info.Mode(), err)
		}
	}
	text, err := os.ReadFile(p.File)
	if err != nil || strings.Contains(string(text), "s3cret") || strings.Contains(string(text), "glsa") || strings.Contains(string(text), "geheim") {
		t.Errorf("%s %v", text, err)
	}
	c, err := config.Load(p.File)
	if err != nil || c.Targets[0].Cluster != "blue" || c.Grafana.URL != g.URL {
		t.Fatalf("%+v %v", c, err)
	}
	if _, err := p.Write(t.Context()); !errors.Is(err, ErrExists) {
		t.Errorf("an existing file: %v", err)
	}

	// The doctor finds the same problems; a second import writes nothing.
	d := Diagnose(t.Context(), c, "")
	for _, want := range []string{"ok data directory", "warning agent: no agent runs", "failed target db1", "skipped prometheus", "ok grafana token", "ok dashboards: all"} {
		if !strings.Contains(checks(d), want) {
			t.Errorf("no %q in\n%s", want, checks(d))
		}
	}
	if d.Failed != 1 || d.Warnings != 1 {
		t.Errorf("%d failed, %d warnings", d.Failed, d.Warnings)
	}
	before := g.writes
	client, err := NewGrafana(c.Grafana.URL, c.Grafana.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ImportDashboards(t.Context(), "benchwatch"); err != nil || g.writes != before {
		t.Errorf("%d dashboards written again, %v", g.writes-before, err)
	}
	g.mu.Lock()
	g.boards["benchwatch-galera"].(map[string]any)["title"] = "changed"
	delete(g.boards, "benchwatch-runs")
	g.mu.Unlock()
	if text := checks(Diagnose(t.Context(), c, "")); !strings.Contains(text, "warning dashboards: missing: Benchmark") {
		t.Error(text)
	}
	all, err := client.ImportDashboards(t.Context(), "benchwatch")
	if err != nil || g.writes != before+2 {
		t.Errorf("%+v %v", all, err)
	}
}

// TestNoToken guards that the configuration is written even if Grafana refuses.
func TestNoToken(t *testing.T) {
	g := newGrafana(t)
	dir := t.TempDir()
	p := Plan{File: filepath.Join(dir, "bw.yml"), DataDir: dir, Grafana: PlannedGrafana{URL: g.URL, User: "admin", Password: "wrong"}}
	done, err := p.Write(t.Context())
	if err != nil || len(done.Problems) != 1 || !strings.Contains(done.Problems[0], "401") || len(done.Secrets) > 0 {
		t.Fatalf("%+v %v", done, err)
	}
	c, err := config.Load(p.File)
	if err != nil || c.Grafana.URL != "" {
		t.Errorf("%+v %v", c.Grafana, err)
	}
	c.Grafana = config.Grafana{URL: g.URL, TokenFile: filepath.Join(dir, "token")}
	if err := os.WriteFile(c.Grafana.TokenFile, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := checks(Diagnose(t.Context(), c, "")); !strings.Contains(text, "failed grafana token") || !strings.Contains(text, "invalid API key") {
		t.Error(text)
	}
}

// TestPrometheus guards the checks of a Prometheus.
func TestPrometheus(t *testing.T) {
	groups, err := ruleGroups()
	if err != nil || len(groups) < 10 {
		t.Fatal(groups, err)
	}
	for name, c := range map[string]struct {
		scrapes string
		loaded  []ruleGroup
		late    time.Duration
		want    []string
	}{
		"all":     {"10", groups, 0, []string{"ok scrape", "ok rules", "ok clock of Prometheus"}},
		"nothing": {"", nil, 0, []string{"failed scrape", "warning rules"}},
		"slow":    {"2", groups[1:], time.Minute, []string{"warning scrape: an agent was scraped 2 times in 10 s", "warning rules: 1 of", "missing: " + groups[0].Name, "warning clock of Prometheus: differs from this machine's by 1m"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(-c.late).UTC().Format(http.TimeFormat))
				var data any
				switch r.URL.Path {
				case "/api/v1/query":
					results := []any{}
					if c.scrapes != "" {
						results = append(results, map[string]any{"value": []any{1, c.scrapes}})
					}
					data = map[string]any{"result": results}
				case "/api/v1/rules":
					found := []any{}
					for _, g := range c.loaded {
						rules := []any{}
						for _, r := range g.Rules {
							rules = append(rules, map[string]any{"name": r.Record + r.Alert, "duration": time.Duration(r.For).Seconds()})
						}
						found = append(found, map[string]any{"name": g.Name, "rules": rules})
					}
					data = map[string]any{"groups": found}
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
			}))
			defer server.Close()
			conf := config.Default()
			conf.DataDir, conf.Prometheus.URL = t.TempDir(), server.URL
			text := checks(Diagnose(context.Background(), conf, ""))
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		})
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"mysql://monitor@10.0.0.1":    "",
		"mongodb://u@db:27018?name=a": "",
		"mysql://u:geheim@db":         "contains a password",
		"oracle://u@db":               "unknown engine",
		"db1:3306":                    "expected ENGINE://",
		"mysql://u@db?port=1":         `unknown "port"`,
	} {
		_, err := ParseTarget(text)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
