// Package topology decides which of the configured servers take part in a run: by the user's own
// selection, or by the address to which the benchmark tool connects.
package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Proxy is an address through which clients reach a cluster: a proxy, a load balancer, a virtual
// address. It is not sampled.
type Proxy struct {
	// Address is host:port, host for all ports, or the path of a Unix socket.
	Address  string
	Behind   string // the cluster
	Nodename string // of its machine; empty: unknown
}

// Host is a machine that is sampled.
type Host struct {
	Name string // unique
	// Local: the agent's own machine.
	Local bool
	// Targets are the servers on it. Otherwise it works for Cluster in the given Role.
	Targets []string
	Cluster string
	Role    rundir.HostRole
}

// Topology contains the configured servers and proxies. It never changes; a reload creates another
// one.
type Topology struct {
	Targets []engine.Target
	Proxies []Proxy
	// Hosts are the sampled machines.
	Hosts []Host
	// Listed maps a proxy to the addresses of the servers that it lists.
	Listed map[string][]string
	// Lent maps the targets that are sampled with the login of some runs' tools to the ids of these
	// runs. They take part in no other run.
	Lent map[string][]string
	// Engine returns the engine called name; nil if there is none.
	Engine func(name string) *engine.Engine
}

// defaultPort returns the port used for an address without one.
func (t *Topology) defaultPort(name string) string {
	if e := t.Engine(name); e != nil {
		return e.DefaultPort
	}
	return ""
}

// clientAddress returns the address at which a tool connects to a target.
func (t *Topology) clientAddress(o *engine.Target) string {
	if e := t.Engine(o.Engine); e != nil && o.Options[e.ClientOption] != "" {
		return o.Options[e.ClientOption]
	}
	return o.Address
}

// CheckSelection returns an error if s names a cluster or a target that is not configured.
func (t *Topology) CheckSelection(s *rundir.Selection) error {
	for _, cluster := range s.Clusters {
		if !slices.ContainsFunc(t.Targets, func(o engine.Target) bool { return o.Cluster == cluster }) {
			return fmt.Errorf("no target in the configuration has the cluster %q", cluster)
		}
	}
	for _, name := range s.Targets {
		if !slices.ContainsFunc(t.Targets, func(o engine.Target) bool { return o.Name == name }) {
			return fmt.Errorf("the configuration has no target %q", name)
		}
	}
	return nil
}

// of returns the topology for one run, without the targets that are lent to other runs.
func (t *Topology) of(run string) *Topology {
	if len(t.Lent) == 0 {
		return t
	}
	own := *t
	own.Lent = maps.Clone(t.Lent)
	maps.DeleteFunc(own.Lent, func(_ string, runs []string) bool { return !slices.Contains(runs, run) })
	own.Targets = slices.DeleteFunc(slices.Clone(t.Targets),
		func(o engine.Target) bool { return t.Lent[o.Name] != nil && own.Lent[o.Name] == nil })
	return &own
}

// Servers returns the servers that take part in a run: all targets of the clusters to which the
// tool connects. A target without a cluster counts alone. It resolves names only if no address
// matches as written.
func (t *Topology) Servers(ctx context.Context, m *rundir.Meta, here Machine) rundir.Servers {
	selected := m.Selection != nil
	t = t.of(m.ID)
	if len(t.Targets) == 0 && len(t.Proxies) == 0 && !selected {
		return rundir.Servers{Source: rundir.ServersNone}
	}
	found := t.match(ctx, m, here)
	for i := range t.Targets {
		if o := &t.Targets[i]; t.Lent[o.Name] != nil {
			found.targets[o.Name], found.connected[o.Name] = true, !o.Hearsay
			if o.Cluster != "" {
				found.clusters[o.Cluster] = true
			}
		}
	}
	result := rundir.Servers{Source: rundir.ServersMatched}
	if selected {
		if err := t.CheckSelection(m.Selection); err != nil {
			return rundir.Servers{Source: rundir.ServersUnknown, Problem: err.Error()}
		}
		result.Source = rundir.ServersSelected
		found.restrict(t, m.Selection)
	}
	for i := range t.Targets {
		if o := &t.Targets[i]; found.includes(o) {
			result.Targets = append(result.Targets, rundir.Server{
				Target: o.Name, Cluster: o.Cluster, Engine: o.Engine, Nodename: o.Nodename,
				Proxy: t.isProxy(o), Connected: found.connected[o.Name],
			})
		}
	}
	for _, p := range found.proxies {
		result.Proxies = append(result.Proxies, rundir.Proxy{Address: p.Address, Nodename: p.Nodename})
	}
	if len(found.several) > 0 {
		result.Problem = fmt.Sprintf("%s lists servers of several clusters; set behind in its target", strings.Join(found.several, ", "))
	}
	if len(result.Targets) == 0 {
		return rundir.Servers{Source: rundir.ServersUnknown, Problem: found.problem(m)}
	}
	return result
}

