package web

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// watch is what browsers were told last, to tell them only what is new. It
// belongs to Run's goroutine.
type watch struct {
	page   *Page
	told   map[string][]byte // by run
	over   map[string]bool   // runs that change no more
	going  map[string]bool   // runs that may get markers
	queues map[string]size   // their files of markers
	set    map[string]size   // and of settings
}

func newWatch(p *Page) *watch {
	return &watch{page: p, told: map[string][]byte{}, over: map[string]bool{}, going: map[string]bool{}, queues: map[string]size{}, set: map[string]size{}}
}

// runs tells of the runs that have begun, changed or are gone.
func (w *watch) runs() {
	present := map[string]bool{}
	clear(w.going)
	for _, s := range w.page.opts.Runs() {
		id := s.Meta.ID
		present[id] = true
		over := s.Phase == ingest.Over
		if !over {
			w.going[id] = true
		}
		if over && w.over[id] {
			continue
		}
		w.over[id] = over
		w.page.keepUp(&s)
		view := encode(newRunView(&s))
		if !bytes.Equal(view, w.told[id]) {
			w.told[id] = view
			w.page.hub.send(event("run", view))
		}
		if over {
			delete(w.queues, id)
			delete(w.set, id)
		}
	}
	for id := range w.told {
		if !present[id] {
			delete(w.told, id)
			delete(w.over, id)
			delete(w.queues, id)
			delete(w.set, id)
			w.page.hub.send(event("gone", encode(map[string]string{"run": id})))
		}
	}
}

// lookAtMarkers tells of new markers of the runs that go on.
func (w *watch) lookAtMarkers() {
	if w.page.hub.empty() {
		return
	}
	for id := range w.going {
		dir := rundir.At(w.page.opts.DataDir, id)
		now := sizeOf(dir.Path(rundir.MarkersFile))
		if before, known := w.queues[id]; known && before == now {
			continue
		}
		w.queues[id] = now
		markers, err := marker.Read(dir)
		if err != nil {
			continue // the deliverer tells
		}
		w.page.hub.send(event("markers", encode(struct {
			Run     string       `json:"run"`
			Markers []markerView `json:"markers"`
		}{id, markerViews(markers)})))
	}
}

// lookAtSettings tells of the servers' settings of the runs that go on, when they
// were read and each time that something was found changed.
func (w *watch) lookAtSettings() {
	if w.page.hub.empty() {
		return
	}
	for id := range w.going {
		dir := rundir.At(w.page.opts.DataDir, id)
		now := sizeOf(dir.Path(history.SettingsFile))
		if w.set[id] == now {
			continue
		}
		w.set[id] = now
		settings, err := history.ReadSettings(dir)
		if err != nil {
			continue // the history tells
		}
		w.page.hub.send(event("settings", encode(struct {
			Run      string       `json:"run"`
			Settings settingsView `json:"settings"`
		}{id, newSettingsView(settings)})))
	}
}
