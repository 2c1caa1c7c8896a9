package observer

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/many/generator"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// followGroups combines the generators' runs of each open group, unless another process does.
func (o *Observer) followGroups(ctx context.Context) {
	var followers sync.WaitGroup
	defer followers.Wait()
	tick := time.NewTimer(clock.Next(time.Second))
	defer tick.Stop()
	followed := map[string]chan struct{}{} // closed when the follower has returned
	failed := map[string]bool{}
	first := map[string]time.Time{}
	for {
		for _, name := range o.openGroups(first, time.Now()) {
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
			tick.Reset(clock.Next(time.Second))
		}
	}
}

const (
	// patience is how long an agent with peers waits for more generators of a group before it
	// combines the available ones.
	patience = 10 * time.Second
	// courtesy is how long it waits for a peer that has the first generator to combine the group.
	courtesy = 5 * time.Second
	// lateFor is how long after its end a group is still combined, in case this agent was away
	// meanwhile.
	lateFor = 24 * time.Hour
)

// openGroups returns the groups to combine: groups that have not ended, and groups without a run of
// their own if this agent has generators that have not ended. Only one agent should create the run
// of a group, so that its numbers count once:
//
//   - It needs more than half of the generators. An agent with peers gathers them, and accepts
//     fewer after a while.
//   - An agent that only mirrors the first generator waits whether the agent that records it
//     combines the group, and then mirrors the group.
//
// first is when each group was first seen.
func (o *Observer) openGroups(first map[string]time.Time, now time.Time) []string {
	type known struct {
		meta    *rundir.Meta // facts of one of the generators
		runs    int
		open    bool
		late    bool // a generator had ended before it was mirrored
		foreign bool // the first generator belongs to a peer
	}
	groups := map[string]*known{}
	snaps := o.Snapshots()
	for i := range snaps {
		m := &snaps[i].Meta
		if m.Group == nil {
			continue
		}
		g := groups[m.Group.Name]
		if g == nil {
			g = &known{}
			groups[m.Group.Name] = g
		}
		g.open = g.open || !m.Ended()
		if m.IsGenerator() {
			g.meta, g.runs = m, g.runs+1
			g.foreign = g.foreign || m.Group.Generator == 1 && m.IsCopy()
			g.late = g.late || m.IsCopy() && m.Ended() && now.Sub(*m.EndedAt) < lateFor
		}
	}
	maps.DeleteFunc(first, func(name string, _ time.Time) bool { return groups[name] == nil })
	gathers := o.peers != nil && o.peers.Any()
	var names []string
	for name, g := range groups {
		if !g.open && !g.late {
			continue
		}
		if first[name].IsZero() {
			first[name] = now
		}
		meta, err := rundir.At(o.dataDir, name).Load()
		if err == nil {
			if !meta.Ended() && !meta.IsCopy() {
				names = append(names, name)
			}
			continue
		}
		waited := now.Sub(first[name])
		most := g.meta != nil && 2*g.runs > g.meta.Group.Generators
		if g.meta != nil && (most && (!g.foreign || waited > courtesy) || gathers && waited > patience) {
			names = append(names, name)
		}
	}
	return names
}
