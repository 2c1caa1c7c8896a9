//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// proxyCase is a cause that is planted in a real proxy, or behind it.
type proxyCase struct {
	kind servers.Kind
	// plant returns the options of the proxy, and what to run through it.
	plant func(t *testing.T) (servers.ProxyOptions, load)
	// before, if it is not 0, delays each piece of data between the tool and the proxy.
	before time.Duration
	// limits are the findings that name it, the first one on an idle machine. Of another program's load, the machine's
	// own findings are right, too.
	limits []cause.Limit
	// cause is the name of the first cause; empty: nothing that the proxy reports shows one, so none may be named.
	cause string
	// says is a part of the evidence of the finding or its cause.
	says string
}

// load is a command line of a tool without the address.
type load []string

// sysbenchThrough is a script of sysbench with this many clients.
func sysbenchThrough(t *testing.T, g *servers.Group, threads int, script string) load {
	file := filepath.Join(t.TempDir(), "script.lua")
	must(t, os.WriteFile(file, []byte(script), 0o644))
	return append(sysbenchOn(g), file, fmt.Sprint("--threads=", threads), "--time=12", "run")
}

// at returns the command line for an address.
func (l load) at(t *testing.T, address string) []string {
	host, port, err := net.SplitHostPort(address)
	must(t, err)
	if filepath.Base(l[0]) == "sysbench" {
		return append(slices.Clone([]string(l)), "--mysql-host="+host, "--mysql-port="+port)
	}
	secret := l[len(l)-1]
	return append(slices.Clone([]string(l[:len(l)-1])), fmt.Sprintf("host=%s port=%s user=bench dbname=sbtest %s", host, port, secret))
}

// throughProxy runs a tool through a proxy that is the only target, with --sample, and returns what a report says.
func throughProxy(t *testing.T, p *servers.Proxy, id string, before time.Duration, l load) *limits.Verdict {
	t.Helper()
	user, secret := "", ""
	if p.Kind != servers.HAProxy {
		user, secret = "user: admin, ", fmt.Sprintf("password_file: %s/admin.password, ", p.Dir)
	}
	tls := "" // the console accepts what clients have to use
	if id == "tls" {
		tls = "tls: {insecure_skip_verify: true}, "
	}
	clients := p.Clients()
	if before > 0 {
		clients = delayed(t, clients, always(before))
	}
	a := agents.New(t, env.binary, fmt.Sprintf("targets:\n  - {name: px, engine: %s, address: '%s', %s%s%soptions: {proxy_address: '%s'}}\n",
		p.Kind, p.Admin(), user, secret, tls, clients))
	a.Again(t)
	wrapper := agents.StartCommand(t, a.Command([]string{"--run-id=" + id, "--sample", "--drain-timeout=2s"}, l.at(t, clients)...))
	t.Cleanup(func() { a.EndTool(id) })
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
		Runs []struct {
			Limits  *limits.Verdict
			Latency map[string]float64 `json:"latency_seconds"`
		}
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Runs) != 1 || report.Runs[0].Limits == nil {
		t.Fatalf("no verdict (%v): %s", err, out)
	}
	v := report.Runs[0].Limits
	for i := range v.Findings {
		t.Logf("%s (%.2f): %s", v.Findings[i].Title(), v.Findings[i].Share, v.Findings[i].Evidence)
		for _, c := range v.Findings[i].Causes {
			t.Logf("  %s (%.2f): %s. %s", c.Cause, c.Share, c.Evidence, c.Test)
		}
	}
	if v.Unexplained != nil {
		t.Logf("unexplained (%.2f): %s", v.Unexplained.Share, v.Unexplained.Evidence)
	}
	if d := v.Division; d != nil {
		t.Log(d)
		// pgbench leaves connecting out of its mean.
		if mean := report.Runs[0].Latency["avg"]; !slices.Contains(l, "-C") && !(math.Abs(d.Transaction-mean) <= 0.05*mean) {
			t.Errorf("the parts add up to %v s, the tool's mean is %v s", d.Transaction, mean)
		}
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
	if slices.Contains(o.Backends, nobody) && strings.Contains(o.Server, "check") {
		agents.Wait(t, 10*time.Second, "a server that is down", func() error { return isDown(p) })
	}
	return p
}

// nobody is an address at which nothing listens.
const nobody = "127.0.0.1:1"

// isDown returns an error until HAProxy has marked a server as down.
func isDown(p *servers.Proxy) error {
	conn, err := net.Dial("unix", p.Admin())
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "show stat\n"); err != nil {
		return err
	}
	if text, err := io.ReadAll(conn); err != nil || !strings.Contains(string(text), ",DOWN,") {
		return errors.Join(err, errors.New("every server is up"))
	}
	return nil
}

// reconnecting, with a statement, is a script of sysbench that opens a connection for each transaction: with
// connections that stay open, clients beyond the limit of a proxy would never begin.
func reconnecting(statement string) string {
	return `function thread_init() drv = sysbench.sql.driver() end
function event()
  local con = drv:connect()
  con:query("` + statement + `")
  con:disconnect()
end`
}

