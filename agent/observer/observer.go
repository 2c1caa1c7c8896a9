// Package observer is what the daemon and a `benchwatch run` without a daemon
// have in common: it follows runs, samples servers, sends markers and serves
// all of it over HTTP.
package observer

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"

	"github.com/benchwatch/benchwatch/agent/config"
	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/live"
	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/metrics"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/web"
)

// Options of an Observer.
type Options struct {
	Config *config.Config
	// Only these runs are observed, if any are named; log files then are not.
	Only   []string
	Logger *slog.Logger
}

// Observer owns the parts and their goroutines, from Run's beginning to its
// return. mu guards the configuration, which Reload replaces.
type Observer struct {
	log      *slog.Logger
	dataDir  string
	only     []string
	watcher  *live.Watcher
	sampler  *engine.Sampler
	markers  *marker.Deliverer
	page     *web.Page
	registry *prometheus.Registry

	mu     sync.Mutex
	config *config.Config
}

// New prepares an observer; it does nothing until Run.
func New(o Options) (*Observer, error) {
	b := &Observer{log: o.Logger, dataDir: o.Config.DataDir, only: o.Only, config: o.Config}
	open := func(t engine.Target) (engine.Prober, error) { return config.Open(t, o.Logger) }
	b.sampler = engine.NewSampler(o.Config.EngineTargets(o.Logger), open, o.Config.SampleInterval, engine.Options{Logger: o.Logger})
	grafana, err := newGrafana(o.Config)
	if err != nil {
		return nil, err
	}
	marking := marker.Options{Grafana: grafana, Log: o.Logger, Shown: func() []rundir.Directory { return b.watcher.Runs() }}
	if len(o.Only) == 0 {
		marking.DataDir = o.Config.DataDir
	}
	b.markers = marker.New(marking)
	b.page = web.New(web.Options{
		DataDir: o.Config.DataDir, Only: o.Only, Runs: b.Snapshots, Tools: b.tools, Logger: o.Logger,
	})
	b.watcher = live.NewWatcher(live.Options{
		DataDir: o.Config.DataDir, Only: o.Only,
		Tools:   b.tools,
		Targets: b.sampler.Targets, ReadSettings: b.sampler.ReadSettings, Logs: b.logs,
		Began: b.markers.Began, Settled: b.markers.Settled,
		Interval: b.page.Interval, Changed: b.page.Changed,
		Limits: b.limits, Logger: o.Logger,
	})
	b.registry = prometheus.NewRegistry()
	b.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("benchwatch"),
		metrics.NewCollector(metrics.Sources{
			Runs: b.watcher.Snapshots, WaitingRuns: b.watcher.Waiting, Samples: b.sampler.Latest,
			Deliveries: b.markers.Stats, Points: b.markers.Points,
		}),
	)
	return b, nil
}

// Run observes until ctx is done and everything it started has stopped.
func (b *Observer) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var parts sync.WaitGroup
	defer parts.Wait()

	frames, cancel := b.sampler.Subscribe(8)
	defer cancel()
	parts.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case f, ok := <-frames:
				if !ok {
					return
				}
				host := b.watcher.Frame(f)
				b.page.Frame(f)
				if host != nil {
					b.page.Host(host)
				}
			}
		}
	})
	parts.Go(func() { b.watcher.Run(ctx) })
	parts.Go(func() { b.page.Run(ctx) })
	parts.Go(func() { b.markers.Run(ctx) })
	if err := b.sampler.Run(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("sample servers: %w", err)
	}
	return nil
}

// Reload applies every key of a new configuration. If a key has changed that
// needs a restart, it applies none and the error names the key.
func (b *Observer) Reload(c *config.Config) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if keys := b.config.NeedRestart(c); len(keys) > 0 {
		return fmt.Errorf("%s can't be changed by a reload: restart the agent", strings.Join(keys, ", "))
	}
	if c.Grafana != b.config.Grafana {
		grafana, err := newGrafana(c)
		if err != nil {
			return err
		}
		b.markers.SetGrafana(grafana)
	}
	b.config = c
	b.sampler.Update(c.EngineTargets(b.log))
	return nil
}

// Snapshots returns the live and the kept runs, oldest first.
func (b *Observer) Snapshots() []ingest.Snapshot { return b.watcher.Snapshots() }

// GiveUpDrain closes runs that have ended without waiting for replicas.
func (b *Observer) GiveUpDrain() { b.watcher.GiveUpDrain() }

// PendingMarkers is how many markers have not been delivered yet.
func (b *Observer) PendingMarkers() int { return b.markers.Stats().Queued }

// newGrafana is nil if no Grafana is configured.
func newGrafana(c *config.Config) (*marker.Grafana, error) {
	if c.Grafana.URL == "" {
		return nil, nil
	}
	g, err := marker.NewGrafana(c.Grafana.URL, c.Grafana.TokenFile, nil)
	if err != nil {
		return nil, fmt.Errorf("grafana: %w", err)
	}
	return g, nil
}

func (b *Observer) webhookTokenFile() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config.WebhookTokenFile
}

func (b *Observer) limits() live.Limits {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.config.Runs
	return live.Limits{DrainTimeout: r.DrainTimeout, MaxLive: r.MaxLive, MaxKept: r.MaxKept}
}

func (b *Observer) tools() tool.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config.ToolSet()
}

func (b *Observer) logs() []live.Log {
	if len(b.only) > 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	logs := b.config.RunLogs()
	for i := range logs {
		if abs, err := filepath.Abs(logs[i].Glob); err == nil {
			logs[i].Glob = abs
		}
	}
	return logs
}
