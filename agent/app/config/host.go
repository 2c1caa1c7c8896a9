package config

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/host"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// Host is a machine to sample that does not belong to a target.
type Host struct {
	Name         string
	NodeExporter string
	Cluster      string
	Role         string
}

func (h *Host) keys() []key {
	return []key{
		{
			name: "name", to: text(&h.Name), doc: "Short unique name. Required",
			check: func() error { return required(h.Name, "a short name") },
		},
		{
			name: "node_exporter", to: text(&h.NodeExporter), doc: "URL of its node_exporter, such as `http://lb1:9100/metrics`. Required",
			check: func() error {
				if err := required(h.NodeExporter, "the http:// or https:// address of a node_exporter"); err != nil {
					return err
				}
				return CheckURL(h.NodeExporter)
			},
		},
		{
			name: "cluster", to: text(&h.Cluster), doc: "The cluster whose runs it takes part in",
			initialDoc: "runs whose generator, server or proxy has the machine's name as `uname -n` prints it",
		},
		{
			name: "role", to: text(&h.Role), initial: "server", doc: "What it does for `cluster`: `server`, `proxy` or `generator`",
			check: func() error {
				roles := []string{string(rundir.ServerHost), string(rundir.ProxyHost), string(rundir.GeneratorHost)}
				if !slices.Contains(roles, h.Role) {
					return fmt.Errorf("unknown role %q: expected one of %s", h.Role, strings.Join(roles, ", "))
				}
				return nil
			},
		},
	}
}

// checkHosts checks the whole list, since it needs the targets.
func (c *Config) checkHosts() error {
	for i, h := range c.Hosts {
		used := slices.ContainsFunc(c.Hosts[:i], func(o Host) bool { return o.Name == h.Name }) ||
			slices.ContainsFunc(c.Targets, func(t Target) bool { return t.Name == h.Name && t.NodeExporter != "" })
		if used {
			return &elementError{fmt.Sprintf("[%d].name", i), fmt.Errorf("%q is used twice", h.Name)}
		}
		if h.Cluster != "" && !c.hasCluster(h.Cluster) {
			return &elementError{fmt.Sprintf("[%d].cluster", i), noCluster(h.Cluster)}
		}
	}
	return nil
}

// machine is a machine and how to sample it.
type machine struct {
	topology.Host
	engine, url string
}

// machines returns the machines to sample: first the machines of the targets, one for all targets
// with the same node_exporter, then the other machines, then the agent's own.
func (c *Config) machines() []machine {
	var all []machine
	for _, t := range c.Targets {
		if t.NodeExporter == "" {
			continue
		}
		if i := slices.IndexFunc(all, func(m machine) bool { return m.url == t.NodeExporter }); i >= 0 {
			all[i].Targets = append(all[i].Targets, t.Name)
			all[i].Name += "+" + t.Name
			continue
		}
		all = append(all, machine{topology.Host{Name: t.Name, Targets: []string{t.Name}}, host.NodeExporter, t.NodeExporter})
	}
	for _, h := range c.Hosts {
		all = append(all, machine{topology.Host{Name: h.Name, Cluster: h.Cluster, Role: rundir.HostRole(h.Role)}, host.NodeExporter, h.NodeExporter})
	}
	hostname, _ := os.Hostname()
	own := machine{topology.Host{Name: cmp.Or(hostname, "agent"), Local: true}, host.Procfs, ""}
	for slices.ContainsFunc(all, func(m machine) bool { return m.Name == own.Name }) {
		own.Name += " (agent)"
	}
	return append(all, own)
}

// HostTargets returns the machines for a sampler. host.Open opens them.
func (c *Config) HostTargets() []engine.Target {
	var targets []engine.Target
	for _, m := range c.machines() {
		targets = append(targets, engine.Target{Name: m.Name, Engine: m.engine, Address: m.url})
	}
	return targets
}
