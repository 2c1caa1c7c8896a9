package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// pollInterval is how often a peer is asked for what is new; after an error the
	// pause grows up to longestPause.
	pollInterval = time.Second
	longestPause = 10 * time.Second
	// allInterval is how often also its ended runs are looked at.
	allInterval = 30 * time.Second
	// partsAtOnce bounds what is taken of one run before the next one has its turn.
	partsAtOnce = 4
	// takeOver is how long a peer is away until another one that has the same run
	// continues its copy.
	takeOver = 10 * time.Second
	// staging is the folder in the data directory for copies of ended runs that are
	// not complete yet.
	staging = "peers"
)

// Stats is the state of a peer.
type Stats struct {
	Name string
	// Version is that of the peer, empty until it is known.
	Version string
	Up      bool
	// LastSuccess is when everything new was last copied; zero: not yet.
	LastSuccess time.Time
	Bytes       uint64
	Errors      uint64
	// Live is how many runs are copied while they last, Refused how many are not
	// copied since they are in conflict with another one or damaged.
	Live, Refused int
}

// Set mirrors the runs of the peers of an agent into its data directory.
type Set struct {
	dataDir string
	log     *slog.Logger
	poll    time.Duration

	mu      sync.Mutex
	ctx     context.Context // of Run; nil before
	configs []Config
	running map[string]*peer // by name
	stopped sync.WaitGroup
}

// NewSet returns a set without peers that does nothing until Run.
func NewSet(dataDir string, log *slog.Logger) *Set {
	return &Set{dataDir: dataDir, log: log, poll: pollInterval, running: map[string]*peer{}}
}

// Run mirrors until ctx is done.
func (s *Set) Run(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	s.start()
	s.mu.Unlock()
	<-ctx.Done()
	s.stopped.Wait()
}

// Update replaces the peers. Those whose configuration is new restart.
func (s *Set) Update(configs []Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configs = configs
	for name, p := range s.running {
		p.stop()
		delete(s.running, name)
	}
	if s.ctx != nil && s.ctx.Err() == nil {
		s.start()
	}
}

// start starts all peers. mu is held.
func (s *Set) start() {
	for _, c := range s.configs {
		ctx, stop := context.WithCancel(s.ctx)
		p := &peer{set: s, name: c.Name, log: s.log.With("peer", c.Name), copies: map[string]*copied{}, stop: stop, stats: Stats{Name: c.Name}, seen: time.Now()}
		p.client = newClient(c, func(n int) { p.update(func(s *Stats) { s.Bytes += uint64(n) }) })
		s.running[c.Name] = p
		s.stopped.Go(func() { p.run(ctx) })
	}
}

// Stats returns the state of all peers, by name.
func (s *Set) Stats() []Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Stats
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		all = append(all, s.running[name].snapshot())
	}
	return all
}

// Any reports whether there are peers.
func (s *Set) Any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.configs) > 0
}

// absent reports whether a peer is none any more or has been away for long.
func (s *Set) absent(name string) bool {
	s.mu.Lock()
	p := s.running[name]
	s.mu.Unlock()
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stats.Up && time.Since(p.seen) > takeOver
}

// peer mirrors the runs of one. Only its goroutine uses the copies.
type peer struct {
	set    *Set
	name   string
	client *client
	log    *slog.Logger
	stop   context.CancelFunc

	copies  map[string]*copied
	all     time.Time // when ended runs were looked at
	failure string    // what was logged

	mu    sync.Mutex
	stats Stats
	seen  time.Time // when it answered last, or when it was first asked
}

// copied is a run of the peer.
type copied struct {
	id     string
	mirror *mirror.Mirror
	source *source
	// staged: the run had ended when it was first seen. The copy appears when it is
	// complete.
	staged bool
	// done: it is closed and complete. ignored: it is recorded here, or is in conflict.
	done, ignored bool
	// standby is the peer from which the run is copied; this one continues when that is away.
	standby string
	changed int64 // of run.json, when the copy was last complete
	sizes   map[string]int64
	problem string // what was logged
}

func (p *peer) snapshot() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

func (p *peer) update(change func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.stats)
}

