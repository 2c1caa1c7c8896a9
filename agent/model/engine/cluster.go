package engine

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Membership is what a server reports about who it is and who else is in its cluster. Each engine fills
// in what its servers report; all of it may be empty. A primary lists its standbys, a standby its
// primary, a member the other members, and a proxy the servers behind it.
type Membership struct {
	// ServerID identifies the server in the world, whatever the address at which it is sampled.
	ServerID string
	// ClusterIDs identify the clusters that the server belongs to, in the world. Two servers that share
	// one of them, or one of which has the other's ServerID here (its source), belong together.
	ClusterIDs []string
	// Members are the servers that this server lists, perhaps with itself.
	Members []Member
}

// Member is a server that another server lists. The listing server may be wrong or hostile.
type Member struct {
	// Address is host:port as the listing server sees it, or only the host if the server does not list
	// the port. Empty: it lists no address.
	Address string
	// ID is the member's ServerID; empty: not listed.
	ID string
	// Engine is the member's kind; empty: that of the listing server.
	Engine string
	// State is the member's state in the words of the listing server; empty: not listed.
	State string
	// Self: the entry is the listing server's own.
	Self bool
	// Behind: the listing server is a proxy, and this server is behind it.
	Behind bool
}

// Listed returns the address at which a member that t lists can be reached from here; false if there is
// none, or if it makes no sense here: a loopback address is another machine's unless t is on this one.
// An address without a port has the port of t.
func (t *Target) Listed(m Member) (string, bool) {
	if m.Self || m.Address == "" || len(m.Address) > maxAddress {
		return "", false
	}
	host, port, err := net.SplitHostPort(m.Address)
	if err != nil {
		host = strings.Trim(m.Address, "[]")
		if _, port, err = net.SplitHostPort(t.Address); err != nil {
			return "", false
		}
	}
	if !isHost(host) || !isPort(port) {
		return "", false
	}
	if ip, err := netip.ParseAddr(host); err == nil && (ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast()) {
		return "", false
	}
	if IsLoopback(host) && !t.isLocal() {
		return "", false
	}
	return net.JoinHostPort(host, port), true
}

// maxAddress is the longest address that is believed: a name of 253 bytes and a port.
const maxAddress = 260

// isHost reports whether host can be a host's name or IP address.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	for _, r := range host {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r)) {
			return false
		}
	}
	return host != "" && host != "AUTO" && host[0] != '-'
}

func isPort(port string) bool {
	n := 0
	for _, r := range port {
		if r < '0' || r > '9' || n > 1<<16 {
			return false
		}
		n = 10*n + int(r-'0')
	}
	return n > 0 && n < 1<<16
}

// IsLoopback reports whether host is an address of the machine itself on every machine.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// isLocal reports whether the address of t is a socket or a loopback address.
func (t *Target) isLocal() bool {
	host, _, err := net.SplitHostPort(t.Address)
	return err != nil || IsLoopback(host)
}

// Clusters finds out which targets belong together from what they report. What a target reported
// stays valid while it does not answer. The zero value knows nothing.
type Clusters struct {
	known map[string]*reported // by target
}

// reported is what one target reported last.
type reported struct {
	address string
	Membership
}

// Observe takes the answers of a frame, and reports whether they changed anything.
func (c *Clusters) Observe(f *Frame) (changed bool) {
	for i := range f.Samples {
		s := &f.Samples[i]
		if !s.Up() {
			continue
		}
		m := &s.Status.Membership
		last := c.known[s.Target.Name]
		if last != nil && last.address == s.Target.Address && last.same(m) {
			continue
		}
		next := *m
		if last != nil && last.address == s.Target.Address && len(next.ClusterIDs) == 0 && len(next.Members) == 0 {
			continue // joining, or not asked at this tick
		}
		if c.known == nil {
			c.known = map[string]*reported{}
		}
		c.known[s.Target.Name] = &reported{s.Target.Address, next}
		changed = true
	}
	return changed
}

func (r *reported) same(m *Membership) bool {
	return r.ServerID == m.ServerID && slices.Equal(r.ClusterIDs, m.ClusterIDs) && slices.Equal(r.Members, m.Members)
}

