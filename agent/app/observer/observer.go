// Package observer connects the parts of an agent, or of a `benchwatch run` without one: it follows
// runs, samples servers, delivers markers and serves all of it over HTTP.
package observer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/many/peer"
	"github.com/benchwatch/benchwatch/agent/many/retention"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/live"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/toollog"
	"github.com/benchwatch/benchwatch/agent/run/topology"
	"github.com/benchwatch/benchwatch/agent/show/alert"
	"github.com/benchwatch/benchwatch/agent/show/metrics"
	"github.com/benchwatch/benchwatch/agent/show/web"
)

// Options of an Observer.
type Options struct {
	Config *config.Config
	// Only names the runs to observe; log files are then not followed. Empty: all runs.
	Only   []string
	Logger *slog.Logger
	// Servers and Machines provide the samples of the targets and of the machines; nil: samplers
	// that ask them. Clock is the clock of the samples; nil: this machine's.
	Servers, Machines Source
	Clock             *clock.Clock
	// Authenticated reports whether every client of the Handler has presented a password or a
	// certificate; nil: no. Without it the tools' output is not served.
	Authenticated func() bool
}

// Source is the part of engine.Sampler that an Observer needs.
type Source interface {
	Run(context.Context) error
	Subscribe(buffer int) (<-chan engine.Frame, func())
	Latest() engine.Frame
	MissedTicks() uint64
	live.Sampler
	Update([]engine.Target)
}

// Observer owns the parts, and their goroutines while Run is running. mu guards the configuration
// and everything derived from it, which Reload replaces.
type Observer struct {
	log     *slog.Logger
	dataDir string
	only    []string
	watcher *live.Watcher
	sampler Source
	// witnesses are asked during stalls; nil: the samples are of a replay.
	witnesses *engine.Witnesses
	hosts     Source
	markers   *marker.Deliverer
	alerts    *alert.Receiver
	page      *web.Page
	uploader  *archive.Uploader // nil: only some runs are observed
	peers     *peer.Set         // nil: only some runs are observed
	keeper    *retention.Keeper // nil: only some runs are observed
	served    *peer.Server
	gatherer  *metrics.Gatherer

	mu       sync.Mutex
	config   *config.Config
	targets  []engine.Target // of the configuration
	loans    []loan
	topology *topology.Topology
	clusters engine.Clusters
	// contradictions between the configuration and what the servers report, already logged.
	contradictions []string
	machine        *topology.Machine
	grafana        *marker.Grafana // nil: not configured
	// hostsSampled: the machines are being sampled, since a run is followed.
	hostsSampled bool
}

// New returns an Observer that does nothing before Run. It fails if Grafana's address is invalid.
func New(opts Options) (*Observer, error) {
	o := &Observer{log: opts.Logger, dataDir: opts.Config.DataDir, only: opts.Only, config: opts.Config, machine: localMachine()}
	open := func(t engine.Target) (engine.Prober, error) { return config.Open(t, opts.Logger) }
	o.targets = opts.Config.EngineTargets(opts.Logger)
	o.topology = opts.Config.Topology(o.targets)
	axis := cmp.Or(opts.Clock, clock.System).Axis()
	var now func() time.Time
	if o.sampler, o.hosts = opts.Servers, opts.Machines; o.sampler == nil {
		o.witnesses = engine.NewWitnesses(open, opts.Logger)
		o.sampler = engine.NewSampler(o.targets, open, opts.Config.SampleInterval, engine.Options{Logger: opts.Logger, Now: axis.Now})
		openHost := func(t engine.Target) (engine.Prober, error) { return host.Open(t, opts.Logger) }
		o.hosts = engine.NewSampler(nil, openHost, opts.Config.SampleInterval,
			engine.Options{Logger: opts.Logger.With("kind", "host"), Now: axis.Now})
	} else {
		now = axis.Now
	}
	var err error
	if o.grafana, err = newGrafana(opts.Config); err != nil {
		return nil, err
	}
	markers := marker.Options{Shown: func() []rundir.Directory { return o.watcher.Runs() }, Grafana: o.currentGrafana, Log: opts.Logger}
	if len(opts.Only) == 0 {
		markers.DataDir = opts.Config.DataDir
	}
	o.markers = marker.New(markers)
	o.alerts = &alert.Receiver{DataDir: o.dataDir, TokenFile: o.tokenFile, Marked: o.markers.Kick, Log: o.log}
	runs := history.NewReader(o.dataDir, o.only, o.tools)
	o.page = web.New(web.Options{
		Trends:  runs,
		DataDir: opts.Config.DataDir, Only: opts.Only, Runs: o.Snapshots, Tools: o.tools, Now: now, Logger: opts.Logger,
		Health: o.health, TokenFile: o.tokenFile, Marked: o.markers.Kick,
	})
	watched := live.Options{
		DataDir: opts.Config.DataDir, Only: opts.Only,
		Tools: o.tools, Topology: o.currentTopology, Logs: o.logs, Bounds: o.bounds,
		Sampler: serversAndMachines{o.sampler, o.hosts}, Logins: logins{o}, Sink: sink{o.markers, o.alerts, o.page},
		Clock: opts.Clock, Samples: axis, Logger: opts.Logger,
		AwaitCondition: o.awaitCondition,
	}
	if o.witnesses != nil {
		watched.Witnesses = o.witnesses
	}
	o.watcher = live.NewWatcher(watched)
	if len(opts.Only) == 0 {
		o.uploader = archive.NewUploader(archive.UploaderOptions{DataDir: o.dataDir, Open: o.archive, Busy: o.busy, Log: o.log})
		o.keeper = retention.NewKeeper(retention.KeeperOptions{DataDir: o.dataDir, Options: o.retention, Busy: o.busy, Log: o.log})
		o.peers = peer.NewSet(o.dataDir, opts.Logger)
		o.peers.Update(opts.Config.PeerConfigs(opts.Logger))
	}
	o.served = &peer.Server{
		DataDir: o.dataDir, Runs: o.watcher.Snapshots,
		Output: func() bool { return opts.Authenticated != nil && opts.Authenticated() },
	}
	o.gatherer = o.newGatherer(now)
	return o, nil
}

