package marker

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fakeGrafana answers as Grafana 12 does (pkg/api/annotations.go,
// pkg/services/annotations/annotationsimpl/xorm_store.go, pkg/services/tag),
// with faults put in front.
type fakeGrafana struct {
	mu          sync.Mutex
	annotations []*annotation
	untagged    map[int64]bool // written without their rows in the tag table
	lastID      int64
	token       string
	requests    []string // "GET /api/annotations"
	auths       []string // Authorization headers
	// fault is asked for each request; nil means none. n counts the requests of
	// that method from 0.
	fault func(method string, n int) fault
	count map[string]int
}

// fault does something in place of serve, which does what Grafana would.
type fault func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)

func (g *fakeGrafana) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	if g.count == nil {
		g.count = map[string]int{}
	}
	n := g.count[r.Method]
	g.count[r.Method]++
	g.requests = append(g.requests, r.Method+" "+r.URL.Path)
	g.auths = append(g.auths, r.Header.Get("Authorization"))
	var f fault
	if g.fault != nil {
		f = g.fault(r.Method, n)
	}
	g.mu.Unlock()
	if f != nil {
		f(w, r, g.serve)
		return
	}
	g.serve(w, r)
}

func (g *fakeGrafana) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token != "" && r.Header.Get("Authorization") != "Bearer "+g.token {
		answer(w, http.StatusUnauthorized, map[string]any{"message": "Invalid API key", "messageId": "api-key.invalid", "statusCode": 401})
		return
	}
	sub, ok := strings.CutPrefix(r.URL.Path, "/api/annotations")
	if !ok {
		http.NotFound(w, r)
		return
	}
	id, _ := strconv.ParseInt(strings.TrimPrefix(sub, "/"), 10, 64)
	switch {
	case r.Method == http.MethodGet && sub == "":
		answer(w, http.StatusOK, g.find(r))
	case r.Method == http.MethodPost && sub == "":
		g.add(w, body)
	case r.Method == http.MethodPatch && id > 0:
		g.patch(w, id, body)
	case r.Method == http.MethodDelete && id > 0:
		g.annotations = slices.DeleteFunc(g.annotations, func(a *annotation) bool { return a.ID == id })
		answer(w, http.StatusOK, map[string]any{"message": "Annotation deleted"})
	default:
		answer(w, http.StatusNotFound, map[string]any{"message": "Not found"})
	}
}

func (g *fakeGrafana) find(r *http.Request) []annotation {
	q := r.URL.Query()
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64)
	to, _ := strconv.ParseInt(q.Get("to"), 10, 64)
	limit, _ := strconv.Atoi(q.Get("limit"))
	if limit == 0 {
		limit = 100
	}
	found := []annotation{}
	for _, a := range g.annotations {
		if from > 0 && to > 0 && (a.Time > to || a.TimeEnd < from) {
			continue
		}
		has := func(t string) bool { return slices.Contains(a.Tags, t) && !g.untagged[a.ID] }
		if !slices.ContainsFunc(grafanaTags(q["tags"]), func(t string) bool { return !has(t) }) {
			found = append(found, *a, *a) // it lists some twice
		}
	}
	slices.Reverse(found)
	return found[:min(len(found), limit)]
}

func (g *fakeGrafana) add(w http.ResponseWriter, body []byte) {
	var a annotation
	if err := json.Unmarshal(body, &a); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"message": "bad request data"})
		return
	}
	a.Tags = grafanaTags(a.Tags)
	if a.Text == "" || tagsTooLong(a.Tags) {
		answer(w, http.StatusBadRequest, map[string]any{"message": "Failed to save annotation"})
		return
	}
	if a.Time == 0 {
		a.Time = time.Now().UnixMilli()
	}
	a.TimeEnd = max(a.TimeEnd, a.Time)
	g.lastID++
	a.ID = g.lastID
	g.annotations = append(g.annotations, &a)
	answer(w, http.StatusOK, map[string]any{"message": "Annotation added", "id": a.ID})
}

