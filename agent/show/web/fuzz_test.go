package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// FuzzRequests: any id and query is answered with JSON of bounded size, with an error
// that is the client's, and never with another run or file.
func FuzzRequests(f *testing.F) {
	for _, query := range []string{"", "points=50", "from=0&to=2", "from=9&to=1&points=-5", "from=NaN", "to=1e999", "points=99999999999999999999", "first=1&from=-Inf", "%zz&;=", "from=1&from=2"} {
		f.Add("one", query)
	}
	for _, id := range []string{"..", "one/..", "..%2f..%2fetc", ".hidden", "a\x00b", "one%00", "two", "ä"} {
		f.Add(id, "")
	}
	s := newSite(f)
	s.ended(rundir.Meta{ID: "one"}, banner+interval(1, 100)+interval(2, 110), statusLine(f, 1, "n1", 100), statusLine(f, 2, "n1", 300))
	mux := http.NewServeMux()
	s.page.Register(mux)
	f.Fuzz(func(t *testing.T, id, query string) {
		for _, path := range []string{"/api/runs/", "/api/runs/one/history"} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if r.URL.RawQuery = query; path == "/api/runs/" {
				path += id
			}
			r.URL.Path = path
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			body := w.Body.String()
			switch {
			case w.Code >= 500 || w.Body.Len() > 64<<10:
				t.Fatalf("%s?%s: %d, %d bytes", path, query, w.Code, w.Body.Len())
			case w.Code == http.StatusOK && !strings.HasPrefix(path, "/api/runs"), w.Code == http.StatusOK && !strings.Contains(body, `"one"`) && path != "/api/runs/":
				t.Fatalf("%s?%s: %s", path, query, body)
			case (w.Code == http.StatusOK || w.Code == http.StatusBadRequest) && !json.Valid(w.Body.Bytes()):
				t.Fatalf("%s?%s: not JSON: %s", path, query, body)
			}
			if _, err := url.ParseQuery(query); err == nil && w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Fatal("another page may read it")
			}
		}
	})
}
