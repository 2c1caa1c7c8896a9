package marker

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(delivererURL); url != "" {
		deliverUntilKilled(url, os.Getenv(delivererQueue))
	}
	goleak.VerifyTestMain(m)
}

var (
	start   = time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)
	openRun = Marker{
		Kind: Range, Run: "r1", Text: "16 threads\nsysbench <oltp> & co", Start: start,
		Tags: []string{"tool:sysbench", "target:127.0.0.1:3306"},
	}
)

func closedRun() Marker {
	m := openRun
	m.End = start.Add(time.Minute)
	m.Text += "\nfailed"
	m.Tags = append([]string{"result:failed"}, m.Tags...)
	return m
}

func point(text string, at time.Duration) Marker {
	return Marker{Kind: Point, Run: "r1", Text: text, Start: start.Add(at)}
}

// lab is a queue, a Grafana and what was logged.
type lab struct {
	t         *testing.T
	grafana   *fakeGrafana
	transport *inProcess
	path      string
	token     Token
	log       bytes.Buffer
	logMu     sync.Mutex
	write     func(string, entry) error
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, grafana: &fakeGrafana{}, path: filepath.Join(t.TempDir(), "markers.jsonl")}
	l.transport = &inProcess{handler: l.grafana}
	return l
}

func (l *lab) Write(p []byte) (int, error) {
	l.logMu.Lock()
	defer l.logMu.Unlock()
	return l.log.Write(p)
}

func (l *lab) logged(part string) int {
	l.logMu.Lock()
	defer l.logMu.Unlock()
	return strings.Count(l.log.String(), part)
}

func (l *lab) add(ms ...Marker) {
	l.t.Helper()
	for _, m := range ms {
		if _, err := Append(l.path, m); err != nil {
			l.t.Fatal(err)
		}
	}
}

// deliverer starts one; the function returned stops it.
func (l *lab) deliverer() (*Deliverer, func()) {
	l.t.Helper()
	g, err := NewGrafana("http://grafana.test/", l.token, l.transport)
	if err != nil {
		l.t.Fatal(err)
	}
	d := New(g, slog.New(slog.NewTextHandler(l, nil)), Options{write: l.write})
	d.Watch(l.path)
	return d, startDeliverer(d)
}

func startDeliverer(d *Deliverer) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

// flush waits for everything to be delivered.
func (l *lab) flush(d *Deliverer, limit time.Duration) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := d.Flush(ctx); err != nil {
		l.t.Fatalf("not delivered within %s: %+v\n%s", limit, d.Stats(), l.log.String())
	}
}

// check compares what Grafana holds with the queue: each marker once, as it is.
func (l *lab) check() {
	l.t.Helper()
	states, err := Read(l.path)
	if err != nil {
		l.t.Fatal(err)
	}
	all := l.grafana.all()
	for _, s := range states {
		want := annotationOf(&s.Marker)
		want.TimeEnd = max(want.TimeEnd, want.Time)
		var got []annotation
		for _, a := range all {
			if slices.Contains(a.Tags, identityTag(s.ID)) {
				got = append(got, a)
			}
		}
		if len(got) != 1 {
			l.t.Errorf("%s is in Grafana %d times", describe(&s.Marker), len(got))
			continue
		}
		want.ID = got[0].ID
		if diff := cmp.Diff(want, got[0]); diff != "" {
			l.t.Errorf("%s (-want +got):\n%s", describe(&s.Marker), diff)
		}
		if !s.Delivered {
			l.t.Errorf("%s: its delivery is not recorded", describe(&s.Marker))
		}
	}
	if len(all) != len(states) {
		l.t.Errorf("Grafana has %d annotations, the queue %d markers", len(all), len(states))
	}
}
