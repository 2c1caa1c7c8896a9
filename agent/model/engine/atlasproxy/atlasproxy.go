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

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// Engine is Atlas.
var Engine = &engine.Engine{Name: "atlas", Proxy: true, ClientOption: proxy.OptionAddress, Open: open}

// open checks the target's settings.
func open(t engine.Target, _ *slog.Logger) (engine.Prober, error) {
	if _, _, err := net.SplitHostPort(t.Address); err != nil {
		return nil, fmt.Errorf("atlas: address %q is not host:port of the admin interface (admin-address)", t.Address)
	}
	if t.TLS != nil {
		return nil, errors.New("atlas: the admin interface does not speak TLS; remove tls from this target")
	}
	if err := (engine.OptionChecks{proxy.OptionAddress: proxy.CheckAddress, proxy.OptionPIDFile: nil}).Check(&t); err != nil {
		return nil, fmt.Errorf("atlas: %w", err)
	}
	return newProber(t)
}

// states of a backend, in the words of the admin interface. An idle proxy shows a dead backend as up, since it only
// notices when it opens a new connection.
var states = proxy.States{Up: []string{"up"}, Down: []string{"down", "offline"}, Unknown: []string{"unknown"}}
