// Package proxy declares what every proxy in front of databases has: the metrics and measures of its backends, clients
// and process. An engine of a proxy reports its backends with [SetBackends], and its process on this machine with a
// [Process].
package proxy

import (
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Role is the role of every proxy.
const Role = "proxy"

// The metrics of any proxy. An engine does not set those that its proxy does not report.
var (
	BackendUp = measure.NewGauge("proxy_backend_up",
		"1 if the proxy uses the backend, 0 if it is down or taken offline; absent while that is unknown to the proxy.",
		"backend", "backend_role")
	BackendState = measure.NewGauge("proxy_backend_state",
		"1 for the state of the backend as the proxy sees it, 0 for the others. "+
			"A proxy without traffic may not notice that a backend died.",
		"backend", "backend_role", "state")
	ClientConnections  = measure.NewGauge("proxy_client_connections", "Connections from clients to the proxy now.")
	BackendConnections = measure.NewGauge("proxy_backend_connections",
		"Connections from the proxy to a backend now; they stay pooled when clients leave.", "backend")
	CPUSeconds       = measure.NewCounter("proxy_cpu_seconds_total", "CPU time of the proxy's process.", "mode")
	ThreadCPUSeconds = measure.NewCounter("proxy_thread_cpu_seconds_total",
		"CPU time of each thread of the proxy in the order of their start: 0 is the main thread. "+
			"A thread near one second per second limits the proxy.", "thread")
	ResidentBytes = measure.NewGauge("proxy_resident_bytes", "Memory of the proxy's process.")
	Threads       = measure.NewGauge("proxy_threads", "Threads of the proxy's process.")
	OpenFDs       = measure.NewGauge("proxy_open_fds", "Open files and sockets of the proxy's process.")
)

// The measures of a proxy.
var (
	_ = engine.ServerCPU.Or(measure.RateOf(CPUSeconds))
	_ = engine.ServerMemory.Or(measure.ValueOf(ResidentBytes))

	_ = engine.NewMeasure(500, "backend_connections", "Connections to backends", "of the proxy, including those in its pool",
		measure.Count, measure.Max, measure.ValueOf(BackendConnections))
	_ = engine.NewMeasure(510, "backends_up", "Backends in use", "backends that the proxy uses",
		measure.Count, measure.Mean, measure.ValueOf(BackendUp))
	_ = engine.NewMeasure(520, "open_files", "Open files", "files and sockets of the proxy's process",
		measure.Count, measure.Max, measure.ValueOf(OpenFDs))
)

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

// SetBackends sets the states of backends. A state that is not in states is none of them, and leaves it unknown whether
// the backend is up. A backend that is listed twice counts once.
func SetBackends(s *engine.Status, states States, backends []Backend) {
	all, listed := states.All(), map[[2]string]bool{}
	for _, b := range backends {
		key := [2]string{b.Address, b.Role}
		if listed[key] || b.Address == "" {
			continue
		}
		listed[key] = true
		is := func(state string) bool { return strings.EqualFold(b.State, state) }
		for _, state := range all {
			s.SetBool(BackendState, is(state), b.Address, b.Role, state)
		}
		if up := slices.ContainsFunc(states.Up, is); up || slices.ContainsFunc(states.Down, is) {
			s.SetBool(BackendUp, up, b.Address, b.Role)
		}
	}
}
