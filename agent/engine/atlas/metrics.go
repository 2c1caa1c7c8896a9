package atlas

import (
	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/measure"
)

// The metrics of a proxy of any kind. Atlas has no counters of queries.
var (
	backendUp          = measure.NewGauge("proxy_backend_up", "1 if the proxy uses the backend, 0 if it is down or taken offline; absent while that is unknown to the proxy.", "backend", "backend_role")
	backendState       = measure.NewGauge("proxy_backend_state", "1 for the state of the backend as the proxy sees it, 0 for the others. A proxy without traffic may not notice that a backend died.", "backend", "backend_role", "state")
	clientConnections  = measure.NewGauge("proxy_client_connections", "Connections from clients to the proxy now.")
	backendConnections = measure.NewGauge("proxy_backend_connections", "Connections from the proxy to a backend now; they stay pooled when clients leave.", "backend")
	cpuSeconds         = measure.NewCounter("proxy_cpu_seconds_total", "CPU time of the proxy's process.", "mode")
	threadCPUSeconds   = measure.NewCounter("proxy_thread_cpu_seconds_total", "CPU time of each thread of the proxy in the order of their start: 0 is the main thread. A thread near one second a second is the limit.", "thread")
	residentBytes      = measure.NewGauge("proxy_resident_bytes", "Memory of the proxy's process.")
	threads            = measure.NewGauge("proxy_threads", "Threads of the proxy's process.")
	openFDs            = measure.NewGauge("proxy_open_fds", "Open files and sockets of the proxy's process.")
)

// The measures of a proxy.
var (
	_ = engine.ServerCPU.Or(measure.RateOf(cpuSeconds))
	_ = engine.ServerMemory.Or(measure.ValueOf(residentBytes))

	_ = engine.NewMeasure(500, "backend_connections", "Connections to backends", "of the proxy, those in its pool included", measure.Count, measure.Max,
		measure.ValueOf(backendConnections))
	_ = engine.NewMeasure(510, "backends_up", "Backends in use", "backends that the proxy uses", measure.Count, measure.Mean, measure.ValueOf(backendUp))
	_ = engine.NewMeasure(520, "open_files", "Open files", "files and sockets of the proxy's process", measure.Count, measure.Max, measure.ValueOf(openFDs))
)