// selection is what takes part in a run.
type selection struct {
	clusters, targets map[string]bool
	// connected are the targets at the addresses to which the tool connects.
	connected map[string]bool
	proxies   []Proxy
	// several are proxies that list servers of several clusters.
	several []string
	// ambiguous: the tool connects to its own machine, which may not be the agent's.
	ambiguous bool
}

func (s *selection) includes(t *engine.Target) bool {
	return s.targets[t.Name] || t.Behind == "" && t.Cluster != "" && s.clusters[t.Cluster]
}

// restrict replaces the matched targets by the user's choice. It keeps proxies in front of the
// chosen clusters.
func (s *selection) restrict(t *Topology, chosen *rundir.Selection) {
	targets, clusters, behind := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, name := range chosen.Targets {
		targets[name] = true
	}
	for _, name := range chosen.Clusters {
		clusters[name], behind[name] = true, true
	}
	for _, o := range t.Targets {
		if targets[o.Name] {
			behind[o.Cluster] = true
		}
	}
	for _, o := range t.Targets {
		if t.isProxy(&o) && s.targets[o.Name] && (o.Behind == "" || behind[o.Behind]) {
			targets[o.Name] = true
		}
	}
	s.targets, s.clusters = targets, clusters
	s.proxies = slices.DeleteFunc(s.proxies, func(p Proxy) bool { return !behind[p.Behind] })
}

// problem says why nothing takes part.
func (s *selection) problem(m *rundir.Meta) string {
	switch {
	case m.Target == "":
		return "the tool's command does not show where it connects to"
	case s.ambiguous:
		return fmt.Sprintf("%s is an address within a container or on another machine", table.Clip(m.Target, 200))
	default:
		return fmt.Sprintf("%s is the address of none of the configured targets and proxies", table.Clip(m.Target, 200))
	}
}

// match returns the targets and proxies at the addresses to which the tool connects.
func (t *Topology) match(ctx context.Context, m *rundir.Meta, here Machine) selection {
	s := selection{clusters: map[string]bool{}, targets: map[string]bool{}, connected: map[string]bool{}}
	// The agent's names for its own machine are valid for the tool's only if both are the same
	// machine.
	local := m.Place == tool.PlaceHere && (m.Generator == "" || here.Hostname == "" || m.Generator == here.Hostname)
	places := t.places()
	names := resolver{machine: here}
	for address := range strings.SplitSeq(m.Target, ",") {
		e, ok := parse(address)
		if !ok {
			continue
		}
		if !local && e.isLoopback() {
			s.ambiguous = true
			continue
		}
		for _, p := range reached(ctx, e, places, &names, local) {
			s.add(p)
		}
	}
	t.addListed(ctx, &s, places, &names)
	return s
}

// isProxy reports whether a target is in front of servers.
func (t *Topology) isProxy(o *engine.Target) bool {
	e := t.Engine(o.Engine)
	return o.Behind != "" || e != nil && e.Proxy
}

// mostProxies bounds the proxies one behind the other.
const mostProxies = 8

// addListed adds the servers that the proxies of a run list, unless the configuration says what is behind them. Other
// proxies may be among these. If a proxy lists servers of several clusters, it is not known which of them the run uses:
// none is added.
func (t *Topology) addListed(ctx context.Context, s *selection, places []place, names *resolver) {
	done := map[string]bool{}
	for range mostProxies {
		var found []place
		for i := range t.Targets {
			o := &t.Targets[i]
			if !s.targets[o.Name] || o.Behind != "" || done[o.Name] || len(t.Listed[o.Name]) == 0 {
				continue
			}
			done[o.Name] = true
			behind := t.behind(ctx, o, places, names)
			if severalClusters(behind) {
				s.several = append(s.several, o.Name)
				continue
			}
			found = append(found, behind...)
		}
		if len(found) == 0 {
			return
		}
		for _, p := range found {
			connected := s.connected[p.target.Name]
			s.add(p)
			s.connected[p.target.Name] = connected
		}
	}
}

