package mysqlrouter

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded are the answers of Router 9.7.4 with four clients, by path.
func recorded(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/9.7.txt")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for line := range strings.Lines(string(text)) {
		path, answer, _ := strings.Cut(strings.TrimSpace(line), " ")
		answers[api+path] = answer
	}
	return answers
}

// serve answers by path. The answers may change between two requests.
func serve(t *testing.T, answers *atomic.Pointer[map[string]string]) engine.Target {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "admin" || password != "sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer, ok := (*answers.Load())[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(web.Close)
	return engine.Target{Address: web.Listener.Addr().String(), User: "admin", Password: "sesame"}
}

func mustProbe(t *testing.T, p engine.Prober) *engine.Status {
	t.Helper()
	s, err := p.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.WellFormed(t, s)
}

func TestRecordedAnswers(t *testing.T) {
	answers := recorded(t)
	var now atomic.Pointer[map[string]string]
	now.Store(&answers)
	p := enginetest.Open(t, Engine, serve(t, &now), nil)
	defer p.Close()
	s := mustProbe(t, p)
	if s.Version != "9.7.4" || s.Role != proxy.Role || s.Nodename != "vm" || s.RoundTrip <= 0 {
		t.Errorf("got %q %q %q %v", s.Version, s.Role, s.Nodename, s.RoundTrip)
	}
	enginetest.Want(t, s, 4, proxy.ClientConnections)
	enginetest.Want(t, s, 512, proxy.ClientLimit)
	enginetest.Want(t, s, 2, proxy.BackendConnections, "127.0.0.1:28642")
	enginetest.Want(t, s, 2, proxy.Backends)
	enginetest.Absent(t, s, proxy.BackendUp, "127.0.0.1:28642", "db")
	if len(s.Members) != 2 || s.Members[0].Engine != "mysql" {
		t.Errorf("members %v", s.Members)
	}
	before, _ := s.Get(engine.BytesTotal, "received")
	if before == 0 {
		t.Error("no bytes of the open connections")
	}
	gone := recorded(t) // the connections ended: their bytes stay counted
	gone[api+"/routes/db/connections"] = `{"items":[]}`
	now.Store(&gone)
	enginetest.Want(t, mustProbe(t, p), before, engine.BytesTotal, "received")
	settings, err := p.(engine.Configured).Settings(context.Background())
	if err != nil || settings["db routing_strategy"] != "round-robin" || settings["max_total_connections"] != "512" {
		t.Errorf("settings %v, %v", settings, err)
	}
}

// TestMissingResources has versions and configurations that lack a resource, and wrong answers.
func TestMissingResources(t *testing.T) {
	without := func(change func(map[string]string)) engine.Target {
		answers := recorded(t)
		change(answers)
		var now atomic.Pointer[map[string]string]
		now.Store(&answers)
		return serve(t, &now)
	}
	older := without(func(a map[string]string) { delete(a, api+"/routing/status"); delete(a, api+"/connection_pool") })
	p := enginetest.Open(t, Engine, older, nil)
	defer p.Close()
	s := mustProbe(t, p)
	enginetest.Absent(t, s, proxy.ClientLimit)
	enginetest.Absent(t, s, proxy.PoolConnections, "", "idle")

	denied := without(func(map[string]string) {})
	denied.Password = "guessed"
	for want, target := range map[string]engine.Target{
		"refused the login (401)":           denied,
		"needs the sections rest_api":       without(func(a map[string]string) { delete(a, api+"/routes") }),
		"is not Router's":                   without(func(a map[string]string) { a[api+"/routes"] = "<html>" }),
		"nothing is listening on 127.0.0.1": {Address: "127.0.0.1:1"},
	} {
		p := enginetest.Open(t, Engine, target, nil)
		_, err := p.Probe(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "guessed") {
			t.Errorf("%v, want %q", err, want)
		}
		p.Close()
	}
	enginetest.Refused(t, Engine, engine.Target{Address: "router"}, "REST interface")
}
