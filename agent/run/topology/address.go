package topology

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// localhost replaces all usual names of this machine for itself.
const localhost = "localhost"

// endpoint is an address in canonical form. A socket has neither host nor port.
type endpoint struct {
	host, port string // port may be empty
	socket     string
}

// parse returns false for an empty address.
func parse(address string) (endpoint, bool) {
	address = strings.TrimSpace(address)
	if plain, err := url.PathUnescape(address); err == nil && strings.HasPrefix(plain, "/") { // escaped in a MongoDB URI
		if resolved, err := filepath.EvalSymlinks(plain); err == nil { // /var/run is /run
			plain = resolved
		}
		return endpoint{socket: filepath.Clean(plain)}, true
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), ""
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" && port == "" {
		return endpoint{}, false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	switch host {
	case "", "127.0.0.1", "::1":
		host = localhost
	}
	return endpoint{host: host, port: port}, true
}

// isLoopback reports whether the address means the machine on which it is used.
func (e endpoint) isLoopback() bool {
	ip, err := netip.ParseAddr(e.host)
	return e.socket != "" || e.host == localhost || err == nil && ip.IsLoopback()
}

// Machine contains the names of this machine and resolves others.
type Machine struct {
	Hostname  string
	Addresses []netip.Addr // addresses of its network interfaces, without loopback
	Lookup    func(ctx context.Context, host string) ([]netip.Addr, error)
}

// LocalMachine returns this machine.
func LocalMachine() Machine {
	m := Machine{Lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}}
	m.Hostname, _ = os.Hostname() // an unknown name matches no machine
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && !prefix.Addr().IsLoopback() {
			m.Addresses = append(m.Addresses, prefix.Addr().Unmap())
		}
	}
	return m
}

// lookupTime limits the resolution of all names of a run, since its first samples wait for it.
const lookupTime = 2 * time.Second

// resolver caches resolved names while one run is matched.
type resolver struct {
	machine Machine
	known   map[string][]netip.Addr
}

// resolve looks up the hosts that are not known yet, all concurrently.
func (r *resolver) resolve(ctx context.Context, hosts []string) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	if r.known == nil {
		r.known = map[string][]netip.Addr{}
	}
	var mu sync.Mutex
	var lookups sync.WaitGroup
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			r.set(&mu, host, []netip.Addr{ip})
			continue
		}
		mu.Lock()
		_, done := r.known[host]
		mu.Unlock()
		if done || host == localhost || host == "" {
			continue
		}
		r.set(&mu, host, nil)
		lookups.Go(func() {
			found, err := r.machine.Lookup(ctx, host)
			if err == nil {
				for i := range found {
					found[i] = found[i].Unmap()
				}
				r.set(&mu, host, found)
			}
		})
	}
	lookups.Wait()
}

func (r *resolver) set(mu *sync.Mutex, host string, addresses []netip.Addr) {
	mu.Lock()
	defer mu.Unlock()
	r.known[host] = addresses
}

// same reports whether two hosts share an address. Loopback addresses do not count, since each
// machine has its own.
func (r *resolver) same(a, b string) bool {
	return slices.ContainsFunc(r.known[a], func(ip netip.Addr) bool {
		return !ip.IsLoopback() && slices.Contains(r.known[b], ip)
	})
}

// isOwn reports whether a host is this machine. here: the host is used on this machine, so names of
// the loopback interface match. A literal loopback address other than 127.0.0.1 does not match,
// since tests start several servers on such addresses.
func (r *resolver) isOwn(host string, here bool) bool {
	if host == localhost || r.machine.Hostname != "" && strings.EqualFold(host, r.machine.Hostname) {
		return true
	}
	_, err := netip.ParseAddr(host)
	written := err == nil
	return slices.ContainsFunc(r.known[host], func(ip netip.Addr) bool {
		return slices.Contains(r.machine.Addresses, ip) || here && !written && ip.IsLoopback()
	})
}

// SameServer reports whether two addresses, as used on this machine, are the same server's.
func (m Machine) SameServer(ctx context.Context, a, b string) bool {
	x, ok1 := parse(a)
	y, ok2 := parse(b)
	if !ok1 || !ok2 || x.socket != y.socket || x.port != y.port {
		return false
	}
	if x.host == y.host {
		return true
	}
	names := resolver{machine: m}
	names.resolve(ctx, []string{x.host, y.host})
	return names.same(x.host, y.host) || names.isOwn(x.host, true) && names.isOwn(y.host, true)
}
