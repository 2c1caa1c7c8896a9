// Package web is the live page: an HTTP API about runs, a stream of events, and the page that a browser draws from
// both. All of it is read-only except markers, which need a token.
package web

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
)

const (
	// pollInterval is how often files of live runs are checked while a browser is
	// connected, and the shortest time between two checks of the runs. Without a
	// browser the page wakes up once in idleInterval.
	pollInterval = 100 * time.Millisecond
	// idleInterval is how often the runs are checked if nothing reports a change.
	idleInterval = time.Second
)

// Options of a Page. All but Logger are needed.
type Options struct {
	DataDir string
	// Only these runs are shown, if any are named.
	Only []string
	// Runs returns the live and the kept runs.
	Runs func() []ingest.Snapshot
	// Trends reads the runs of the data directory, also those that are not kept.
	Trends *history.Reader
	// Tools returns the tools whose output can be read.
	Tools func() tool.Set
	// Health returns the state of the agent, except its start and whether there is a token, which the page adds.
	Health func() Health
	// TokenFile returns the file with the token that setting a marker needs. Without
	// a name, no markers are accepted.
	TokenFile func() string
	// Marked is called after a marker was written.
	Marked func()
	Logger *slog.Logger
	// Now is the clock of the runs; nil: time.Now.
	Now func() time.Time
}

// Page serves the live page. Frame, Sampled, Host, Interval and Changed report what
// is new; they never block.
//
// Run's goroutine compares the runs with what it sent of them last and polls their files of markers and settings. mu
// guards the histories that are kept in memory, output and frame; it is held for moments only. The hub has its own
// lock.
type Page struct {
	opts    Options
	log     *slog.Logger
	started time.Time
	hub     *hub
	changed chan struct{}
	reading chan struct{} // held while a run is read: one at a time

	mu        sync.Mutex
	histories map[string]*runHistory
	required  map[string]requirements
	output    *output      // of the run that was read last without its servers
	frame     engine.Frame // the last one, of all servers
	hostFrame engine.Frame // the last one, of all machines
}

// New returns a page; browsers get no events before Run.
func New(o Options) *Page {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Page{
		opts: o, log: o.Logger, started: time.Now(), hub: newHub(),
		changed: make(chan struct{}, 1), reading: make(chan struct{}, 1),
		histories: map[string]*runHistory{}, required: map[string]requirements{},
	}
	return p
}

// Changed reports that something about a run may have changed.
func (p *Page) Changed() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Run sends events until ctx is done. Then it ends the streams.
func (p *Page) Run(ctx context.Context) {
	defer p.hub.close()
	pace := pollInterval
	tick := time.NewTimer(clock.Next(pace))
	defer tick.Stop()
	watch := newWatch(p)
	var second, runs time.Time
	dirty := true
	for {
		wanted := pollInterval
		if p.hub.empty() {
			wanted = idleInterval
		}
		if pace != wanted {
			pace = wanted
			tick.Reset(clock.Next(pace))
		}
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
			dirty = true
			if p.hub.empty() || time.Since(runs) < pollInterval {
				continue // the next tick does it
			}
		case <-tick.C:
			tick.Reset(clock.Next(pace))
		}
		now := time.Now()
		if p.unused() {
			dirty = true
			continue
		}
		if dirty || now.Sub(runs) >= idleInterval-pollInterval/2 {
			watch.sendRuns()
			runs, dirty = now, false
		}
		watch.sendMarkers()
		watch.sendSettings()
		if now.Sub(second) >= time.Second-pollInterval/2 {
			second = now
			watch.sendComparisons()
			p.dropUnused(now)
		}
	}
}

// unused reports that no browser listens and no history is kept. Then nothing is sent: a browser that connects reads
// all runs before it needs their changes.
func (p *Page) unused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.histories) == 0 && p.hub.empty()
}

// Frame takes a tick's samples of all servers, after Sampled for each run.
func (p *Page) Frame(f engine.Frame) {
	if len(f.Samples) == 0 {
		return
	}
	p.mu.Lock()
	p.frame = f
	p.mu.Unlock()
}

// Sampled takes the answers of a run's own servers at a tick; see live.Sink.
func (p *Page) Sampled(id string, f engine.Frame) {
	p.mu.Lock()
	previous, h := p.frame, p.histories[id]
	if h == nil && p.hub.empty() {
		p.mu.Unlock()
		return
	}
	if f.Missed > 0 {
		previous = engine.Frame{} // rates over a gap are no values of this tick
	}
	cells := serverCells(&previous, &f)
	if h != nil {
		h.addAt(f.Tick, f.Interval.Seconds(), cells, func(h *runHistory) *table { return h.servers })
	}
	p.mu.Unlock()
	p.hub.send(timedRow("servers", id, f.Tick, f.Interval.Seconds(), cells))
}

// HostFrame takes a tick's samples of all machines, after Hosts for each run.
func (p *Page) HostFrame(f engine.Frame) {
	p.mu.Lock()
	p.hostFrame = f
	p.mu.Unlock()
}

// Hosts takes what a run's own machines did at a tick; see live.Sink.
func (p *Page) Hosts(id string, f engine.Frame) {
	p.mu.Lock()
	previous, h := p.hostFrame, p.histories[id]
	if h == nil && p.hub.empty() {
		p.mu.Unlock()
		return
	}
	if f.Missed > 0 {
		previous = engine.Frame{}
	}
	cells := sampleCells(&previous, &f, drawn(measure.Host))
	if h != nil {
		h.addAt(f.Tick, f.Interval.Seconds(), cells, func(h *runHistory) *table { return h.host })
	}
	p.mu.Unlock()
	p.hub.send(timedRow("host", id, f.Tick, f.Interval.Seconds(), cells))
}

// Interval takes a report of a run's tool; see live.Sink.
func (p *Page) Interval(id string, elapsed float64, r *tool.Report, fresh bool) {
	p.mu.Lock()
	h := p.histories[id]
	p.mu.Unlock()
	if h == nil && (!fresh || p.hub.empty()) {
		return
	}
	cells := intervalCells(r)
	isNew := false
	p.mu.Lock()
	if h = p.histories[id]; h != nil {
		isNew = h.addInterval(elapsed, cells)
	}
	p.mu.Unlock()
	// A page that was opened when the run began lacks what the tool wrote before
	// its output was followed; one that is opened later has it in its history.
	if fresh || isNew {
		p.hub.send(intervalRow(id, elapsed, cells, r))
	}
}

// size is a file's size and time: a file with the same ones has not changed.
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
