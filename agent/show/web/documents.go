package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/document"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// documentView is the report of an ended run. The page draws the charts over time itself.
type documentView struct {
	Note     document.Sentence  `json:"note"`
	Sections []document.Section `json:"sections"`
}

// compareView is a comparison of groups of runs.
type compareView struct {
	// Groups has the name and the runs of each group; the first is the baseline.
	Groups   []groupView        `json:"groups"`
	Sections []document.Section `json:"sections"`
}

type groupView struct {
	Name string    `json:"name"`
	Runs []runView `json:"runs"`
}

// maxCompared is how many runs are compared at once.
const maxCompared = 16

// readAll reads everything that was recorded of a run. One run is read at a time:
// it takes CPU and memory from the benchmark.
func (p *Page) readAll(ctx context.Context, s *ingest.Snapshot) (*record.History, error) {
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return record.Read(ctx, rundir.At(p.opts.DataDir, s.Meta.ID), p.opts.Tools())
}

// readWhole reads the run that a request names, or answers with an error.
func (p *Page) readWhole(w http.ResponseWriter, r *http.Request, id string) (*record.History, bool) {
	s, ok := p.findID(w, r, id)
	if !ok {
		return nil, false
	}
	h, err := p.readAll(r.Context(), &s)
	if err != nil {
		p.log.Debug("run not read", "run", id, "err", err)
		refuse(w, http.StatusInternalServerError, "the run can't be read")
		return nil, false
	}
	return h, true
}

// newReport returns the report of a run. It considers only the kept ones of the other runs.
func (p *Page) newReport(h *record.History) report.Report {
	var others []rundir.Meta
	for _, s := range p.opts.Runs() {
		others = append(others, s.Meta)
	}
	return report.New(h, others...)
}

func (p *Page) serveFindings(w http.ResponseWriter, r *http.Request) {
	width, err := plotWidth(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if h, ok := p.readWhole(w, r, r.PathValue("id")); ok {
		one := p.newReport(h)
		d := one.Document()
		document.Draw(d.Sections, width)
		answer(w, r, encode(documentView{d.Note, append([]document.Section{}, d.Sections...)}))
	}
}

// reportPolicy allows a report, which has no scripts, its own styles.
const reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// serveReport answers with the report of a run, as `benchwatch report` writes it.
func (p *Page) serveReport(w http.ResponseWriter, r *http.Request) {
	h, ok := p.readWhole(w, r, r.PathValue("id"))
	if !ok {
		return
	}
	doc := report.Document{Made: time.Now(), Version: version.Version, Runs: []report.Report{p.newReport(h)}}
	switch r.URL.Query().Get("format") {
	case "", "html":
		p.sendDocument(w, "text/html", "", doc.Page().HTML)
	case "markdown":
		p.sendDocument(w, "text/markdown", "", doc.Page().Markdown)
	case "json":
		p.sendDocument(w, "application/json", "", func(w io.Writer) error { return json.NewEncoder(w).Encode(doc) })
	default:
		refuse(w, http.StatusBadRequest, "format is html, markdown or json")
	}
}

// serveExport answers with the values of a run, as `benchwatch export` writes them.
func (p *Page) serveExport(w http.ResponseWriter, r *http.Request) {
	write, kind, ending := report.IntervalsCSV, "text/csv", ".csv"
	switch r.URL.Query().Get("format") {
	case "", "csv":
	case "servers":
		write, ending = report.ServersCSV, "-servers.csv"
	case "json":
		write, kind, ending = report.JSONLines, "application/x-ndjson", ".json"
	default:
		refuse(w, http.StatusBadRequest, "format is csv, servers or json")
		return
	}
	if h, ok := p.readWhole(w, r, r.PathValue("id")); ok {
		setDocumentHeaders(w.Header(), kind, h.Snapshot.Meta.ID+ending)
		if err := write(r.Context(), patient{w, http.NewResponseController(w)}, []*record.History{h}); err != nil {
			p.log.Debug("export not sent", "run", h.Snapshot.Meta.ID, "err", err)
			panic(http.ErrAbortHandler) // the client has to notice that the end is missing
		}
	}
}

// patient is an answer of any length. Each write may take some time.
type patient struct {
	http.ResponseWriter
	stream *http.ResponseController
}

func (p patient) Write(b []byte) (int, error) {
	_ = p.stream.SetWriteDeadline(time.Now().Add(answerTime)) // not every writer can
	return p.ResponseWriter.Write(b)
}

// sendDocument sends the output of write; with a name, browsers store it as a file.
func (p *Page) sendDocument(w http.ResponseWriter, contentType, name string, write func(io.Writer) error) {
	var b bytes.Buffer // a document that can't be made is an error, not half of it
	if err := write(&b); err != nil {
		p.log.Error("document not made", "err", err)
		refuse(w, http.StatusInternalServerError, "the document can't be made")
		return
	}
	setDocumentHeaders(w.Header(), contentType, name)
	_, _ = w.Write(b.Bytes()) // the client is gone
}

func setDocumentHeaders(header http.Header, contentType, name string) {
	setPageHeaders(header, contentType+"; charset=utf-8")
	header.Set("Content-Security-Policy", reportPolicy)
	header.Set("Cache-Control", "no-store")
	if name != "" {
		header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name)) // an id needs no escapes
	}
}

// serveCompare compares groups of runs: group=ID,ID&group=ID, each with a name=.
// Groups without a name are named by what distinguishes them.
func (p *Page) serveCompare(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	lists, names := q["group"], q["name"]
	if n := len(strings.Split(strings.Join(lists, ","), ",")); len(lists) < 2 || n > maxCompared {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("2 to %d runs can be compared", maxCompared))
		return
	}
	width, err := plotWidth(q)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	groups := make([]compare.Group, len(lists))
	view := compareView{}
	for i, list := range lists {
		g := groupView{Runs: []runView{}}
		for id := range strings.SplitSeq(list, ",") {
			h, ok := p.readWhole(w, r, id)
			if !ok {
				return
			}
			groups[i].Runs = append(groups[i].Runs, review.NewObservedRow(h))
			g.Runs = append(g.Runs, newRunView(&h.Snapshot))
		}
		groups[i].Name = g.Runs[0].ID
		if i < len(names) && names[i] != "" {
			groups[i].Name, groups[i].Facts = names[i], factsIn(names[i])
		}
		view.Groups = append(view.Groups, g)
	}
	if strings.Join(names, "") == "" {
		compare.NameByDifference(groups)
	}
	for i := range groups {
		view.Groups[i].Name = groups[i].Name
	}
	c := report.ComparisonPage{Comparison: compare.Compare(groups, nil)}
	if err := c.AddScaling(groups); err != nil {
		p.log.Error("figures not drawn", "err", err)
	}
	c.Charts = report.ComparedCharts(&c.Comparison)
	view.Sections = c.Layout()
	document.Draw(view.Sections, width)
	answer(w, r, encode(view))
}

// factsIn returns the fact in the name of a group, such as fc_limit=16; none if it is another name.
func factsIn(name string) []rundir.Fact {
	fact, value, ok := strings.Cut(name, "=")
	if !ok {
		return nil
	}
	return []rundir.Fact{{Name: fact, Value: value}}
}
