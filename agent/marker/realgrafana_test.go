package marker

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// lossy carries requests out and then pretends that the answers to the first
// changes were lost.
type lossy struct {
	real http.RoundTripper
	lose atomic.Int64
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.real.RoundTrip(r)
	if err == nil && r.Method != http.MethodGet && l.lose.Add(-1) >= 0 {
		res.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return res, err
}

// TestRealGrafana takes a marker through its life in a real Grafana: created
// with the answer lost, found by its tag, changed into a range with the answer
// lost, deleted. GRAFANA_TOKEN needs the role Editor.
func TestRealGrafana(t *testing.T) {
	address, token := os.Getenv("GRAFANA_URL"), os.Getenv("GRAFANA_TOKEN")
	if address == "" {
		t.Skip("GRAFANA_URL is not set")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	losing := &lossy{real: transport}
	g, err := NewGrafana(address, Token{Value: token}, losing)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "markers.jsonl")
	runID := "grafana-test-" + newID()
	began := time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	tags := []string{"tool:sysbench", "target:127.0.0.1:3306"}
	for i := range 40 {
		tags = append(tags, "label"+string(rune('a'+i%26))+":"+newID()+newID()+newID())
	}
	m := Marker{Kind: Range, Run: runID, Text: "benchwatch's test <b>&amp;\nsecond line", Tags: tags, Start: began}

	d := New(g, slog.New(slog.NewTextHandler(t.Output(), nil)), Options{Poll: 50 * time.Millisecond})
	d.Watch(path)
	stop := startDeliverer(d)
	flush := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := d.Flush(ctx); err != nil {
			t.Fatalf("%v: %+v", err, d.Stats())
		}
	}
	expect := func(m Marker) annotation {
		t.Helper()
		found, err := g.find(context.Background(), &m)
		if err != nil || len(found) != 1 {
			t.Fatalf("Grafana has %+v, %v; want one", found, err)
		}
		want := annotationOf(&m)
		if !want.has(&found[0]) {
			t.Fatalf("Grafana has %+v, want %+v", found[0], want)
		}
		return found[0]
	}

	losing.lose.Store(1)
	m, err = Append(path, m)
	if err != nil {
		t.Fatal(err)
	}
	flush()
	open := expect(m)
	defer func() {
		if err := g.remove(context.Background(), open.ID); err != nil {
			t.Error(err)
		}
		if found, err := g.find(context.Background(), &m); err != nil || len(found) != 0 {
			t.Errorf("after deleting: %+v, %v", found, err)
		}
	}()
	if s := d.Stats(); s.Retried != 1 {
		t.Errorf("the answer was not lost: %+v", s)
	}

	losing.lose.Store(1)
	m.End = began.Add(time.Minute)
	m.Text += "\nfailed"
	m.Tags = slices.Insert(m.Tags, 0, "result:failed")
	if m, err = Append(path, m); err != nil {
		t.Fatal(err)
	}
	flush()
	if closed := expect(m); closed.ID != open.ID {
		t.Errorf("annotation %d became %d", open.ID, closed.ID)
	}
	stop()

	// A crash that left nothing of the delivery: it is found, not made again.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if m, err = Append(path, m); err != nil {
		t.Fatal(err)
	}
	d = New(g, slog.New(slog.NewTextHandler(t.Output(), nil)), Options{})
	d.Watch(path)
	stop = startDeliverer(d)
	flush()
	stop()
	expect(m)
}
