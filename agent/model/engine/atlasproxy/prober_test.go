package atlasproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openFake(t *testing.T, f *fakeAdmin, changes ...func(*engine.Target)) *prober {
	t.Helper()
	target := engine.Target{Name: "proxy", Engine: "atlas", Address: f.Address(), User: user, Password: password}
	return enginetest.Open(t, Engine, target, changes).(*prober)
}

func probe(t *testing.T, p *prober) (*engine.Status, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return p.Probe(ctx)
}

func mustProbe(t *testing.T, p *prober) *engine.Status {
	t.Helper()
	s, err := probe(t, p)
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.WellFormed(t, s)
}

// States recorded while a replica was stopped, started, taken offline and added again.
func TestBackendStates(t *testing.T) {
	f := newFakeAdmin(t)
	p := openFake(t, f)
	primary := backend("127.0.0.1:3367", "up", "rw")
	for _, c := range []struct {
		state string
		up    float64 // -1: unknown
	}{{"up", 1}, {"down", 0}, {"offline", 0}, {"unknown", -1}, {"up", 1}, {"mending", -1}} {
		f.set(primary, backend("127.0.0.1:3368", c.state, "ro"))
		s := mustProbe(t, p)
		if s.Version != "2.2.2" || s.Flavour != "atlas" || s.Role != "proxy" {
			t.Errorf("got %+v", s)
		}
		enginetest.Want(t, s, 1, proxy.BackendUp, "127.0.0.1:3367", "rw")
		if c.up < 0 {
			enginetest.Absent(t, s, proxy.BackendUp, "127.0.0.1:3368", "ro")
		} else {
			enginetest.Want(t, s, c.up, proxy.BackendUp, "127.0.0.1:3368", "ro")
		}
		for _, state := range states.All() {
			enginetest.Want(t, s, map[bool]float64{true: 1}[state == c.state], proxy.BackendState, "127.0.0.1:3368", "ro", state)
		}
	}
	f.set(primary) // removed
	s := mustProbe(t, p)
	enginetest.Absent(t, s, proxy.BackendUp, "127.0.0.1:3368", "ro")
	f.set()
	enginetest.Absent(t, mustProbe(t, p), proxy.BackendUp, "127.0.0.1:3367", "rw")
	f.set(primary, primary, backend("", "up", "ro"))
	mustProbe(t, p)
}

// The admin interface refuses SET, ping and prepared statements; the agent never asks for
// passwords.
func TestOnlyTheseStatements(t *testing.T) {
	f := newFakeAdmin(t)
	p := openFake(t, f)
	for range 3 {
		mustProbe(t, p)
	}
	want := []string{"SELECT VERSION", "SELECT * FROM backends", "SELECT * FROM backends", "SELECT * FROM backends"}
	if got := f.asked(); !slices.Equal(got, want) {
		t.Errorf("asked %q", got)
	}
	enginetest.Want(t, mustProbe(t, p), 5, engine.AgentStatementsTotal)
}

func TestErrors(t *testing.T) {
	f := newFakeAdmin(t)
	gone := newFakeAdmin(t)
	gone.Stop()
	notAtlas := newFakeAdmin(t)
	notAtlas.version = "" // like a MySQL server, or the proxy's own port
	cases := map[string]struct {
		change func(*engine.Target)
		want   string
		is     error
	}{
		"wrong password":  {func(t *engine.Target) { t.Password = "not-so-secret" }, "admin-username and admin-password", nil},
		"wrong user":      {func(t *engine.Target) { t.User = "root" }, "login refused", nil},
		"nothing listens": {func(t *engine.Target) { t.Address = gone.Address() }, "nothing is listening", syscall.ECONNREFUSED},
		"the client port": {func(t *engine.Target) { t.Address = notAtlas.Address() }, "not to the port for clients", nil},
		"no such host":    {func(t *engine.Target) { t.Address = "atlas.invalid:4041" }, "can't be resolved", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := openFake(t, f, c.change)
			_, err := probe(t, p)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "not-so-secret") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v", err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v is not %v", err, c.is)
			}
		})
	}
}

