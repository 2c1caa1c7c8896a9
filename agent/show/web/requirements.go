package web

import (
	"net/http"
	"time"

	"github.com/benchwatch/benchwatch/agent/show/document"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

const (
	// judgedEvery: the requirements of a live run are checked at most this often, because a check reads its files.
	judgedEvery = 5 * time.Second
	// judgedShare is the share of the time that judging takes at most, for a run of hours.
	judgedShare = 0.01
)

// requirements are what is required of a live run, as they were judged last, and when they are due again.
type requirements struct {
	section document.Section
	due     time.Time
}

// serveRequirements answers with what the user requires of a run that has not ended, and whether it is met now.
func (p *Page) serveRequirements(w http.ResponseWriter, r *http.Request) {
	s, ok := p.find(w, r)
	if !ok {
		return
	}
	id, begin := s.Meta.ID, time.Now()
	p.mu.Lock()
	last, known := p.required[id]
	isDue := begin.After(last.due)
	if known && isDue { // other pages get the last answer meanwhile
		p.required[id] = requirements{last.section, begin.Add(judgedEvery)}
	}
	p.mu.Unlock()
	if isDue {
		h, ok := p.readWhole(w, r, id)
		if !ok {
			return
		}
		last.section = report.RequirementsNow(h)
		took := time.Since(begin)
		p.mu.Lock()
		p.required[id] = requirements{last.section, begin.Add(max(judgedEvery, time.Duration(float64(took)/judgedShare)))}
		p.mu.Unlock()
	}
	answer(w, r, encode(last.section))
}
