// Package proxy declares what every proxy in front of databases has: the metrics and measures of its backends, clients
// and process. An engine of a proxy reports its backends with [SetBackends], and its process on this machine with a
// [Process].
package proxy

import (
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Role is the role of every proxy.
const Role = "proxy"

// Backend is a server that a proxy forwards to, as the proxy reports it.
type Backend struct {
	// Address is host:port, which counts its connections, or the proxy's name for it. A backend without one is left out.
	Address string
	// State is one of the proxy's States.
	State string
	// Role is what the proxy uses it for, such as rw or ro; empty if it has no roles.
	Role string
}

// States are the states of backends in a proxy's own words, compared without regard to case.
type States struct {
	// The proxy uses a backend that is Up, and does not use one that is Down. It knows neither of an Unknown one.
	Up, Down, Unknown []string
}

// All returns all states.
func (s States) All() []string { return slices.Concat(s.Up, s.Down, s.Unknown) }

// MaxBackends is the largest number of backends with series of their own.
const MaxBackends = 64

// SetBackends sets the states of the first MaxBackends backends, and counts all of them. A state that is not in states
// is none of them, and leaves it unknown whether the backend is up. A backend that is listed twice counts once. It
// returns the backends that have series.
func SetBackends(s *engine.Status, states States, backends []Backend) (shown []Backend) {
	all, listed := states.All(), map[[2]string]bool{}
	for _, b := range backends {
		key := [2]string{b.Address, b.Role}
		if listed[key] || b.Address == "" {
			continue
		}
		if listed[key] = true; len(shown) == MaxBackends {
			continue
		}
		shown = append(shown, b)
		is := func(state string) bool { return strings.EqualFold(b.State, state) }
		for _, state := range all {
			s.SetBool(BackendState, is(state), b.Address, b.Role, state)
		}
		if up := slices.ContainsFunc(states.Up, is); up || slices.ContainsFunc(states.Down, is) {
			s.SetBool(BackendUp, up, b.Address, b.Role)
		}
	}
	s.Set(Backends, float64(len(listed)))
	return shown
}

// Members returns the servers behind a proxy as members of its cluster, each address once.
func Members(backends []Backend, engineName string) (members []engine.Member) {
	for _, b := range backends[:min(len(backends), MaxBackends)] {
		m := engine.Member{Address: b.Address, Engine: engineName, State: b.State, Behind: true}
		if _, port, err := SplitAddress(b.Address); err != nil || port == 0 {
			continue
		}
		if !slices.ContainsFunc(members, func(o engine.Member) bool { return o.Address == m.Address }) {
			members = append(members, m)
		}
	}
	return members
}

// The options that targets of all proxies have.
const (
	// OptionAddress is the address for clients, host:port.
	OptionAddress = "proxy_address"
	// OptionPIDFile is a file with the proxy's process id.
	OptionPIDFile = "pid_file"
)

// CheckAddress checks the value of OptionAddress.
func CheckAddress(value string) error {
	_, _, err := SplitAddress(value)
	return err
}
