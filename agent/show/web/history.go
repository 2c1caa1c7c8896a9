package web

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// keptHistories is how many runs' columns are held in memory, keptTime how
	// long after they were last used: a run with three servers takes at most
	// about 5 MB.
	keptHistories = 4
	keptTime      = 2 * time.Minute
	// longStatus is the size in bytes above which reading a status file takes so long that the page is first shown
	// without the servers.
	longStatus = 16 << 20
)

// runHistory is the data that the page draws for one run. Page.mu guards it. The history of a live run is read once and
// then kept up to date with the rows that browsers get, so zooming and further pages don't read the files again.
type runHistory struct {
	zero                     time.Time
	intervals, servers, host *table
	warmup                   []series.Span
	damage                   []string

	started   time.Time
	noServers bool // they were not read
	used      time.Time

	// basis is what the history was read from; if it changes, the history is out
	// of date.
	basis basis
	// loading is set while the files are read; rows wait until then.
	loading bool
	waiting []func(*runHistory)
}

// basis of a live run is what its time axis depends on; for an ended run, it also has the files.
type basis struct {
	live         bool
	ended, clock time.Time
	meta, output size
	status, host size
}

// output is an ended run without its servers, which the next request completes.
type output struct {
	id    string
	basis basis
	read  *record.History
	at    time.Time // when it was read
}

// addInterval appends a report of the tool. It returns whether browsers that were
// sent the history before lack it. The caller holds mu.
func (h *runHistory) addInterval(elapsed float64, cells []cell) (isNew bool) {
	isNew = h.basis.live && !h.loading && h.intervals.IsNext(elapsed)
	h.add(func(h *runHistory) {
		x := h.intervals.Elapsed
		addRow(h.intervals, elapsed, series.Step(x[max(0, len(x)-20):]), cells)
	})
	return isNew
}

// addAt appends a row to one of the tables, unless its instant is before the run.
// The caller holds mu.
func (h *runHistory) addAt(at time.Time, step float64, cells []cell, pick func(*runHistory) *table) {
	if !at.Before(h.started) {
		h.add(func(h *runHistory) { addRow(pick(h), at.Sub(h.zero).Seconds(), step, cells) })
	}
}

// add changes the history of a live run; one that is being read is changed when
// that is done.
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
	b.meta, b.output, b.status = sizeOf(dir.Path(rundir.MetaFile)), sizeOf(dir.Path(rundir.StdoutFile)), sizeOf(dir.Path(rundir.StatusFile))
	b.host = sizeOf(dir.Path(host.File))
	return b
}

// dropOutdated drops a live run's history if the run's time axis has changed or
// the run is over. It is then read again from the files.
func (p *Page) dropOutdated(s *ingest.Snapshot) {
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

// dropUnused drops histories that were not used for a while.
func (p *Page) dropUnused(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, h := range p.histories {
		if !h.loading && now.Sub(h.used) > keptTime {
			delete(p.histories, id)
		}
	}
	maps.DeleteFunc(p.required, func(_ string, r requirements) bool { return now.Sub(r.due) > keptTime })
	if p.output != nil && now.Sub(p.output.at) > keptTime {
		p.output = nil
	}
}

// read returns a run's history as it is now, from memory or from its files.
func (p *Page) read(ctx context.Context, s *ingest.Snapshot) (runHistory, error) {
	want := basisOf(p.opts.DataDir, s)
	if h, ok := p.kept(s.Meta.ID, want); ok {
		return h, nil
	}
	select { // one at a time: it takes CPU and memory from the benchmark
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return runHistory{}, ctx.Err()
	}
	if h, ok := p.kept(s.Meta.ID, want); ok {
		return h, nil
	}
	id := s.Meta.ID
	pending := &runHistory{basis: want, started: s.Meta.StartedAt, zero: s.Meta.StartedAt, loading: true}
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

// load reads a run from its files, except what readOutput has read before.
func (p *Page) load(ctx context.Context, s *ingest.Snapshot, b basis) (*runHistory, error) {
	dir := rundir.At(p.opts.DataDir, s.Meta.ID)
	p.mu.Lock()
	o := p.output
	if o != nil && o.id == s.Meta.ID {
		p.output = nil
	}
	p.mu.Unlock()
	var read *record.History
	var err error
	if o != nil && o.id == s.Meta.ID && o.basis == b {
		read = o.read
	} else if read, err = record.ReadOutput(ctx, dir, p.opts.Tools(), record.Whole); err != nil {
		return nil, err
	}
	if err := read.ReadServers(ctx, isDrawn); err != nil {
		return nil, err
	}
	h := newHistory(read)
	h.started, h.used, h.basis = s.Meta.StartedAt, time.Now(), b
	return &h, nil
}

// detail reads a part of a run again if its history is thinned there to fewer than points rows. Otherwise it returns h.
func (p *Page) detail(ctx context.Context, s *ingest.Snapshot, h runHistory, part series.Span, points int) (runHistory, error) {
	if !slices.ContainsFunc([]*table{h.intervals, h.servers, h.host}, func(t *table) bool {
		begin, end := t.Between(part.From, part.To)
		return end-begin < points && t.Weight(begin, end) > end-begin
	}) {
		return h, nil
	}
	select { // as in read
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return runHistory{}, ctx.Err()
	}
	margin := (part.To - part.From) / 10 // lines lead out of the picture
	read, err := record.ReadOutput(ctx, rundir.At(p.opts.DataDir, s.Meta.ID),
		p.opts.Tools(), series.Span{From: part.From - margin, To: part.To + margin})
	if err != nil {
		return runHistory{}, err
	}
	if !h.noServers {
		if err := read.ReadServers(ctx, isDrawn); err != nil {
			return runHistory{}, err
		}
	}
	return newHistory(read), nil
}

// readOutput reads a run without its servers.
func (p *Page) readOutput(ctx context.Context, s *ingest.Snapshot) (runHistory, error) {
	b := basisOf(p.opts.DataDir, s)
	read, err := record.ReadOutput(ctx, rundir.At(p.opts.DataDir, s.Meta.ID), p.opts.Tools(), record.Whole)
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

func newHistory(read *record.History) runHistory {
	return runHistory{
		zero: read.Zero, intervals: intervalTable(&read.Intervals), servers: serverTable(read), host: hostTable(read),
		warmup: read.Intervals.Warmup, damage: read.DamageLines(),
	}
}

// kept returns the history in memory if it is up to date.
func (p *Page) kept(id string, want basis) (runHistory, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.histories[id]
	if h == nil || h.loading || h.basis != want {
		return runHistory{}, false
	}
	h.used = time.Now()
	return h.snapshot(), true
}

// snapshot returns a copy that can be read while rows are added to h.
func (h *runHistory) snapshot() runHistory {
	c := *h
	for _, t := range []**table{&c.intervals, &c.servers, &c.host} {
		snapshot := (*t).Snapshot()
		*t = &snapshot
	}
	return c
}

// limit drops the histories that were used longest ago. The caller holds mu.
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
