package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/run"
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/sysbench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)

// site is a page with the runs of a data directory, behind a real HTTP server.
type site struct {
	t       *testing.T
	dataDir string
	page    *Page
	watcher *run.Watcher
	url     string
	server  *httptest.Server
	stop    context.CancelFunc
}

func newSite(t *testing.T, only ...string) *site {
	t.Helper()
	s := &site{t: t, dataDir: t.TempDir()}
	tools := func() tool.Set { return tool.Set{sysbench.Tool} }
	quiet := slog.New(slog.DiscardHandler)
	s.page = New(Options{
		DataDir: s.dataDir, Only: only, Tools: tools, Logger: quiet,
		Runs: func() []run.Snapshot { return s.watcher.Snapshots() },
	})
	s.watcher = run.NewWatcher(run.Options{
		DataDir: s.dataDir, Only: only, Tools: tools, Logger: quiet, Poll: 20 * time.Millisecond,
		Interval: s.page.Interval, Changed: s.page.Changed,
	})
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { s.watcher.Run(ctx) })
	parts.Go(func() { s.page.Run(ctx) })
	mux := http.NewServeMux()
	s.page.Register(mux)
	s.server = httptest.NewServer(mux)
	s.url = s.server.URL
	s.stop = stop
	t.Cleanup(func() {
		stop()
		parts.Wait()
		s.server.Close()
	})
	return s
}

func (s *site) create(meta run.Meta) (run.Directory, *run.Claim) {
	s.t.Helper()
	dir, claim, err := run.Create(s.dataDir, meta)
	if err != nil {
		s.t.Fatal(err)
	}
	return dir, claim
}

// ended makes a run that is over.
func (s *site) ended(meta run.Meta, stdout string, status ...string) run.Directory {
	s.t.Helper()
	end := begin.Add(time.Hour)
	meta.Tool, meta.StartedAt, meta.ClockStartedAt, meta.EndedAt, meta.ClosedAt, meta.Result = "sysbench", begin, &begin, &end, &end, run.Succeeded
	dir, claim := s.create(meta)
	claim.Release()
	write(s.t, dir.Path(run.StdoutFile), stdout)
	write(s.t, dir.Path(run.StatusFile), strings.Join(status, ""))
	s.until("the run in the list", func() bool {
		for _, r := range s.watcher.Snapshots() {
			if r.Meta.ID == meta.ID {
				return true
			}
		}
		return false
	})
	return dir
}

func (s *site) get(path string) (int, []byte) {
	s.t.Helper()
	resp, err := s.server.Client().Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, body
}

func (s *site) until(what string, ok func() bool) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatal("waited in vain for " + what)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

const banner = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 4\n\nThreads started!\n\n"

func interval(second int, tps float64) string {
	return fmt.Sprintf("[ %ds ] thds: 4 tps: %.2f qps: %.2f (r/w/o: 0.00/%.2f/0.00) lat (ms,95%%): 1.04 err/s: 0.00 reconn/s: 0.00\n", second, tps, tps, tps)
}