// After a restart of the proxy the same prober works again.
func TestProxyRestarts(t *testing.T) {
	f := newFakeAdmin(t)
	p := openFake(t, f)
	mustProbe(t, p)
	f.Stop()
	if _, err := probe(t, p); err == nil {
		t.Error("no error without a proxy")
	}
	again := startFakeAdmin(t, f.Address())
	again.version = "2.2.3"
	if s := mustProbe(t, p); s.Version != "2.2.3" {
		t.Errorf("version %q", s.Version)
	}
}

func TestSettings(t *testing.T) {
	cases := map[string]struct {
		target engine.Target
		want   string // in the error; empty: accepted
	}{
		"plain":          {target: engine.Target{Address: "proxy:4041"}},
		"options":        {target: engine.Target{Address: "proxy:4041", Options: map[string]string{"pid_file": "/run/atlas.pid", "proxy_address": ":1234"}}},
		"no port":        {target: engine.Target{Address: "proxy"}, want: "host:port"},
		"TLS":            {target: engine.Target{Address: "proxy:4041", TLS: &tls.Config{}}, want: "TLS"},
		"unknown option": {target: engine.Target{Address: "proxy:4041", Options: map[string]string{"pidfile": "x"}}, want: "pid_file"},
		"bad address":    {target: engine.Target{Address: "proxy:4041", Options: map[string]string{"proxy_address": "1234"}}, want: "proxy_address"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { enginetest.Refused(t, Engine, c.target, c.want) })
	}
}

// The fake runs in this process, so procfs has real data about it.
func TestRealProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/net/tcp"); err != nil {
		t.Skip("no procfs here")
	}
	clients, err := net.Listen("tcp", "127.0.0.1:0") // the port for clients
	if err != nil {
		t.Fatal(err)
	}
	defer clients.Close()
	server, err := net.Listen("tcp", "127.0.0.1:0") // a backend, in this process too
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	f := newFakeAdmin(t)
	f.set(backend(server.Addr().String(), "up", "rw"), backend("127.0.0.1:1", "down", "ro"))
	p := openFake(t, f, func(target *engine.Target) {
		target.Options = map[string]string{
			"proxy_address": clients.Addr().String(),
			"pid_file":      ownPIDFile(t),
		}
	})
	open := func(l net.Listener) (near, far net.Conn) {
		near, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		far, err = l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { near.Close(); far.Close() })
		return near, far
	}
	for range 3 {
		open(clients)
	}
	open(server)

	s := mustProbe(t, p)
	enginetest.Want(t, s, 3, proxy.ClientConnections)
	enginetest.Want(t, s, 3, engine.Connections)
	enginetest.Want(t, s, 1, proxy.BackendConnections, server.Addr().String())
	enginetest.Want(t, s, 0, proxy.BackendConnections, "127.0.0.1:1")
	for _, m := range []*measure.Metric{proxy.ResidentBytes, proxy.Threads, proxy.OpenFDs} {
		if v, ok := s.Get(m); !ok || v <= 0 {
			t.Errorf("%s is %v", m.Name, v)
		}
	}
	if s.Uptime <= 0 || s.Uptime > time.Hour {
		t.Errorf("uptime %v", s.Uptime)
	}
	after := mustProbe(t, p)
	was, _ := s.Get(proxy.CPUSeconds, "user")
	now, ok := after.Get(proxy.CPUSeconds, "user")
	if !ok || now < was {
		t.Errorf("CPU time goes from %v to %v", was, now)
	}
	if _, ok := after.Get(proxy.ThreadCPUSeconds, "0"); !ok {
		t.Error("no CPU time of the main thread")
	}
	if len(after.Missing) != 0 {
		t.Errorf("missing %q", after.Missing)
	}
}

// ownPIDFile returns a file with the id of this process.
func ownPIDFile(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/bench.pid"
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
