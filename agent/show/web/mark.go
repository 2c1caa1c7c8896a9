package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/alert"
)

// maxMark is how long the body of a request to set a marker may be, in bytes.
const maxMark = 8 << 10

// serveMark puts a marker on the time axis of a run, now: {"text": …}. Like the
// alerts of Alertmanager it needs the token; without one there are no markers from
// the page. A browser sends the token only from the agent's own page: a header
// that other sites' pages may not set.
func (p *Page) serveMark(w http.ResponseWriter, r *http.Request) {
	file := p.opts.TokenFile()
	if file == "" {
		refuse(w, http.StatusNotFound, "no token is configured: webhook_token_file")
		return
	}
	if status, err := alert.CheckToken(r, file); err != nil {
		if status == http.StatusServiceUnavailable {
			p.log.Error("markers are not accepted", "err", err)
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, status, http.StatusText(status))
		return
	}
	s, ok := p.find(w, r)
	if !ok {
		return
	}
	var m struct {
		Text string `json:"text"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxMark)).Decode(&m); err != nil || strings.TrimSpace(m.Text) == "" {
		refuse(w, http.StatusBadRequest, "a marker needs a text")
		return
	}
	if s.Meta.IsCopy() {
		refuse(w, http.StatusConflict, "the run is recorded by "+s.Meta.Mirror.Host+": set markers there")
		return
	}
	dir := rundir.At(p.opts.DataDir, s.Meta.ID)
	err := marker.Append(dir, marker.Marker{Kind: marker.Point, Run: s.Meta.ID, Text: m.Text, Start: dir.OnAxis(time.Now())})
	if err != nil {
		p.log.Error("marker not set", "run", s.Meta.ID, "err", err)
		refuse(w, http.StatusInternalServerError, "the marker can't be stored, see the agent's log")
		return
	}
	p.opts.Marked()
	w.WriteHeader(http.StatusNoContent)
}
