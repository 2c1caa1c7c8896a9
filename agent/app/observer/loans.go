package observer

import (
	"os"
	"slices"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// loan is the login of a run's tool, with which the run's servers are sampled until the run is
// closed. It stays in memory; a restarted agent asks for it again.
type loan struct {
	run   string
	login rundir.Login
}

// borrow asks for the login that the wrapper of a run may lend.
func (o *Observer) borrow(dir rundir.Directory) {
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
	if err != nil {
		o.log.Warn("the servers of a run are not sampled with the login of its tool", "run", dir.ID(), "err", err)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loans = append(o.loans, loan{dir.ID(), *login})
	o.lend()
}

// giveBack forgets the login of a run.
func (o *Observer) giveBack(dir rundir.Directory) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := len(o.loans)
	o.loans = slices.DeleteFunc(o.loans, func(l loan) bool { return l.run == dir.ID() })
	if len(o.loans) < before {
		o.lend()
	}
}

// lend samples the targets of the configuration and of the loans. The caller holds mu.
func (o *Observer) lend() {
	c := *o.config
	c.Targets = slices.Clone(c.Targets)
	lent := map[string][]string{}
	for _, l := range o.loans {
		names, err := c.AddLogin(l.login)
		if err != nil {
			continue // was checked
		}
		for _, name := range names {
			lent[name] = append(lent[name], l.run)
		}
	}
	for _, t := range o.config.Targets {
		delete(lent, t.Name)
	}
	c.Targets = c.Targets[len(o.config.Targets):]
	targets := slices.Concat(o.targets, c.EngineTargets(o.log))
	o.topology = o.config.Topology(targets)
	o.topology.Lent = lent
	o.sampler.Update(targets)
}
