package web

import (
	"cmp"
	_ "embed"
	"html"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

//go:embed index.html
var indexHTML string

// recentRuns is how many ended runs the view without JavaScript lists.
const recentRuns = 20

// runRow is a run in the view without JavaScript.
type runRow struct{ ID, Title, State, Started, Elapsed, Threads, Throughput, Latency, Errors string }

// serveIndex serves the page. For browsers without JavaScript it contains a list
// of the runs and servers.
func (p *Page) serveIndex(w http.ResponseWriter, _ *http.Request) {
	var live, recent []runRow
	for _, s := range slices.Backward(p.opts.Runs()) {
		switch {
		case s.Phase != ingest.Over:
			live = append(live, newRunRow(&s))
		case len(recent) < recentRuns:
			recent = append(recent, newRunRow(&s))
		}
	}
	setPageHeaders(w.Header(), "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if _, err := io.WriteString(w, fillIndex(live, recent, p.serverRows())); err != nil {
		p.log.Debug("page not sent", "err", err)
	}
}

// fillIndex returns the page with the version and the view without JavaScript.
func fillIndex(live, recent []runRow, servers []serverView) string {
	var view document.MarkupWriter
	listRuns(&view, "Live runs", "None. Start one with <code>benchwatch run -- sysbench … run</code>.", live)
	listRuns(&view, "Recent runs", "None.", recent)
	rows := make([][]string, len(servers))
	for i, s := range servers {
		rows[i] = []string{s.Name, s.Engine, s.Cluster, s.State, s.Version}
	}
	list(&view, "runs servers", "Servers", "None. Configure <code>targets</code> in benchwatch.yml.",
		[]string{"Target", "Engine", "Cluster", "State", "Version"}, nil, rows)
	return strings.NewReplacer("{{version}}", html.EscapeString(version.Version), "{{view}}", view.String()).Replace(indexHTML)
}

func listRuns(view *document.MarkupWriter, title string, none document.Markup, runs []runRow) {
	rows := make([][]string, len(runs))
	for i, r := range runs {
		rows[i] = []string{cmp.Or(r.Title, r.ID), r.State, r.Started, r.Elapsed, r.Threads, r.Throughput, r.Latency, r.Errors}
	}
	head := []string{"Run", "State", "Started", "Elapsed", "Threads", "Transactions/s", "Latency", "Errors"}
	list(view, "runs", title, none, head, map[int]string{4: "threads", 5: "tps", 7: "errors"}, rows)
}

// list writes a heading and a table, or none for no rows. names are the columns that have a
// name for programs.
func list(view *document.MarkupWriter, class, title string, none document.Markup, head []string, names map[int]string, rows [][]string) {
	view.Addf("<h1>%s</h1>\n", title)
	if len(rows) == 0 {
		view.Addf("<p class=\"hint\">%s</p>\n", none)
		return
	}
	view.Addf("<div class=\"wide panel\"><table class=\"%s\">\n<thead><tr>", class)
	for _, name := range head {
		view.Addf(`<th scope="col">%s</th>`, name)
	}
	view.Addf("</tr></thead>\n<tbody>")
	for _, row := range rows {
		view.Addf("\n<tr>")
		for i, text := range row {
			switch name := names[i]; {
			case i == 0:
				view.Addf(`<th scope="row">%s</th>`, text)
			case name != "" && text != "":
				view.Addf(`<td data-name="%s">%s</td>`, name, text)
			default:
				view.Addf("<td>%s</td>", text)
			}
		}
		view.Addf("</tr>")
	}
	view.Addf("\n</tbody></table></div>\n")
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
