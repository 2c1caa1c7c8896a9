package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

const (
	heartbeat = 5 * time.Second
	// writeTime is how long one write to a stream may take.
	writeTime = 10 * time.Second
	// answerTime is how long sending an answer may take.
	answerTime = time.Minute

	defaultPoints, minPoints, maxPoints = 1200, 20, 20000
)

// Register adds the page and its API to mux.
func (p *Page) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/measures", p.serveMeasures)
	mux.HandleFunc("GET /api/agent", p.serveAgent)
	mux.HandleFunc("GET /api/runs", p.serveRuns)
	mux.HandleFunc("GET /api/runs/{id}", p.serveRun)
	mux.HandleFunc("GET /api/runs/{id}/history", p.serveHistory)
	mux.HandleFunc("GET /api/runs/{id}/findings", p.serveFindings)
	mux.HandleFunc("GET /api/runs/{id}/comparison", p.serveComparison)
	mux.HandleFunc("GET /api/runs/{id}/requirements", p.serveRequirements)
	mux.HandleFunc("POST /api/runs/{id}/markers", p.serveMark)
	mux.HandleFunc("GET /api/compare", p.serveCompare)
	mux.HandleFunc("GET /api/trend", p.serveTrend)
	mux.HandleFunc("GET /runs/{id}/report", p.serveReport)
	mux.HandleFunc("GET /runs/{id}/export", p.serveExport)
	mux.HandleFunc("GET /api/events", p.serveEvents)
	p.registerAssets(mux)
}

// serveMeasures answers with the charts of the page, from the catalogue of
// measures, and which of their lines come first.
func (p *Page) serveMeasures(w http.ResponseWriter, r *http.Request) {
	answer(w, r, encode(measuresView{charts(), report.LiveCharts(), headlineView{tool.HeadlineStats, tool.NotWork}}))
}

func (p *Page) serveRuns(w http.ResponseWriter, r *http.Request) {
	views := []runView{}
	for _, s := range slices.Backward(p.opts.Runs()) {
		views = append(views, newRunView(&s))
	}
	v := runsView{Runs: views, Total: len(views)}
	if ids, err := rundir.List(p.opts.DataDir); err == nil && len(p.opts.Only) == 0 {
		v.Total = max(v.Total, len(ids))
	}
	answer(w, r, encode(v))
}

func (p *Page) serveRun(w http.ResponseWriter, r *http.Request) {
	if s, ok := p.find(w, r); ok {
		answer(w, r, encode(newRunDetail(&s)))
	}
}

// find returns the run that a request's path names, or answers with an error.
func (p *Page) find(w http.ResponseWriter, r *http.Request) (ingest.Snapshot, bool) {
	return p.findID(w, r, r.PathValue("id"))
}

func (p *Page) findID(w http.ResponseWriter, r *http.Request, id string) (ingest.Snapshot, bool) {
	if err := rundir.CheckID(id); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return ingest.Snapshot{}, false
	}
	for _, s := range p.opts.Runs() {
		if s.Meta.ID == id {
			return s, true
		}
	}
	if len(p.opts.Only) > 0 {
		refuse(w, http.StatusNotFound, "no such run")
		return ingest.Snapshot{}, false
	}
	s, err := p.findOld(r.Context(), id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		refuse(w, http.StatusNotFound, "no such run")
	case err != nil:
		p.log.Debug("run not served", "run", id, "err", err)
		refuse(w, http.StatusInternalServerError, "the run can't be read")
	}
	return s, err == nil
}

// findOld reads a run that is only on disk. The error is fs.ErrNotExist if there
// is none.
func (p *Page) findOld(ctx context.Context, id string) (ingest.Snapshot, error) {
	return ingest.Read(ctx, rundir.At(p.opts.DataDir, id), p.opts.Tools())
}

