package web

import (
	"errors"
	"io/fs"
	"net/http"

	"github.com/benchwatch/benchwatch/agent/many/ab"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/show/document"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// maxBlocks limits the blocks of a comparison that is shown; a block takes seconds.
const maxBlocks = 5000

// comparisonOf returns the id of the A/B comparison that a run belongs to; empty without one.
func comparisonOf(s *ingest.Snapshot) string {
	if id, ok := s.Meta.Labels["ab"]; ok {
		return id
	}
	return s.Meta.Labels["ab_warmup"]
}

// serveComparison answers with the progress of the A/B comparison of a run.
func (p *Page) serveComparison(w http.ResponseWriter, r *http.Request) {
	s, ok := p.find(w, r)
	if !ok {
		return
	}
	width, err := plotWidth(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	section, err := p.comparison(comparisonOf(&s))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		refuse(w, http.StatusNotFound, "no A/B comparison of this run is in the data directory")
	case err != nil:
		p.log.Debug("comparison not read", "run", s.Meta.ID, "err", err)
		refuse(w, http.StatusInternalServerError, "the A/B comparison can't be read")
	default:
		sections := []document.Section{section}
		document.Draw(sections, width)
		answer(w, r, encode(sections[0]))
	}
}

// comparison returns the progress of a comparison, or fs.ErrNotExist.
func (p *Page) comparison(id string) (document.Section, error) {
	if id == "" {
		return document.Section{}, fs.ErrNotExist
	}
	s, err := sweep.LoadToShow(p.opts.DataDir, id)
	if err != nil {
		return document.Section{}, err
	}
	plan, err := ab.PlanOf(s)
	if err != nil {
		return document.Section{}, err
	}
	blocks := ab.Blocks(s)
	if plan == nil || len(blocks) > maxBlocks {
		return document.Section{}, fs.ErrNotExist
	}
	page := report.ABPage{Result: *plan.Result(id, blocks, nil)}
	return page.Progress(plan.Over(blocks) != ""), nil
}
