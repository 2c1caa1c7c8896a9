package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/observer"
	"github.com/benchwatch/benchwatch/agent/app/replay"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// replayCommand is one `benchwatch replay`.
type replayCommand struct {
	*observing
	store     *store
	name      string
	speed     float64
	linger    time.Duration
	lingerSet bool
	format    string

	streams Streams
}

func newReplay() *cobra.Command {
	cmd := newCommand("replay", "Play a recorded run as if it were live. The default is an embedded example.",
		"benchwatch replay --speed=4")
	r := &replayCommand{observing: addObserving(cmd, "warn")}
	cmd.argument(&r.name, "[RUN]", "Id of a run, its beginning, or last (default: the embedded run on a Galera cluster with a slow node)")
	r.speed = 1
	cmd.number(&r.speed, "speed", "N",
		"Recorded seconds per second; rates that Prometheus computes are correct only at 1")
	cmd.duration(&r.linger, "linger", "Serve page and metrics this long after the end (default: until Ctrl-C on a terminal, else 0s)")
	addFormat(cmd, &r.format, text, jsonFormat)
	return cmd.does(func(s Streams) error {
		r.lingerSet, r.store = cmd.Flags().Changed("linger"), &store{dataFlags: r.dataFlags}
		r.streams = s
		return r.run()
	})
}

func (r *replayCommand) run() (err error) {
	if !(r.speed > 0 && r.speed <= replay.MaxSpeed) {
		return &exitError{Status: exitUsage, Err: fmt.Errorf("--speed %v is out of range", r.speed),
			Hint: fmt.Sprintf("use a number above 0, at most %d", replay.MaxSpeed)}
	}
	if err := r.store.load(); err != nil {
		return err
	}
	temporary, remove, err := temporaryFolder("replay")
	if err != nil {
		return err
	}
	defer remove()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	player, err := r.player(ctx, temporary)
	if err != nil {
		return err
	}
	own := &observation{}
	log := r.logger(r.streams)
	err = r.begin(context.Background(), own, observer.Options{
		Config: player.Config(*r.store.config, temporary), Only: []string{player.Directory.ID()}, Logger: log,
		Servers: player.Servers(), Machines: player.Machines(), Clock: player.Clock(),
	}, r.streams)
	if err != nil {
		return err
	}
	defer own.stop()
	r.streams.notice("live page at %s (metrics at /metrics)", own.page)
	return r.follow(ctx, player, own)
}

// player returns a player of the run, or of the example, into a temporary folder.
func (r *replayCommand) player(ctx context.Context, temporary string) (*replay.Player, error) {
	var dir rundir.Directory
	var err error
	if r.name == "" {
		dir, err = replay.Example(temporary + "/recorded")
	} else {
		dir, err = r.store.findRun(r.name)
	}
	if err != nil {
		return nil, err
	}
	h, err := r.store.history(ctx, dir)
	if err != nil {
		return nil, err
	}
	player, err := replay.New(ctx, dir, h, r.store.tools.ByName(h.Snapshot.Meta.Tool), temporary, r.speed)
	if err != nil {
		return nil, err
	}
	speed := ""
	if r.speed != 1 {
		speed = fmt.Sprintf(" at %g times its speed", r.speed)
	}
	r.streams.notice("replaying run %s%s, for %s", dir.ID(), speed, terminal.Short(player.Length))
	return player, nil
}

// follow waits for the end of the replay, prints the result of the run and continues to serve it.
func (r *replayCommand) follow(ctx context.Context, player *replay.Player, own *observation) error {
	progress := terminal.NewProgress(r.streams.Err)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	played := player.Played()
	for {
		select {
		case <-ctx.Done():
			progress.Clear()
			return &exitError{Status: exitInterrupted, Err: errors.New("interrupted")}
		case <-played:
			own.observer.GiveUpDrain()
			played = nil
		case <-tick.C:
		}
		progress.Time("replay", player.Elapsed(), player.Length)
		meta, err := player.Directory.Load()
		if err != nil {
			return err
		}
		if meta.Closed() {
			break
		}
	}
	progress.Clear()
	h, err := record.Read(ctx, player.Directory, r.store.tools)
	if err != nil {
		return err
	}
	_ = report.WriteOutcome(r.streams.Err, h, "", terminal.Of(r.streams.Err)) // no one reads it if stderr is gone
	if r.format == jsonFormat {
		if err := writeJSON(r.streams.Out, h); err != nil {
			return err
		}
	}
	r.lingering(ctx)
	return nil
}

// lingering serves the played run for the time of --linger.
func (r *replayCommand) lingering(ctx context.Context) {
	var end <-chan time.Time
	switch {
	case r.lingerSet && r.linger <= 0:
		return
	case r.lingerSet:
		end = time.After(r.linger)
	case !terminal.Of(r.streams.Err).Is:
		return
	}
	r.streams.notice("still serving the page (Ctrl-C to stop)")
	select {
	case <-end:
	case <-ctx.Done():
	}
}
