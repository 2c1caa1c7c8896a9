package haproxy

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded is what an HAProxy with two servers of maxconn 2 answered while 16 clients connected for each transaction.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// runtimeSocket answers each command line with a text, and closes the connection.
func runtimeSocket(t *testing.T, answer func(command string) []byte) string {
	t.Helper()
	return enginetest.Listen(t, "127.0.0.1:0", func(conn net.Conn) {
		command := make([]byte, 100)
		n, err := conn.Read(command)
		if err == nil {
			_, _ = conn.Write(answer(string(command[:n])))
		}
	}).Address()
}

func probe(t *testing.T, target engine.Target) (*engine.Status, error) {
	t.Helper()
	p := enginetest.Open(t, Engine, target, nil)
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return p.Probe(ctx)
}

func sampled(t *testing.T, target engine.Target) *engine.Status {
	t.Helper()
	s, err := probe(t, target)
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.WellFormed(t, s)
}

func TestRuntimeSocket(t *testing.T) {
	for version, queue := range map[string]float64{"2.6": 12, "3.0": 12, "3.2": 12} {
		t.Run(version, func(t *testing.T) {
			var got string
			address := runtimeSocket(t, func(command string) []byte { got = command; return recorded(t, version+".socket") })
			s := sampled(t, engine.Target{Address: address})
			if got != "show info;show stat\n" {
				t.Errorf("sent %q", got)
			}
			if !strings.HasPrefix(s.Version, version) || s.Role != proxy.Role || s.Nodename != "vm" || s.Uptime < time.Second {
				t.Errorf("got %q %q %q %v", s.Version, s.Role, s.Nodename, s.Uptime)
			}
			enginetest.Want(t, s, queue, proxy.QueueLength, "servers")
			enginetest.Want(t, s, 4, proxy.PoolLimit, "servers")
			enginetest.Want(t, s, 2, proxy.BackendLimit, "127.0.0.1:28642", "servers")
			enginetest.Want(t, s, 2, proxy.BackendConnections, "127.0.0.1:28643")
			enginetest.Want(t, s, 1, proxy.BackendUp, "127.0.0.1:28642", "servers")
			enginetest.Want(t, s, 9984, proxy.ClientLimit)
			enginetest.Want(t, s, 16, proxy.ClientConnections)
			if want := []string{"127.0.0.1:28642", "127.0.0.1:28643"}; len(s.Members) != 2 || s.Members[0].Address != want[0] || !s.Members[1].Behind {
				t.Errorf("members %v", s.Members)
			}
			wait, _ := s.Get(proxy.QueueSeconds, "servers") // 12 of 16 clients wait, of 43 to 48 ms for each transaction
			if wait < 0.02 || wait > 0.05 {
				t.Errorf("%.3f s in the queue", wait)
			}
		})
	}
}

