package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/-/healthy", "/prefix/-/healthy":
		case "/ill/-/healthy":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			t.Errorf("asked for %s", r.URL.Path)
		}
	}))
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	t.Cleanup(server.Close)
	t.Cleanup(hanging.Close)
	hostPort := strings.TrimPrefix(server.URL, "http://")

	for name, test := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"host and port":   {[]string{"--address", hostPort}, 0, ""},
		"port":            {[]string{"--address", hostPort[strings.LastIndex(hostPort, ":"):]}, 0, ""},
		"url":             {[]string{"--address", server.URL}, 0, ""},
		"url with a path": {[]string{"--address", server.URL + "/prefix/"}, 0, ""},
		"not healthy":     {[]string{"--address", server.URL + "/ill"}, 1, "503 Service Unavailable"},
		"nobody there":    {[]string{"--address", gone.URL}, 1, "no agent answers at"},
		"no answer":       {[]string{"--address", hanging.URL, "--timeout", "10ms"}, 1, "deadline exceeded"},
		"JSON":            {[]string{"--address", server.URL, "--format=json"}, 0, ""},
		"not an address":  {[]string{"--address", "ftp://x"}, 2, "hint: "},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			status := Main(append([]string{"health"}, test.args...), Streams{Out: &out, Err: &errs})
			if name == "JSON" {
				if values, err := conforms("health", out.Bytes()); err != nil || len(values) != 1 {
					t.Errorf("%d values, %v", len(values), err)
				}
				out.Reset()
			}
			if status != test.status || out.Len() > 0 || !strings.Contains(errs.String(), test.says) || test.says == "" && errs.Len() > 0 {
				t.Errorf("exit status %d, standard output %q, standard error %q", status, &out, &errs)
			}
		})
	}
}
