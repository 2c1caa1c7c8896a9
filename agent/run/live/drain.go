package live

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// drain measures how long each replica takes, after the tool's end, to reach the position that the
// most advanced member of its cluster had then. That happens between two samples.
type drain struct {
	end     time.Time
	targets map[string]engine.Target     // the replicas, by name
	servers map[string]engine.Target     // to which the tool connected: replicas if another one is the source
	last    map[string]*engine.Sample    // of each member of a cluster, before the goals are set
	goals   map[string][]engine.Position // by cluster, one for each history, such as a shard's
	sources map[string]engine.Sources    // by cluster, set with the goals: where the replicas' sources were
	lacking map[string]time.Time         // when a sample last showed that the replica had not caught up
	reached map[string]rundir.Drain
	placed  map[string]bool // targets that have had a position
}

// goalTimeout bounds the wait for members that answered before, until the goal is set without them.
const goalTimeout = 2 * time.Second

// replicates reports whether any two targets form a cluster.
func replicates(targets []engine.Target) bool {
	seen := map[string]bool{}
	for _, t := range targets {
		if t.Cluster != "" && seen[t.Cluster] {
			return true
		}
		seen[t.Cluster] = true
	}
	return false
}

// newDrain returns the drain of a run that has ended. The server to which the tool wrote has
// nothing to catch up with; a tool may also connect to replicas.
func newDrain(end time.Time, targets []engine.Target, servers *rundir.Servers) *drain {
	d := &drain{
		end: end, targets: map[string]engine.Target{}, servers: map[string]engine.Target{}, last: map[string]*engine.Sample{},
		goals: map[string][]engine.Position{}, lacking: map[string]time.Time{}, reached: map[string]rundir.Drain{}, placed: map[string]bool{},
		sources: map[string]engine.Sources{},
	}
	members := map[string]int{}
	for _, t := range targets {
		members[t.Cluster]++
	}
	for _, t := range targets {
		server := servers.Server(t.Name)
		switch {
		case t.Cluster == "" || members[t.Cluster] < 2:
		case server != nil && server.Connected:
			d.servers[t.Name] = t
		default:
			d.targets[t.Name] = t
		}
	}
	return d
}

// frame updates the drain from a tick's samples. The first tick after the end sets the goals. A
// replica that had reached its goal before the end needs no time.
func (d *drain) frame(f *engine.Frame) {
	ended := !f.Tick.Before(d.end)
	if ended {
		d.setGoals(f)
	}
	for i := range f.Samples {
		s := &f.Samples[i]
		if s.Up() && s.Status.NoData {
			delete(d.targets, s.Target.Name)
		}
		if !hasPosition(s) {
			continue
		}
		d.placed[s.Target.Name] = true
		if s.Source {
			d.replicas(s, f)
		}
		goal := d.goal(s)
		if goal == nil {
			d.last[s.Target.Name] = s
			continue
		}
		if previous := d.last[s.Target.Name]; previous != nil {
			d.sample(previous, goal)
			delete(d.last, s.Target.Name)
		}
		d.sample(s, goal)
	}
}

// replicas removes a source from the targets, and adds the servers that replicate from it although
// the tool connected to them.
func (d *drain) replicas(source *engine.Sample, f *engine.Frame) {
	delete(d.targets, source.Target.Name)
	for name, t := range d.servers {
		s := f.Sample(name)
		if s != nil && s != source && t.Cluster == source.Target.Cluster &&
			hasPosition(s) && s.Status.Position != nil && engine.SameHistory(s.Status.Position, source.Status.Position) {
			d.targets[name] = t
		}
	}
}

// goal is what a replica has to reach.
type goal func(s *engine.Sample) (reached bool)

// goal returns the goal of a sample: of its sources' histories if they are known, otherwise of the history that it
// shares with others; nil if it has none.
func (d *drain) goal(s *engine.Sample) goal {
	cluster := s.Target.Cluster
	if d.goals[cluster] == nil {
		return nil
	}
	sources := d.sources[cluster]
	for _, c := range s.Status.Channels {
		if sources[strings.ToLower(c.Source)] != nil {
			return func(s *engine.Sample) bool { return hasDrained(s.Status.Channels, sources) }
		}
	}
	for _, goal := range d.goals[cluster] {
		if s.Status.Position != nil && engine.SameHistory(goal, s.Status.Position) {
			return func(s *engine.Sample) bool { return engine.Reached(s.Status.Position, goal) }
		}
	}
	return nil
}

