package web

import (
	"context"
	"time"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
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
type runHistory struct {
	zero                     time.Time
	intervals, servers, host table
	warmup                   []span
	damage                   []string
	started                  time.Time
	noServers                bool // they were not read
	// elsewhere: the tool may run on another machine, whose CPU is not known.
	elsewhere bool

	used time.Time
	// basis is what has to be the same for the history to be right still.
	basis basis
	// loading: rows are put into waiting until the files are read.
	loading bool
	waiting []func(*runHistory)
}

// basis of a live run is what zero depends on, of an ended one also its files.
type basis struct {
	live         bool
	ended, clock time.Time
	meta, output size
	status, host size
}

// output is an ended run without its servers, to be completed by who asks for
// these next.
type output struct {
	id    string
	basis basis
	read  *history.History
	at    time.Time // when
}

// addInterval appends what the tool reported, and says whether it is news to those who
// were given the history before. mu is held.
func (h *runHistory) addInterval(x float64, cells []cell) (news bool) {
	known := h.intervals.x
	news = h.basis.live && !h.loading && (len(known) == 0 || x > known[len(known)-1])
	h.add(func(h *runHistory) { h.intervals.append(x, cells) })
	return news
}

// addAt appends a row to the table that of picks, unless its instant lies before
// the run. mu is held.
func (h *runHistory) addAt(at time.Time, cells []cell, of func(*runHistory) *table) {
	if !at.Before(h.started) {
		h.add(func(h *runHistory) { of(h).append(at.Sub(h.zero).Seconds(), cells) })
	}
}

// add changes a live run's runHistory, or the one that is just being read as soon
// as that is done.
func (h *runHistory) add(change func(*runHistory)) {
	switch {
	case !h.basis.live:
	case h.loading:
		h.waiting = append(h.waiting, change)
	default:
		change(h)
	}
}

func basisOf(dataDir string, s *ingest.Snapshot) basis {
	b := basis{live: s.Phase != ingest.Over}
	if s.Meta.EndedAt != nil {
		b.ended = *s.Meta.EndedAt
	}
	if s.Meta.ClockStartedAt != nil {
		b.clock = *s.Meta.ClockStartedAt
	}
	if b.live {
		return b
	}
	dir := rundir.At(dataDir, s.Meta.ID)
	output := dir.Path(rundir.StdoutFile)
	if s.Meta.Log != nil {
		output = s.Meta.Log.Path
	}
	b.meta, b.output, b.status = sizeOf(dir.Path(rundir.MetaFile)), sizeOf(output), sizeOf(dir.Path(rundir.StatusFile))
	b.host = sizeOf(dir.Path(host.File))
	return b
}

// keepUp drops a live run's history when the run's place on the time axis has
// changed or the run is over: it is then read again from its files.
func (p *Page) keepUp(s *ingest.Snapshot) {
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
	if p.output != nil && now.Sub(p.output.at) > keptTime {
		p.output = nil
	}
}

// read returns a run's history as it stands now, from memory or from its files.
func (p *Page) read(ctx context.Context, s *ingest.Snapshot) (runHistory, error) {
	want := basisOf(p.opts.DataDir, s)
	if h, ok := p.remembered(s.Meta.ID, want); ok {
		return h, nil
	}
	select { // one at a time: it takes CPU and memory from the benchmark
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return runHistory{}, ctx.Err()
	}
	if h, ok := p.remembered(s.Meta.ID, want); ok {
		return h, nil
	}
	id := s.Meta.ID
	pending := &runHistory{basis: want, started: s.Meta.StartedAt, zero: s.Meta.StartedAt, elsewhere: s.Meta.Log != nil, loading: true}
	p.mu.Lock()
	p.histories[id] = pending
	p.mu.Unlock()
	h, err := p.load(ctx, s, want)

	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		delete(p.histories, id)
		return runHistory{}, err
	}
	for _, row := range pending.waiting {
		row(h)
	}
	p.histories[id] = h
	p.limit()
	return h.snapshot(), nil
}

// load reads a run from its files, but for what the first look at it has read
// already.
func (p *Page) load(ctx context.Context, s *ingest.Snapshot, b basis) (*runHistory, error) {
	dir := rundir.At(p.opts.DataDir, s.Meta.ID)
	p.mu.Lock()
	o := p.output
	if o != nil && o.id == s.Meta.ID {
		p.output = nil
	}
	p.mu.Unlock()
	var read *history.History
	var err error
	if o != nil && o.id == s.Meta.ID && o.basis == b {
		read, err = o.read, o.read.ReadServers(ctx, dir, drawn)
	} else {
		read, err = history.ReadHistoryOf(ctx, dir, p.opts.Tools().ByName(s.Meta.Tool), drawn)
	}
	if err != nil {
		return nil, err
	}
	h := newHistory(read)
	h.started, h.used, h.basis = s.Meta.StartedAt, time.Now(), b
	return &h, nil
}

// readOutput reads what the tool reported only.
func (p *Page) readOutput(ctx context.Context, s *ingest.Snapshot) (runHistory, error) {
	b := basisOf(p.opts.DataDir, s)
	read, err := history.ReadOutputHistory(ctx, rundir.At(p.opts.DataDir, s.Meta.ID), p.opts.Tools().ByName(s.Meta.Tool))
	if err != nil {
		return runHistory{}, err
	}
	h := newHistory(read)
	h.noServers = true
	if !b.live {
		p.mu.Lock()
		p.output = &output{s.Meta.ID, b, read, time.Now()}
		p.mu.Unlock()
	}
	return h, nil
}

func newHistory(read *history.History) runHistory {
	return runHistory{
		zero: read.Zero, intervals: intervalTable(&read.Intervals), servers: serverTable(read), host: hostTable(&read.Host),
		warmup: warmups(&read.Intervals), damage: read.DamageLines(), elsewhere: read.Snapshot.Meta.Log != nil,
	}
}

// remembered returns the history in memory if it is still right.
func (p *Page) remembered(id string, want basis) (runHistory, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.histories[id]
	if h == nil || h.loading || h.basis != want {
		return runHistory{}, false
	}
	h.used = time.Now()
	return h.snapshot(), true
}

// snapshot can be read while rows are added to h.
func (h *runHistory) snapshot() runHistory {
	c := *h
	c.intervals, c.servers, c.host = h.intervals.snapshot(), h.servers.snapshot(), h.host.snapshot()
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