// Forget drops targets that are not among these.
func (c *Clusters) Forget(targets []Target) {
	maps.DeleteFunc(c.known, func(name string, _ *reported) bool {
		return !slices.ContainsFunc(targets, func(t Target) bool { return t.Name == name })
	})
}

// Members returns the servers that a target lists, and its own id.
func (c *Clusters) Members(target string) (id string, members []Member) {
	if r := c.known[target]; r != nil {
		return r.ServerID, r.Members
	}
	return "", nil
}

// Behind returns the addresses of the servers that each proxy among the targets lists.
func (c *Clusters) Behind(targets []Target) map[string][]string {
	all := map[string][]string{}
	for i := range targets {
		r := c.known[targets[i].Name]
		if r == nil || r.address != targets[i].Address {
			continue
		}
		for _, m := range r.Members {
			if m.Behind {
				all[targets[i].Name] = append(all[targets[i].Name], m.Address)
			}
		}
	}
	return all
}

// Assign sets the clusters of the targets that have none configured and belong together with others:
// to the configured cluster of the others, otherwise to the name of the first of them. It returns what
// contradicts the configuration, one sentence each. A proxy belongs to no cluster.
func (c *Clusters) Assign(targets []Target) (contradictions []string) {
	groups := c.groups(targets)
	names := map[string][]string{} // configured clusters by group, in order
	first := map[string]string{}
	size := map[string]int{}
	for i := range targets {
		t := &targets[i]
		g := groups[t.Name]
		if g == "" {
			continue
		}
		if size[g]++; first[g] == "" {
			first[g] = t.Name
		}
		if t.Cluster != "" && !slices.Contains(names[g], t.Cluster) {
			names[g] = append(names[g], t.Cluster)
		}
	}
	for _, g := range slices.Sorted(maps.Keys(names)) {
		if len(names[g]) > 1 {
			contradictions = append(contradictions, contradiction(targets, groups, g, names[g]))
		}
	}
	for i := range targets {
		t := &targets[i]
		if g := groups[t.Name]; g != "" && t.Cluster == "" && size[g] > 1 {
			t.Cluster = first[g]
			if len(names[g]) > 0 {
				t.Cluster = names[g][0]
			}
		}
	}
	return contradictions
}

// contradiction names one target of each configured cluster whose members belong together.
func contradiction(targets []Target, groups map[string]string, group string, clusters []string) string {
	var each []string
	for _, cluster := range clusters {
		i := slices.IndexFunc(targets, func(t Target) bool { return groups[t.Name] == group && t.Cluster == cluster })
		each = append(each, fmt.Sprintf("%s (cluster: %s)", targets[i].Name, cluster))
	}
	return strings.Join(each, " and ") + " report that they belong to one cluster; the configuration counts"
}

// groups returns the group of each target: targets of one group belong together. Keys are shared ids
// and addresses.
func (c *Clusters) groups(targets []Target) map[string]string {
	parent := map[string]string{}
	var root func(key string) string
	root = func(key string) string {
		up, ok := parent[key]
		if !ok || up == key {
			return key
		}
		up = root(up)
		parent[key] = up
		return up
	}
	join := func(a, b string) {
		if a, b = root(a), root(b); a != b {
			parent[max(a, b)] = min(a, b)
		}
	}
	groups := map[string]string{}
	for i := range targets {
		t := &targets[i]
		r := c.known[t.Name]
		if t.Behind != "" {
			continue
		}
		self := "target " + t.Name
		if !strings.HasPrefix(t.Address, "/") {
			join(self, "address "+t.Address)
		}
		if r == nil || r.address != t.Address {
			continue
		}
		for _, id := range append(slices.Clone(r.ClusterIDs), r.ServerID) {
			if id != "" {
				join(self, "id "+id)
			}
		}
		for _, m := range r.Members {
			if m.Behind {
				continue
			}
			if m.ID != "" {
				join(self, "id "+m.ID)
			}
			if address, ok := t.Listed(m); ok && cmp.Or(m.Engine, t.Engine) == t.Engine {
				join(self, "address "+address)
			}
		}
	}
	for i := range targets {
		if t := &targets[i]; t.Behind == "" {
			groups[t.Name] = root("target " + t.Name)
		}
	}
	return groups
}
