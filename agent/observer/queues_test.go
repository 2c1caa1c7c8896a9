package observer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// annotations takes what is sent to it and never has any.
func annotations(t *testing.T) (url string, received func() []string) {
	t.Helper()
	var mu sync.Mutex
	var texts []string
	var id atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, "[]")
			return
		}
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		texts = append(texts, string(body))
		mu.Unlock()
		fmt.Fprintf(w, `{"id":%d}`, id.Add(1))
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), texts...)
	}
}

// TestQueuesAreLetGo guards that a long life does not gather the queues of all
// runs there ever were: what is delivered of runs that are not shown is forgotten,
// what is added later is delivered all the same, and removed runs leave nothing.
func TestQueuesAreLetGo(t *testing.T) {
	c := testConfig(t)
	url, received := annotations(t)
	c.Grafana.URL = url
	m, err := newMarkers(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	add := func(id, text string) {
		t.Helper()
		p := marker.Marker{Kind: marker.Point, Run: id, Text: text, Start: time.Now()}
		if _, err := marker.Append(rundir.At(c.DataDir, id).Path(rundir.MarkersFile), p); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"a", "b", "c"} {
		newRun(t, c, rundir.Meta{ID: id, StartedAt: time.Now()})
		add(id, "first of "+id)
	}
	m.watchAll(c.DataDir)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { m.run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	points := func() string {
		var texts []string
		for _, p := range m.points() {
			texts = append(texts, p.Text)
		}
		return strings.Join(texts, ", ")
	}
	// become tends until the points are those: the deliverer drops at its next look.
	become := func(want string, visible ...string) {
		t.Helper()
		until(t, "points "+want, func() bool {
			m.tend(c.DataDir, func() map[string]bool {
				shown := map[string]bool{}
				for _, id := range visible {
					shown[id] = true
				}
				return shown
			})
			return points() == want
		})
	}
	sent := func(n int) {
		t.Helper()
		until(t, fmt.Sprintf("%d deliveries", n), func() bool { return len(received()) == n })
	}
	become("first of a, first of b, first of c", "a", "b", "c")
	sent(3)
	become("first of b, first of c", "b", "c")
	add("a", "second of a")
	become("first of b, first of c", "b", "c")
	sent(4)
	if last := received()[3]; !strings.Contains(last, "second of a") {
		t.Errorf("delivered %s", last)
	}
	if err := os.RemoveAll(string(rundir.At(c.DataDir, "b"))); err != nil {
		t.Fatal(err)
	}
	become("first of c", "c")
	if len(m.tended) != 2 {
		t.Errorf("%d queues are remembered", len(m.tended))
	}
}
