package web

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// watch is what was sent to browsers last, so that only changes are sent. It
// belongs to Run's goroutine.
type watch struct {
	page     *Page
	sent     map[string][]byte // a run's view
	over     map[string]bool   // runs that no longer change
	live     map[string]bool
	markers  map[string]size // the files when they were read last
	settings map[string]size
}

func newWatch(p *Page) *watch {
	return &watch{page: p, sent: map[string][]byte{}, over: map[string]bool{}, live: map[string]bool{}, markers: map[string]size{}, settings: map[string]size{}}
}

// sendRuns sends the runs that are new, changed or removed.
func (w *watch) sendRuns() {
	present := map[string]bool{}
	clear(w.live)
	for _, s := range w.page.opts.Runs() {
		id := s.Meta.ID
		present[id] = true
		over := s.Phase == ingest.Over
		if !over {
			w.live[id] = true
		}
		if over && w.over[id] {
			continue
		}
		w.over[id] = over
		w.page.dropOutdated(&s)
		view := encode(newRunView(&s))
		if !bytes.Equal(view, w.sent[id]) {
			w.sent[id] = view
			w.page.hub.send(event("run", view))
		}
		if over {
			delete(w.markers, id)
			delete(w.settings, id)
		}
	}
	for id := range w.sent {
		if !present[id] {
			delete(w.sent, id)
			delete(w.over, id)
			delete(w.markers, id)
			delete(w.settings, id)
			w.page.hub.send(event("gone", encode(map[string]string{"run": id})))
		}
	}
}

// sendMarkers sends the markers of live runs whose file has changed.
func (w *watch) sendMarkers() {
	if w.page.hub.empty() {
		return
	}
	for id := range w.live {
		dir := rundir.At(w.page.opts.DataDir, id)
		now := sizeOf(dir.Path(rundir.MarkersFile))
		if before, known := w.markers[id]; known && before == now {
			continue
		}
		w.markers[id] = now
		markers, err := marker.Read(dir)
		if err != nil {
			continue // the deliverer logs it
		}
		w.page.hub.send(event("markers", encode(struct {
			Run     string       `json:"run"`
			Markers []markerView `json:"markers"`
		}{id, markerViews(markers)})))
	}
}

// sendSettings sends the servers' settings of live runs whose file has changed.
func (w *watch) sendSettings() {
	if w.page.hub.empty() {
		return
	}
	for id := range w.live {
		dir := rundir.At(w.page.opts.DataDir, id)
		now := sizeOf(dir.Path(history.SettingsFile))
		if w.settings[id] == now {
			continue
		}
		w.settings[id] = now
		settings, err := history.ReadSettings(dir)
		if err != nil {
			continue // the history reports it
		}
		w.page.hub.send(event("settings", encode(struct {
			Run      string       `json:"run"`
			Settings settingsView `json:"settings"`
		}{id, newSettingsView(settings)})))
	}
}