func (p *Page) serveHistory(w http.ResponseWriter, r *http.Request) {
	s, ok := p.find(w, r)
	if !ok {
		return
	}
	from, to, points, err := requestedPart(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	h, err := p.readFor(r, &s)
	part := h
	if err == nil && !math.IsInf(to-from, 0) {
		part, err = p.detail(r.Context(), &s, h, series.Span{From: from, To: to}, points)
	}
	if err != nil {
		p.log.Debug("history not served", "run", s.Meta.ID, "err", err)
		refuse(w, http.StatusInternalServerError, "the run can't be read")
		return
	}
	markers, err := marker.Read(rundir.At(p.opts.DataDir, s.Meta.ID))
	if err != nil {
		h.damage = append(slices.Clone(h.damage), "the markers can't be read")
	}
	settings, err := record.ReadSettings(rundir.At(p.opts.DataDir, s.Meta.ID))
	if err != nil {
		h.damage = append(slices.Clone(h.damage), "the servers' settings can't be read")
	}
	head := historyView{
		Run: newRunDetail(&s), Zero: h.zero.UnixMilli(), Whole: !h.noServers, Warmup: [][2]float64{}, Damage: append([]string{}, h.damage...),
		Markers: markerViews(markers), Settings: settingSections(settings, h.zero),
	}
	for _, span := range h.warmup {
		head.Warmup = append(head.Warmup, [2]float64{span.From, span.To})
	}
	b := bytes.TrimSuffix(encode(head), []byte("}"))
	b = appendTable(append(b, `,"tables":{"intervals":`...), part.intervals, h.intervals, from, to, points)
	b = appendTable(append(b, `,"servers":`...), part.servers, h.servers, from, to, points)
	b = appendTable(append(b, `,"host":`...), part.host, h.host, from, to, points)
	answer(w, r, append(b, `}}`...))
}

// readFor reads a run for a request: with first=1 without the servers, if reading
// these would take long.
func (p *Page) readFor(r *http.Request, s *ingest.Snapshot) (runHistory, error) {
	if r.URL.Query().Get("first") != "" {
		if h, ok := p.kept(s.Meta.ID, basisOf(p.opts.DataDir, s)); ok {
			return h, nil
		}
		if sizeOf(rundir.At(p.opts.DataDir, s.Meta.ID).Path(rundir.StatusFile)).bytes > longStatus {
			return p.readOutput(r.Context(), s)
		}
	}
	return p.read(r.Context(), s)
}

// requestedPart returns the part of a history that a request asks for, in seconds
// on the run's axis (by default all of it), and about how many points.
func requestedPart(r *http.Request) (from, to float64, points int, err error) {
	from, to, points = math.Inf(-1), math.Inf(1), defaultPoints
	q := r.URL.Query()
	for _, n := range []struct {
		name string
		at   *float64
	}{{"from", &from}, {"to", &to}} {
		if text := q.Get(n.name); text != "" {
			if *n.at, err = strconv.ParseFloat(text, 64); err != nil || math.IsNaN(*n.at) {
				return 0, 0, 0, errors.New(n.name + " is not a number of seconds")
			}
		}
	}
	if text := q.Get("points"); text != "" {
		if points, err = strconv.Atoi(text); err != nil {
			return 0, 0, 0, errors.New("points is not a whole number")
		}
		points = min(maxPoints, max(minPoints, points))
	}
	return from, to, points, nil
}

// serveEvents streams what is new. A browser that reconnects reads everything
// again, so nothing has to be kept for it.
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	c, ok := p.hub.join()
	if !ok {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "too many pages are open")
		return
	}
	defer p.hub.leave(c)
	p.Changed() // the page checks more often now
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx
	stream := http.NewResponseController(w)
	write := func(data []byte) bool {
		_ = stream.SetWriteDeadline(time.Now().Add(writeTime)) // not every writer can
		_, err := w.Write(data)
		return err == nil && stream.Flush() == nil
	}
	hello := func() []byte {
		v := helloView{Version: version.Version, Agent: p.started.UnixMilli(), Now: p.opts.Now().UnixMilli()}
		if len(p.opts.Only) == 1 {
			v.Only = p.opts.Only[0]
		}
		return encode(v)
	}
	if !write(event("hello", hello())) {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case data, ok := <-c.events:
			if !ok || !write(data) {
				return
			}
		case <-beat.C:
			if !write(event("beat", hello())) {
				return
			}
		}
	}
}

// answer sends JSON, compressed if the client accepts it.
func answer(w http.ResponseWriter, r *http.Request, data []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept-Encoding")
	// Reading a run of a week on a busy machine may have taken the server's time.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // not every writer can
	var to io.Writer = w
	if len(data) > 1400 && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // a level that there is
		defer z.Close()
		to = z
	}
	_, _ = to.Write(data) // the client is gone
}

func refuse(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(encode(map[string]string{"error": text}))
}