// newGatherer returns the series of runs, servers and the agent itself. now is the clock of a replay, nil otherwise.
func (o *Observer) newGatherer(now func() time.Time) *metrics.Gatherer {
	sources := metrics.Sources{
		Runs: o.watcher.Snapshots, WaitingRuns: o.watcher.Waiting, Samples: o.sampler.Latest, MissedTicks: o.sampler.MissedTicks, SamplerLate: o.sampler.Late,
		Deliveries: o.markers.Stats, Points: o.markers.Points, Now: now,
		Process: metrics.NewProcess(),
		Space:   func() (rundir.Space, error) { return rundir.SpaceOf(o.dataDir) },
	}
	if o.uploader != nil {
		sources.Uploads, sources.Peers, sources.Removals = o.uploader.Stats, o.peers.Stats, o.keeper.Stats
	}
	return metrics.NewGatherer(sources)
}

// Run observes until ctx is done and all its goroutines have ended.
func (o *Observer) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // before the wait

	frames, cancel := o.sampler.Subscribe(8)
	defer cancel()
	hostFrames, cancelHosts := o.hosts.Subscribe(8)
	defer cancelHosts()
	parts.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case f, ok := <-frames:
				if !ok {
					return
				}
				o.gather(ctx, f)
				o.watcher.Frame(f)
				o.page.Frame(f)
				o.sampleHosts()
			case f := <-hostFrames:
				o.watcher.HostFrame(f)
				o.page.HostFrame(f)
			}
		}
	})
	if o.witnesses != nil {
		parts.Go(func() {
			<-ctx.Done()
			o.witnesses.Close() // beside the sampler's connections: a silent server delays the end only once
		})
	}
	parts.Go(func() { _ = o.hosts.Run(ctx) }) // it ends with ctx
	parts.Go(func() { o.watcher.Run(ctx) })
	parts.Go(func() { o.page.Run(ctx) })
	parts.Go(func() { o.markers.Run(ctx) })
	if len(o.only) == 0 {
		parts.Go(func() { o.followGroups(ctx) })
	}
	if o.uploader != nil {
		parts.Go(func() { o.uploader.Run(ctx) })
	}
	if o.peers != nil {
		parts.Go(func() { o.peers.Run(ctx) })
	}
	if o.keeper != nil {
		parts.Go(func() { o.keeper.Run(ctx) })
	}
	if err := o.sampler.Run(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("sample servers: %w", err)
	}
	return nil
}

// serversAndMachines is the sampler of the servers, which also reads the settings of the machines.
type serversAndMachines struct {
	Source
	machines Source
}

// ReadSettings requests the settings of servers and machines for the next tick.
func (s serversAndMachines) ReadSettings() {
	s.Source.ReadSettings()
	s.machines.ReadSettings()
}

