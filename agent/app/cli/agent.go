package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/app/observer"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func newAgent() *cobra.Command {
	cmd := newCommand("agent", "Follow runs and logs, sample servers, serve metrics. SIGHUP reloads the configuration, SIGTERM ends it.",
		"benchwatch agent --config.file=/etc/benchwatch/benchwatch.yml")
	o := addObserving(cmd, "info")
	return cmd.does(func(s Streams) error { return runAgent(s, o) })
}

func runAgent(s Streams, o *observing) error {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1) // the machine may be the generator: leave its CPUs to the tool
	}
	relaxTimers()
	log := o.logger(s)
	ready := waiting(log, "the configuration and the data directory")
	defer ready()
	c, err := o.load()
	if err != nil {
		return err
	}
	ls, err := o.listen(false)
	if err != nil {
		return err
	}
	claim, err := o.claim(c.DataDir, ls[0])
	if err != nil {
		return err
	}
	defer claim.Close()
	b, err := observer.New(observer.Options{Config: c, Logger: log, Authenticated: o.authenticated})
	if err != nil {
		return err
	}
	ready()
	log.Info("agent started", "version", version.Info(), "data_dir", c.DataDir, "targets", len(c.Targets), "address", ls[0].Addr())

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)

	var parts sync.WaitGroup
	defer parts.Wait()
	failed := make(chan error, 2)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts.Go(func() { logUnreadable(c, log) })
	parts.Go(func() { failed <- b.Run(ctx) })
	parts.Go(func() { failed <- o.serve(ctx, b, ls, log) })
	for {
		select {
		case err := <-failed:
			if err != nil || ctx.Err() != nil {
				return err
			}
		case <-ctx.Done():
			log.Info("agent stopped by a signal")
			return nil
		case <-reload:
			reloadConfig(o, b, log)
		}
	}
}

// claim makes this process the agent of a data directory.
func (o *observing) claim(dataDir string, l net.Listener) (claim *os.File, err error) {
	info := rundir.AgentInfo{PID: os.Getpid(), Address: l.Addr().String(), URL: o.pageURL(l)}
	if o.configFile != "" {
		if info.Config, err = filepath.Abs(o.configFile); err != nil {
			return nil, err
		}
	}
	claim, err = rundir.ClaimAgent(dataDir, info)
	switch {
	case errors.Is(err, rundir.ErrAgentRuns):
		return nil, withHint(err, "stop the other agent, or choose another folder with --data-dir")
	case err != nil:
		return nil, withHint(err, hintDataDir)
	}
	return claim, nil
}

func logUnreadable(c *config.Config, log *slog.Logger) {
	for _, err := range c.UnreadableFiles() {
		log.Error("a file of the configuration can't be read", "err", err)
	}
}

func reloadConfig(o *observing, b *observer.Observer, log *slog.Logger) {
	c, err := o.load()
	if err == nil {
		err = b.Reload(c)
	}
	if err != nil {
		log.Error("configuration not reloaded; the previous one stays in use", "err", fmt.Sprint(err))
		return
	}
	log.Info("configuration reloaded", "targets", len(c.Targets))
}
