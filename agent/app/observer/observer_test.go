package observer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
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

func TestPages(t *testing.T) {
	_, get := start(t, testConfig(t))
	for path, want := range map[string]string{"/": "<title>benchwatch</title>", "/metrics": "benchwatch_build_info", "/-/healthy": "healthy", "/-/ready": "ready"} {
		if code, body := get(path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, %q", path, code, body)
		}
	}
	if code, _ := get("/nothing"); code != http.StatusNotFound {
		t.Errorf("unknown page: %d", code)
	}
}

// TestFailure guards that a failure of the sampler, here one that was started before, ends the other parts and Run.
func TestFailure(t *testing.T) {
	b, err := New(Options{Config: testConfig(t), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	if err := b.sampler.Run(over); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "already started") {
		t.Errorf("Run returns %v", err)
	}
}

// annotations is a Grafana that accepts every annotation and returns the stored ones.
func annotations(t *testing.T) (url string, all func() []map[string]any) {
	t.Helper()
	var mu sync.Mutex
	held := []map[string]any{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var body map[string]any
		if r.Method != http.MethodGet {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
		}
		switch r.Method {
		case http.MethodGet:
			_ = json.NewEncoder(w).Encode(held)
		case http.MethodPost:
			body["id"] = len(held) + 1
			held = append(held, body)
			fmt.Fprintf(w, `{"id":%d}`, len(held))
		case http.MethodPatch:
			id, err := strconv.Atoi(path.Base(r.URL.Path))
			if err != nil || id > len(held) {
				t.Error("patched", r.URL.Path)
			}
			maps.Copy(held[id-1], body)
			fmt.Fprint(w, "{}")
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []map[string]any {
		mu.Lock()
		defer mu.Unlock()
		copies := make([]map[string]any, len(held))
		for i := range held {
			copies[i] = maps.Clone(held[i])
		}
		return copies
	}
}

// TestRegionOfARun guards that each run has one region, open while it lasts and closed with its
// outcome, and that a reload moves it to another Grafana.
func TestRegionOfARun(t *testing.T) {
	c := testConfig(t)
	b, _ := start(t, c)
	dir, claim, err := rundir.Create(c.DataDir, rundir.Meta{
		ID: "one", Title: "a title", Labels: map[string]string{"disk": "nvme"},
		Benchmark: rundir.Benchmark{Tool: "sysbench", Threads: 4},
		Timing:    rundir.Timing{StartedAt: time.Now().Add(-time.Minute).UTC()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	next := *c
	var all func() []map[string]any
	next.Grafana.URL, all = annotations(t)
	if err := b.Reload(&next); err != nil {
		t.Fatal(err)
	}
	until(t, "the open region", func() bool { return len(all()) == 1 })
	open := all()[0]
	if open["timeEnd"] != nil || open["text"] != "a title<br>sysbench, 4 threads" {
		t.Errorf("open: %v", open)
	}
	if tags := fmt.Sprint(open["tags"]); !strings.Contains(tags, "benchwatch kind:run run:one tool:sysbench threads:4 disk:nvme]") {
		t.Errorf("tags %s", tags)
	}
	if _, err := dir.Update(func(m *rundir.Meta) {
		end := time.Now().UTC()
		m.EndedAt, m.Outcome, m.Reason = &end, rundir.Failed, "exit status 1"
	}); err != nil {
		t.Fatal(err)
	}
	until(t, "the closed region", func() bool { return all()[0]["timeEnd"] != nil })
	closed := all()
	if text := closed[0]["text"]; len(closed) != 1 || text != "a title<br>sysbench, 4 threads<br>failed: exit status 1" {
		t.Errorf("closed: %v", closed)
	}
	if tags := fmt.Sprint(closed[0]["tags"]); !strings.Contains(tags, "result:failed") {
		t.Errorf("tags %s", tags)
	}
	until(t, "an empty queue", func() bool { return b.PendingMarkers() == 0 })
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
	withLog := next // the observer owns the configuration it was given
	withLog.Logs = []config.Log{{Path: "/var/log/bench/*.log", Tool: "sysbench"}}
	if err := b.Reload(&withLog); err != nil {
		t.Fatal(err)
	}
	if logs := b.logs(); len(logs) != 1 || logs[0].Glob != withLog.Logs[0].Path {
		t.Errorf("log files %+v", logs)
	}
	bad := next
	bad.Grafana.URL = "ftp://x"
	if err := b.Reload(&bad); err == nil {
		t.Error("a wrong Grafana address was accepted")
	}
}

// TestReloadAppliesOrRefusesEveryKey guards that no key silently keeps its old value. A new key has
// to be added to one of the lists.
func TestReloadAppliesOrRefusesEveryKey(t *testing.T) {
	c := testConfig(t)
	b, _ := start(t, c)
	restart := map[string]func(*config.Config){
		"data_dir":        func(c *config.Config) { c.DataDir = t.TempDir() },
		"sample_interval": func(c *config.Config) { c.SampleInterval *= 2 },
	}
	for key, change := range restart {
		next := *c
		next.Runs.MaxKept = 1
		change(&next)
		if err := b.Reload(&next); err == nil || !strings.Contains(err.Error(), key+" can't be changed by a reload: restart the agent") {
			t.Errorf("%s: %v", key, err)
		}
		if b.bounds().MaxKept == 1 {
			t.Errorf("%s: a part of the refused configuration was applied", key)
		}
	}
	// The agent does not use prometheus.
	applied := []string{"runs", "logs", "targets", "hosts", "proxies", "tools", "grafana", "webhook_token_file", "prometheus", "archive", "peers"}
	for _, key := range config.Keys() {
		_, ok := restart[key.Path]
		if key.Restart != ok {
			t.Errorf("key %s is declared with restart %t", key.Path, key.Restart)
		}
		if !strings.ContainsAny(key.Path, ".[") && !ok && !slices.Contains(applied, key.Path) {
			t.Errorf("key %s is neither applied by a reload nor refused", key.Path)
		}
	}
}

// TestReloadRuns guards that a reload applies the limits of runs.
func TestReloadRuns(t *testing.T) {
	c := testConfig(t)
	c.Targets = []config.Target{
		{Name: "writer", Engine: "mysql", Address: "127.0.0.1:1", Cluster: "c"},
		{Name: "reader", Engine: "mysql", Address: "127.0.0.1:2", Cluster: "c"},
	}
	end := time.Now().Add(-time.Minute).UTC()
	newRun(t, c, rundir.Meta{
		ID:        "draining",
		Benchmark: rundir.Benchmark{Target: "127.0.0.1:1"},
		Timing:    rundir.Timing{StartedAt: end.Add(-time.Minute)},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
	})
	for i := range 3 {
		at := end.Add(-time.Duration(3-i) * time.Hour)
		newRun(t, c, rundir.Meta{
			ID:      fmt.Sprintf("a%d", i),
			Timing:  rundir.Timing{StartedAt: at},
			End:     rundir.End{EndedAt: &at, Outcome: rundir.Succeeded},
			Closing: rundir.Closing{ClosedAt: &at},
		})
	}
	for i := range 2 {
		meta := rundir.Meta{ID: fmt.Sprintf("live%d", i), Timing: rundir.Timing{StartedAt: time.Now()}}
		_, claim, err := rundir.Create(c.DataDir, meta)
		if err != nil {
			t.Fatal(err)
		}
		defer claim.Release()
	}
	c.Runs.MaxLive = 2
	b, _ := start(t, c)
	runs := func(phase ingest.Phase) int {
		n := 0
		for _, s := range b.Snapshots() {
			if s.Phase == phase {
				n++
			}
		}
		return n
	}
	until(t, "the runs", func() bool { return runs(ingest.Over) == 3 && len(b.Snapshots()) == 5 })
	next := *c
	next.Runs.MaxKept, next.Runs.MaxLive = 2, 10
	if err := b.Reload(&next); err != nil {
		t.Fatal(err)
	}
	until(t, "all live runs and only two ended ones", func() bool {
		return runs(ingest.Over) == 2 && runs(ingest.Draining) == 1 && len(b.Snapshots()) == 5
	})
	again := next
	again.Runs.DrainTimeout = time.Second
	if err := b.Reload(&again); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the drain", func() bool { return runs(ingest.Draining) == 0 })
}

// TestReloadTokenFile guards that a reload turns receiving alerts on, changes
// its token and turns it off.
func TestReloadTokenFile(t *testing.T) {
	c := testConfig(t)
	b, err := New(Options{Config: c, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	handler := b.Handler()
	for _, token := range []string{"", "one", "two", ""} {
		next := *c
		if token != "" {
			next.WebhookTokenFile = filepath.Join(t.TempDir(), token)
			if err := os.WriteFile(next.WebhookTokenFile, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Reload(&next); err != nil {
			t.Fatal(err)
		}
		for _, sent := range []string{"one", "two"} {
			want := http.StatusUnauthorized
			switch token {
			case "":
				want = http.StatusNotFound
			case sent:
				want = http.StatusOK
			}
			if code := postAlerts(handler, sent); code != want {
				t.Errorf("token %q configured, %q sent: %d, want %d", token, sent, code, want)
			}
		}
	}
}

func postAlerts(handler http.Handler, token string) int {
	req := httptest.NewRequest(http.MethodPost, "/api/v1/alerts", strings.NewReader(`{"version":"4","alerts":[]}`))
	req.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, req)
	return w.Code
}
