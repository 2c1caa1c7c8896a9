package web

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// stream reads server-sent events.
type stream struct {
	t      testing.TB
	body   io.ReadCloser
	events chan [2]string
}

func (s *site) stream() *stream {
	s.t.Helper()
	resp, err := s.server.Client().Get(s.url + "/api/events")
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
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
	dir, claim := s.create(rundir.Meta{
		ID: "one", Title: "a title",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: time.Now().UTC()},
	})
	defer claim.Release()
	st.next("run", has(`"a title"`))
	appendTo(t, dir.Path(rundir.StdoutFile), banner)
	// Lines that exist before the file is followed cause no event.
	st.next("run", has(`"tool_version","value":"1.0.20"`))
	appendTo(t, dir.Path(rundir.StdoutFile), interval(1, 100))
	row := st.next("row", has(`"intervals"`))
	if !strings.Contains(row, `"run":"one","x":1,`) || !strings.Contains(row, `[["transactions","transaction",""],100]`) {
		t.Errorf("row %s", row)
	}
	st.next("run", has(`"throughput":100`))
	if err := marker.Append(dir, marker.Marker{Kind: marker.Point, Run: "one", Text: "changed", Start: time.Now()}); err != nil {
		t.Fatal(err)
	}
	st.next("markers", has(`"changed"`))

	// The history of a live run continues with what the stream sends.
	if h := s.history("one", ""); len(h.Tables["intervals"].X) != 1 {
		t.Errorf("history %v", h.Tables["intervals"].X)
	}
	appendTo(t, dir.Path(rundir.StdoutFile), interval(2, 110))
	st.next("row", has(`"x":2`))
	if h := s.history("one", ""); len(h.Tables["intervals"].X) != 2 {
		t.Errorf("history %v", h.Tables["intervals"].X)
	}

	if _, err := dir.Update(func(m *rundir.Meta) {
		end := time.Now().UTC()
		m.EndedAt, m.Outcome = &end, rundir.Succeeded
	}); err != nil {
		t.Fatal(err)
	}
	st.next("run", has(`"phase":"over"`))
	if h := s.history("one", ""); h.Run.Phase != ingest.Over || len(h.Tables["intervals"].X) != 2 {
		t.Errorf("ended: %+v", h.Run)
	}
	if err := dir.Remove(); err != nil {
		t.Fatal(err)
	}
	st.next("gone", has(`"one"`))
}

// TestUnused guards that a browser which connects gets the changes that were made while no browser did.
func TestUnused(t *testing.T) {
	s := newSite(t)
	st := s.stream()
	dir, claim := s.create(rundir.Meta{
		ID: "one", Title: "a title",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: time.Now().UTC()},
	})
	defer claim.Release()
	st.next("run", has(`"a title"`))
	st.body.Close()
	s.until("the end of the stream", s.page.unused)
	if _, err := dir.Update(func(m *rundir.Meta) {
		end := time.Now().UTC()
		m.EndedAt, m.Outcome = &end, rundir.Succeeded
	}); err != nil {
		t.Fatal(err)
	}
	s.ended(rundir.Meta{ID: "two"}, banner)
	s.until("the end of the run", func() bool {
		_, list := s.get("/api/runs")
		return strings.Count(string(list), `"phase":"over"`) == 2
	})
	st = s.stream()
	st.next("run", func(data string) bool {
		return strings.Contains(data, `"id":"one"`) && strings.Contains(data, `"phase":"over"`)
	})
}

// TestLateRow guards that a page that saw a run begin gets what the tool wrote before its output was followed, since no
// history of the page contains it.
func TestLateRow(t *testing.T) {
	s := newSite(t)
	st := s.stream()
	st.next("hello", has(`"now"`))
	dir, claim := s.create(rundir.Meta{
		ID:        "one",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: time.Now().UTC()},
	})
	defer claim.Release()
	appendTo(t, dir.Path(rundir.StdoutFile), banner)
	st.next("run", has(`"tool_version","value":"1.0.20"`))
	if h := s.history("one", ""); len(h.Tables["intervals"].X) != 0 {
		t.Fatalf("history %v", h.Tables["intervals"].X)
	}
	report := func(second float64) *tool.Report {
		return &tool.Report{Kind: tool.Interval, ElapsedSeconds: series.Some(second), IntervalSeconds: series.Some(1.0)}
	}
	s.page.Interval("one", 1, report(1), false)
	st.next("row", has(`"x":1`))
	// Known rows are not sent again.
	s.page.Interval("one", 1, report(1), false)
	s.page.Interval("one", 2, report(2), false)
	st.next("row", func(data string) bool {
		if strings.Contains(data, `"x":1,`) {
			t.Errorf("said twice: %s", data)
		}
		return strings.Contains(data, `"x":2`)
	})
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
		f := frame(at, c.restarts, c.queries)
		s.page.Sampled("one", f)
		s.page.Frame(f)
		row := st.next("row", has(`"table":"servers","run":"one"`))
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

// TestSettingsEvent guards that a browser gets the servers' settings when they become known, and that the history has
// the same settings.
func TestSettingsEvent(t *testing.T) {
	s := newSite(t)
	st := s.stream()
	dir, claim := s.create(rundir.Meta{
		ID:        "one",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: begin},
	})
	defer claim.Release()
	st.next("run", has(`"one"`))
	line := `{"at":"2026-11-21T02:14:05Z","target":"n1","engine":"mysql","settings":{"sync_binlog":"1"}}` + "\n"
	write(t, dir.Path(record.SettingsFile), line)
	st.next("settings", has(`"facts":[{"name":"sync_binlog","value":"1"}]`))
	write(t, dir.Path(record.SettingsFile), line+strings.NewReplacer(`:"1"`, `:"0"`, ":05Z", ":09Z").Replace(line))
	told := st.next("settings", has(`sync_binlog was changed from 1 to 0 by`))
	var event struct{ Settings json.RawMessage }
	if err := json.Unmarshal([]byte(told), &event); err != nil {
		t.Fatal(err)
	}
	_, body := s.get("/api/runs/one/history")
	if !strings.Contains(string(body), `"settings":`+string(event.Settings)) {
		t.Errorf("the history does not say %s", event.Settings)
	}
}
