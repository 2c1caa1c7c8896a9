package retention

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// KeeperOptions of a Keeper.
type KeeperOptions struct {
	DataDir string
	// Options returns what the current configuration says; DataDir and Now are set by the Keeper.
	Options func() (Options, error)
	// Busy reports whether a run is in progress, which a removal could disturb.
	Busy func() bool
	// Clock is the machine's; nil: [clock.System].
	Clock *clock.Clock
	Log   *slog.Logger
}

// Stats is what a Keeper has done since its creation.
type Stats struct {
	// Enabled: the configuration has a limit. Otherwise all other fields are 0.
	Enabled bool
	// Removed counts runs, by the limit that they were beyond, and Bytes their space on the disk.
	Removed map[Reason]uint64
	Bytes   uint64
	// Kept is the number of runs that are beyond a limit but needed.
	Kept int
	// Failures counts attempts that failed; Failing: the last one did.
	Failures uint64
	Failing  bool
}

// Keeper applies the rule of the configuration to a data directory, again and again.
type Keeper struct {
	KeeperOptions
	interval, poll, patience time.Duration
	kick                     chan struct{}

	mu    sync.Mutex
	stats Stats

	// The fields below belong to Run.
	reported string            // the last error
	kept     map[string]string // why runs beyond a limit are kept, as last logged
}

const (
	// interval is the time between two looks at the runs.
	interval = 10 * time.Minute
	// poll is the interval for the end of the runs in progress, and patience how long a removal waits for it.
	poll     = 10 * time.Second
	patience = time.Hour
)

// NewKeeper returns a Keeper that does nothing before Run.
func NewKeeper(o KeeperOptions) *Keeper {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	return &Keeper{KeeperOptions: o, interval: interval, poll: poll, patience: patience, kick: make(chan struct{}, 1)}
}

// Kick applies the rule at once, because the configuration has changed.
func (k *Keeper) Kick() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// Stats returns the current state without waiting.
func (k *Keeper) Stats() Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.stats
	s.Removed = maps.Clone(s.Removed)
	return s
}

func (k *Keeper) update(change func(*Stats)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.stats)
}

// Run applies the rule until ctx is done.
func (k *Keeper) Run(ctx context.Context) {
	k.finish()
	for {
		if err := k.pass(ctx); ctx.Err() == nil {
			k.note(err)
		}
		timer := time.NewTimer(k.interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-k.kick:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// finish deletes what earlier processes that were killed left of removed runs, whatever the configuration is.
func (k *Keeper) finish() {
	finished, err := rundir.FinishRemovals(k.DataDir)
	if finished > 0 {
		k.Log.Info("removal of runs finished that an earlier process began", "runs", finished)
	}
	if err != nil {
		k.Log.Error("removed runs are still on the disk", "err", err)
	}
}

// note counts and logs the error of a pass, if any, once per cause.
func (k *Keeper) note(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	doubted := errors.Is(err, ErrClock)
	k.update(func(s *Stats) {
		if s.Failing = err != nil && !doubted; s.Failing {
			s.Failures++
		}
	})
	switch {
	case text == k.reported, doubted && strings.HasPrefix(k.reported, ErrClock.Error()): // only the rest of the day differs
	case doubted:
		k.Log.Warn("old runs are kept for now", "err", err)
	case err != nil:
		k.Log.Error("removal of old runs failed", "err", err)
	default:
		k.Log.Info("old runs are removed again")
	}
	k.reported = text
}

// pass removes the runs beyond the limits of the configuration.
func (k *Keeper) pass(ctx context.Context) error {
	o, err := k.KeeperOptions.Options()
	o.DataDir, o.Now = k.DataDir, k.Clock.Wall()
	enabled := o.Rule != Rule{}
	k.update(func(s *Stats) {
		if s.Enabled = enabled; !enabled {
			*s = Stats{Removed: map[Reason]uint64{}}
		}
		if s.Removed == nil {
			s.Removed = map[Reason]uint64{}
		}
	})
	if err != nil || !enabled {
		return err
	}
	var doubt error
	if o.MaxAge > 0 {
		doubt = CheckClock(k.DataDir, k.Clock, false)
	}
	if doubt != nil {
		if o.MaxAge = 0; o.Rule == (Rule{}) {
			return doubt
		}
	}
	plan, err := New(ctx, o)
	if err != nil {
		return err
	}
	k.explain(plan)
	if plan.Count() > 0 {
		if err := k.idle(ctx); err != nil {
			return err
		}
	}
	if err := plan.Remove(ctx, k.removed); err != nil {
		return err
	}
	return doubt
}

// removed counts and logs a removed run.
func (k *Keeper) removed(r Run) {
	k.update(func(s *Stats) {
		s.Removed[r.Beyond]++
		s.Bytes += uint64(r.Bytes)
	})
	k.Log.Info("run removed", "run", r.Dir.ID(), "limit", r.Beyond, "closed", r.At.UTC().Format(time.RFC3339), "bytes", r.Bytes)
}

// explain logs why runs beyond a limit are kept, once for each.
func (k *Keeper) explain(p *Plan) {
	kept := map[string]string{}
	for i := range p.Runs {
		if r := &p.Runs[i]; r.Kept != "" {
			kept[r.Dir.ID()] = r.Kept
			if k.kept[r.Dir.ID()] != r.Kept {
				k.Log.Debug("run kept", "run", r.Dir.ID(), "limit", r.Beyond, "because", r.Kept)
			}
		}
	}
	if len(kept) > 0 && len(k.kept) == 0 {
		k.Log.Info("runs beyond the limits are kept, since they are needed", "runs", len(kept),
			"run", p.firstKept().Dir.ID(), "because", p.firstKept().Kept)
	}
	k.kept = kept
	k.update(func(s *Stats) { s.Kept = len(kept) })
}

// idle waits until no run is in progress, but not for ever, and not if the disk is nearly full.
func (k *Keeper) idle(ctx context.Context) error {
	began := time.Now()
	for k.Busy() && time.Since(began) < k.patience {
		if space, err := rundir.SpaceOf(k.DataDir); err == nil && space.Low() {
			break
		}
		if err := clock.Sleep(ctx, k.poll); err != nil {
			return err
		}
	}
	return ctx.Err()
}
