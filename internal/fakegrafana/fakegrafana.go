// Package fakegrafana answers requests for annotations like Grafana 12, with faults on demand, for
// tests.
package fakegrafana

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

// Grafana answers like Grafana 12 (pkg/api/annotations.go,
// pkg/services/annotations/annotationsimpl/xorm_store.go, pkg/services/tag), with faults on demand.
type Grafana struct {
	mu          sync.Mutex
	annotations []*Annotation
	lastID      int64
	// Token is the only accepted token; empty: any token is accepted.
	Token string
	// Untagged annotations are stored without their rows in the tag table.
	Untagged map[int64]bool
	// fault is called for each request; nil: no faults. n counts the requests of this method from
	// 0.
	fault func(method string, n int) Fault
	count map[string]int
}

// Annotation is an annotation in Grafana's HTTP API.
type Annotation struct {
	ID int64 `json:"id,omitempty"`
	// Time and TimeEnd are milliseconds since 1970. A point has equal times.
	Time    int64    `json:"time"`
	TimeEnd int64    `json:"timeEnd,omitempty"`
	Text    string   `json:"text"`
	Tags    []string `json:"tags"`
}

// Fault acts instead of serve, which does what Grafana would do.
type Fault func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)

// ServeHTTP implements http.Handler.
func (g *Grafana) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	if g.count == nil {
		g.count = map[string]int{}
	}
	n := g.count[r.Method]
	g.count[r.Method]++
	var f Fault
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

func (g *Grafana) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Token != "" && r.Header.Get("Authorization") != "Bearer "+g.Token {
		Answer(w, http.StatusUnauthorized,
			map[string]any{"message": "Invalid API key", "messageId": "api-key.invalid", "statusCode": 401})
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
		Answer(w, http.StatusOK, g.find(r))
	case r.Method == http.MethodPost && sub == "":
		g.add(w, body)
	case r.Method == http.MethodPatch && id > 0:
		g.patch(w, id, body)
	case r.Method == http.MethodDelete && id > 0:
		g.annotations = slices.DeleteFunc(g.annotations, func(a *Annotation) bool { return a.ID == id })
		Answer(w, http.StatusOK, map[string]any{"message": "Annotation deleted"})
	default:
		Answer(w, http.StatusNotFound, map[string]any{"message": "Not found"})
	}
}

func (g *Grafana) find(r *http.Request) []Annotation {
	q := r.URL.Query()
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64)
	to, _ := strconv.ParseInt(q.Get("to"), 10, 64)
	limit, _ := strconv.Atoi(q.Get("limit"))
	if limit == 0 {
		limit = 100
	}
	found := []Annotation{}
	for _, a := range g.annotations {
		if from > 0 && to > 0 && (a.Time > to || a.TimeEnd < from) {
			continue
		}
		has := func(t string) bool { return slices.Contains(a.Tags, t) && !g.Untagged[a.ID] }
		if !slices.ContainsFunc(Tags(q["tags"]), func(t string) bool { return !has(t) }) {
			found = append(found, *a, *a) // some are listed twice
		}
	}
	slices.Reverse(found)
	return found[:min(len(found), limit)]
}

func (g *Grafana) add(w http.ResponseWriter, body []byte) {
	var a Annotation
	if err := json.Unmarshal(body, &a); err != nil {
		Answer(w, http.StatusBadRequest, map[string]any{"message": "bad request data"})
		return
	}
	a.Tags = Tags(a.Tags)
	if a.Text == "" || TagsTooLong(a.Tags) {
		Answer(w, http.StatusBadRequest, map[string]any{"message": "Failed to save annotation"})
		return
	}
	if a.Time == 0 {
		a.Time = time.Now().UnixMilli()
	}
	a.TimeEnd = max(a.TimeEnd, a.Time)
	g.lastID++
	a.ID = g.lastID
	g.annotations = append(g.annotations, &a)
	Answer(w, http.StatusOK, map[string]any{"message": "Annotation added", "id": a.ID})
}