// connected is a script of sysbench with a connection for each client.
func connected(statement string) string {
	return `function thread_init() drv = sysbench.sql.driver() con = drv:connect() end
function event() con:query("` + statement + `") end`
}

// busyProxy spends some milliseconds of CPU in HAProxy for each connection, as expensive rules do.
const busyProxy = `core.register_action("burn", {"tcp-req"}, function(txn)
  local x = 0
  for i = 1, 300000 do x = x + i % 7 end
end, 0)`

// silentPort returns an address that answers no connection: the queue of its listener is full.
func silentPort(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, unix.Listen(fd, 0))
	name, err := unix.Getsockname(fd)
	must(t, err)
	address := fmt.Sprint("127.0.0.1:", name.(*unix.SockaddrInet4).Port)
	for range 10 {
		conn, err := net.DialTimeout("tcp", address, 300*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the listener accepts connections")
	return ""
}

// flapping returns a port that accepts connections for a second, refuses them for two, and so on.
func flapping(t *testing.T) (port string) {
	t.Helper()
	address := agents.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for t.Context().Err() == nil {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			wait(t.Context(), time.Second)
			_ = listener.Close()
			wait(t.Context(), 2*time.Second)
		}
	})
	t.Cleanup(running.Wait)
	return port
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestProxies plants causes in real proxies. The run knows the servers behind the proxy only from the proxy.
func TestProxies(t *testing.T) {
	two, err := servers.Start(t.Context(), filepath.Join(env.dir, "behind-haproxy"), servers.MariaDB, servers.Options{Servers: 2, Attached: true})
	must(t, err)
	t.Cleanup(func() { must(t, two.Stop(context.Background())) })
	g, err := servers.Start(t.Context(), filepath.Join(env.dir, "behind-pgbouncer"), servers.PostgreSQL, servers.Options{Servers: 1, Attached: true})
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	secret, err := g.Password("bench")
	must(t, err)
	program, err := servers.PostgreSQLClient("pgbench")
	must(t, err)
	pgbench := func(t *testing.T, script string, args ...string) load {
		file := filepath.Join(t.TempDir(), "script.sql")
		must(t, os.WriteFile(file, []byte(script), 0o644))
		return append(append(load{program, "-n", "-T", "12", "-c", "8", "-j", "2", "-f", file}, args...), "password="+secret)
	}
	pooler := func(global ...string) servers.ProxyOptions {
		return servers.ProxyOptions{Backends: []string{g.Address(1)}, User: "bench", Password: secret, Global: global}
	}
	machine := []cause.Limit{cause.SharedCPU, cause.Neighbours}
	for name, c := range map[string]proxyCase{ // short names: a run directory has a socket
		"maxconn": {
			kind: servers.HAProxy, limits: []cause.Limit{cause.ProxyQueue}, cause: "limit of connections to servers",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				return servers.ProxyOptions{Backends: []string{env.server.Address(1)}, Server: "maxconn 2"}, sysbenchThrough(t, env.server, 16, reconnecting("SELECT SLEEP(0.005)"))
			},
		},
		"down": {
			kind: servers.HAProxy, limits: []cause.Limit{cause.ProxyQueue}, cause: "servers not in use",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				return servers.ProxyOptions{Backends: []string{env.server.Address(1), nobody}, Server: "check inter 500 maxconn 4"},
					sysbenchThrough(t, env.server, 8, reconnecting("SELECT SLEEP(0.005)"))
			},
		},
		"flapping": {
			kind: servers.HAProxy, limits: []cause.Limit{cause.ProxyQueue}, cause: "servers not in use", says: "marked one as down",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				check := " check port " + flapping(t) + " inter 200 fall 1 rise 1"
				return servers.ProxyOptions{Backends: []string{two.Address(1), two.Address(2) + check}, Server: "maxconn 4"},
					sysbenchThrough(t, two, 8, reconnecting("SELECT SLEEP(0.02)"))
			},
		},
		"weights": {
			kind: servers.HAProxy, limits: []cause.Limit{cause.ProxyQueue}, cause: "unequal distribution",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				return servers.ProxyOptions{Backends: []string{two.Address(1) + " weight 250", two.Address(2) + " weight 5"}, Server: "maxconn 4",
					Section: []string{"balance source"}}, sysbenchThrough(t, two, 8, reconnecting("SELECT SLEEP(0.02)"))
			},
		},
		"retries": {
			kind: servers.HAProxy, limits: []cause.Limit{cause.Outside}, cause: "retries",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				return servers.ProxyOptions{Backends: []string{env.server.Address(1), silentPort(t)}, Section: []string{"timeout connect 200", "retries 2", "option redispatch"}},
					sysbenchThrough(t, env.server, 8, reconnecting("SELECT SLEEP(0.005)"))
			},
		},
		"thread": {
			kind: servers.HAProxy, limits: append([]cause.Limit{cause.ProxyThread}, machine...),
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				file := filepath.Join(env.dir, "busy.lua")
				must(t, os.WriteFile(file, []byte(busyProxy), 0o644))
				return servers.ProxyOptions{Backends: []string{env.server.Address(1)}, Global: []string{"nbthread 1", "lua-load " + file},
					Section: []string{"tcp-request content lua.burn"}}, sysbenchThrough(t, env.server, 8, reconnecting("SELECT 1"))
			},
		},
		"10ms": {
			kind: servers.HAProxy, limits: []cause.Limit{cause.RoundTrip}, cause: "too few threads",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				return servers.ProxyOptions{Backends: []string{delayed(t, env.server.Address(1), always(5*time.Millisecond))}}, sysbenchThrough(t, env.server, 4, connected("SELECT 1"))
			},
		},
		"1ms": {
			kind: servers.HAProxy, limits: append([]cause.Limit{cause.RoundTrip, cause.Unknown}, machine...), cause: "too few threads", // a busy machine delays the delay
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				return servers.ProxyOptions{Backends: []string{delayed(t, env.server.Address(1), always(500*time.Microsecond))}}, sysbenchThrough(t, env.server, 4, connected("SELECT 1"))
			},
		},
		"before": { // nothing between the tool and the proxy is sampled
			kind: servers.HAProxy, before: 5 * time.Millisecond, limits: []cause.Limit{cause.Outside}, says: "even the fastest transaction took 1",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				return servers.ProxyOptions{Backends: []string{env.server.Address(1)}}, sysbenchThrough(t, env.server, 4, connected("SELECT 1"))
			},
		},
		"slow": {
			kind: servers.HAProxy, limits: append([]cause.Limit{cause.ProcessCPU}, machine...), says: "CPU quota",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				must(t, two.Limit(t.Context(), 2, 10))
				t.Cleanup(func() { must(t, two.Unlimit(context.Background(), 2)) })
				return servers.ProxyOptions{Backends: []string{two.Address(1), two.Address(2)}}, sysbenchThrough(t, two, 4, reconnecting("SELECT BENCHMARK(5000, MD5('x'))"))
			},
		},
		"pool": {
			kind: servers.PgBouncer, limits: []cause.Limit{cause.ProxyQueue}, cause: "limit of connections to servers",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				return pooler("pool_mode = transaction", "default_pool_size = 1"), pgbench(t, "SELECT pg_sleep(0.005);\n")
			},
		},
		"session": {
			kind: servers.PgBouncer, limits: []cause.Limit{cause.ProxyQueue}, cause: "session mode",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				return pooler("pool_mode = session", "default_pool_size = 2"), pgbench(t, "SELECT 1;\n\\sleep 20 ms\nSELECT 1;\n", "-C")
			},
		},
		"pinned": {
			kind: servers.PgBouncer, limits: []cause.Limit{cause.ProxyQueue}, cause: "idle transactions",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				return pooler("pool_mode = transaction", "default_pool_size = 2"), pgbench(t, "BEGIN;\nSELECT 1;\n\\sleep 20 ms\nSELECT 1;\nEND;\n")
			},
		},
		"tls": {
			kind: servers.PgBouncer, limits: append([]cause.Limit{cause.ProxyThread}, machine...), cause: "TLS handshakes",
			plant: func(t *testing.T) (servers.ProxyOptions, load) {
				key, certificate := filepath.Join(env.dir, "key.pem"), filepath.Join(env.dir, "certificate.pem")
				out, err := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:4096", "-nodes", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate).CombinedOutput()
				if err != nil {
					t.Fatalf("openssl: %v: %s", err, out)
				}
				must(t, os.Chmod(key, 0o644)) // PgBouncer is another user
				o := pooler("pool_mode = transaction", "client_tls_sslmode = require", "client_tls_key_file = "+key, "client_tls_cert_file = "+certificate)
				o.Version = "1.24" // earlier ones do not count logins
				return o, pgbench(t, "SELECT 1;\n", "-C")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, l := c.plant(t)
			p := start(t, c.kind, o)
			if slices.Contains(c.limits, cause.ProxyThread) { // its core is its own on a busy machine, too
				_ = unix.Setpriority(unix.PRIO_PROCESS, p.PID(), -20)
			}
			v := throughProxy(t, p, name, c.before, l)
			c.check(t, v)
		})
	}
}

func (c *proxyCase) check(t *testing.T, v *limits.Verdict) {
	t.Helper()
	first := v.First()
	if !slices.Contains(c.limits, first) {
		t.Errorf("limited by %s, not by one of %q", first, c.limits)
		return
	}
	if len(v.Findings) == 0 { // said to be not known
		return
	}
	f := v.Findings[0]
	if first == cause.ProxyQueue {
		if d := v.Division; d == nil || !(d.Queue > d.Client) {
			t.Errorf("division %+v", d)
		}
	}
	switch {
	case first != c.limits[0]: // the machine was busy with something else
	case c.cause == "" && len(f.Causes) > 0:
		t.Errorf("causes %+v", f.Causes)
	case c.cause != "" && (len(f.Causes) == 0 || f.Causes[0].Cause != c.cause):
		t.Errorf("causes %+v, not %s", f.Causes, c.cause)
	case c.says != "" && !strings.Contains(f.Evidence, c.says) && !strings.Contains(f.Causes[0].Evidence, c.says):
		t.Errorf("%+v does not say %q", f, c.says)
	}
}
