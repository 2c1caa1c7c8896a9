package marker

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
)

// answering is a Grafana with one answer to everything.
type answering struct {
	status                     int
	body, retryAfter, location string
	asked                      int
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked++
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	h := http.Header{"Content-Type": {a.location}, "Retry-After": {a.retryAfter}, "Location": {a.location}}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// FuzzGrafana: whatever a Grafana answers, a marker is delivered or there is an error
// of one short line without the token, after a few requests to that address alone.
func FuzzGrafana(f *testing.F) {
	const token = "glsa_hunter2hunter2"
	for _, body := range []string{
		"[]", `[{"id":1,"time":1,"timeEnd":2,"text":"x","tags":["marker:x"]}]`, `{"id":1,"message":"Annotation added"}`, `{"message":"bad token ` + token + `"}`, "<html>", "null", "",
		`{"message":"` + strings.Repeat("x", 5000) + `"}`, "{\"message\":\"\\u001b]0;x\\u0007\\n\"}", strings.Repeat("[", 10000),
	} {
		for _, status := range []int{200, 302, 401, 404, 429, 500} {
			f.Add(status, body, "5", "http://"+token+"@evil.example.com/")
		}
	}
	file := filepath.Join(f.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, body, retryAfter, header string) {
		if status < 200 || status > 599 {
			return
		}
		g, err := NewGrafana("http://grafana.test", file)
		if err != nil {
			t.Fatal(err)
		}
		fake := &answering{status: status, body: body, retryAfter: retryAfter, location: header}
		g.client.HTTP.Transport = fake
		m := Marker{ID: "x", Kind: Point, Run: "one", Text: "x", Start: time.Unix(1, 0)}
		id, err := g.upsert(context.Background(), &m, false, func() {}, slog.New(slog.DiscardHandler))
		if fake.asked > maxFound+10 {
			t.Errorf("%d requests", fake.asked)
		}
		if err == nil {
			if id <= 0 {
				t.Errorf("delivered as %d: %d %q", id, status, body)
			}
			return
		}
		text := err.Error()
		// A word that only resembles the token is Grafana's own.
		own := strings.Contains(strings.ReplaceAll(body+retryAfter+header, token, ""), "hunter2")
		leaked := strings.Contains(text, token) || strings.Contains(text, "hunter2") && !own
		if leaked || len(text) > 2000 || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%d %q: %q", status, body, text)
		}
	})
}
