// Package pgbouncer samples PgBouncer 1.18 and later through its admin console: pools, queues, statistics and limits,
// and its process if it runs on this machine.
//
// The agent sends SHOW commands on one connection to the console, which takes no connection of a pool.
package pgbouncer

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// Engine is PgBouncer. Its console has the address of its clients.
var Engine = &engine.Engine{Name: "pgbouncer", DefaultPort: "6432", Proxy: true, ClientOption: proxy.OptionAddress, Open: open}

// open checks the target's settings.
func open(t engine.Target, _ *slog.Logger) (engine.Prober, error) {
	if _, _, err := net.SplitHostPort(t.Address); err != nil && !strings.HasPrefix(t.Address, "/") {
		return nil, fmt.Errorf("pgbouncer: address %q is neither host:port nor the path of a socket", t.Address)
	}
	if t.User == "" {
		return nil, errors.New("pgbouncer: no user; set it to one of stats_users or admin_users")
	}
	if err := (engine.OptionChecks{proxy.OptionAddress: proxy.CheckAddress, proxy.OptionPIDFile: nil}).Check(&t); err != nil {
		return nil, fmt.Errorf("pgbouncer: %w", err)
	}
	return newProber(t)
}
