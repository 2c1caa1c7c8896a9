package live

import (
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// drain measures how long each replica takes, after the tool's end, to reach
// the position that the most advanced member of its cluster had then. Its
// resolution is the sample interval.
type drain struct {
	end     time.Time
	targets map[string]engine.Target // those that must catch up, by name
	goals   map[string]engine.Position
	seconds map[string]float64
}

// relevantTargets returns the members of the clusters that the run's own target
// belongs to, or all targets if that is not configured.
func relevantTargets(targets []engine.Target, runTarget string) []engine.Target {
	clusters := map[string]bool{}
	for _, t := range targets {
		if namesAddress(runTarget, t.Address) {
			clusters[t.Cluster] = true
		}
	}
	if len(clusters) == 0 {
		return targets
	}
	var relevant []engine.Target
	for _, t := range targets {
		if clusters[t.Cluster] {
			relevant = append(relevant, t)
		}
	}
	return relevant
}

// namesAddress reports whether a run's target, which may be a list, names address.
func namesAddress(runTarget, address string) bool {
	for one := range strings.SplitSeq(runTarget, ",") {
		if one != "" && canonical(one) == canonical(address) {
			return true
		}
	}
	return false
}

// canonical returns the address with one spelling for this machine.
func canonical(address string) string {
	for _, name := range []string{"localhost:", "[::1]:"} {
		if rest, ok := strings.CutPrefix(address, name); ok {
			return "127.0.0.1:" + rest
		}
	}
	return address
}

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

func newDrain(end time.Time, targets []engine.Target, runTarget string) *drain {
	d := &drain{end: end, targets: map[string]engine.Target{}, goals: map[string]engine.Position{}, seconds: map[string]float64{}}
	members := map[string]int{}
	for _, t := range targets {
		members[t.Cluster]++
	}
	for _, t := range targets {
		if t.Cluster != "" && members[t.Cluster] > 1 && !namesAddress(runTarget, t.Address) {
			d.targets[t.Name] = t
		}
	}
	return d
}

// frame updates the drain by the samples of a tick. The first tick after the end
// sets the goals.
func (d *drain) frame(f engine.Frame) {
	if f.Tick.Before(d.end) {
		return
	}
	d.setGoals(f)
	for i := range f.Samples {
		s := &f.Samples[i]
		t, wanted := d.targets[s.Target.Name]
		if _, done := d.seconds[s.Target.Name]; !wanted || done || !hasPosition(s) {
			continue
		}
		if goal := d.goals[t.Cluster]; goal != nil && engine.Reached(s.Status.Position, goal) {
			d.seconds[t.Name] = max(0, s.Answered.Sub(d.end).Seconds())
		}
	}
}

func (d *drain) setGoals(f engine.Frame) {
	set := map[string]bool{}
	for cluster := range d.goals {
		set[cluster] = true
	}
	for i := range f.Samples {
		s := &f.Samples[i]
		cluster := s.Target.Cluster
		if set[cluster] || !hasPosition(s) {
			continue
		}
		best := d.goals[cluster]
		if best == nil || !engine.Reached(best, s.Status.Position) {
			d.goals[cluster] = s.Status.Position
		}
	}
}

// hasPosition reports whether a sample shows how far the server is.
func hasPosition(s *engine.Sample) bool {
	return s.Up() && s.Status.Replicating && s.Status.Position != nil
}

func (d *drain) finished() bool { return len(d.seconds) == len(d.targets) }

// reached returns the replicas that have caught up.
func (d *drain) reached() map[string]rundir.Drain {
	m := map[string]rundir.Drain{}
	for name, s := range d.seconds {
		m[name] = rundir.Drain{Seconds: &s}
	}
	return m
}

// results returns for every replica how long it took, or that it timed out.
func (d *drain) results() map[string]rundir.Drain {
	m := d.reached()
	for name := range d.targets {
		if _, ok := m[name]; !ok {
			m[name] = rundir.Drain{TimedOut: true}
		}
	}
	return m
}