// sampleHosts samples the machines only while a run is followed.
func (o *Observer) sampleHosts() {
	live := o.watcher.Live()
	o.mu.Lock()
	defer o.mu.Unlock()
	if live == o.hostsSampled {
		return
	}
	o.hostsSampled = live
	if live {
		o.hosts.Update(o.config.HostTargets())
		o.hosts.ReadSettings()
	} else {
		o.hosts.Update(nil)
	}
}

// Reload applies every key of a new configuration, which the caller must not change afterwards. If
// the change of a key needs a restart, it applies nothing and the error names the key.
func (o *Observer) Reload(c *config.Config) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if keys := o.config.NeedRestart(c); len(keys) > 0 {
		return fmt.Errorf("%s can't be changed by a reload: restart the agent", strings.Join(keys, ", "))
	}
	if c.Grafana != o.config.Grafana {
		grafana, err := newGrafana(c)
		if err != nil {
			return err
		}
		o.grafana = grafana
		o.markers.Kick()
	}
	o.config, o.targets = c, c.EngineTargets(o.log)
	o.arrange()
	if o.uploader != nil {
		o.uploader.Kick()
		o.keeper.Kick()
	}
	if o.peers != nil {
		o.peers.Update(c.PeerConfigs(o.log))
	}
	if o.hostsSampled {
		o.hosts.Update(c.HostTargets())
	}
	return nil
}

// archive returns the archive of the current configuration, nil if nothing is uploaded.
func (o *Observer) archive() (*archive.Archive, error) {
	c := o.current()
	if c.Archive.URL == "" || !c.Archive.Upload {
		return nil, nil
	}
	return c.OpenArchive()
}

// retention returns which runs the current configuration removes.
func (o *Observer) retention() (retention.Options, error) { return o.current().Retention() }

// busy reports whether a run is in progress or draining.
func (o *Observer) busy() bool {
	return slices.ContainsFunc(o.watcher.Snapshots(), func(s ingest.Snapshot) bool { return s.Phase != ingest.Over })
}

// Snapshots returns the live runs and the kept ended ones, oldest first.
func (o *Observer) Snapshots() []ingest.Snapshot { return o.watcher.Snapshots() }

// GiveUpDrain closes the ended runs without waiting longer for replicas.
func (o *Observer) GiveUpDrain() { o.watcher.GiveUpDrain() }

// PendingMarkers returns the number of markers that have not been delivered.
func (o *Observer) PendingMarkers() int { return o.markers.Stats().Queued }

// newGrafana returns nil if no Grafana is configured.
func newGrafana(c *config.Config) (*marker.Grafana, error) {
	if c.Grafana.URL == "" {
		return nil, nil
	}
	g, err := marker.NewGrafana(c.Grafana.URL, c.Grafana.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("grafana: %w", err)
	}
	return g, nil
}

// current returns the current configuration. It never changes; Reload replaces it.
func (o *Observer) current() *config.Config {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.config
}

// tokenFile returns the file with the token required for alerts and markers over HTTP; empty: none
// are accepted.
func (o *Observer) tokenFile() string { return o.current().WebhookTokenFile }

func (o *Observer) health() web.Health {
	stats := o.markers.Stats()
	return web.Health{
		MissedTicks: o.sampler.MissedTicks(), WaitingRuns: o.watcher.Waiting(),
		QueuedMarkers: stats.Queued, RejectedMarkers: stats.Rejected, Grafana: o.currentGrafana() != nil,
	}
}

func (o *Observer) tools() tool.Set { return o.current().ToolSet() }

func (o *Observer) currentGrafana() *marker.Grafana {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.grafana
}

func (o *Observer) currentTopology() *topology.Topology {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.topology
}

func (o *Observer) bounds() live.Bounds {
	r := o.current().Runs
	return live.Bounds{DrainTimeout: r.DrainTimeout, MaxLive: r.MaxLive, MaxKept: r.MaxKept}
}

func (o *Observer) logs() []toollog.Log {
	if len(o.only) > 0 {
		return nil
	}
	logs := o.current().RunLogs()
	for i := range logs {
		if abs, err := filepath.Abs(logs[i].Glob); err == nil {
			logs[i].Glob = abs
		}
	}
	return logs
}

// sink forwards events of runs: Began and Settled to the markers, Identified to the alerts, and
// everything to the page.
type sink struct {
	*marker.Deliverer
	*alert.Receiver
	*web.Page
}