// hasDrained reports whether each channel has reached its source. A channel whose source is not sampled has to have
// executed what it received. One that can't be compared has not reached anything.
func hasDrained(channels []engine.Channel, sources engine.Sources) bool {
	for i := range channels {
		c := &channels[i]
		if sources[strings.ToLower(c.Source)] == nil {
			if !c.Queue.Known || c.Queue.Value > 0 {
				return false
			}
			continue
		}
		above, ok := sources.Above(channels, i, nil)
		if !ok || c.Position == nil || !engine.Reached(c.Position, above[0]) {
			return false
		}
	}
	return true
}

// sample records whether a replica has reached its goal.
func (d *drain) sample(s *engine.Sample, reached goal) {
	name := s.Target.Name
	if _, done := d.reached[name]; done {
		return
	}
	if _, wanted := d.targets[name]; !wanted {
		return
	}
	if !reached(s) {
		d.lacking[name] = s.Asked
		return
	}
	seconds := max(0, s.Answered.Sub(d.end).Seconds())
	resolution := seconds
	if lacking := d.lacking[name]; !lacking.Before(d.end) {
		resolution = s.Answered.Sub(lacking).Seconds()
	} else { // no sample after the end shows a missing transaction
		seconds = 0
	}
	d.reached[name] = rundir.Drain{Seconds: &seconds, ResolutionSeconds: resolution}
}

// setGoals sets the goals of each cluster without one, once all members that answered before have
// answered.
func (d *drain) setGoals(f *engine.Frame) {
	best := map[string][]engine.Position{}
	sources := map[string]engine.Sources{}
	for i := range f.Samples {
		s := &f.Samples[i]
		cluster := s.Target.Cluster
		if !hasPosition(s) || s.Status.Position == nil || d.goals[cluster] != nil {
			continue
		}
		best[cluster] = withMostAdvanced(best[cluster], s.Status.Position)
		if sources[cluster] == nil {
			sources[cluster] = engine.Sources{}
		}
		if id := engine.Origin(s.Status.Position); id != "" {
			sources[cluster][id] = s.Status.Position
		}
	}
	if f.Tick.Sub(d.end) < goalTimeout {
		for name, s := range d.last {
			if now := f.Sample(name); now == nil || !hasPosition(now) {
				delete(best, s.Target.Cluster)
			}
		}
	}
	maps.Copy(d.goals, best)
	for cluster := range best {
		d.sources[cluster] = sources[cluster]
	}
}

// withMostAdvanced returns positions of several histories with p, if it is the most advanced one of
// its own.
func withMostAdvanced(positions []engine.Position, p engine.Position) []engine.Position {
	i := slices.IndexFunc(positions, func(other engine.Position) bool { return engine.SameHistory(other, p) })
	switch {
	case i < 0:
		return append(positions, p)
	case !engine.Reached(positions[i], p):
		positions[i] = p
	}
	return positions
}

// hasPosition reports whether a sample has the server's position.
func hasPosition(s *engine.Sample) bool {
	return s.Up() && (s.Status.Replicating && s.Status.Position != nil || len(s.Status.Channels) > 0)
}

// waits reports whether the drain waits for a replica. It does not for one that only another server named
// and that did not answer, which may not be reachable at all.
func (d *drain) waits(t *engine.Target) bool {
	return !t.Hearsay || d.placed[t.Name] || d.goals[t.Cluster] == nil
}

func (d *drain) finished() bool {
	for name, t := range d.targets {
		if _, ok := d.reached[name]; !ok && d.waits(&t) {
			return false
		}
	}
	return true
}

// results returns each replica's drain, or its timeout.
func (d *drain) results() map[string]rundir.Drain {
	m := map[string]rundir.Drain{}
	for name, t := range d.targets {
		if reached, ok := d.reached[name]; ok {
			m[name] = reached
		} else if d.waits(&t) {
			m[name] = rundir.Drain{TimedOut: true}
		}
	}
	return m
}