func (p *peer) run(ctx context.Context) {
	defer p.stop()
	defer p.client.http.CloseIdleConnections()
	p.resume()
	pause := p.set.poll
	for {
		more, err := p.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		switch p.note(err); {
		case err != nil:
			pause = min(2*pause, longestPause)
		case more:
			pause = 0
		default:
			pause = p.set.poll
		}
		timer := time.NewTimer(pause)
		pause = max(pause, p.set.poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// resume finds the copies that were not complete when an earlier process ended.
func (p *peer) resume() {
	ids, err := rundir.List(p.set.dataDir)
	if err != nil {
		p.log.Error("can't look for copies", "err", err)
	}
	for _, id := range ids {
		meta, err := rundir.At(p.set.dataDir, id).Load()
		if err == nil && meta.IsCopy() && meta.Mirror.Host == p.name && !meta.Closed() {
			p.copies[id] = p.newCopy(id, false)
		}
	}
}

func (p *peer) newCopy(id string, staged bool) *copied {
	c := &copied{id: id, staged: staged}
	names := files
	if !p.client.Output {
		names = names[len(mirror.Outputs):]
	}
	dataDir := p.set.dataDir
	if staged {
		dataDir = filepath.Join(dataDir, staging)
	}
	c.mirror = &mirror.Mirror{
		Dir: rundir.At(dataDir, id), Files: names,
		From: rundir.Mirror{Host: p.name, Peer: true, Scraped: !p.client.Metrics, NoOutput: !p.client.Output},
	}
	c.source = &source{client: p.client, files: names, tags: map[string]string{}}
	return c
}

// note records how a pass ended, and logs it once.
func (p *peer) note(err error) {
	now := time.Now()
	if err == nil {
		p.update(func(s *Stats) { s.Up, s.LastSuccess = true, now })
		p.mu.Lock()
		p.seen = now
		p.mu.Unlock()
		if p.failure != "" {
			p.log.Info("the runs of a peer are mirrored again")
			p.failure = ""
		}
		return
	}
	p.update(func(s *Stats) { s.Up = false; s.Errors++ })
	if text := err.Error(); text != p.failure {
		p.failure = text
		p.log.Error("can't mirror the runs of a peer", "err", text)
	}
}

// pass takes what is new of all runs. more: it is not all. The error is for the peer.
func (p *peer) pass(ctx context.Context) (more bool, err error) {
	recent, began := time.Duration(0), time.Now()
	if began.Sub(p.all) >= allInterval {
		recent = max(p.client.MaxAge, time.Second)
	}
	l, err := p.client.list(ctx, recent)
	if err != nil {
		return false, err
	}
	if known := p.snapshot().Version; known != l.Version {
		p.update(func(s *Stats) { s.Version = l.Version })
		if l.Version != version.Version {
			p.log.Warn("peer has another version: what only one of the two knows is left out of copies", "there", l.Version, "here", version.Version)
		}
	}
	if p.client.Output && !l.Output {
		return false, errors.New("it serves no output of tools, since it asks for no password; set basic_auth_users or client certificates in its --web.config.file, or `output: false` here")
	}
	if recent > 0 {
		p.all = began
	}
	// The open ones first, of each kind the newest.
	slices.SortStableFunc(l.Runs, func(a, b entry) int {
		if a.Closed != b.Closed {
			return cmp.Compare(truth(a.Closed), truth(b.Closed))
		}
		return strings.Compare(b.ID, a.ID)
	})
	listed := map[string]bool{}
	for i := range l.Runs {
		e := &l.Runs[i]
		listed[e.ID] = true
		again, err := p.take(ctx, e)
		if err != nil {
			return false, err
		}
		more = more || again
	}
	for _, id := range slices.Sorted(maps.Keys(p.copies)) {
		c := p.copies[id]
		switch {
		case listed[id]:
		case recent > 0 && (c.ignored || c.done):
			delete(p.copies, id) // the peer has forgotten it
		case c.standby != "":
			delete(p.copies, id)
		case !c.ignored && !c.done: // closed since, or removed
			again, err := p.take(ctx, &entry{ID: id})
			if err != nil {
				return false, err
			}
			more = more || again
		}
	}
	p.update(func(s *Stats) {
		s.Live, s.Refused = 0, 0
		for _, c := range p.copies {
			if !c.ignored && !c.done && !c.staged && c.standby == "" {
				s.Live++
			}
			if c.problem != "" {
				s.Refused++
			}
		}
	})
	return more, nil
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// take takes what is new of one run. Only an error of the peer is returned; one of the
// run is logged and does not concern the others.
func (p *peer) take(ctx context.Context, e *entry) (more bool, err error) {
	c := p.copies[e.ID]
	if c == nil {
		if c, err = p.begin(ctx, e); c == nil || err != nil {
			return false, err
		}
		p.copies[e.ID] = c
	}
	if c.standby != "" {
		if !p.set.absent(c.standby) {
			return false, nil
		}
		if meta, err := rundir.At(p.set.dataDir, c.id).Load(); err != nil || meta.Closed() {
			delete(p.copies, c.id)
			return false, nil
		}
		p.log.Info("copy is continued from another peer", "run", c.id, "before", c.standby)
		c = p.newCopy(c.id, false)
		p.copies[c.id] = c
	}
	if c.ignored || c.changed != 0 && c.changed == e.Changed && maps.Equal(c.sizes, e.Sizes) {
		return false, nil
	}
	more, err = p.copy(ctx, c, e)
	switch {
	case err == nil:
		c.problem = ""
		if !more && e.Sizes != nil {
			c.changed, c.sizes = e.Changed, e.Sizes
		}
		return more, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, fs.ErrExist), errors.Is(err, mirror.ErrMoved): // another peer was faster
		delete(p.copies, c.id)
		return false, nil
	case errors.Is(err, mirror.ErrGone):
		return false, p.abandon(c)
	case errors.Is(err, mirror.ErrForeign), errors.Is(err, mirror.ErrReplaced):
		c.ignored = true
		p.complain(c, err)
		return false, nil
	}
	if _, away := errors.AsType[*awayError](err); away {
		return false, err
	}
	p.complain(c, err) // tried again
	return false, nil
}

// complain logs what is wrong with a run once.
func (p *peer) complain(c *copied, err error) {
	p.update(func(s *Stats) { s.Errors++ })
	if text := err.Error(); c.problem != text {
		c.problem = text
		p.log.Error("run is not mirrored", "run", c.id, "err", text)
	}
}

// begin decides whether a run that is new is copied; nil: there is none any more.
func (p *peer) begin(ctx context.Context, e *entry) (*copied, error) {
	dir := rundir.At(p.set.dataDir, e.ID)
	own, err := dir.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(string(dir)); err == nil {
			c := &copied{id: e.ID, ignored: true}
			p.complain(c, errors.New("there is a folder of this name"))
			return c, nil
		}
		return p.newCopy(e.ID, e.Closed), nil
	case err != nil:
		c := &copied{id: e.ID, ignored: true}
		p.complain(c, err)
		return c, nil
	case own.IsCopy() && own.Mirror.Host == p.name:
		c := p.newCopy(e.ID, false)
		if own.Closed() && e.Closed && complete(dir, c.mirror.Files, e.Sizes) {
			c.done, c.changed, c.sizes = true, e.Changed, e.Sizes
		}
		return c, nil
	}
	// Another record of it is here.
	data, err := p.client.meta(ctx, e.ID, "")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &copied{id: e.ID, ignored: true}
	meta, err := rundir.ParseMeta(e.ID, data)
	switch {
	case err != nil:
		p.complain(c, err)
	case !own.SameRun(&meta):
		p.complain(c, fmt.Errorf("run %s %w: %s", e.ID, mirror.ErrForeign, recordedBy(&own)))
	case own.IsCopy() && !own.Closed():
		c.ignored, c.standby = false, own.Mirror.Host
	}
	return c, nil
}

// recordedBy describes where a run here comes from.
func recordedBy(m *rundir.Meta) string {
	if m.IsCopy() {
		return "the one here is from peer " + m.Mirror.Host
	}
	return "the one here was recorded on " + cmp.Or(m.Generator, "this machine")
}

// complete reports whether a copy has files of these sizes.
func complete(dir rundir.Directory, names []string, sizes map[string]int64) bool {
	for _, name := range names {
		info, err := os.Lstat(dir.Path(name))
		if err == nil && info.Size() != sizes[name] || err != nil && sizes[name] > 0 {
			return false
		}
	}
	return true
}

// copy brings a copy up to date, in some parts at most.
func (p *peer) copy(ctx context.Context, c *copied, e *entry) (more bool, err error) {
	if space, err := rundir.SpaceOf(p.set.dataDir); err == nil && space.Low() {
		return false, errors.New("the disk is nearly full")
	}
	if !c.staged && c.changed != 0 {
		if _, err := os.Lstat(string(c.mirror.Dir)); errors.Is(err, fs.ErrNotExist) {
			p.log.Info("copy was removed here: the run is not mirrored any more", "run", c.id)
			c.ignored = true
			return false, nil
		}
	}
	c.source.sizes = e.Sizes
	for range partsAtOnce {
		over, again, err := c.mirror.Update(ctx, c.source)
		if err != nil {
			return false, err
		}
		if more = again; !more {
			if over && c.staged {
				if err := os.MkdirAll(rundir.Root(p.set.dataDir), 0o755); err != nil { // this may be the first run here
					return false, err
				}
				if err := os.Rename(string(c.mirror.Dir), string(rundir.At(p.set.dataDir, c.id))); err != nil {
					return false, err
				}
				next := p.newCopy(c.id, false)
				c.staged, c.mirror, c.source = false, next.mirror, next.source
			}
			c.done = over
			break
		}
	}
	return more, nil
}

// abandon ends a copy whose run the peer has no more.
func (p *peer) abandon(c *copied) error {
	c.ignored = true
	if c.staged {
		return os.RemoveAll(string(c.mirror.Dir))
	}
	if _, statErr := os.Lstat(string(c.mirror.Dir)); statErr != nil {
		return nil
	}
	p.log.Warn("run was removed by the peer; its copy ends", "run", c.id)
	return c.mirror.Abandon(fmt.Sprintf("the run on %s %v", p.name, mirror.ErrGone))
}
