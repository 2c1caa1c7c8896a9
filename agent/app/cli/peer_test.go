package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/app/observer"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// peerAgent serves an agent with a web configuration and mirrors peers.
func peerAgent(t *testing.T, web string, peers ...config.Peer) (dataDir, address string, log *lockedBuffer, reload func(...config.Peer)) {
	t.Helper()
	file := ""
	if web != "" {
		file = writeFile(t, "web.yml", web)
	}
	o := &observing{addresses: []string{"127.0.0.1:0"}, webConfig: file}
	c := config.Default()
	c.DataDir, c.Peers = t.TempDir(), peers
	log = &lockedBuffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	b, err := observer.New(observer.Options{Config: c, Logger: logger, Authenticated: o.authenticated})
	if err != nil {
		t.Fatal(err)
	}
	ls, err := o.listen(false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = b.Run(ctx) })
	parts.Go(func() { _ = o.serve(ctx, b, ls, logger) })
	t.Cleanup(func() { stop(); parts.Wait() })
	_, port, _ := net.SplitHostPort(ls[0].Addr().String())
	return c.DataDir, "127.0.0.1:" + port, log, func(peers ...config.Peer) {
		next := *c
		next.Peers = peers
		if err := b.Reload(&next); err != nil {
			t.Error(err)
		}
	}
}

// TestOutputNeedsAuthentication guards that the tool's output leaves the machine only
// with a password, and that an agent with the right one mirrors it. A wrong one is one
// line in the log, and the right one after it continues.
func TestOutputNeedsAuthentication(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("s3cret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for _, web := range []string{"", "basic_auth_users:\n  bench: " + string(hash) + "\n"} {
		dataDir, address, _, _ := peerAgent(t, web)
		dir, claim, err := rundir.Create(dataDir, rundir.Meta{
			ID: "run", Title: "run",
			Benchmark: rundir.Benchmark{Tool: "sysbench"},
			Timing:    rundir.Timing{StartedAt: time.Now().UTC()},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer claim.Release()
		if err := os.WriteFile(dir.Path(rundir.StdoutFile), []byte("it printed hunter2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		get := func(path, password string) (int, string) {
			request, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if password != "" {
				request.SetBasicAuth("bench", password)
			}
			resp, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(body)
		}
		output := "/api/peer/runs/run?have=" + url.QueryEscape(`{"files":{"stdout.log":{}}}`)
		if web == "" {
			if code, body := get(output, ""); code != http.StatusForbidden || strings.Contains(body, "hunter2") {
				t.Errorf("without authentication: %d %s", code, body)
			}
			continue
		}
		for password, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "s3cret": http.StatusOK} {
			if code, body := get(output, password); code != want || (want == http.StatusOK) != strings.Contains(body, base64.StdEncoding.EncodeToString([]byte("it printed hunter2\n"))) {
				t.Errorf("password %q: %d %s", password, code, body)
			}
		}
		wrong, right := writeFile(t, "wrong", "n0t-this\n"), writeFile(t, "right", "s3cret\n")
		p := config.Peer{URL: "http://" + address, User: "bench", PasswordFile: wrong, Output: true, MaxAge: "24h"}
		to, center, log, reload := peerAgent(t, "", p)
		until := func(what string, ok func() bool) {
			t.Helper()
			deadline, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
			defer tick.Stop()
			for !ok() {
				select {
				case <-deadline:
					t.Fatalf("waited in vain for %s\n%s", what, log)
				case <-tick.C:
				}
			}
		}
		until("the line about the password", func() bool { return strings.Contains(log.String(), "the password is refused") })
		p.PasswordFile = right
		reload(p)
		until("the copy", func() bool {
			data, _ := os.ReadFile(filepath.Join(to, "runs", "run", rundir.StdoutFile))
			return strings.Contains(string(data), "hunter2")
		})
		var body string
		until("the copy on the page, and not in the metrics", func() bool {
			resp, err := http.Get("http://" + center + "/api/runs/run")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			metrics, err := http.Get("http://" + center + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			data, _ := io.ReadAll(metrics.Body)
			metrics.Body.Close()
			body = string(data)
			return resp.StatusCode == http.StatusOK && strings.Contains(body, fmt.Sprintf("benchwatch_peer_up{peer=%q} 1", address))
		})
		if strings.Contains(body, `run="run"`) || !strings.Contains(body, fmt.Sprintf("benchwatch_peer_runs{peer=%q,state=\"live\"} 1", address)) {
			t.Error(body)
		}
		if text := log.String(); strings.Contains(text, "n0t-this") || strings.Contains(text, "s3cret") {
			t.Error("a password is in the log")
		}
	}
}
