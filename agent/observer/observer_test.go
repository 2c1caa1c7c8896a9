package observer

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/config"
	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testConfig(t *testing.T) *config.Config {
	c := config.Default()
	c.DataDir = t.TempDir()
	return c
}

// start runs an observer and its pages.
func start(t *testing.T, c *config.Config) (*Observer, func(path string) (int, string)) {
	t.Helper()
	b, err := New(Options{Config: c, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := b.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(b.Handler())
	t.Cleanup(func() { server.Close(); stop(); done.Wait() })
	return b, func(path string) (int, string) {
		t.Helper()
		resp, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
}

func newRun(t *testing.T, c *config.Config, meta rundir.Meta) rundir.Directory {
	t.Helper()
	dir, claim, err := rundir.Create(c.DataDir, meta)
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	return dir
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain for " + what)
		}
	}
}

// What comes from command lines is text, whatever is in it.
func TestLandingPageEscapes(t *testing.T) {
	c := testConfig(t)
	end := time.Now().Add(-time.Minute)
	newRun(t, c, rundir.Meta{ID: "one", Title: `<script>alert("x")</script>`, Tool: "sysbench", StartedAt: end.Add(-time.Minute), EndedAt: &end, ClosedAt: &end, Result: rundir.Failed})
	_, get := start(t, c)
	var page string
	until(t, "the run on the page", func() bool {
		_, page = get("/landing")
		return strings.Contains(page, "alert")
	})
	if strings.Contains(page, "<script") || !strings.Contains(page, "&lt;script&gt;") {
		t.Error("a title is not escaped")
	}
}

func TestPages(t *testing.T) {
	_, get := start(t, testConfig(t))
	for path, want := range map[string]string{"/": "<title>benchwatch</title>", "/landing": "benchwatch run", "/metrics": "benchwatch_build_info", "/-/healthy": "healthy", "/-/ready": "ready"} {
		if code, body := get(path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, %q", path, code, body)
		}
	}
	if code, _ := get("/nothing"); code != http.StatusNotFound {
		t.Errorf("unknown page: %d", code)
	}
}

// Each run gets one range: open while it lasts, closed with its result.
func TestRangeOfARun(t *testing.T) {
	c := testConfig(t)
	dir, claim, err := rundir.Create(c.DataDir, rundir.Meta{ID: "one", Title: "a title", Tool: "sysbench", Threads: 4, StartedAt: time.Now().Add(-time.Minute).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	start(t, c)
	var states []marker.State
	read := func() []marker.State {
		states, err = marker.Read(dir.Path(rundir.MarkersFile))
		if err != nil {
			t.Fatal(err)
		}
		return states
	}
	until(t, "the open range", func() bool { return len(read()) == 1 })
	if s := states[0]; !s.End.IsZero() || s.Run != "one" || !strings.Contains(s.Text, "a title") {
		t.Errorf("open: %+v", s)
	}
	if _, err := dir.Update(func(m *rundir.Meta) {
		end := time.Now().UTC()
		m.EndedAt, m.Result, m.Reason = &end, rundir.Failed, "exit status 1"
	}); err != nil {
		t.Fatal(err)
	}
	until(t, "the closed range", func() bool { return !read()[0].End.IsZero() })
	if len(states) != 1 || !strings.Contains(states[0].Text, "failed: exit status 1") || !strings.Contains(strings.Join(states[0].Tags, " "), "result:failed") {
		t.Errorf("closed: %+v", states)
	}
}

func TestReload(t *testing.T) {
	c := testConfig(t)
	b, get := start(t, c)
	next := *c
	next.Targets = []config.Target{{Name: "db", Engine: "mysql", Address: "127.0.0.1:1"}}
	if err := b.Reload(&next); err != nil {
		t.Fatal(err)
	}
	until(t, "the new target", func() bool {
		_, body := get("/metrics")
		return strings.Contains(body, `benchwatch_db_up{cluster="",engine="mysql",role="",target="db"} 0`)
	})
	other := next
	other.DataDir = t.TempDir()
	if err := b.Reload(&other); err == nil || !strings.Contains(err.Error(), "restart the agent") {
		t.Errorf("another data directory: %v", err)
	}
	bad := next
	bad.Grafana.URL = "ftp://x"
	if err := b.Reload(&bad); err == nil {
		t.Error("a wrong Grafana address was taken")
	}
}

// Alerts are taken only where a token is configured, and only with it.
func TestAlertsNeedAToken(t *testing.T) {
	post := func(c *config.Config, token string) int {
		b, err := New(Options{Config: c, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequest(http.MethodPost, "/api/v1/alerts", strings.NewReader(`{"version":"4","alerts":[]}`))
		req.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		b.Handler().ServeHTTP(w, req)
		return w.Code
	}
	c := testConfig(t)
	if code := post(c, "right"); code != http.StatusNotFound {
		t.Errorf("without a token file: %d", code)
	}
	c.WebhookTokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(c.WebhookTokenFile, []byte("right\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := post(c, "wrong"); code != http.StatusUnauthorized {
		t.Errorf("with a wrong token: %d", code)
	}
	if code := post(c, "right"); code != http.StatusOK {
		t.Errorf("with the token: %d", code)
	}
}