func statusLine(t *testing.T, second int, target string, queries float64) string {
	t.Helper()
	tick := begin.Add(time.Duration(second) * time.Second)
	data, err := json.Marshal(run.Status{
		Tick: tick, Asked: &tick, Answered: tick, Target: target, Engine: "mysql", Up: true,
		Values: map[string]float64{"db_queries_total": queries, "db_uptime_seconds": 7},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

// drawnTable is a table as a browser gets it.
type drawnTable struct {
	Rows   int       `json:"rows"`
	X      []float64 `json:"x"`
	Series []struct {
		Name   [3]string  `json:"name"`
		Values []*float64 `json:"values"`
		Min    *float64   `json:"min"`
		Max    *float64   `json:"max"`
	} `json:"series"`
}

func (d *drawnTable) values(t *testing.T, kind, of string) []float64 {
	t.Helper()
	for _, s := range d.Series {
		if s.Name[0] == kind && s.Name[1] == of {
			if len(s.Values) != len(d.X) {
				t.Errorf("%s %s: %d values at %d instants", kind, of, len(s.Values), len(d.X))
			}
			values := make([]float64, len(s.Values))
			for i, v := range s.Values {
				values[i] = math.NaN()
				if v != nil {
					values[i] = *v
				}
			}
			return values
		}
	}
	t.Fatalf("no series %s %s", kind, of)
	return nil
}

type drawnHistory struct {
	Run     runDetail             `json:"run"`
	Zero    int64                 `json:"zero"`
	Damage  []string              `json:"damage"`
	Markers []markerView          `json:"markers"`
	Tables  map[string]drawnTable `json:"tables"`
}

func (s *site) history(id, query string) drawnHistory {
	s.t.Helper()
	code, body := s.get("/api/runs/" + id + "/history" + query)
	var h drawnHistory
	if err := json.Unmarshal(body, &h); code != http.StatusOK || err != nil {
		s.t.Fatalf("history: %d %v %.300s", code, err, body)
	}
	return h
}

// TestHistory guards what is drawn of an ended run: the tool's reports and the
// servers' counters as growth per second, with a gap where one fell.
func TestHistory(t *testing.T) {
	s := newSite(t)
	dir := s.ended(run.Meta{ID: "one"}, banner+interval(1, 100)+interval(2, 110),
		statusLine(t, 1, "n1", 100), statusLine(t, 2, "n1", 300), statusLine(t, 3, "n1", 50), statusLine(t, 4, "n1", 90), statusLine(t, 4, "n2", 5))
	if _, err := marker.Append(dir.Path(run.MarkersFile), marker.Marker{Kind: marker.Point, Run: "one", Text: "fc_limit", Start: begin.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	h := s.history("one", "")
	if h.Zero != begin.UnixMilli() || len(h.Markers) != 1 || h.Markers[0].Text != "fc_limit" || h.Run.ID != "one" {
		t.Errorf("%+v", h)
	}
	intervals, servers := h.Tables["intervals"], h.Tables["servers"]
	if got := intervals.values(t, rate, "transaction"); len(got) != 2 || got[0] != 100 || got[1] != 110 {
		t.Errorf("throughput %v", got)
	}
	if got := intervals.values(t, latency, "transaction"); got[0] != 0.00104 {
		t.Errorf("latency %v", got)
	}
	got := servers.values(t, "queries", "n1")
	if len(got) != 4 || !math.IsNaN(got[0]) || got[1] != 200 || !math.IsNaN(got[2]) || got[3] != 40 {
		t.Errorf("queries per second %v", got)
	}
	for _, v := range servers.Series {
		if v.Name[0] != "queries" && v.Name[0] != up {
			t.Errorf("unexpected series %v", v.Name)
		}
	}
	// Another file: read again.
	appendTo(t, dir.Path(run.StdoutFile), interval(3, 120))
	if got := s.history("one", "").Tables["intervals"]; len(got.X) != 3 {
		t.Errorf("not read again: %v", got.X)
	}
}

// TestThinning guards that of a run of ten hours few points are sent, with every
// extreme among them, and that a part of it is sent whole.
func TestThinning(t *testing.T) {
	s := newSite(t)
	var b strings.Builder
	b.WriteString(banner)
	for i := 1; i <= 36000; i++ {
		tps := 1000.0
		switch i {
		case 20000:
			tps = 5
		case 20001:
			tps = 9000
		}
		b.WriteString(interval(i, tps))
	}
	s.ended(run.Meta{ID: "long"}, b.String())
	all := s.history("long", "?points=1000").Tables["intervals"]
	if all.Rows != 36000 || len(all.X) > 1010 || len(all.X) < 900 {
		t.Errorf("%d points of %d rows", len(all.X), all.Rows)
	}
	if all.X[0] != 1 || all.X[len(all.X)-1] != 36000 {
		t.Errorf("from %v to %v", all.X[0], all.X[len(all.X)-1])
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range all.values(t, rate, "transaction") {
		low, high = min(low, v), max(high, v)
	}
	if low != 5 || high != 9000 {
		t.Errorf("extremes %v and %v", low, high)
	}
	for i := 1; i < len(all.X); i++ {
		if !(all.X[i] > all.X[i-1]) {
			t.Fatalf("time stands still at %v", all.X[i])
		}
	}
	part := s.history("long", "?points=1000&from=19990&to=20010").Tables["intervals"]
	if len(part.X) != 23 || part.Rows != 23 {
		t.Errorf("a part: %v", part.X)
	}
}

// TestThinnedGaps guards that a stretch without any value stays one.
func TestThinnedGaps(t *testing.T) {
	var tab table
	values := make([]float64, 1000)
	for i := range values {
		tab.x = append(tab.x, float64(i))
		values[i] = float64(i)
		if i >= 400 && i < 600 {
			values[i] = math.NaN()
		}
	}
	tab.column(name{"k", "", ""}, values)
	var d drawnTable
	if err := json.Unmarshal(tab.appendJSON(nil, math.Inf(-1), math.Inf(1), 100), &d); err != nil {
		t.Fatal(err)
	}
	gaps := 0
	for i, v := range d.values(t, "k", "") {
		if math.IsNaN(v) {
			gaps++
			if d.X[i] < 400 || d.X[i] >= 600 {
				t.Errorf("a gap at %v", d.X[i])
			}
		}
	}
	if gaps < 16 {
		t.Errorf("only %d points of the gap", gaps)
	}
}

// TestBadRequests guards ids and numbers from outside.
func TestBadRequests(t *testing.T) {
	s := newSite(t)
	s.ended(run.Meta{ID: "one"}, "")
	write(t, filepath.Join(s.dataDir, "secret"), "x")
	for path, want := range map[string]int{
		"/api/runs/nothing":                    404,
		"/api/runs/nothing/history":            404,
		"/api/runs/..%2fsecret":                400,
		"/api/runs/%2e%2e":                     400,
		"/api/runs/.hidden/history":            400,
		"/api/runs/a%00b":                      400,
		"/api/runs/one/history?points=x":       400,
		"/api/runs/one/history?from=NaN":       400,
		"/api/runs/one/history?from=9&to=1":    200,
		"/api/runs/one/history?points=-5":      200,
		"/api/runs/one/history?points=9999999": 200,
		"/api/nothing":                         404,
	} {
		code, body := s.get(path)
		if code != want {
			t.Errorf("%s: %d, want %d: %s", path, code, want, body)
		}
		if want == 400 && !json.Valid(body) {
			t.Errorf("%s: not JSON: %s", path, body)
		}
	}
	resp, err := s.server.Client().Post(s.url+"/api/runs", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

// TestOnly guards that a run that serves itself shows no others.
func TestOnly(t *testing.T) {
	s := newSite(t, "mine")
	_, claim := s.create(run.Meta{ID: "other", StartedAt: begin})
	claim.Release()
	s.ended(run.Meta{ID: "mine"}, "")
	s.stream().next("hello", has(`"only":"mine"`))
	if code, _ := s.get("/api/runs/other"); code != http.StatusNotFound {
		t.Errorf("another run: %d", code)
	}
}

// TestOldRun guards that a run beyond the kept ones opens by its id.
func TestOldRun(t *testing.T) {
	s := newSite(t)
	s.stop() // nobody keeps it
	end := begin.Add(time.Minute)
	dir, claim := s.create(run.Meta{ID: "old", Tool: "sysbench", StartedAt: begin, EndedAt: &end, ClosedAt: &end})
	claim.Release()
	write(t, dir.Path(run.StdoutFile), banner+interval(1, 10))
	if h := s.history("old", ""); len(h.Tables["intervals"].X) != 1 {
		t.Errorf("%+v", h)
	}
}

// TestHostileText guards that titles, labels and tool output are JSON strings in
// which no script can hide.
func TestHostileText(t *testing.T) {
	s := newSite(t)
	evil := "</script><script>alert(1)</script>\u2028\"'&\n\ndata: x"
	s.ended(run.Meta{ID: "evil", Title: evil, Labels: map[string]string{"k": evil}}, "FATAL: "+evil+"\n")
	code, body := s.get("/api/runs/evil")
	var d runDetail
	if err := json.Unmarshal(body, &d); code != 200 || err != nil {
		t.Fatal(code, err)
	}
	if d.Title != evil || d.Labels["k"] != evil {
		t.Errorf("%q", d.Title)
	}
	if bytes.ContainsAny(body, "<>\u2028\n") {
		t.Errorf("not escaped: %s", body)
	}
}

// stream reads server-sent events.
type stream struct {
	t      *testing.T
	body   io.ReadCloser
	events chan [2]string
}

func (s *site) stream() *stream {
	s.t.Helper()
	resp, err := s.server.Client().Get(s.url + "/api/events")
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("stream: %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	st := &stream{s.t, resp.Body, make(chan [2]string, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(st.events)
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		kind := ""
		for lines.Scan() {
			if k, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				kind = k
			} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				st.events <- [2]string{kind, data}
			}
		}
	}()
	s.t.Cleanup(func() { resp.Body.Close(); <-done })
	return st
}

// next returns the data of the next event of a kind for which ok holds.
func (st *stream) next(kind string, ok func(data string) bool) string {
	st.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case e, open := <-st.events:
			if !open {
				st.t.Fatalf("stream ended before %s", kind)
			}
			if e[0] == kind && ok(e[1]) {
				return e[1]
			}
		case <-deadline:
			st.t.Fatalf("no event %s", kind)
		}
	}
}

func has(text string) func(string) bool {
	return func(data string) bool { return strings.Contains(data, text) }
}

// TestEvents guards the life of a run as a browser that listens sees it.
func TestEvents(t *testing.T) {
	s := newSite(t)
	st := s.stream()
	st.next("hello", has(`"now"`))
	dir, claim := s.create(run.Meta{ID: "one", Title: "a title", Tool: "sysbench", StartedAt: time.Now().UTC()})
	defer claim.Release()
	st.next("run", has(`"a title"`))
	appendTo(t, dir.Path(run.StdoutFile), banner)
	appendTo(t, dir.Path(run.StdoutFile), interval(1, 100))
	row := st.next("row", has(`"intervals"`))
	if !strings.Contains(row, `"run":"one","x":1,`) || !strings.Contains(row, `[["rate","transaction",""],100]`) {
		t.Errorf("row %s", row)
	}
	st.next("run", has(`"throughput":100`))
	if _, err := marker.Append(dir.Path(run.MarkersFile), marker.Marker{Kind: marker.Point, Run: "one", Text: "changed", Start: time.Now()}); err != nil {
		t.Fatal(err)
	}
	st.next("markers", has(`"changed"`))

	// The history of a live run goes on with what the stream tells.
	if h := s.history("one", ""); len(h.Tables["intervals"].X) != 1 {
		t.Errorf("history %v", h.Tables["intervals"].X)
	}
	appendTo(t, dir.Path(run.StdoutFile), interval(2, 110))
	st.next("row", has(`"x":2`))
	if h := s.history("one", ""); len(h.Tables["intervals"].X) != 2 {
		t.Errorf("history %v", h.Tables["intervals"].X)
	}

	if _, err := dir.Update(func(m *run.Meta) {
		end := time.Now().UTC()
		m.EndedAt, m.Result = &end, run.Succeeded
	}); err != nil {
		t.Fatal(err)
	}
	st.next("run", has(`"phase":"over"`))
	if h := s.history("one", ""); h.Run.Phase != run.Over || len(h.Tables["intervals"].X) != 2 {
		t.Errorf("ended: %+v", h.Run)
	}
	if err := dir.Remove(); err != nil {
		t.Fatal(err)
	}
	st.next("gone", has(`"one"`))
}

func frame(tick time.Time, restarts uint64, queries float64) engine.Frame {
	target := &engine.Target{Name: "n1"}
	status := &engine.Status{}
	status.Set(engine.QueriesTotal, queries)
	return engine.Frame{Tick: tick, Samples: []engine.Sample{{Target: target, Tick: tick, Answered: tick, Status: status, Restarts: restarts}}}
}

// TestFrames guards rates over frames: against the tick before, none over a
// restart or a fall.
func TestFrames(t *testing.T) {
	s := newSite(t)
	st := s.stream()
	st.next("hello", has(""))
	at := begin
	for _, c := range []struct {
		restarts uint64
		queries  float64
		want     string
	}{
		{0, 100, ""}, {0, 350, `[["queries","n1",""],250]`}, {0, 10, ""}, {0, 30, `[["queries","n1",""],20]`}, {1, 90, ""}, {1, 91, `[["queries","n1",""],1]`},
	} {
		at = at.Add(time.Second)
		s.page.Frame(frame(at, c.restarts, c.queries))
		row := st.next("row", has(`"servers"`))
		if c.want == "" && strings.Contains(row, `"queries"`) || !strings.Contains(row, c.want) {
			t.Errorf("%v: want %q in %s", c.queries, c.want, row)
		}
	}
}

// TestSlowClient guards that a client that does not read is dropped, and holds up
// neither the agent nor others.
func TestSlowClient(t *testing.T) {
	s := newSite(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /api/events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	s.until("the slow client", func() bool { return !s.page.hub.empty() })
	big := event("row", encode(strings.Repeat("x", 64<<10)))
	for range 100000 {
		if s.page.hub.send(big); s.page.hub.empty() {
			return
		}
	}
	t.Error("a client that does not read was kept")
}

// TestTooManyClients guards the bound of open streams, and that one that has
// ended makes room.
func TestTooManyClients(t *testing.T) {
	s := newSite(t)
	var all []*client
	for range maxClients {
		c, ok := s.page.hub.join()
		if !ok {
			t.Fatal("too few")
		}
		all = append(all, c)
	}
	if code, body := s.get("/api/events"); code != http.StatusServiceUnavailable || !json.Valid(body) {
		t.Errorf("%d %s", code, body)
	}
	s.page.hub.leave(all[0])
	s.stream().next("hello", has("now"))
}

// TestEndOfAgent guards that streams end with the agent, so that it can end.
func TestEndOfAgent(t *testing.T) {
	s := newSite(t)
	st := s.stream()
	st.next("hello", has("now"))
	s.stop()
	for range st.events {
	}
	if code, _ := s.get("/api/events"); code != http.StatusServiceUnavailable {
		t.Errorf("after the end: %d", code)
	}
}

// TestGzip guards that a history is compressed for those who can read it.
func TestGzip(t *testing.T) {
	s := newSite(t)
	var b strings.Builder
	for i := range 200 {
		b.WriteString(interval(i+1, 1000))
	}
	s.ended(run.Meta{ID: "one"}, banner+b.String())
	req, err := http.NewRequest("GET", s.url+"/api/runs/one/history", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := s.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Encoding") != "gzip" {
		t.Error("not compressed")
	}
}
