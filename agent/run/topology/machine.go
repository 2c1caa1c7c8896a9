package topology

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Machine returns the role in a run of a sampled machine that reports nodename; false if it has
// none. A machine takes part if its configuration names the run's servers, or if nodename is the
// name of the run's generator, of a server or of a proxy.
func (t *Topology) Machine(m *rundir.Meta, name, nodename string) (rundir.Machine, bool) {
	i := slices.IndexFunc(t.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return rundir.Machine{}, false
	}
	h, found := &t.Hosts[i], rundir.Machine{Host: name, Nodename: nodename}
	add := func(role rundir.HostRole) {
		if !slices.Contains(found.Roles, role) {
			found.Roles = append(found.Roles, role)
		}
	}
	if h.Local && !m.IsElsewhere() || nodename != "" && nodename == m.Generator {
		add(rundir.GeneratorHost)
	}
	if m.Servers != nil {
		for _, s := range m.Servers.Targets {
			if !slices.Contains(h.Targets, s.Target) && (nodename == "" || s.Nodename != nodename) {
				continue
			}
			if found.Targets = append(found.Targets, s.Target); s.Proxy {
				add(rundir.ProxyHost)
			} else {
				add(rundir.ServerHost)
			}
		}
		for _, p := range m.Servers.Proxies {
			if nodename != "" && p.Nodename == nodename {
				add(rundir.ProxyHost)
			}
		}
		if h.Cluster != "" && slices.ContainsFunc(m.Servers.Targets, func(s rundir.Server) bool { return s.Cluster == h.Cluster }) {
			add(h.Role)
		}
	}
	return found, len(found.Roles) > 0
}
