package peer

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// For any answer of a peer: no panic, no invalid id, nothing outside the copy's own folder, and no
// further request after an empty answer.
func FuzzAnswers(f *testing.F) {
	const id = "20261121T021403Z-x"
	f.Add(200, `{"version":"1","format":2,"runs":[{"id":"20261121T021403Z-x","changed":1,"sizes":{"stdout.log":5}}]}`)
	f.Add(200, `{"files":[{"name":"stdout.log","data":"bGluZQo="}],"meta":{"id":"20261121T021403Z-x"}}`)
	f.Add(200, `{"files":[{"name":"../x","data":"bGluZQo="}],"meta":{"id":"20261121T021403Z-x"},"more":true}`)
	f.Add(200, `{"replaced":"stdout.log"}`)
	f.Add(404, `{"error":"no such run","gone":true}`)
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	f.Cleanup(server.Close)
	c := newClient(Config{URL: server.URL})
	f.Cleanup(c.http.CloseIdleConnections)
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, code int, text string) {
		if code < 200 || code > 599 {
			return // not a status code
		}
		status, body = code, text
		if l, err := c.List(t.Context(), time.Hour); err == nil {
			for _, e := range l.Runs {
				if rundir.CheckID(e.ID) != nil {
					t.Errorf("run %q", e.ID)
				}
			}
		}
		data, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		m := mirror.Mirror{Dir: rundir.At(data, id), From: rundir.Mirror{Host: "h", Peer: true}, Files: files}
		for range 2 {
			if p, err := m.Update(t.Context(), c); err == nil && p.More && p.Bytes == 0 {
				t.Error("more of nothing")
			}
		}
		outside, err := os.ReadDir(data)
		if err != nil || len(outside) > 1 {
			t.Errorf("%v %v", outside, err)
		}
		if err := os.RemoveAll(data); err != nil {
			t.Fatal(err)
		}
	})
}
