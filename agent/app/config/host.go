package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/ssh"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// Host is a machine to sample that does not belong to a target.
type Host struct {
	Name         string `yaml:"name"`
	NodeExporter string `yaml:"node_exporter"`
	SSH          string `yaml:"ssh"`
	SSHCommand   string `yaml:"ssh_command" default:"ssh"`
	Cluster      string `yaml:"cluster"`
	Role         string `yaml:"role" default:"server"`
}

// name returns the machine's unique name.
func (h *Host) name() string { return cmp.Or(h.Name, h.SSH) }

func (h *Host) check() error {
	var address, name error
	switch {
	case h.SSH == "":
		address = cmp.Or(required(h.NodeExporter, "the http:// or https:// address of a node_exporter, or ssh with the machine's name for it"), CheckURL(h.NodeExporter))
	case h.NodeExporter != "":
		address = errors.New("is set besides ssh: use one of them")
	case ssh.CheckHost(h.SSH) != nil:
		name = fmt.Errorf("%q %w", h.SSH, ssh.ErrHost)
	}
	var role error
	roles := []string{string(rundir.ServerHost), string(rundir.ProxyHost), string(rundir.GeneratorHost)}
	if !slices.Contains(roles, h.Role) {
		role = fmt.Errorf("unknown role %q: expected one of %s", h.Role, strings.Join(roles, ", "))
	}
	return cmp.Or(in("name", required(h.name(), "a short name")), in("node_exporter", address), in("ssh", name),
		in("ssh_command", required(strings.TrimSpace(h.SSHCommand), "the command that connects")), in("role", role))
}

// checkHosts needs the targets.
func (c *Config) checkHosts() error {
	for i, h := range c.Hosts {
		used := slices.ContainsFunc(c.Hosts[:i], func(o Host) bool { return o.name() == h.name() }) ||
			slices.ContainsFunc(c.Targets, func(t Target) bool { return t.Name == h.name() && t.NodeExporter != "" })
		if used {
			return in(fmt.Sprintf("hosts[%d].name", i), fmt.Errorf("%q is used twice", h.name()))
		}
		if h.Cluster != "" && !c.hasCluster(h.Cluster) {
			return in(fmt.Sprintf("hosts[%d].cluster", i), noCluster(h.Cluster))
		}
	}
	return nil
}

// machine is a machine and how to sample it.
type machine struct {
	topology.Host
	engine, address string
	options         map[string]string
}

// machines returns the machines to sample: first the machines of the targets, one for all targets
// with the same node_exporter, then the other machines, then the agent's own.
func (c *Config) machines() []machine {
	var all []machine
	for _, t := range c.Targets {
		if t.NodeExporter == "" {
			continue
		}
		if i := slices.IndexFunc(all, func(m machine) bool { return m.address == t.NodeExporter }); i >= 0 {
			all[i].Targets = append(all[i].Targets, t.Name)
			all[i].Name += "+" + t.Name
			continue
		}
		all = append(all, machine{topology.Host{Name: t.Name, Targets: []string{t.Name}}, host.NodeExporter, t.NodeExporter, nil})
	}
	for _, h := range c.Hosts {
		m := machine{topology.Host{Name: h.name(), Cluster: h.Cluster, Role: rundir.HostRole(h.Role)},
			host.NodeExporter, h.NodeExporter, nil}
		if h.SSH != "" {
			m.engine, m.address, m.options = host.SSH, h.SSH, map[string]string{host.OptionCommand: h.SSHCommand}
		}
		all = append(all, m)
	}
	hostname, _ := os.Hostname()
	own := machine{topology.Host{Name: cmp.Or(hostname, "agent"), Local: true}, host.Procfs, "", nil}
	for slices.ContainsFunc(all, func(m machine) bool { return m.Name == own.Name }) {
		own.Name += " (agent)"
	}
	return append(all, own)
}

// HostTargets returns the machines for a sampler. host.Open opens them.
func (c *Config) HostTargets() []engine.Target {
	var targets []engine.Target
	for _, m := range c.machines() {
		targets = append(targets, engine.Target{Name: m.Name, Engine: m.engine, Address: m.address, Options: m.options})
	}
	return targets
}
