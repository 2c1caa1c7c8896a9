package observer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/generator"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// followGroups combines the generators' runs of each group that has not ended, unless
// another process does.
func (o *Observer) followGroups(ctx context.Context) {
	var followers sync.WaitGroup
	defer followers.Wait()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	followed := map[string]chan struct{}{} // closed when the follower has returned
	failed := map[string]bool{}
	for {
		for _, name := range o.openGroups() {
			if done := followed[name]; done != nil {
				select {
				case <-done:
				default:
					continue
				}
			}
			dir, err := generator.Find(o.dataDir, name)
			if err != nil {
				if !failed[name] {
					o.log.Error("can't combine a group", "group", name, "err", err)
				}
				failed[name] = true
				continue
			}
			done := make(chan struct{})
			followed[name] = done
			followers.Go(func() {
				defer close(done)
				follower := generator.Follower{Dir: dir, Log: o.log}
				if err := follower.Run(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, generator.ErrFollowed) {
					o.log.Error("can't combine a group", "group", name, "err", err)
				}
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// openGroups returns the groups that have not ended, and those of generators that have
// not and whose group has no run yet.
func (o *Observer) openGroups() []string {
	open := map[string]bool{}
	snaps := o.Snapshots()
	for i := range snaps {
		if m := &snaps[i].Meta; m.Group != nil && !m.Ended() {
			open[m.Group.Name] = true
		}
	}
	var names []string
	for name := range open {
		if meta, err := rundir.At(o.dataDir, name).Load(); err != nil || !meta.Ended() {
			names = append(names, name)
		}
	}
	return names
}
