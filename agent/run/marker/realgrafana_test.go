package marker

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
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
	g, err := NewGrafana(address, tokenFile(t, token))
	if err != nil {
		t.Fatal(err)
	}
	g.client.HTTP.Transport = losing
	dir := rundir.Directory(t.TempDir())
	runID := "grafana-test-" + rand.Text()
	began := time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	tags := []string{"tool:sysbench", "target:127.0.0.1:3306"}
	for i := range 40 {
		tags = append(tags, "label"+string(rune('a'+i%26))+":"+rand.Text()+rand.Text()+rand.Text())
	}
	m := Marker{Kind: Run, Run: runID, Text: "benchwatch's test <b>&amp;\nsecond line", Tags: tags, Start: began}

	deliverer := func() (*Deliverer, func()) {
		d := New(Options{
			DataDir: string(dir), Shown: none, Grafana: func() *Grafana { return g }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		d.poll = 50 * time.Millisecond
		return d, startDeliverer(d)
	}
	d, stop := deliverer()
	delivered := func() Marker {
		t.Helper()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		deadline := time.After(time.Minute)
		for {
			if all := items(t, dir); len(all) == 1 && all[0].delivered() {
				return all[0].Marker
			}
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("not delivered: %+v", d.Stats())
			}
		}
	}
	add := func() {
		t.Helper()
		if err := Append(dir, m); err != nil {
			t.Fatal(err)
		}
		m = delivered()
	}
	expect := func(m Marker) annotation {
		t.Helper()
		found, err := g.find(context.Background(), &m)
		if err != nil || len(found) != 1 {
			t.Fatalf("Grafana has %+v, %v; want one", found, err)
		}
		want := annotationOf(&m)
		if !want.equal(&found[0]) {
			t.Fatalf("Grafana has %+v, want %+v", found[0], want)
		}
		return found[0]
	}

	losing.lose.Store(1)
	add()
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
	add()
	if closed := expect(m); closed.ID != open.ID {
		t.Errorf("annotation %d became %d", open.ID, closed.ID)
	}
	stop()

	// A crash that left nothing of the delivery: it is found, not made again.
	if err := os.Remove(dir.Path(rundir.MarkersFile)); err != nil {
		t.Fatal(err)
	}
	_, stop = deliverer()
	add()
	stop()
	expect(m)
}
