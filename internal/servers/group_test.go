package servers

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/need"
)

func deadline(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// A killed server starts again with its data. Its passwords are in files that only their owner can
// read, and on no command line.
func TestServer(t *testing.T) {
	need.Program(t, "mariadbd")
	top, err := os.MkdirTemp("", "benchwatch-servers.") // short, and accessible to the servers' user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	if err := os.Chmod(top, 0o711); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "servers")
	start := func() *Group {
		t.Helper()
		g, err := Start(t.Context(), dir, MariaDB, Options{Attached: true})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := start()
	t.Cleanup(func() {
		if err := g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	first := g.PID(1)
	if start(); g.PID(1) != first {
		t.Error("a second start did not leave the server alone")
	}
	for _, name := range []string{"bench.password", "monitor.password", "sysbench.cnf"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	secret, err := g.Password("bench")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if text, err := os.ReadFile(line); err == nil && bytes.Contains(text, []byte(secret)) {
			t.Errorf("the password is in %s", line)
		}
	}
	if _, err := g.Query(t.Context(), 1, "CREATE TABLE sbtest.kept (i INT); INSERT INTO sbtest.kept VALUES (1), (NULL)"); err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(1); err != nil {
		t.Fatal(err)
	}
	if status := g.Status(t.Context()); len(status) != 1 || status[0] != "n1 down" {
		t.Errorf("status of a dead server: %q", status)
	}
	start()
	rows, err := g.Query(t.Context(), 1, "SELECT 'a'; SELECT i, 'b' FROM sbtest.kept ORDER BY i")
	if err != nil || len(rows) != 3 || rows[0][0] != "a" || rows[1][0] != "NULL" || rows[2][0] != "1" {
		t.Errorf("rows %q, %v", rows, err)
	}
	// The administrator's account accepts no other user, not even without a password.
	if os.Geteuid() == 0 {
		client := exec.Command("mariadb", "--no-defaults", "-h127.0.0.1", "-P"+strings.TrimPrefix(g.Address(1), "127.0.0.1:"), "-uroot", "-e", "SELECT 1")
		client.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := client.CombinedOutput(); err == nil {
			t.Errorf("another user is let in as administrator: %s", out)
		}
	}
}

// Grafana receives the data source and every dashboard bound to it, and loses them again.
func TestGrafana(t *testing.T) {
	var mu sync.Mutex
	requests := map[string][]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "", http.StatusUnauthorized)
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(r.Body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		key := r.Method + " " + r.URL.Path
		requests[key] = append(requests[key], body.String())
		if r.Method == http.MethodGet && len(requests["POST /api/datasources"]) == 0 {
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	m := &Monitoring{Dir: t.TempDir(), Port: 12345}
	g := Grafana{URL: server.URL, Token: "secret", Fill: true}
	if err := errors.Join(g.expectNoDemo(t.Context()), m.fillGrafana(t.Context(), g)); err != nil {
		t.Fatal(err)
	}
	if err := g.expectNoDemo(t.Context()); err == nil || !strings.Contains(err.Error(), "of another demo") {
		t.Errorf("a second demo in one Grafana: %v", err)
	}
	if sent := requests["POST /api/datasources"]; len(sent) != 1 || !strings.Contains(sent[0], `"url":"http://127.0.0.1:12345"`) {
		t.Errorf("data source: %q", sent)
	}
	files, err := filepath.Glob("../../dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	sent := requests["POST /api/dashboards/db"]
	if len(sent) != len(files) {
		t.Errorf("%d dashboards of %d", len(sent), len(files))
	}
	for _, body := range sent {
		if !strings.Contains(body, `"current":{"text":"benchwatch demo","value":"benchwatch-demo"}`) || !strings.Contains(body, `"uid":"demo-benchwatch-`) {
			t.Errorf("not bound to the data source: %.200s", body)
		}
	}
	if err := writeFile(m.grafanaToken(), "secret\n", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeState(m.Dir, monitoringState{Kind: monitoring, Grafana: server.URL, Filled: true}); err != nil {
		t.Fatal(err)
	}
	if err := m.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(requests["DELETE /api/folders/benchwatch-demo"]) != 1 || len(requests["DELETE /api/datasources/uid/benchwatch-demo"]) != 1 {
		t.Error("not taken back")
	}
}
