package web

import (
	"context"
	"time"

	"github.com/benchwatch/benchwatch/agent/run"
)

const (
	// keptHistories is how many runs' columns are held in memory, and keptTime
	// how long after they were last asked for: a run of ten hours takes about
	// 10 MB.
	keptHistories = 4
	keptTime      = 2 * time.Minute
	// longStatus is the size in bytes from which a status file takes so long that
	// a page is shown before it is read.
	longStatus = 16 << 20
)

// history is what is drawn of one run. Page.mu guards it. Of a live run it is
// kept up to date with the rows that browsers get too.
type history struct {
	zero               time.Time
	intervals, servers table
	warmup             []span
	damage             []string
	started            time.Time
	noServers          bool // they were not read

	used time.Time
	// basis is what has to be the same for the history to be right still.
	basis basis
	// loading: rows are put into waiting until the files are read.
	loading bool
	waiting []func(*history)
}

// basis of a live run is what zero depends on, of an ended one also its files.
type basis struct {
	live         bool
	ended, clock time.Time
	meta, output size
	status       size
}

// add appends a row; one of the servers only if its tick belongs to the run. mu
// is held.
func (h *history) add(t *table, x float64, cells []cell, tick time.Time) {
	if !h.basis.live || !tick.IsZero() && tick.Before(h.started) {
		return
	}
	if h.loading {
		servers := t == &h.servers
		h.waiting = append(h.waiting, func(read *history) {
			if servers {
				read.servers.append(tick.Sub(read.zero).Seconds(), cells)
			} else {
				read.intervals.append(x, cells)
			}
		})
		return
	}
	t.append(x, cells)
}

func basisOf(dataDir string, s *run.Snapshot) basis {
	b := basis{live: s.Phase != run.Over}
	if s.Meta.EndedAt != nil {
		b.ended = *s.Meta.EndedAt
	}
	if s.Meta.ClockStartedAt != nil {
		b.clock = *s.Meta.ClockStartedAt
	}
	if b.live {
		return b
	}
	dir := run.At(dataDir, s.Meta.ID)
	output := dir.Path(run.StdoutFile)
	if s.Meta.Log != nil {
		output = s.Meta.Log.Path
	}
	b.meta, b.output, b.status = sizeOf(dir.Path(run.MetaFile)), sizeOf(output), sizeOf(dir.Path(run.StatusFile))
	return b
}

// keepUp drops a live run's history when the run's place on the time axis has
// changed or the run is over: it is then read again from its files.
func (p *Page) keepUp(s *run.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.histories[s.Meta.ID]
	if h == nil || h.loading || !h.basis.live {
		return
	}
	if now := basisOf(p.opts.DataDir, s); now != h.basis {
		delete(p.histories, s.Meta.ID)
	}
}

// forget drops histories that nobody has asked for in a while.
func (p *Page) forget(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, h := range p.histories {
		if !h.loading && now.Sub(h.used) > keptTime {
			delete(p.histories, id)
		}
	}
}

// read returns a run's history as it stands now, from memory or from its files.
func (p *Page) read(ctx context.Context, s *run.Snapshot) (history, error) {
	want := basisOf(p.opts.DataDir, s)
	if h, ok := p.remembered(s.Meta.ID, want); ok {
		return h, nil
	}
	select { // one at a time: it takes CPU and memory from the benchmark
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return history{}, ctx.Err()
	}
	if h, ok := p.remembered(s.Meta.ID, want); ok {
		return h, nil
	}
	id := s.Meta.ID
	pending := &history{basis: want, started: s.Meta.StartedAt, zero: s.Meta.StartedAt, loading: true}
	p.mu.Lock()
	p.histories[id] = pending
	p.mu.Unlock()
	h, err := p.load(ctx, s, want)

	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		delete(p.histories, id)
		return history{}, err
	}
	for _, row := range pending.waiting {
		row(h)
	}
	p.histories[id] = h
	p.limit()
	return h.snapshot(), nil
}

func (p *Page) load(ctx context.Context, s *run.Snapshot, b basis) (*history, error) {
	read, err := run.ReadHistoryOf(ctx, run.At(p.opts.DataDir, s.Meta.ID), p.opts.Tools().ByName(s.Meta.Tool), drawn)
	if err != nil {
		return nil, err
	}
	h := newHistory(read)
	h.started, h.used, h.basis = s.Meta.StartedAt, time.Now(), b
	return &h, nil
}

// readOutput reads what the tool reported only. It is not remembered.
func (p *Page) readOutput(ctx context.Context, s *run.Snapshot) (history, error) {
	read, err := run.ReadOutputHistory(ctx, run.At(p.opts.DataDir, s.Meta.ID), p.opts.Tools().ByName(s.Meta.Tool))
	if err != nil {
		return history{}, err
	}
	h := newHistory(read)
	h.noServers = true
	return h, nil
}

func newHistory(read *run.History) history {
	return history{
		zero: read.Zero, intervals: intervalTable(&read.Intervals), servers: serverTable(read),
		warmup: warmups(&read.Intervals), damage: read.DamageLines(),
	}
}

// remembered returns the history in memory if it is still right.
func (p *Page) remembered(id string, want basis) (history, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.histories[id]
	if h == nil || h.loading || h.basis != want {
		return history{}, false
	}
	h.used = time.Now()
	return h.snapshot(), true
}

// snapshot can be read while rows are added to h.
func (h *history) snapshot() history {
	c := *h
	c.intervals, c.servers = h.intervals.snapshot(), h.servers.snapshot()
	return c
}

// limit drops the histories asked for longest ago. mu is held.
func (p *Page) limit() {
	for len(p.histories) > keptHistories {
		oldest := ""
		for id, h := range p.histories {
			if !h.loading && (oldest == "" || h.used.Before(p.histories[oldest].used)) {
				oldest = id
			}
		}
		if oldest == "" {
			return
		}
		delete(p.histories, oldest)
	}
}
