package observer

import (
	"cmp"
	"context"
	"os"
	"slices"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// loan is the login of a run's tool, with which the run's servers are sampled until the run is
// closed. It stays in memory; a restarted agent asks for it again.
type loan struct {
	run   string
	login rundir.Login
	// names are the targets to which the tool connects.
	names []string
	// found are the other members of their clusters.
	found []found
}

// found is a server that only another server named.
type found struct {
	engine  *engine.Engine
	address string
	name    string // of the target
	// encrypted: the connection to the server that named it has TLS.
	encrypted bool
	// known: it turned out to be a server that is sampled at another address.
	known bool
}

// logins are the logins that runs lend to an observer.
type logins struct{ *Observer }

// Borrow asks for the login that the wrapper of a run may lend.
func (o logins) Borrow(dir rundir.Directory) {
	login, err := dir.Borrow()
	if login == nil && err == nil {
		return
	}
	var owner uint32
	if err == nil {
		owner, err = dir.Owner()
	}
	if err == nil {
		err = config.CheckLent(*login, owner != uint32(os.Geteuid()))
	}
	if err == nil {
		o.mu.Lock()
		c := o.config
		o.mu.Unlock()
		err = c.CheckProxy(*login)
	}
	if err != nil {
		o.log.Warn("the servers of a run are not sampled with the login of its tool", "run", dir.ID(), "err", err)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loans = append(o.loans, loan{run: dir.ID(), login: *login})
	o.arrange()
}

// GiveBack forgets the login of a run.
func (o logins) GiveBack(dir rundir.Directory) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := len(o.loans)
	o.loans = slices.DeleteFunc(o.loans, func(l loan) bool { return l.run == dir.ID() })
	if len(o.loans) < before {
		o.arrange()
	}
}

// arrange samples the targets of the configuration and of the loans, in the clusters that they report. The
// caller holds mu.
func (o *Observer) arrange() {
	c := *o.config
	c.Targets = slices.Clone(c.Targets)
	lent := map[string][]string{}
	for i := range o.loans {
		l := &o.loans[i]
		names, err := c.AddLogin(l.login)
		if err != nil {
			continue // was checked
		}
		l.names = names
		for _, name := range names {
			lent[name] = append(lent[name], l.run)
		}
	}
	for i := range o.loans {
		l := &o.loans[i]
		for k := range l.found {
			m := &l.found[k]
			if m.known {
				continue
			}
			if name, ok := c.AddMember(l.login, m.engine, m.address, m.encrypted); ok {
				m.name = name
				lent[name] = append(lent[name], l.run)
			}
		}
	}
	for _, t := range o.config.Targets {
		delete(lent, t.Name)
	}
	c.Targets = c.Targets[len(o.config.Targets):]
	targets := slices.Concat(o.targets, c.EngineTargets(o.log))
	o.clusters.Forget(targets)
	for _, text := range o.clusters.Assign(targets) {
		if !slices.Contains(o.contradictions, text) {
			o.contradictions = append(o.contradictions, text)
			o.log.Warn("the configuration contradicts the servers", "what", text)
		}
	}
	o.topology = o.config.Topology(targets)
	o.topology.Lent = lent
	o.topology.Listed = o.clusters.Behind(targets)
	o.sampler.Update(targets)
}

// gather takes what the servers of a frame report about their clusters. With a lent login it also samples
// the members that the tool's own servers list; what only those list is not believed.
func (o *Observer) gather(ctx context.Context, f engine.Frame) {
	o.mu.Lock()
	changed := o.clusters.Observe(&f)
	here := *o.machine
	o.mu.Unlock()
	if !changed {
		return
	}
	o.mu.Lock()
	targets := slices.Clone(o.topology.Targets)
	wanted := map[string][]found{} // by run
	for i := range o.loans {
		wanted[o.loans[i].run] = o.listed(&o.loans[i], targets, &f)
	}
	o.mu.Unlock()
	for run, all := range wanted { // names are resolved without mu
		wanted[run] = slices.DeleteFunc(all, func(m found) bool {
			return slices.ContainsFunc(targets, func(t engine.Target) bool { return here.SameServer(ctx, t.Address, m.address) })
		})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.loans {
		l := &o.loans[i]
		l.found = append(l.found, wanted[l.run]...)
		o.recognise(l, targets)
	}
	o.arrange()
}

// listed returns the servers that the tool's servers list and that are not known yet: with Discover the members of their
// clusters, and in any case those behind a proxy to which the tool connects. The caller holds mu.
func (o *Observer) listed(l *loan, targets []engine.Target, f *engine.Frame) (all []found) {
	for i := range targets {
		t := &targets[i]
		s := f.Sample(t.Name)
		if !slices.Contains(l.names, t.Name) || s == nil || !s.Up() {
			continue
		}
		_, members := o.clusters.Members(t.Name)
		for _, m := range members {
			address, ok := t.Listed(m)
			e := engines.ByName(cmp.Or(m.Engine, t.Engine))
			if m.Behind { // the tool speaks the protocol of the servers
				e = engines.ByName(l.login.Engine)
			}
			ok = ok && (m.Behind || l.login.Discover)
			is := func(f found) bool { return f.address == address }
			if ok && e != nil && !slices.ContainsFunc(l.found, is) && !slices.ContainsFunc(all, is) {
				all = append(all, found{engine: e, address: address, encrypted: s.Status.Encrypted})
			}
		}
	}
	return all
}

// recognise marks found servers that have the id of another target: they are sampled there. The caller
// holds mu.
func (o *Observer) recognise(l *loan, targets []engine.Target) {
	for k := range l.found {
		m := &l.found[k]
		id, _ := o.clusters.Members(m.name)
		if m.name == "" || id == "" || m.known {
			continue
		}
		for i := range targets {
			t := &targets[i]
			if other, _ := o.clusters.Members(t.Name); other == id && t.Name != m.name && !t.Hearsay {
				m.known = true
			}
		}
	}
}

// localMachine is this machine as the addresses of servers see it.
func localMachine() *topology.Machine {
	m := topology.LocalMachine()
	return &m
}
