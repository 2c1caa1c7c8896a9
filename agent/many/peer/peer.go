// Package peer mirrors the runs of other agents over HTTP. It serves this agent's run directories,
// and copies the runs of configured peers.
package peer

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// pollInterval is the interval for asking a peer for new data. After errors the pause grows up
	// to longestPause.
	pollInterval = time.Second
	longestPause = 10 * time.Second
)

// Stats is the state of a peer.
type Stats struct {
	Name string
	mirror.Stats
}

// Set mirrors the runs of an agent's peers into its data directory.
type Set struct {
	dataDir string
	log     *slog.Logger
	poll    time.Duration

	mu      sync.Mutex
	ctx     context.Context // ctx of Run; nil before Run
	configs []Config
	running map[string]*peer // by name
	stopped sync.WaitGroup
}

// peer is a peer whose runs are copied.
type peer struct {
	config Config
	copier *mirror.Copier
	stop   context.CancelFunc
}

// NewSet returns a set without peers that does nothing before Run.
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

// Update replaces the peers. Peers with an unchanged configuration continue, the others restart.
func (s *Set) Update(configs []Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configs = configs
	for name, p := range s.running {
		if !slices.ContainsFunc(configs, func(c Config) bool { return c.Name == name && c.equal(&p.config) }) {
			p.stop()
			delete(s.running, name)
		}
	}
	if s.ctx != nil && s.ctx.Err() == nil {
		s.start()
	}
}

// start starts the peers that are not running. The caller holds mu.
func (s *Set) start() {
	for _, c := range s.configs {
		if s.running[c.Name] != nil {
			continue
		}
		ctx, stop := context.WithCancel(s.ctx)
		from, log := newClient(c), s.log.With("peer", c.Name)
		names := files
		if !c.Output {
			names = files[len(mirror.Outputs):]
		}
		copier := &mirror.Copier{
			DataDir: s.dataDir, Source: from, From: rundir.Mirror{Host: c.Name, Peer: true, NoOutput: !c.Output}, Files: names, MaxAge: c.MaxAge,
			Interval: s.poll, LongestPause: longestPause, Absent: s.absent, Log: log,
			Notify: func(run string, err error) {
				switch {
				case run == "" && err == nil:
					log.Info("the runs of a peer are mirrored again")
				case run == "":
					log.Error("can't mirror the runs of a peer", "err", err)
				case errors.Is(err, mirror.ErrGone):
					log.Warn("run was removed by the peer; its copy ends", "run", run)
				default:
					log.Error("run is not mirrored", "run", run, "err", err)
				}
			},
		}
		s.running[c.Name] = &peer{c, copier, stop}
		s.stopped.Go(func() {
			defer stop()
			defer from.http.CloseIdleConnections()
			_ = copier.Run(ctx) // it ends with ctx
		})
	}
}

// Stats returns the state of all peers, by name.
func (s *Set) Stats() []Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Stats
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		all = append(all, Stats{name, s.running[name].copier.Stats()})
	}
	return all
}

// Any reports whether there are peers.
func (s *Set) Any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.configs) > 0
}

// absent reports whether a peer was removed or has been away for long.
func (s *Set) absent(name string) bool {
	s.mu.Lock()
	p := s.running[name]
	s.mu.Unlock()
	return p == nil || p.copier.Away()
}
