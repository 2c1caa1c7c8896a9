// Package mysqlrouter samples MySQL Router 8.4 to 9.7 through its REST interface: routes, connections, destinations, the
// pool of connections, and its process if it runs on this machine.
//
// Router has no queue: a client beyond the limit of a route is refused. It reports no state of a single destination,
// only whether a route has one that answers. It counts bytes for open connections only, so the counters of bytes begin
// when the agent first samples it and miss connections that were open for less than an interval.
package mysqlrouter

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// Engine is MySQL Router, sampled at the port of its section [http_server].
var Engine = &engine.Engine{Name: "mysqlrouter", DefaultPort: "8443", Proxy: true, ClientOption: proxy.OptionAddress, Open: open}

var _ = cause.Declare(cause.Explanation{
	Engine: Engine.Name, Programs: []string{processName},
	Messages: map[cause.Limit][]string{cause.Connections: {"Too many connections to MySQL Router"}},
	Settings: map[cause.Limit]string{cause.Connections: "max_total_connections"},
	Advice: map[cause.Limit]string{
		cause.ProxyThread: "raise threads of [io], or repeat without the proxy: if the throughput rises, this was the cause",
	},
})

// open checks the target's settings.
func open(t engine.Target, _ *slog.Logger) (engine.Prober, error) {
	if _, _, err := net.SplitHostPort(t.Address); err != nil {
		return nil, fmt.Errorf("mysqlrouter: address %q is not host:port of the REST interface ([http_server])", t.Address)
	}
	if err := (engine.OptionChecks{proxy.OptionAddress: proxy.CheckAddress, proxy.OptionPIDFile: nil}).Check(&t); err != nil {
		return nil, fmt.Errorf("mysqlrouter: %w", err)
	}
	return newProber(t), nil
}
