// Package web is the live page: an HTTP API about runs, a stream of what is new
// and the page itself, which a browser draws from both. It changes nothing.
package web

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/ingest"

	"github.com/benchwatch/benchwatch/agent/tool"
)

const (
	// look is how often the queues of markers are looked at while somebody
	// watches, and the shortest time between two looks at the runs.
	look = 100 * time.Millisecond
	// idle is how often the runs are looked at while nothing is told.
	idle = time.Second
)

// Options of a Page. All but Logger are needed.
type Options struct {
	DataDir string
	// Only these runs are shown, if any are named.
	Only []string
	// Runs are the live and the kept runs.
	Runs func() []ingest.Snapshot
	// Tools are those whose output can be read.
	Tools  func() tool.Set
	Logger *slog.Logger
}

// Page serves the live page. Frame, Host, Interval and Changed tell it what is
// new; they never block.
//
// Run's goroutine compares the runs with what was told of them and looks at the
// queues of markers. mu guards what was read of runs (histories, output) and the
// counters of the frames; it is held for moments only. The hub has a lock of its
// own.
type Page struct {
	opts    Options
	log     *slog.Logger
	started time.Time
	hub     *hub
	changed chan struct{}
	reading chan struct{} // held while a run is read: one at a time

	mu        sync.Mutex
	histories map[string]*runHistory
	output    *output // of the run that was looked at first
	counters  counters
	samples   []engine.Sample // of the last frame
}

// New returns a page; nothing is told to browsers before Run.
func New(o Options) *Page {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	p := &Page{
		opts: o, log: o.Logger, started: time.Now(), hub: newHub(),
		changed: make(chan struct{}, 1), reading: make(chan struct{}, 1),
		histories: map[string]*runHistory{},
	}
	return p
}

// Changed tells that something about a run may have changed.
func (p *Page) Changed() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Run tells browsers what is new until ctx is done. Then it ends their streams.
func (p *Page) Run(ctx context.Context) {
	defer p.hub.close()
	tick := time.NewTicker(look)
	defer tick.Stop()
	watch := newWatch(p)
	var second, runs time.Time
	dirty := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
			dirty = true
			if time.Since(runs) < look {
				continue // the next tick does it
			}
		case <-tick.C:
		}
		now := time.Now()
		if dirty || now.Sub(runs) >= idle {
			watch.runs()
			runs, dirty = now, false
		}
		watch.lookAtMarkers()
		watch.lookAtSettings()
		if now.Sub(second) >= time.Second-look/2 {
			second = now
			p.forget(now)
		}
	}
}

// Frame takes a tick's samples.
func (p *Page) Frame(f engine.Frame) {
	if len(f.Samples) == 0 {
		return
	}
	p.mu.Lock()
	p.samples = f.Samples
	cells := p.counters.row(f)
	for _, h := range p.histories {
		h.addAt(f.Tick, cells, func(h *runHistory) *table { return &h.servers })
	}
	p.mu.Unlock()
	p.hub.send(timedRow("servers", f.Tick, cells))
}

// Host takes this machine's CPU as it is recorded for the runs that go on.
func (p *Page) Host(line *host.Sample) {
	cells := hostRow(line)
	p.mu.Lock()
	for _, h := range p.histories {
		if !h.elsewhere {
			h.addAt(line.At, cells, func(h *runHistory) *table { return &h.host })
		}
	}
	p.mu.Unlock()
	p.hub.send(timedRow("host", line.At, cells))
}

// Interval takes a report of the tool as it is read; see run.Options.
func (p *Page) Interval(id string, elapsed float64, r *tool.Report, fresh bool) {
	p.mu.Lock()
	h := p.histories[id]
	p.mu.Unlock()
	if h == nil && (!fresh || p.hub.empty()) {
		return
	}
	cells := intervalRow(r)
	news := false
	p.mu.Lock()
	if h = p.histories[id]; h != nil {
		news = h.addInterval(elapsed, cells)
	}
	p.mu.Unlock()
	// What was written before the file was followed is in the history of a page that
	// is opened later, but not in that of one that saw the run begin.
	if fresh || news {
		p.hub.send(intervalEvent(id, elapsed, cells, r))
	}
}

// size is a file's size and time, which tell whether it has changed.
type size struct {
	bytes int64
	at    time.Time
}

func sizeOf(path string) size {
	info, err := os.Stat(path)
	if err != nil {
		return size{}
	}
	return size{info.Size(), info.ModTime()}
}
