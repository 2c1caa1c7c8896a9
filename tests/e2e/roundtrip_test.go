//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
)

// The round trip to a target behind a proxy includes the way to the server, which the agent's
// statement reaches at each tick.
func TestRoundTripThroughProxy(t *testing.T) {
	address := agents.FreeAddress(t)
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	write(t, config, fmt.Sprintf("defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\nlisten galera\n  bind %s\n  server n1 %s\n",
		address, env.Cluster.Address(1)))
	agents.Start(t, "haproxy", "-f", config)
	before := status(t, 1, "Com_do")
	a := startAgent(t, env.Targets()+fmt.Sprintf("  - {name: lb, engine: mysql, behind: e2e, address: '%s', user: monitor, password_file: %s/monitor.password}\n", address, env.Cluster.Dir))
	agents.Wait(t, 30*time.Second, "round trips", func() error {
		e := a.Scrape(t)
		for _, target := range []string{"n1", "lb"} {
			if v, err := e.Value("benchwatch_db_round_trip_seconds", "target", target); err != nil || !(v > 0) {
				return fmt.Errorf("%s: %g, %w", target, v, err)
			}
		}
		if n := status(t, 1, "Com_do") - before; n < 3 {
			return fmt.Errorf("the server executed %g statements of the proxy's target", n)
		}
		return nil
	})
}
