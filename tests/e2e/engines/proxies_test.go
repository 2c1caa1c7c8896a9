//go:build e2e || versions

package engines

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/internal/need"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// proxied starts a proxy in front of a server of PostgreSQL, and watches both.
func proxied(t *testing.T, s group, kind servers.Kind, o servers.ProxyOptions) (*servers.Proxy, *watcher) {
	t.Helper()
	need.Program(t, string(kind))
	o.Backends, o.User, o.Password, o.Attached = []string{s.Address(1)}, "bench", s.password(t, "bench"), true
	p, err := servers.StartProxy(t.Context(), filepath.Join(s.Dir, "proxy-"+strings.ReplaceAll(t.Name(), "/", "-")), kind, o)
	must(t, err)
	t.Cleanup(func() { must(t, p.Stop()) })
	target := engine.Target{Name: "px", Engine: string(kind), Address: p.Admin(), Options: map[string]string{"proxy_address": p.Clients()}}
	if kind == servers.PgBouncer {
		secret, err := p.Password()
		must(t, err)
		target.User, target.Password, target.Options = "admin", engine.Secret(secret), nil
	}
	return p, watch(t, []engine.Target{target})
}

// through runs pgbench through a proxy.
func through(t *testing.T, s group, p *servers.Proxy, args ...string) {
	t.Helper()
	program, err := servers.PostgreSQLClient("pgbench")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append(append([]string{"-n", "-c", "4"}, args...), fmt.Sprintf("host=127.0.0.1 port=%d user=bench dbname=sbtest password=%s", p.Port, s.password(t, "bench")))
	if out, err := exec.CommandContext(ctx, program, args...).CombinedOutput(); err != nil {
		t.Fatalf("pgbench: %v\n%s", err, out)
	}
}

// sum adds up the values of a metric.
func sum(s *engine.Sample, name string) (all float64) {
	if !s.Up() {
		return math.NaN()
	}
	for _, v := range s.Status.Values {
		if v.Metric.Name == name {
			all += v.V
		}
	}
	return all
}

// cpuOf is the CPU time of a process in seconds.
func cpuOf(t *testing.T, pid int) float64 {
	t.Helper()
	p, err := procfs.NewProc(pid)
	must(t, err)
	stat, err := p.Stat()
	must(t, err)
	return stat.CPUTime()
}

// TestProxyCounters compares what a proxy counted with what pgbench did, and its CPU with procfs.
func TestProxyCounters(t *testing.T) {
	s := startWith(t, servers.PostgreSQL, servers.Options{Servers: 1})
	s.pgbench(t, "-i", "-s", "1", "-q")
	for _, c := range []struct {
		kind     servers.Kind
		args     []string
		sessions float64
	}{
		{servers.HAProxy, []string{"-S", "-C", "-t", "100"}, 400}, // a session is a connection
		{servers.PgBouncer, []string{"-S", "-t", "2000"}, 8000},   // a session is a transaction
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			p, w := proxied(t, s, c.kind, servers.ProxyOptions{Global: map[servers.Kind][]string{servers.PgBouncer: {"pool_mode = transaction"}}[c.kind]})
			before := w.until("sampled", 10*time.Second, func(f engine.Frame) bool { return f.Samples[0].Up() })
			cpu := cpuOf(t, p.PID())
			through(t, s, p, c.args...)
			w.catchUp()
			w.next()
			after := w.next()
			counted := sum(&after.Samples[0], "proxy_backend_sessions_total") - sum(&before.Samples[0], "proxy_backend_sessions_total")
			if math.Abs(counted-c.sessions) > 0.01*c.sessions {
				t.Errorf("%v sessions, pgbench had %v", counted, c.sessions)
			}
			used := sum(&after.Samples[0], "proxy_cpu_seconds_total") - sum(&before.Samples[0], "proxy_cpu_seconds_total")
			if want := cpuOf(t, p.PID()) - cpu; math.Abs(used-want) > 0.06 {
				t.Errorf("%v s of CPU, procfs has %v", used, want)
			}
			if failed := sum(&after.Samples[0], "proxy_backend_errors_total"); failed != 0 {
				t.Errorf("%v errors", failed)
			}
			connections := s.sql(t, 1, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND usename <> 'bench' AND pid <> pg_backend_pid()")
			if n, err := strconv.Atoi(connections[0][0]); err != nil || n != 0 {
				t.Errorf("the observer has %s connections to the server", connections[0][0])
			}
		})
	}
}

// TestProxyRestarts ends and reloads a proxy that is watched: its samples are absent meanwhile, its role stays, and its
// counters begin again without a negative value.
func TestProxyRestarts(t *testing.T) {
	s := startWith(t, servers.PostgreSQL, servers.Options{Servers: 1})
	s.pgbench(t, "-i", "-s", "1", "-q")
	p, w := proxied(t, s, servers.HAProxy, servers.ProxyOptions{Global: []string{"master-worker"}})
	through(t, s, p, "-S", "-C", "-t", "20")
	up := func(f engine.Frame) bool { return f.Samples[0].Up() && f.Samples[0].Status.Role == "proxy" }
	counted := func(f engine.Frame) float64 { return sum(&f.Samples[0], "proxy_backend_sessions_total") }
	// A restart is seen from the uptime, whose seconds are whole.
	known := func(f engine.Frame) bool { return f.Samples[0].Status.Uptime > engine.RestartTolerance+time.Second }
	w.until("counted", 20*time.Second, func(f engine.Frame) bool { return up(f) && counted(f) >= 80 && known(f) })
	must(t, p.Signal(syscall.SIGUSR2)) // a new worker process
	f := w.until("reloaded", 20*time.Second, func(f engine.Frame) bool { return up(f) && counted(f) < 80 })
	if f.Samples[0].Restarts != 1 {
		t.Errorf("%d restarts after a reload", f.Samples[0].Restarts)
	}
	through(t, s, p, "-S", "-C", "-t", "10")
	w.until("counts again", 20*time.Second, func(f engine.Frame) bool { return up(f) && counted(f) >= 40 && counted(f) < 80 && known(f) })
	must(t, p.Stop())
	f = w.until("down", 10*time.Second, func(f engine.Frame) bool { return !f.Samples[0].Up() })
	if f.Samples[0].Err == nil {
		t.Error("no reason")
	}
	must(t, p.Start(t.Context()))
	w.until("up again", 20*time.Second, func(f engine.Frame) bool { return up(f) && f.Samples[0].Restarts == 2 })
}
