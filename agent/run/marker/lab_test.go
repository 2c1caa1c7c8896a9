package marker

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/fakegrafana"
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
		Kind: Run, Run: "r1", Text: "16 threads\nsysbench <oltp> & co", Start: start,
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

// lab is a queue, a Grafana and a log. The queue belongs to a data directory, which is always shown.
type lab struct {
	t         *testing.T
	grafana   *fakegrafana.Grafana
	transport *fakegrafana.Transport
	dir       rundir.Directory
	path      string // of the queue file in dir
	token     string // file
	target    atomic.Pointer[Grafana]
	log       bytes.Buffer
	logMu     sync.Mutex
	write     func(string, entry) error
}

func newLab(t *testing.T) *lab {
	dir := rundir.Directory(t.TempDir())
	l := &lab{t: t, grafana: &fakegrafana.Grafana{}, dir: dir, path: dir.Path(rundir.MarkersFile)}
	l.transport = &fakegrafana.Transport{Handler: l.grafana}
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
		if err := Append(l.dir, m); err != nil {
			l.t.Fatal(err)
		}
	}
}

// items reads the queue.
func (l *lab) items() []*item {
	l.t.Helper()
	return items(l.t, l.dir)
}

func items(t testing.TB, dir rundir.Directory) []*item {
	t.Helper()
	q := newQueue(dir)
	if err := q.refresh(true); err != nil {
		t.Fatal(err)
	}
	return q.items
}

// client is a client of the lab's Grafana, or of the one at url.
func (l *lab) client(url string) *Grafana {
	l.t.Helper()
	g, err := NewGrafana(cmp.Or(url, "http://grafana.test/"), l.token)
	if err != nil {
		l.t.Fatal(err)
	}
	if url == "" {
		g.client.HTTP.Transport = l.transport
	}
	return g
}

// use makes deliveries go to g, nil for none.
func (l *lab) use(g *Grafana) { l.target.Store(g) }

func none() []rundir.Directory { return nil }

// newDeliverer returns a deliverer that has not been started.
func (l *lab) newDeliverer(g *Grafana) *Deliverer {
	l.use(g)
	d := New(Options{
		DataDir: string(l.dir), Shown: none, Grafana: l.target.Load, Log: slog.New(slog.NewTextHandler(l, nil)),
	})
	if l.write != nil {
		d.write = l.write
	}
	return d
}

// deliverer starts a deliverer; the returned function stops it.
func (l *lab) deliverer() (*Deliverer, func()) {
	l.t.Helper()
	d := l.newDeliverer(l.client(""))
	return d, startDeliverer(d)
}

func startDeliverer(d *Deliverer) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

// flush waits until Grafana has taken or refused everything and that is recorded.
func (l *lab) flush(d *Deliverer, limit time.Duration) {
	l.t.Helper()
	pause := 10 * time.Millisecond
	deadline := time.After(limit)
	waits := func(it *item) bool { return !it.delivered() && !it.refused() }
	for d.Kick(); slices.ContainsFunc(l.items(), waits) || d.Stats().Queued > 0; {
		select {
		case <-time.After(pause):
			pause = min(2*pause, 500*time.Millisecond)
			d.Kick()
		case <-deadline:
			l.t.Fatalf("not delivered within %s: %+v\n%s", limit, d.Stats(), l.log.String())
		}
	}
}

// check compares the annotations in Grafana with the queue: each marker exists once, unchanged.
func (l *lab) check() {
	l.t.Helper()
	items := l.items()
	all := l.grafana.All()
	for _, s := range items {
		want := fakegrafana.Annotation(annotationOf(&s.Marker))
		want.TimeEnd = max(want.TimeEnd, want.Time)
		var got []fakegrafana.Annotation
		for _, a := range all {
			if slices.Contains(a.Tags, identityTag(s.ID)) {
				got = append(got, a)
			}
		}
		if len(got) != 1 {
			l.t.Errorf("%s is in Grafana %d times", &s.Marker, len(got))
			continue
		}
		want.ID = got[0].ID
		if diff := gocmp.Diff(want, got[0]); diff != "" {
			l.t.Errorf("%s (-want +got):\n%s", &s.Marker, diff)
		}
		if !s.delivered() {
			l.t.Errorf("%s: its delivery is not recorded", &s.Marker)
		}
	}
	if len(all) != len(items) {
		l.t.Errorf("Grafana has %d annotations, the queue %d markers", len(all), len(items))
	}
}
