package live

import (
	"cmp"
	"context"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// servers is the tracker's state of its run's servers, guarded by the tracker's mu. run.json has
// the list of servers.
type servers struct {
	// topology in which they were last looked up.
	topology *topology.Topology
	// nodenames maps targets to the machine names that the servers reported.
	nodenames map[string]string
	// machines of the run that are sampled.
	machines []rundir.Machine
	// unrecorded: some of nodenames or machines are not in run.json yet.
	unrecorded bool
}

// identify decides which servers take part in the run and records them: when the owner starts, when
// the configuration changes, and when a server reports its machine's name. A reload never makes
// known servers unknown.
func (t *tracker) identify(ctx context.Context) {
	now := t.opts.Topology()
	t.mu.Lock()
	meta, moved := t.meta, t.servers.topology != now
	due := t.owner != nil && !meta.Closed() && (moved || t.unrecorded)
	t.mu.Unlock()
	if !due {
		return
	}
	next := meta.Servers
	if moved {
		current := now.Servers(ctx, &meta, *t.opts.Machine)
		if ctx.Err() != nil {
			return
		}
		if next == nil || len(current.Targets) > 0 || len(next.Targets) == 0 {
			if next != nil {
				current.Machines = next.Machines
			}
			next = &current
		}
	}
	t.mu.Lock()
	t.servers.topology, t.unrecorded = now, false
	next = withMachines(withNodenames(next, t.nodenames), t.machines)
	t.mu.Unlock()
	if notice := next.Notice(); notice != "" && notice != meta.Servers.Notice() {
		t.log.Warn(notice)
	}
	if equalServers(meta.Servers, next) {
		return
	}
	changed, err := t.dir.Update(func(m *rundir.Meta) { m.Servers = next })
	if err != nil {
		t.fault("record the run's servers", err)
		t.mu.Lock()
		t.servers.topology = nil // again
		t.mu.Unlock()
		return
	}
	t.opts.Sink.Identified(t.dir, changed)
	t.setMeta(changed)
}

// withNodenames returns s with the names that the servers reported. Names in s, which are
// configured, take precedence.
func withNodenames(s *rundir.Servers, nodenames map[string]string) *rundir.Servers {
	c := *s
	c.Targets = slices.Clone(s.Targets)
	for i := range c.Targets {
		o := &c.Targets[i]
		o.Nodename = cmp.Or(o.Nodename, nodenames[o.Target])
	}
	return &c
}

func equalServers(a, b *rundir.Servers) bool {
	return a != nil && a.Source == b.Source && a.Problem == b.Problem && slices.Equal(a.Targets, b.Targets) &&
		slices.Equal(a.Proxies, b.Proxies) && slices.EqualFunc(a.Machines, b.Machines, rundir.Machine.Equal)
}

// own returns the samples of the run's servers and notes their machines' names. The caller holds
// mu.
func (t *tracker) own(f engine.Frame) engine.Frame {
	own := f
	own.Samples = nil
	for i := range f.Samples {
		s := &f.Samples[i]
		server := t.meta.Servers.Server(s.Target.Name)
		if server == nil {
			continue
		}
		own.Samples = append(own.Samples, *s)
		if !s.Up() {
			continue
		}
		was := t.nodenames[server.Target]
		now := cmp.Or(s.Status.Nodename, was)
		if server.Nodename != "" || now == was {
			continue
		}
		if t.nodenames == nil {
			t.nodenames = map[string]string{}
		}
		t.nodenames[server.Target], t.unrecorded = now, true
	}
	return own
}

// targets returns the run's servers as currently configured. The caller holds mu.
func (t *tracker) targets() []engine.Target {
	return slices.DeleteFunc(slices.Clone(t.opts.Topology().Targets), func(o engine.Target) bool {
		return t.meta.Servers.Server(o.Name) == nil
	})
}
