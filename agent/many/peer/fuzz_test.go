package peer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Whatever a peer answers: no panic, no run with an id that is none, and no part of a file
// of which more follows although nothing came.
func FuzzAnswers(f *testing.F) {
	f.Add(200, "", `{"version":"1","format":1,"runs":[{"id":"20261121T021403Z-x","changed":1,"sizes":{"stdout.log":5}}]}`, uint16(0))
	f.Add(206, "bytes 2-6/9", "lloho", uint16(5))
	f.Add(206, "bytes 0-4/9", "\x00\x00\x00\x00\x00", uint16(5))
	f.Add(416, "bytes */5", "", uint16(5))
	f.Add(404, "", `{"error":"no such run"}`, uint16(0))
	var status int
	var contentRange, body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if contentRange != "" {
			w.Header().Set("Content-Range", contentRange)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	f.Cleanup(server.Close)
	c := newClient(Config{URL: server.URL}, func(int) {})
	f.Cleanup(c.http.CloseIdleConnections)
	dir := rundir.At(f.TempDir(), "20261121T021403Z-x")
	if err := errors.Join(os.MkdirAll(string(dir), 0o755), os.WriteFile(dir.Path(rundir.StdoutFile), make([]byte, 1<<16), 0o600)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, code int, fuzzedRange, text string, at uint16) {
		if code < 200 || code > 599 {
			return // no status of an answer
		}
		status, contentRange, body = code, fuzzedRange, text
		ctx := context.Background()
		if l, err := c.list(ctx, time.Hour); err == nil {
			for _, e := range l.Runs {
				if rundir.CheckID(e.ID) != nil {
					t.Errorf("run %q", e.ID)
				}
			}
		}
		if meta, err := c.meta(ctx, dir.ID(), ""); err == nil && meta != nil {
			_, _ = rundir.ParseMeta(dir.ID(), meta)
		}
		s := &source{client: c, files: []string{rundir.StdoutFile}, tags: map[string]string{}}
		if p, more, err := s.part(ctx, dir, rundir.StdoutFile, int64(at)); err == nil && (more && len(p.Data) == 0 || p.Offset != int64(at)) {
			t.Errorf("part of %d bytes at %d, more %v", len(p.Data), p.Offset, more)
		}
		_, _ = s.News(ctx, dir, &mirror.Have{Sizes: map[string]int64{rundir.StdoutFile: int64(at)}})
	})
}
