// Package atlasproxy samples Atlas, the MySQL proxy of Qihoo 360 (a fork of mysql-proxy): the states of
// its backends from the admin interface, and load, memory and connections from the process if it
// runs on this machine.
//
// The admin interface has no counters and accepts only five SELECTs. The agent sends two: SELECT
// VERSION and SELECT * FROM backends. It never sends the one that returns the proxy's users with
// reversibly encrypted passwords.
package atlasproxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Engine is Atlas.
var Engine = &engine.Engine{Name: "atlas", ClientOption: optionProxyAddress, Open: open}

// The options of a target.
const (
	// optionProxyAddress is the address for clients (proxy-address).
	optionProxyAddress = "proxy_address"
	// optionPIDFile is the file with the proxy's process id. Without it the process is not sampled.
	optionPIDFile = "pid_file"
)

// open checks the target's settings.
func open(t engine.Target, _ *slog.Logger) (engine.Prober, error) {
	if _, _, err := net.SplitHostPort(t.Address); err != nil {
		return nil, fmt.Errorf("atlas: address %q is not host:port of the admin interface (admin-address)", t.Address)
	}
	if t.TLS != nil {
		return nil, errors.New("atlas: the admin interface does not speak TLS; remove tls from this target")
	}
	isAddress := func(value string) error { _, _, err := splitAddress(value); return err }
	if err := (engine.OptionChecks{optionProxyAddress: isAddress, optionPIDFile: nil}).Check(&t); err != nil {
		return nil, fmt.Errorf("atlas: %w", err)
	}
	return newProber(t)
}

// State of a backend, in the words of the admin interface. An idle proxy shows a dead backend as
// up, since it only notices when it opens a new connection.
const (
	stateUp      = "up"
	stateUnknown = "unknown"
)

var states = []string{stateUp, "down", "offline", stateUnknown}

// backend is a row of SELECT * FROM backends.
type backend struct {
	address string
	state   string
	role    string // rw, ro or unknown
}

// setBackends sets the states of the backends. It counts a backend that is listed twice once.
func setBackends(s *engine.Status, backends []backend) {
	for _, b := range backends {
		if _, set := s.Get(backendState, b.address, b.role, stateUp); set || b.address == "" {
			continue
		}
		known := false
		for _, state := range states {
			is := strings.EqualFold(b.state, state)
			known = known || is
			s.SetBool(backendState, is, b.address, b.role, state)
		}
		// An unknown backend is neither up nor down.
		if known && !strings.EqualFold(b.state, stateUnknown) {
			s.SetBool(backendUp, strings.EqualFold(b.state, stateUp), b.address, b.role)
		}
	}
}

// The metrics of any proxy. Atlas has no query counters.
var (
	backendUp          = measure.NewGauge("proxy_backend_up", "1 if the proxy uses the backend, 0 if it is down or taken offline; absent while that is unknown to the proxy.", "backend", "backend_role")
	backendState       = measure.NewGauge("proxy_backend_state", "1 for the state of the backend as the proxy sees it, 0 for the others. A proxy without traffic may not notice that a backend died.", "backend", "backend_role", "state")
	clientConnections  = measure.NewGauge("proxy_client_connections", "Connections from clients to the proxy now.")
	backendConnections = measure.NewGauge("proxy_backend_connections", "Connections from the proxy to a backend now; they stay pooled when clients leave.", "backend")
	cpuSeconds         = measure.NewCounter("proxy_cpu_seconds_total", "CPU time of the proxy's process.", "mode")
	threadCPUSeconds   = measure.NewCounter("proxy_thread_cpu_seconds_total", "CPU time of each thread of the proxy in the order of their start: 0 is the main thread. A thread near one second per second limits the proxy.", "thread")
	residentBytes      = measure.NewGauge("proxy_resident_bytes", "Memory of the proxy's process.")
	threads            = measure.NewGauge("proxy_threads", "Threads of the proxy's process.")
	openFDs            = measure.NewGauge("proxy_open_fds", "Open files and sockets of the proxy's process.")
)

// The measures of a proxy.
var (
	_ = engine.ServerCPU.Or(measure.RateOf(cpuSeconds))
	_ = engine.ServerMemory.Or(measure.ValueOf(residentBytes))

	_ = engine.NewMeasure(500, "backend_connections", "Connections to backends", "of the proxy, including those in its pool", measure.Count, measure.Max,
		measure.ValueOf(backendConnections))
	_ = engine.NewMeasure(510, "backends_up", "Backends in use", "backends that the proxy uses", measure.Count, measure.Mean, measure.ValueOf(backendUp))
	_ = engine.NewMeasure(520, "open_files", "Open files", "files and sockets of the proxy's process", measure.Count, measure.Max, measure.ValueOf(openFDs))
)