func (g *Grafana) patch(w http.ResponseWriter, id int64, body []byte) {
	i := slices.IndexFunc(g.annotations, func(a *Annotation) bool { return a.ID == id })
	if i < 0 {
		Answer(w, http.StatusNotFound, map[string]any{"message": "Annotation not found"})
		return
	}
	var change Annotation
	if err := json.Unmarshal(body, &change); err != nil || TagsTooLong(change.Tags) {
		Answer(w, http.StatusBadRequest, map[string]any{"message": "bad request data"})
		return
	}
	a := g.annotations[i]
	if change.Tags != nil {
		a.Tags = change.Tags
		delete(g.Untagged, id)
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
	Answer(w, http.StatusOK, map[string]any{"message": "Annotation patched"})
}

// Answer writes v as JSON.
func Answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

// Tags returns tags as Grafana stores them: ParseTagPairs and JoinTagPairs.
func Tags(tags []string) []string {
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

// TagsTooLong reports whether Grafana refuses tags for their length.
func TagsTooLong(tags []string) bool {
	size := 2
	for i, t := range tags {
		size += len(t) + min(i, 1) + 2
	}
	return size > 500
}

// All returns copies of all annotations.
func (g *Grafana) All() []Annotation {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]Annotation, len(g.annotations))
	for i, a := range g.annotations {
		out[i] = *a
	}
	return out
}

// Made returns the number of requests of a method so far.
func (g *Grafana) Made(method string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count[method]
}

// Edit replaces all annotations by the result of change.
func (g *Grafana) Edit(change func([]Annotation) []Annotation) {
	changed := change(g.All())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.annotations = nil
	for _, a := range changed {
		g.annotations = append(g.annotations, &a)
	}
}

// SetFault changes the fault: f is called for each request, and n counts the requests of its method
// from 0. Nil: no faults.
func (g *Grafana) SetFault(f func(method string, n int) Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault, g.count = f, nil
}

// Transport connects to a handler in the same process, for tests with their own clock. As over a
// network, cancelling a request does not keep the handler from carrying it out.
type Transport struct {
	Handler http.Handler
	// Down returns why nothing is reachable, or nil.
	Down func() error
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Down != nil {
		if err := t.Down(); err != nil {
			return nil, err
		}
	}
	done := make(chan *http.Response, 1)
	go func() {
		w := &Recorder{status: http.StatusOK}
		served := r.Clone(r.Context())
		if served.Body == nil {
			served.Body = http.NoBody
		}
		t.Handler.ServeHTTP(w, served)
		done <- &http.Response{
			StatusCode: w.status, Header: w.Header(), Request: r,
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

// Recorder keeps an answer.
type Recorder struct {
	header http.Header
	status int
	body   strings.Builder
	cut    cutReader
}

// Header implements http.ResponseWriter.
func (w *Recorder) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *Recorder) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *Recorder) Write(p []byte) (int, error) { return w.body.Write(p) }

// cutReader ends a body: properly, or like a cut connection.
type cutReader struct{ err error }

func (c cutReader) Read([]byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	return 0, io.EOF
}

// Before answers with f; Grafana does not carry out the request.
func Before(f http.HandlerFunc) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) { f(w, r) }
}

// After answers with f after Grafana has carried out the request.
func After(f http.HandlerFunc) Fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(&Recorder{}, r)
		f(w, r)
	}
}

// Status answers with a status, a header "Name: value" (may be empty), and a body.
func Status(code int, header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if k, v, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(k, v)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// LoginPage is a proxy's answer to unknown users.
const LoginPage = "<!DOCTYPE html><html><body>Log in</body></html>"

// Slow carries out the request and answers after a while. With late it carries out the request at
// once, and only the answer is delayed.
func Slow(d time.Duration, late bool) Fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		if late {
			time.Sleep(d)
			serve(w, r)
			return
		}
		kept := &Recorder{status: http.StatusOK}
		serve(kept, r)
		time.Sleep(d)
		w.WriteHeader(kept.status)
		fmt.Fprint(w, kept.body.String())
	}
}

// Cut ends the connection in the middle of the answer.
func Cut(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	kept := &Recorder{status: http.StatusOK}
	serve(kept, r)
	body := kept.body.String()
	fmt.Fprint(w, body[:len(body)/2])
	if rec, ok := w.(*Recorder); ok {
		rec.cut.err = io.ErrUnexpectedEOF
		return
	}
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}
