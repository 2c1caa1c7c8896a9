//go:build e2e

package monitoring

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
)

// grafana is the part of Grafana's annotation API that markers need, which can fail on
// demand. agent/run/marker tests against a closer imitation; here the behaviour of the whole
// program during a run counts.
type grafana struct {
	mu          sync.Mutex
	annotations []annotation
	trouble     func(http.ResponseWriter, *http.Request) bool // whether it has answered
	requests    int
}

type annotation struct {
	ID      int64    `json:"id"`
	Time    int64    `json:"time"`
	TimeEnd int64    `json:"timeEnd"`
	Text    string   `json:"text"`
	Tags    []string `json:"tags"`
}

func (g *grafana) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests++
	if g.trouble != nil && g.trouble(w, r) {
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+grafanaToken {
		http.Error(w, `{"message":"Invalid API key"}`, http.StatusUnauthorized)
		return
	}
	var a annotation
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			http.Error(w, `{"message":"bad request data"}`, http.StatusBadRequest)
			return
		}
	}
	id, _ := strconv.ParseInt(strings.TrimPrefix(r.URL.Path, "/api/annotations/"), 10, 64)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodGet:
		found := []annotation{}
		for _, have := range g.annotations {
			if !slices.ContainsFunc(r.URL.Query()["tags"], func(tag string) bool { return !slices.Contains(have.Tags, tag) }) {
				found = append(found, have)
			}
		}
		_ = json.NewEncoder(w).Encode(found)
	case r.Method == http.MethodPost:
		a.ID = int64(len(g.annotations) + 1)
		a.TimeEnd = max(a.TimeEnd, a.Time)
		g.annotations = append(g.annotations, a)
		fmt.Fprintf(w, `{"message":"Annotation added","id":%d}`, a.ID)
	case (r.Method == http.MethodPatch || r.Method == http.MethodPut) && id > 0 && id <= int64(len(g.annotations)):
		a.ID = id
		g.annotations[id-1] = a
		fmt.Fprint(w, `{"message":"Annotation patched"}`)
	default:
		http.NotFound(w, r)
	}
}

func (g *grafana) setTrouble(f func(http.ResponseWriter, *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trouble = f
}

func (g *grafana) of(run string) (found []annotation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.annotations {
		if slices.Contains(a.Tags, "run:"+run) {
			found = append(found, a)
		}
	}
	return found
}

// serve answers at an address until the test ends.
func (g *grafana) serve(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: g}
	go func() { _ = server.Serve(l) }() // ends with Close
	t.Cleanup(func() { server.Close() })
}

const grafanaToken = "token-of-the-test"

func grafanaConfig(t *testing.T, address string) string {
	t.Helper()
	file := t.TempDir() + "/token"
	must(t, os.WriteFile(file, []byte(grafanaToken), 0o600))
	return fmt.Sprintf("grafana: {url: 'http://%s', token_file: %s}\n", address, file)
}

// cpu is a benchmark that needs no server and little of the processor.
func cpu(seconds int) []string {
	return []string{"sysbench", "cpu", "--rate=50", "--report-interval=1", fmt.Sprintf("--time=%d", seconds), "run"}
}

// markedOnce waits until Grafana has the region of the ended run, and fails the test if
// it has the region twice.
func (g *grafana) markedOnce(t *testing.T, id string) {
	t.Helper()
	agents.Wait(t, 60*time.Second, "marker of "+id, func() error {
		found := g.of(id)
		if len(found) == 0 {
			return fmt.Errorf("none after %d requests", g.requests)
		}
		if found[0].TimeEnd-found[0].Time < 1000 {
			return fmt.Errorf("not closed: %+v", found[0])
		}
		return nil
	})
	if found := g.of(id); len(found) != 1 {
		t.Errorf("%d annotations of one run: %+v", len(found), found)
	}
}

// Grafana is unreachable during the whole run, and the agent is killed: the marker is
// delivered once Grafana is back, once.
func TestGrafanaDown(t *testing.T) {
	const id = "grafana-down"
	address := agents.FreeAddress(t)
	a := env.StartAgent(t, grafanaConfig(t, address))
	wrapper := a.Run(t, id, cpu(3)...)
	if status := wrapper.Status(t, 30*time.Second); status != 0 {
		t.Fatalf("benchwatch run exited with %d", status)
	}
	a.Closed(t, id, 30*time.Second)
	if n := a.Scrape(t).Must(t, "benchwatch_marker_queue_length"); n != 1 {
		t.Errorf("%g markers wait, want 1", n)
	}
	a.Kill(t)
	var g grafana
	g.serve(t, address)
	a.Again(t)
	g.markedOnce(t, id)
	agents.Wait(t, 10*time.Second, "queue empty", func() error {
		if n := a.Scrape(t).Must(t, "benchwatch_marker_queue_length"); n != 0 {
			return fmt.Errorf("%g markers wait", n)
		}
		return nil
	})
	a.Kill(t)
	a.Again(t)
	// After a second run, the restarted agent has certainly worked on its queue.
	a.Run(t, id+"-2", cpu(1)...)
	g.markedOnce(t, id+"-2")
	g.markedOnce(t, id)
}

// Grafana answers with errors or with a login page, or carries out a request but the answer
// is lost: there is still one marker.
func TestGrafanaTrouble(t *testing.T) {
	for name, trouble := range map[string]func(*grafana) func(http.ResponseWriter, *http.Request) bool{
		"server-error": func(*grafana) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, `{"message":"database is locked"}`, http.StatusInternalServerError)
				return true
			}
		},
		"login-page": func(*grafana) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<!DOCTYPE html><title>Sign in</title>")
				return true
			}
		},
		"lost-answer": func(g *grafana) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				var a annotation
				if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&a) != nil {
					return false
				}
				a.ID = int64(len(g.annotations) + 1)
				a.TimeEnd = max(a.TimeEnd, a.Time)
				g.annotations = append(g.annotations, a)
				panic(http.ErrAbortHandler) // closes the connection
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := agents.FreeAddress(t)
			g := &grafana{}
			g.setTrouble(trouble(g))
			g.serve(t, address)
			a := env.StartAgent(t, grafanaConfig(t, address))
			wrapper := a.Run(t, name, cpu(2)...)
			wrapper.Status(t, 30*time.Second)
			a.Closed(t, name, 30*time.Second)
			agents.Wait(t, 30*time.Second, "a request", func() error {
				g.mu.Lock()
				defer g.mu.Unlock()
				if g.requests == 0 {
					return fmt.Errorf("none yet")
				}
				return nil
			})
			g.setTrouble(nil)
			g.markedOnce(t, name)
		})
	}
}
