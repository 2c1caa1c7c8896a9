package rundir

import (
	"slices"
	"strings"
)

// Servers are the configured servers and proxies that take part in a run. Only they are recorded,
// shown and compared.
type Servers struct {
	Source ServersSource `json:"source"`
	// Problem is why the servers are unknown.
	Problem string `json:"problem,omitempty"`
	// Targets are sampled, in the order of the configuration.
	Targets []Server `json:"targets,omitempty"`
	// Proxies are between tool and servers and are not sampled.
	Proxies []Proxy `json:"proxies,omitempty"`
	// Machines of the run whose samples are recorded.
	Machines []Machine `json:"machines,omitempty"`
}

// Machine is a sampled machine that takes part in a run.
type Machine struct {
	// Host is its name in the record.
	Host string `json:"host"`
	// Nodename as `uname -n` prints it there; empty if unknown.
	Nodename string     `json:"nodename,omitempty"`
	Roles    []HostRole `json:"roles"`
	// Targets are the run's servers on it.
	Targets []string `json:"targets,omitempty"`
}

// Equal reports whether two machines are equal in all fields.
func (m Machine) Equal(o Machine) bool {
	return m.Host == o.Host && m.Nodename == o.Nodename && slices.Equal(m.Roles, o.Roles) && slices.Equal(m.Targets, o.Targets)
}

// ServersSource is how the servers of a run were determined.
type ServersSource string

const (
	ServersSelected ServersSource = "selected" // by --cluster or --targets, or the same keys of a log
	ServersMatched  ServersSource = "matched"  // by the address that the tool connects to
	ServersUnknown  ServersSource = "unknown"
	ServersNone     ServersSource = "none"   // the configuration has no targets
	ServersDumped   ServersSource = "dumped" // by dumps beside an imported log
)

// Server is a sampled target that takes part in a run.
type Server struct {
	Target  string `json:"target"`
	Cluster string `json:"cluster,omitempty"`
	Engine  string `json:"engine,omitempty"`
	// Proxy: it is between the tool and the cluster's servers, not one of them.
	Proxy bool `json:"proxy,omitempty"`
	// Connected: the tool connects to it.
	Connected bool `json:"connected,omitempty"`
	// Nodename is the name of its machine as `uname -n` prints it; empty if unknown.
	Nodename string `json:"nodename,omitempty"`
}

// Proxy is a declared proxy that is not sampled.
type Proxy struct {
	Address  string `json:"address"`
	Nodename string `json:"nodename,omitempty"`
}

// Selection is the user's choice of a run's servers: all targets of the clusters, plus the targets.
type Selection struct {
	Clusters []string `json:"clusters,omitempty"`
	Targets  []string `json:"targets,omitempty"`
}

// NewSelection returns nil if nothing is selected.
func NewSelection(clusters, targets []string) *Selection {
	if len(clusters) == 0 && len(targets) == 0 {
		return nil
	}
	return &Selection{Clusters: clusters, Targets: targets}
}

// Server returns the server of the target called name; nil if it does not take part in the run.
func (s *Servers) Server(name string) *Server {
	if s == nil {
		return nil
	}
	for i := range s.Targets {
		if s.Targets[i].Target == name {
			return &s.Targets[i]
		}
	}
	return nil
}

// Notice explains unknown servers to the user, and how to name them; empty if they are known or
// none are configured.
func (s *Servers) Notice() string {
	if s == nil || s.Source != ServersUnknown {
		return ""
	}
	return "its servers are not known, so none are shown: " + s.Problem +
		"; name them with --cluster or --targets, or add the address to targets or proxies in the configuration"
}

// HostRole is what a machine does in a run.
type HostRole string

const (
	GeneratorHost HostRole = "generator"
	ServerHost    HostRole = "server"
	ProxyHost     HostRole = "proxy"
)

// Host is a machine that takes part in a run. Nodename is as `uname -n` prints it.
type Host struct {
	Nodename string
	Role     HostRole
}

// Hosts returns the machines that are known to take part in the run, one entry per role: the
// generator first, then by role and name.
func (m *Meta) Hosts() []Host {
	var hosts []Host
	if m.Generator != "" {
		hosts = append(hosts, Host{m.Generator, GeneratorHost})
	}
	if m.Servers == nil {
		return hosts
	}
	first := len(hosts)
	add := func(nodename string, role HostRole) {
		if h := (Host{nodename, role}); nodename != "" && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	for _, s := range m.Servers.Targets {
		if s.Proxy {
			add(s.Nodename, ProxyHost)
		} else {
			add(s.Nodename, ServerHost)
		}
	}
	for _, p := range m.Servers.Proxies {
		add(p.Nodename, ProxyHost)
	}
	for _, machine := range m.Servers.Machines {
		for _, role := range machine.Roles {
			add(machine.Nodename, role)
		}
	}
	slices.SortFunc(hosts[first:], func(a, b Host) int {
		if c := strings.Compare(string(b.Role), string(a.Role)); c != 0 {
			return c
		}
		return strings.Compare(a.Nodename, b.Nodename)
	})
	return hosts
}
