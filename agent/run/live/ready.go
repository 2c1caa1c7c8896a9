package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// ErrNotReady is returned by AwaitReady with what was missing when its context ended.
var ErrNotReady = errors.New("the servers are not ready")

// AwaitReady waits until each server of a run answers, is a full member of its cluster, and has caught
// up with the most advanced member as of the first frame, as after a run. waiting is called with what is
// missing whenever that changes. now is the clock of the frames.
func AwaitReady(ctx context.Context, frames <-chan engine.Frame, now time.Time,
	targets []engine.Target, servers *rundir.Servers, waiting func(what string)) error {
	own := targets[:0:0]
	for _, t := range targets {
		if servers.Server(t.Name) != nil {
			own = append(own, t)
		}
	}
	d, missing := newDrain(now, own, servers), ""
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ErrNotReady, missing)
		case f, open := <-frames:
			if !open {
				return ctx.Err()
			}
			d.frame(&f)
			switch what := d.missing(&f, own); what {
			case "":
				return nil
			case missing:
			default:
				missing = what
				waiting(what)
			}
		}
	}
}

// missing describes what the servers lack to be ready; empty if they are.
func (d *drain) missing(f *engine.Frame, targets []engine.Target) string {
	var all []string
	for _, t := range targets {
		s := f.Sample(t.Name)
		_, replica := d.targets[t.Name]
		_, reached := d.reached[t.Name]
		switch {
		case s == nil || !s.Up():
			all = append(all, t.Name+" does not answer")
		case s.Status.NotReady != "":
			all = append(all, t.Name+" is "+s.Status.NotReady)
		case replica && !reached:
			all = append(all, t.Name+" has not caught up")
		}
	}
	return strings.Join(all, ", ")
}
