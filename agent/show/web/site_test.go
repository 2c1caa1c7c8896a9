package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/live"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)

// site is a page with the runs of a data directory, behind a real HTTP server.
type site struct {
	t       testing.TB
	dataDir string
	page    *Page
	watcher *live.Watcher
	url     string
	server  *httptest.Server
	stop    context.CancelFunc
	token   string      // the file
	began   atomic.Bool // a run is recorded
}

// sink passes what a page shows to it.
type sink struct {
	live.Discard
	page  *Page
	began *atomic.Bool
}

func (s sink) Began(rundir.Directory, rundir.Meta) { s.began.Store(true) }

func (s sink) Changed() { s.page.Changed() }

func (s sink) Hosts(id string, f engine.Frame) { s.page.Hosts(id, f) }

func (s sink) Interval(id string, elapsed float64, r *tool.Report, fresh bool) {
	s.page.Interval(id, elapsed, r, fresh)
}

func newSite(t testing.TB, only ...string) *site {
	t.Helper()
	s := &site{t: t, dataDir: t.TempDir()}
	tools := func() tool.Set { return tool.Set{sysbench.Tool} }
	quiet, places := slog.New(slog.DiscardHandler), &topology.Topology{Hosts: []topology.Host{{Name: "here", Local: true}}}
	s.page = New(Options{
		DataDir: s.dataDir, Only: only, Tools: tools, Logger: quiet,
		Trends: history.NewReader(s.dataDir, only, tools),
		Runs:   func() []ingest.Snapshot { return s.watcher.Snapshots() },
		Health: func() Health { return Health{} }, TokenFile: func() string { return s.token }, Marked: func() {},
	})
	s.watcher = live.NewWatcher(live.Options{
		DataDir: s.dataDir, Only: only, Tools: tools, Logger: quiet, Poll: 20 * time.Millisecond,
		Bounds:   func() live.Bounds { return live.Bounds{MaxLive: 64, MaxKept: 256} },
		Topology: func() *topology.Topology { return places },
		Sink:     sink{page: s.page, began: &s.began},
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

func (s *site) create(meta rundir.Meta) (rundir.Directory, *rundir.Claim) {
	s.t.Helper()
	dir, claim, err := rundir.Create(s.dataDir, meta)
	if err != nil {
		s.t.Fatal(err)
	}
	return dir, claim
}

// ended makes a run that is over.
func (s *site) ended(meta rundir.Meta, stdout string, status ...string) rundir.Directory {
	s.t.Helper()
	end := begin.Add(time.Hour)
	meta.Tool, meta.StartedAt, meta.ClockStartedAt, meta.EndedAt, meta.ClosedAt, meta.Outcome = "sysbench", begin, &begin, &end, &end, rundir.Succeeded
	dir, claim := s.create(meta)
	claim.Release()
	write(s.t, dir.Path(rundir.StdoutFile), stdout)
	write(s.t, dir.Path(rundir.StatusFile), strings.Join(status, ""))
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

func write(t testing.TB, path, text string) {
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

func statusLine(t testing.TB, second int, target string, queries float64) string {
	t.Helper()
	tick := begin.Add(time.Duration(second) * time.Second)
	header := fmt.Sprintf(`{"target":%q,"engine":"mysql","columns":["db_queries_total","db_uptime_seconds"]}`, target)
	return fmt.Sprintf("%s\n[%q,%d,0,0,0,\"\",%v,7]\n", header, target, tick.Unix(), queries)
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
		Mean   *float64   `json:"mean"`
		Median *float64   `json:"median"`
	} `json:"series"`
}

func (d drawnTable) values(t *testing.T, kind, of string) []float64 {
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
	Whole   bool                  `json:"whole"`
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
