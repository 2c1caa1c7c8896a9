package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/live"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

func addWaitReady(cmd command, wait *bool) {
	cmd.toggle(wait, "wait-ready", "Wait before the start until all servers are ready; each answers, is a full member of its cluster and has caught up")
}

// awaitReady waits until the servers of the run are ready, at most as long as the drain may take. The run begins
// afterwards.
func (r *runner) awaitReady(ctx context.Context, meta *rundir.Meta, login *rundir.Login) error {
	if !r.waitReady {
		return nil
	}
	const hint = "name the servers in a file for --config.file, and with --cluster or --targets if the command does not show them"
	c, lent := *r.config, map[string][]string{}
	if login != nil {
		c.Targets = slices.Clone(c.Targets)
		names, _ := c.AddLogin(*login) // was checked
		for _, name := range names {
			lent[name] = []string{meta.ID}
		}
	}
	targets := c.EngineTargets(r.log)
	places := c.Topology(targets)
	places.Lent = lent
	servers := places.Servers(ctx, meta, topology.LocalMachine())
	if len(servers.Targets) == 0 {
		if servers.Problem != "" {
			return ownFailure(errors.New("--wait-ready: "+servers.Problem), hint)
		}
		return ownFailure(errors.New("--wait-ready: the run has no servers"), hint)
	}
	limit := r.config.Runs.DrainTimeout
	if r.timeout > 0 {
		limit = r.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	open := func(t engine.Target) (engine.Prober, error) { return config.Open(t, r.log) }
	sampler := engine.NewSampler(targets, open, r.config.SampleInterval, engine.Options{Logger: r.log})
	frames, unsubscribe := sampler.Subscribe(2)
	defer unsubscribe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sampler.Run(ctx) // it ends with ctx
	}()
	defer func() { cancel(); <-ended }()
	err := live.AwaitReady(ctx, frames, time.Now(), targets, &servers, func(what string) { r.streams.notice("waiting: %s", what) })
	if err != nil {
		return ownFailure(err, "raise --drain-timeout to wait longer")
	}
	meta.Clock, meta.StartedAt = rundir.NewClock(clock.System), time.Now().UTC().Truncate(time.Millisecond)
	return nil
}