func (g *fakeGrafana) patch(w http.ResponseWriter, id int64, body []byte) {
	i := slices.IndexFunc(g.annotations, func(a *annotation) bool { return a.ID == id })
	if i < 0 {
		answer(w, http.StatusNotFound, map[string]any{"message": "Annotation not found"})
		return
	}
	var change annotation
	if err := json.Unmarshal(body, &change); err != nil || tagsTooLong(change.Tags) {
		answer(w, http.StatusBadRequest, map[string]any{"message": "bad request data"})
		return
	}
	a := g.annotations[i]
	if change.Tags != nil {
		a.Tags = change.Tags
		delete(g.untagged, id)
	}
	if change.Text != "" {
		a.Text = change.Text
	}
	if change.Time > 0 {
		a.Time = change.Time
	}
	if change.TimeEnd > 0 {
		a.TimeEnd = change.TimeEnd
	}
	answer(w, http.StatusOK, map[string]any{"message": "Annotation patched"})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// grafanaTags is what Grafana makes of tags: ParseTagPairs and JoinTagPairs.
func grafanaTags(tags []string) []string {
	out := []string{}
	for _, t := range tags {
		parts := strings.Split(t, ":")
		key, value := strings.Trim(parts[0], " "), ""
		if len(parts) > 1 {
			value = strings.Trim(parts[1], " ")
		}
		if value != "" {
			t = key + ":" + value
		} else {
			t = key
		}
		if key != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

func tagsTooLong(tags []string) bool {
	size := 2
	for i, t := range tags {
		size += len(t) + min(i, 1) + 2
	}
	return size > 500
}

// all returns copies of what Grafana holds.
func (g *fakeGrafana) all() []annotation {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]annotation, len(g.annotations))
	for i, a := range g.annotations {
		out[i] = *a
	}
	return out
}

// made counts the requests of a method so far.
func (g *fakeGrafana) made(method string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count[method]
}

// setFault changes the faults.
func (g *fakeGrafana) setFault(f func(method string, n int) fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault, g.count = f, nil
}

// inProcess is a transport to a handler in the same process, for tests with a
// clock of their own. As over a network, giving up a request does not keep the
// handler from carrying it out.
type inProcess struct {
	handler http.Handler
	down    func() error // why nobody can be reached, or nil
}

func (t *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.down != nil {
		if err := t.down(); err != nil {
			return nil, err
		}
	}
	done := make(chan *http.Response, 1)
	go func() {
		w := &recorder{header: http.Header{}, status: http.StatusOK}
		served := r.Clone(r.Context())
		if served.Body == nil {
			served.Body = http.NoBody
		}
		t.handler.ServeHTTP(w, served)
		done <- &http.Response{
			StatusCode: w.status, Header: w.header, Request: r,
			Body: io.NopCloser(io.MultiReader(strings.NewReader(w.body.String()), w.cut)),
		}
	}()
	select {
	case res := <-done:
		return res, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

type recorder struct {
	header http.Header
	status int
	body   strings.Builder
	cut    cutReader
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }

// cutReader ends a body: properly, or as a cut connection does.
type cutReader struct{ err error }

func (c cutReader) Read([]byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	return 0, io.EOF
}

// The faults.

func before(f http.HandlerFunc) fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) { f(w, r) }
}

func after(f http.HandlerFunc) fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(&recorder{header: http.Header{}}, r)
		f(w, r)
	}
}

func status(code int, header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if k, v, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(k, v)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

const loginPage = "<!DOCTYPE html><html><body>Log in</body></html>"

// slow answers, and does what it was asked for, after a while; or at once and
// only the answer comes late.
func slow(d time.Duration, late bool) fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		if late {
			time.Sleep(d)
			serve(w, r)
			return
		}
		kept := &recorder{header: http.Header{}, status: http.StatusOK}
		serve(kept, r)
		time.Sleep(d)
		w.WriteHeader(kept.status)
		fmt.Fprint(w, kept.body.String())
	}
}

// cut ends the connection in the middle of the answer.
func cut(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	kept := &recorder{header: http.Header{}, status: http.StatusOK}
	serve(kept, r)
	body := kept.body.String()
	fmt.Fprint(w, body[:len(body)/2])
	if rec, ok := w.(*recorder); ok {
		rec.cut.err = io.ErrUnexpectedEOF
		return
	}
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}