// The page and the endpoint for Prometheus have the same numbers as the socket, a moment later.
func TestPageAndMetrics(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/stats;csv" && user == "admin" && password == "sesame":
			_, _ = w.Write(recorded(t, "3.2.csv"))
		case r.URL.Path == "/stats;csv":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/metrics":
			_, _ = w.Write(recorded(t, "3.2.metrics"))
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer web.Close()
	address := web.Listener.Addr().String()
	target := func(option, path string) engine.Target {
		return engine.Target{Address: address, User: "admin", Password: "sesame", Options: map[string]string{option: path}}
	}
	page, metrics := sampled(t, target(optionStatsPath, "/stats")), sampled(t, target(optionMetricsPath, "/metrics"))
	for name, s := range map[string]*engine.Status{"page": page, "metrics": metrics} {
		later := map[string]float64{"metrics": 1}[name]
		enginetest.Want(t, s, 12+later, proxy.QueueLength, "servers")
		enginetest.Want(t, s, 4, proxy.PoolLimit, "servers")
		enginetest.Want(t, s, 2, proxy.BackendConnections, "servers/s1")
		enginetest.Want(t, s, 16+later, proxy.ClientConnections)
		if !slices.Contains(s.Missing, missingAddresses) {
			t.Errorf("%s: missing %q", name, s.Missing)
		}
	}
	if metrics.Version == "" || metrics.Uptime == 0 {
		t.Error("the metrics have no version or uptime")
	}
	for _, c := range []struct{ role, backend string }{{"servers", "servers/s1"}, {"servers", "servers/s2"}} {
		a, _ := page.Get(proxy.ConnectSeconds, c.backend, c.role)
		b, _ := metrics.Get(proxy.ConnectSeconds, c.backend, c.role)
		if math.Abs(a-b) > 0.0015 { // the endpoint rounds to milliseconds
			t.Errorf("connecting takes %v s by the page, %v s by the metrics", a, b)
		}
	}
	wrong := target(optionStatsPath, "/stats")
	wrong.Password = "guessed"
	for want, bad := range map[string]engine.Target{
		"refused the login (401)":           wrong,
		"set stats_path to the uri":         target(optionStatsPath, "/status"),
		"path of the service prometheus":    target(optionMetricsPath, "/m"),
		"set stats_path (stats uri) or":     {Address: address},
		"not a runtime socket of HAProxy":   {Address: runtimeSocket(t, func(string) []byte { return []byte("Unknown command") })},
		"there is no socket":                {Address: t.TempDir() + "/none.sock"},
		"nothing is listening on 127.0.0.1": {Address: "127.0.0.1:1"},
	} {
		if _, err := probe(t, bad); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "guessed") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// show returns an answer to show info and show stat with these servers.
func show(servers ...string) []byte {
	return []byte("Name: HAProxy\nVersion: 3.0.1\nUptime_sec: 10\nMaxconn: 100\n\n" +
		"# pxname,svname,qcur,scur,slim,stot,status,weight,addr,mode,lbtot,ctime\n" +
		"db,FRONTEND,,3,50,9,OPEN,,,tcp,,\n" + strings.Join(servers, "") + "db,BACKEND,4,3,10,9,UP,2,,tcp,9,0\n")
}

// TestStates has the words that HAProxy uses for servers.
func TestStates(t *testing.T) {
	for word, want := range map[string]float64{
		"UP": 1, "UP 1/3": 1, "no check": 1, "DOWN": 0, "DOWN 1/2": 0, "MAINT": 0, "MAINT (via db/s2)": 0, "DRAIN": 0, "NOLB": 0, "sleeping": -1,
	} {
		address := runtimeSocket(t, func(string) []byte { return show("db,s1,1,3,,9," + word + ",1,10.0.0.1:3306,tcp,9,2\n") })
		s := sampled(t, engine.Target{Address: address})
		if want < 0 {
			enginetest.Absent(t, s, proxy.BackendUp, "10.0.0.1:3306", "db")
		} else {
			enginetest.Want(t, s, want, proxy.BackendUp, "10.0.0.1:3306", "db")
		}
		enginetest.Want(t, s, 5, proxy.QueueLength, "db")
		enginetest.Want(t, s, 50, proxy.ClientLimit)
		enginetest.Want(t, s, 0.002, proxy.ConnectSeconds, "10.0.0.1:3306", "db")
		enginetest.Absent(t, s, proxy.PoolLimit, "db")
		enginetest.Absent(t, s, proxy.OpenedTotal, "10.0.0.1:3306", "db") // a version without the column
	}
}

// TestManyServers guards that series are bounded, while all servers are counted.
func TestManyServers(t *testing.T) {
	var servers []string
	for i := range 5000 {
		servers = append(servers, fmt.Sprintf("db,s%d,0,1,2,9,UP,1,10.0.%d.%d:3306,tcp,9,2\n", i, i/250, i%250))
	}
	address := runtimeSocket(t, func(string) []byte { return show(servers...) })
	s := sampled(t, engine.Target{Address: address})
	enginetest.Want(t, s, 5000, proxy.Backends)
	enginetest.Want(t, s, 10000, proxy.PoolLimit, "db")
	n := 0
	for i := range s.Values {
		if s.Values[i].Metric == proxy.BackendUp {
			n++
		}
	}
	if n != proxy.MaxBackends || len(s.Values) > 2000 {
		t.Errorf("%d servers have series, %d values", n, len(s.Values))
	}
}

func TestHostileAnswers(t *testing.T) {
	for name, answer := range map[string]func(string) []byte{
		"endless": func(string) []byte { return bytes.Repeat([]byte("x,"), 10<<20) },
		"empty":   func(string) []byte { return nil },
		"columns": func(string) []byte { return []byte("Name: HAProxy\n\n# pxname,svname\n") },
	} {
		if s, err := probe(t, engine.Target{Address: runtimeSocket(t, answer)}); err == nil {
			t.Errorf("%s: no error, %d values", name, len(s.Values))
		}
	}
}

func TestOptions(t *testing.T) {
	enginetest.Refused(t, Engine, engine.Target{Address: "haproxy"}, "neither the path of the runtime socket nor host:port")
	enginetest.Refused(t, Engine, engine.Target{Address: "h:1", Options: map[string]string{"stats_path": "stats"}}, "expected a path")
	enginetest.Refused(t, Engine, engine.Target{Address: "h:1", User: "admin"}, "set stats_path")
	enginetest.Refused(t, Engine, engine.Target{Address: "h:1", Options: map[string]string{"proxy_address": "h"}}, "proxy_address")
}

// TestMeasures guards that a proxy under load has values for the measures that rules and causes read.
func TestMeasures(t *testing.T) {
	address := runtimeSocket(t, func(string) []byte { return recorded(t, "3.2.socket") })
	s := sampled(t, engine.Target{Address: address})
	enginetest.Measures(t, s, s, "proxy_queue", "proxy_sessions", "proxy_errors", "proxy_retries", "proxy_connect", "backends_up", "connections")
}

func TestSettings(t *testing.T) {
	address := runtimeSocket(t, func(string) []byte { return recorded(t, "3.2.socket") })
	p := enginetest.Open(t, Engine, engine.Target{Address: address}, nil)
	defer p.Close()
	if _, err := p.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := p.(engine.Configured).Settings(t.Context())
	if err != nil || got["Nbthread"] != "2" || got["servers/s1 maxconn"] != "2" || got["servers/BACKEND balance"] == "" {
		t.Errorf("settings %v, %v", got, err)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(recorded(f, "2.6.socket"))
	f.Add(show("db,s1,1,3,,9,UP,1,10.0.0.1:3306,tcp,9,2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p := newProber(engine.Target{Address: "127.0.0.1:1"})
		stats, info, err := p.parseAnswer(text)
		if err != nil {
			return
		}
		s := &engine.Status{}
		(&sections{Status: s, stats: stats, info: info}).set()
		enginetest.WellFormed(t, s)
	})
}

func FuzzMetrics(f *testing.F) {
	f.Add(recorded(f, "3.2.metrics"))
	f.Fuzz(func(t *testing.T, text []byte) {
		stats, info, err := parseMetrics(text)
		if err != nil {
			return
		}
		s := &engine.Status{}
		(&sections{Status: s, stats: stats, info: info}).set()
		enginetest.WellFormed(t, s)
	})
}
