//go:build limits

package limits

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/internal/servers"
)

const (
	// manyConnections is how many sessions a server has while its looks are measured, blocked how many of them wait.
	manyConnections, blocked = 2000, 100
	// looks is how many are measured, mostLook what one may cost of the server's CPU time.
	looks    = 10
	mostLook = 50 * time.Millisecond
)

// TestCaptureCost measures what a look costs a server with 2,000 sessions, 100 of which wait for a row lock.
func TestCaptureCost(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL9} {
		t.Run(string(kind), func(t *testing.T) {
			g, err := servers.Start(t.Context(), filepath.Join(env.dir, "capture-"+string(kind)), kind,
				servers.Options{Servers: 1, Attached: true, Settings: []string{"max_connections=2300", "open_files_limit=10000", "innodb_lock_wait_timeout=120"}})
			must(t, err)
			t.Cleanup(func() { must(t, g.Stop(context.Background())) })
			db, err := g.Admin(1)
			must(t, err)
			t.Cleanup(func() { _ = db.Close() })
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			_, err = g.Query(ctx, 1, "CREATE TABLE sbtest.locked (id INT PRIMARY KEY, n INT); INSERT INTO sbtest.locked VALUES (1, 1)")
			must(t, err)
			for n := range manyConnections {
				con, err := db.Conn(ctx)
				must(t, err)
				switch {
				case n == 0:
					_, err = con.ExecContext(ctx, "BEGIN")
					must(t, err)
					_, err = con.ExecContext(ctx, "UPDATE sbtest.locked SET n = 2")
					must(t, err)
				case n <= blocked:
					go func() { _, _ = con.ExecContext(ctx, "UPDATE sbtest.locked SET n = 3") }()
				}
			}
			secret, err := g.Password("monitor")
			must(t, err)
			log := slog.New(slog.DiscardHandler)
			w := engine.NewWitnesses(func(target engine.Target) (engine.Prober, error) { return registry.ByName("mysql").Open(target, log) }, log)
			t.Cleanup(w.Close)
			w.Arm("r", []engine.Target{{Name: "n1", Engine: "mysql", Address: g.Address(1), User: "monitor", Password: engine.Secret(secret)}})
			_ = w.Testify(ctx, "r") // the first one identifies the server
			before, seconds, slowest := cpuOf(t, g.PID(1)), 0.0, 0.0
			for range looks {
				<-time.After(500 * time.Millisecond)
				a := w.Testify(ctx, "r")[0]
				if a.Error != "" || a.Waiting["row lock"] < blocked {
					t.Errorf("%q, waiting %v, missing %v", a.Error, a.Waiting, a.Missing)
				}
				seconds, slowest = seconds+a.Seconds, max(slowest, a.Seconds)
			}
			cpu := time.Duration((cpuOf(t, g.PID(1)) - before) / looks * float64(time.Second))
			t.Logf("COST | %s | %d sessions, %d waiting | %.1f ms a look, slowest %.1f ms | %v of CPU a look, with all else |", kind, manyConnections, blocked,
				1000*seconds/looks, 1000*slowest, cpu)
			if cpu > 2*mostLook {
				t.Errorf("a look costs %v of the server's CPU", cpu)
			}
		})
	}
}
