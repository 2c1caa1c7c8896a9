// Package haproxy samples HAProxy 2.4 and later: its queues, sessions, servers and limits from the runtime socket, from
// the page with statistics, or from the endpoint for Prometheus, and its process if it runs on this machine.
//
// The runtime socket has the most: only it has the process id, and the addresses of the servers with level operator.
// The agent sends two commands there, show info and show stat, on one connection for each tick. It never opens a
// connection to a port for clients.
package haproxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// Engine is HAProxy.
var Engine = &engine.Engine{Name: "haproxy", Proxy: true, ClientOption: proxy.OptionAddress, Open: open}

// The options of a target. Without a path, the address is a runtime socket.
const (
	optionStatsPath   = "stats_path"   // of the page with statistics, such as /stats
	optionMetricsPath = "metrics_path" // of the endpoint for Prometheus, such as /metrics
	optionBackends    = "backends"     // the sections to sample, separated by commas; default: all
)

// open checks the target's settings.
func open(t engine.Target, _ *slog.Logger) (engine.Prober, error) {
	_, _, err := net.SplitHostPort(t.Address)
	if err != nil && !strings.HasPrefix(t.Address, "/") {
		return nil, fmt.Errorf("haproxy: address %q is neither the path of the runtime socket nor host:port", t.Address)
	}
	isPath := func(value string) error {
		if !strings.HasPrefix(value, "/") || strings.ContainsAny(value, " ?#;") {
			return fmt.Errorf("expected a path such as /stats, found %q", value)
		}
		return nil
	}
	if err := (engine.OptionChecks{
		proxy.OptionAddress: proxy.CheckAddress, proxy.OptionPIDFile: nil,
		optionStatsPath: isPath, optionMetricsPath: isPath, optionBackends: nil,
	}).Check(&t); err != nil {
		return nil, fmt.Errorf("haproxy: %w", err)
	}
	page, metrics := t.Options[optionStatsPath], t.Options[optionMetricsPath]
	switch {
	case page != "" && metrics != "":
		return nil, errors.New("haproxy: set one of stats_path and metrics_path, not both")
	case page == "" && metrics == "" && t.TLS != nil:
		return nil, errors.New("haproxy: the runtime socket does not speak TLS; remove tls from this target")
	case page == "" && metrics == "" && t.User != "":
		return nil, errors.New("haproxy: the runtime socket has no login; remove user, or set stats_path")
	}
	return newProber(t), nil
}
