package marker

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/run/grafana"
	"github.com/benchwatch/benchwatch/internal/fakegrafana"
)

// TestRedirect: a redirect is not followed, so the token is not sent elsewhere.
func TestRedirect(t *testing.T) {
	visited := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited = true }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL+"/login?next=x", status))
		g, err := NewGrafana(server.URL, tokenFile(t, "glsa_secret"))
		if err != nil {
			t.Fatal(err)
		}
		m := point("x", 0)
		m.ID = "x"
		_, err = g.find(context.Background(), &m)
		var e *requestError
		if !errors.As(err, &e) || e.Problem != grafana.NotGrafana || !strings.Contains(err.Error(), "redirects to "+other.URL) {
			t.Errorf("%d: %v", status, err)
		}
		if _, err = g.create(context.Background(), annotationOf(&m)); err == nil {
			t.Errorf("%d: created", status)
		}
		g.Close()
		server.Close()
	}
	if visited {
		t.Error("a redirect was followed")
	}
}

// TestCutConnection: an answer that ends in the middle, on a real connection.
func TestCutConnection(t *testing.T) {
	fake := &fakegrafana.Grafana{}
	fake.SetFault(func(string, int) fakegrafana.Fault { return fakegrafana.Cut })
	server := httptest.NewServer(fake)
	defer server.Close()
	g, err := NewGrafana(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	m := point("x", 0)
	m.ID = "x"
	_, err = g.create(context.Background(), annotationOf(&m))
	var e *requestError
	if !errors.As(err, &e) || e.Problem != grafana.Unreachable || !e.ambiguous() {
		t.Errorf("%#v", err)
	}
	if len(fake.All()) != 1 {
		t.Error("it was carried out")
	}
}

// TestSecretInAnswer: a server that repeats the token gets it into no error.
func TestSecretInAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fakegrafana.Answer(w, 401, map[string]any{"message": "bad header " + r.Header.Get("Authorization")})
	}))
	defer server.Close()
	g, err := NewGrafana(server.URL, tokenFile(t, "glsa_hunter2"))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	m := point("x", 0)
	m.ID = "x"
	if _, err = g.find(context.Background(), &m); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
