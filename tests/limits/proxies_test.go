//go:build limits

package limits

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// reconnecting is a script of sysbench that opens a connection for each transaction, which takes a few milliseconds: with
// connections that stay open, clients beyond the limit of a proxy would never begin.
const reconnecting = `function thread_init() drv = sysbench.sql.driver() end
function event()
  local con = drv:connect()
  con:query("SELECT SLEEP(0.005)")
  con:disconnect()
end`

// throughProxy runs a tool through a proxy that is the only target, with --sample, and returns what a report says.
func throughProxy(t *testing.T, p *servers.Proxy, id string, during func(), command ...string) *limits.Verdict {
	t.Helper()
	user, secret := "", ""
	if p.Kind != servers.HAProxy {
		user, secret = "user: admin, ", fmt.Sprintf("password_file: %s/admin.password, ", p.Dir)
	}
	a := agents.New(t, env.binary, fmt.Sprintf("targets:\n  - {name: px, engine: %s, address: '%s', %s%soptions: {proxy_address: '%s'}}\n",
		p.Kind, p.Admin(), user, secret, p.Clients()))
	a.Again(t)
	wrapper := agents.StartCommand(t, a.Command([]string{"--run-id=" + id, "--sample", "--drain-timeout=2s"}, command...))
	t.Cleanup(func() { a.EndTool(id) })
	if during != nil {
		time.AfterFunc(4*time.Second, during)
	}
	if status := wrapper.Status(t, 90*time.Second); status != 0 {
		t.Logf("exited with %d: %s", status, wrapper.Output(t))
	}
	a.Closed(t, id, 60*time.Second)
	meta, err := rundir.At(a.DataDir, id).Load()
	must(t, err)
	if !slices.ContainsFunc(meta.Servers.Targets, func(s rundir.Server) bool { return s.Proxy && s.Target == "px" }) || len(meta.Servers.Targets) < 2 {
		t.Errorf("the run has %+v", meta.Servers)
	}
	out, err := exec.Command(env.binary, "report", id, "--config.file="+a.Config, "--format=json").Output()
	must(t, err)
	var report struct {
		Runs []struct{ Limits *limits.Verdict }
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Runs) != 1 || report.Runs[0].Limits == nil {
		t.Fatalf("no verdict (%v): %s", err, out)
	}
	v := report.Runs[0].Limits
	for i := range v.Findings {
		t.Logf("%s (%.2f): %s", v.Findings[i].Title(), v.Findings[i].Share, v.Findings[i].Evidence)
		for _, c := range v.Findings[i].Causes {
			t.Logf("  %s (%.2f): %s", c.Cause, c.Share, c.Evidence)
		}
	}
	if v.Division != nil {
		t.Log(v.Division)
	}
	return v
}

func start(t *testing.T, kind servers.Kind, o servers.ProxyOptions) *servers.Proxy {
	t.Helper()
	o.Attached = true
	dir := filepath.Join(env.dir, strings.NewReplacer("/", "-", ",", "").Replace(t.Name()))
	p, err := servers.StartProxy(t.Context(), dir, kind, o)
	must(t, err)
	t.Cleanup(func() { must(t, p.Stop()) })
	return p
}

// caused checks the first finding and its first cause.
func caused(t *testing.T, v *limits.Verdict, limit cause.Limit, name string) {
	t.Helper()
	if v.First() != limit {
		t.Errorf("limited by %s, not by %s", v.First(), limit)
		return
	}
	if causes := v.Findings[0].Causes; len(causes) == 0 || causes[0].Cause != name {
		t.Errorf("causes %+v, not %s", causes, name)
	}
}

// TestProxies plants causes in real proxies. The run knows the servers behind the proxy only from the proxy.
func TestProxies(t *testing.T) {
	lua := filepath.Join(t.TempDir(), "reconnecting.lua")
	must(t, os.WriteFile(lua, []byte(reconnecting), 0o644))
	t.Run("haproxy, maxconn", func(t *testing.T) {
		p := start(t, servers.HAProxy, servers.ProxyOptions{Backends: []string{env.server.Address(1)}, Server: "maxconn 2"})
		v := throughProxy(t, p, "maxconn", nil, append(sysbench(), lua, "--threads=16", "--time=12", "--mysql-host=127.0.0.1", fmt.Sprint("--mysql-port=", p.Port), "run")...)
		caused(t, v, cause.ProxyQueue, "limit of connections to servers")
		if d := v.Division; d == nil || !(d.Queue > d.Server) {
			t.Errorf("division %+v", d)
		}
	})
	t.Run("haproxy, server down", func(t *testing.T) {
		p := start(t, servers.HAProxy, servers.ProxyOptions{
			Backends: []string{env.server.Address(1), "127.0.0.1:1"}, Server: "check inter 500 maxconn 4",
		})
		v := throughProxy(t, p, "down", nil, append(sysbench(), lua, "--threads=16", "--time=12", "--mysql-host=127.0.0.1", fmt.Sprint("--mysql-port=", p.Port), "run")...)
		if v.First() != cause.ProxyQueue || !slices.ContainsFunc(v.Findings[0].Causes, func(c limits.CauseFinding) bool { return c.Cause == "servers not in use" }) {
			t.Errorf("%+v", v.Findings)
		}
	})
	g, err := servers.Start(t.Context(), filepath.Join(env.dir, "behind-pgbouncer"), servers.PostgreSQL, servers.Options{Servers: 1, Attached: true})
	must(t, err)
	secret, err := g.Password("bench")
	must(t, err)
	program, err := servers.PostgreSQLClient("pgbench")
	must(t, err)
	pgbench := func(p *servers.Proxy, args ...string) []string {
		return append(append([]string{program, "-n", "-T", "12", "-c", "8", "-j", "2"}, args...),
			fmt.Sprintf("host=127.0.0.1 port=%d user=bench dbname=sbtest password=%s", p.Port, secret))
	}
	file := filepath.Join(t.TempDir(), "think.sql")
	t.Run("pgbouncer, pool size", func(t *testing.T) {
		p := start(t, servers.PgBouncer, servers.ProxyOptions{
			Backends: []string{g.Address(1)}, User: "bench", Password: secret, Global: []string{"pool_mode = transaction", "default_pool_size = 1"},
		})
		must(t, os.WriteFile(file, []byte("SELECT pg_sleep(0.005);\n"), 0o644))
		v := throughProxy(t, p, "poolsize", nil, pgbench(p, "-f", file)...)
		caused(t, v, cause.ProxyQueue, "limit of connections to servers")
	})
	t.Run("pgbouncer, session mode", func(t *testing.T) {
		p := start(t, servers.PgBouncer, servers.ProxyOptions{
			Backends: []string{g.Address(1)}, User: "bench", Password: secret, Global: []string{"pool_mode = session", "default_pool_size = 2"},
		})
		must(t, os.WriteFile(file, []byte("SELECT 1;\n\\sleep 20 ms\nSELECT 1;\n"), 0o644))
		v := throughProxy(t, p, "session", nil, pgbench(p, "-C", "-f", file)...)
		caused(t, v, cause.ProxyQueue, "session mode")
	})
}
