package web

import (
	_ "embed"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/run/ingest"
)

//go:embed index.html
var indexHTML string

var indexPage = template.Must(template.New("index").Parse(indexHTML))

// recentRuns is how many ended runs the view without JavaScript lists.
const recentRuns = 20

// runRow is a run in the view without JavaScript.
type runRow struct{ ID, Title, State, Started, Elapsed, Threads, Throughput, Latency, Errors string }

// serveIndex serves the page. For browsers without JavaScript it contains a list
// of the runs and servers.
func (p *Page) serveIndex(w http.ResponseWriter, _ *http.Request) {
	data := struct {
		Version      string
		Live, Recent []runRow
		Servers      []serverView
	}{Version: version.Version, Servers: p.serverRows()}
	for _, s := range slices.Backward(p.opts.Runs()) {
		switch {
		case s.Phase != ingest.Over:
			data.Live = append(data.Live, newRunRow(&s))
		case len(data.Recent) < recentRuns:
			data.Recent = append(data.Recent, newRunRow(&s))
		}
	}
	setPageHeaders(w.Header(), "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err := indexPage.Execute(w, data); err != nil {
		p.log.Debug("page not sent", "err", err)
	}
}

// phaseNames are the states of a run as the page names them.
var phaseNames = map[ingest.Phase]string{
	ingest.Starting: "starting", ingest.Warmup: "warming up", ingest.Measuring: "running",
	ingest.Draining: "draining", ingest.Over: "over",
}

func newRunRow(s *ingest.Snapshot) runRow {
	v := newRunView(s)
	row := runRow{
		ID: v.ID, Title: v.Title, State: string(v.Result), Started: s.Meta.StartedAt.Local().Format(time.DateTime),
		Elapsed: (time.Duration(s.ElapsedSeconds(time.Now())) * time.Second).String(),
	}
	if s.Threads.Known {
		row.Threads = strconv.Itoa(s.Threads.Value)
	}
	if v.Result == "" || s.Phase == ingest.Draining {
		row.State = phaseNames[s.Phase]
	}
	if v.Errors.Known {
		row.Errors = strconv.FormatFloat(v.Errors.Value, 'f', 0, 64)
	}
	if v.Throughput.Known {
		row.Throughput = strconv.FormatFloat(v.Throughput.Value, 'f', 1, 64)
	}
	if l := v.Latency; l != nil {
		row.Latency = l.Operation + " " + l.Stat + " " + strconv.FormatFloat(l.Seconds*1000, 'f', 2, 64) + " ms"
	}
	return row
}