// behind returns the targets at the addresses that a proxy lists. An address of the machine itself is one of the proxy's
// machine: it is this one only if the agent reaches the proxy at such an address.
func (t *Topology) behind(ctx context.Context, proxy *engine.Target, places []place, names *resolver) (all []place) {
	for _, address := range t.Listed[proxy.Name] {
		at, ok := proxy.Listed(engine.Member{Address: address})
		if !ok {
			continue
		}
		e, ok := parse(at)
		if !ok {
			continue
		}
		for _, p := range reached(ctx, e, places, names, true) {
			if p.target != nil && p.target.Name != proxy.Name {
				all = append(all, p)
			}
		}
	}
	return all
}

func severalClusters(behind []place) bool {
	clusters := map[string]bool{}
	for _, p := range behind {
		if p.target.Cluster != "" {
			clusters[p.target.Cluster] = true
		}
	}
	return len(clusters) > 1
}

// place is the address of a target or a proxy.
type place struct {
	endpoint
	target *engine.Target // nil: proxy
	proxy  *Proxy
	ports  []string // ports meant by an address without a port
}

func (t *Topology) places() []place {
	var all []place
	for i := range t.Targets {
		o := &t.Targets[i]
		if e, ok := parse(t.clientAddress(o)); ok {
			p := place{endpoint: e, target: o, ports: []string{t.defaultPort(o.Engine)}}
			if p.port == "" {
				p.port = p.ports[0]
			}
			all = append(all, p)
		}
	}
	for i := range t.Proxies {
		o := &t.Proxies[i]
		e, ok := parse(o.Address)
		if !ok {
			continue
		}
		p := place{endpoint: e, proxy: o}
		for _, behind := range t.Targets {
			if behind.Cluster == o.Behind {
				p.ports = append(p.ports, t.defaultPort(behind.Engine))
			}
		}
		all = append(all, p)
	}
	return all
}

func (s *selection) add(p place) {
	if p.target != nil {
		s.connected[p.target.Name] = true
	}
	switch {
	case p.proxy != nil:
		s.clusters[p.proxy.Behind] = true
		if !slices.Contains(s.proxies, *p.proxy) {
			s.proxies = append(s.proxies, *p.proxy)
		}
	case p.target.Behind != "":
		s.clusters[p.target.Behind], s.targets[p.target.Name] = true, true
	case p.target.Cluster != "":
		s.clusters[p.target.Cluster] = true
	default:
		s.targets[p.target.Name] = true
	}
}

// reached returns the places at an address: places with the same address as written; otherwise
// places whose names resolve to the same address; otherwise places on this machine if the address
// is its own. here: the tool runs on this machine.
func reached(ctx context.Context, e endpoint, places []place, names *resolver, here bool) []place {
	candidates := slices.DeleteFunc(slices.Clone(places), func(p place) bool { return !p.listens(e) })
	only := func(same func(p place) bool) []place {
		return slices.DeleteFunc(slices.Clone(candidates), func(p place) bool { return !same(p) })
	}
	if exact := only(func(p place) bool { return p.host == e.host && p.socket == e.socket }); len(exact) > 0 || e.socket != "" {
		return exact
	}
	hosts := []string{e.host}
	for _, p := range candidates {
		hosts = append(hosts, p.host)
	}
	names.resolve(ctx, hosts)
	if resolved := only(func(p place) bool { return names.same(p.host, e.host) }); len(resolved) > 0 {
		return resolved
	}
	return only(func(p place) bool { return names.isOwn(p.host, true) && names.isOwn(e.host, here) })
}

// listens reports whether the place has the port of e, on any host.
func (p *place) listens(e endpoint) bool {
	switch {
	case e.socket != "" || p.socket != "":
		return e.socket == p.socket
	case e.port == "":
		return p.port == "" || slices.Contains(p.ports, p.port)
	default:
		return p.port == "" && p.proxy != nil || p.port == e.port
	}
}

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
