package web

import (
	"bytes"
	"cmp"
	"maps"

	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
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
	// comparisons are the A/B comparisons that the runs belong to.
	comparisons map[string]size
}

func newWatch(p *Page) *watch {
	return &watch{page: p, sent: map[string][]byte{}, over: map[string]bool{}, live: map[string]bool{},
		markers: map[string]size{}, settings: map[string]size{}, comparisons: map[string]size{}}
}

// sendRuns sends the runs that are new, changed or removed.
func (w *watch) sendRuns() {
	present, comparisons := map[string]bool{}, map[string]bool{}
	clear(w.live)
	for _, s := range w.page.opts.Runs() {
		id := s.Meta.ID
		present[id] = true
		comparisons[comparisonOf(&s)] = true
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
	delete(comparisons, "")
	for id := range comparisons {
		if _, known := w.comparisons[id]; !known && rundir.CheckID(id) == nil {
			w.comparisons[id] = size{}
		}
	}
	maps.DeleteFunc(w.comparisons, func(id string, _ size) bool { return !comparisons[id] })
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

// sendComparisons reports the A/B comparisons whose state has changed, also between two of their runs.
func (w *watch) sendComparisons() {
	if w.page.hub.empty() {
		return
	}
	for id, before := range w.comparisons {
		if now := sizeOf(sweep.File(w.page.opts.DataDir, id)); now != before {
			w.comparisons[id] = now
			w.page.hub.send(event("comparison", encode(map[string]string{"id": id})))
		}
	}
}

// sendMarkers sends the markers of live runs whose file has changed.
func (w *watch) sendMarkers() {
	w.sendChanged("markers", rundir.MarkersFile, w.markers, func(dir rundir.Directory) (any, error) {
		markers, err := marker.Read(dir)
		return markerViews(markers), err // the deliverer logs it
	})
}

// sendSettings sends the servers' settings of live runs whose file has changed.
func (w *watch) sendSettings() {
	w.sendChanged("settings", record.SettingsFile, w.settings, func(dir rundir.Directory) (any, error) {
		settings, err := record.ReadSettings(dir)
		if err != nil {
			return nil, err // the history reports it
		}
		meta, err := dir.Load()
		return settingSections(settings, *cmp.Or(meta.ClockStartedAt, &meta.StartedAt)), err
	})
}

// sendChanged sends the result of read for each live run whose file with this name has changed, as the event and the
// key called what.
func (w *watch) sendChanged(what, file string, sent map[string]size, read func(rundir.Directory) (any, error)) {
	if w.page.hub.empty() {
		return
	}
	for id := range w.live {
		dir := rundir.At(w.page.opts.DataDir, id)
		now := sizeOf(dir.Path(file))
		if before, known := sent[id]; known && before == now {
			continue
		}
		sent[id] = now
		if view, err := read(dir); err == nil {
			w.page.hub.send(event(what, encode(map[string]any{"run": id, what: view})))
		}
	}
}
