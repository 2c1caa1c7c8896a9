package rundir

import (
	"os"
	"time"
)

// Active returns the ids of the runs whose tool is running, oldest first. A run in
// a log file counts until its end is recorded.
func Active(dataDir string) ([]string, error) {
	ids, err := List(dataDir)
	if err != nil {
		return nil, err
	}
	var active []string
	for _, id := range ids {
		dir := At(dataDir, id)
		meta, err := dir.Load()
		if err != nil || meta.Ended() {
			continue // the watcher reports damaged runs
		}
		if meta.Log != nil || dir.Running(&meta) {
			active = append(active, id)
		}
	}
	return active, nil
}

// Busy reports whether a process still writes to the directory: the tool runs, or an observer waits
// for replicas.
func (d Directory) Busy(m *Meta) bool {
	if m.Closed() {
		return false
	}
	return m.Log == nil && d.Running(m) || d.held(ObserverLock)
}

// Period returns when a run took place, from the start of its tool until it was closed. A running
// run lasts until now. A run that ended but was never closed lasts until its tool ended. If a dead
// run's end is not recorded yet, only its start is certain.
func (d Directory) Period(m *Meta, now time.Time) (from, to time.Time) {
	switch {
	case m.Closed():
		return m.StartedAt, *m.ClosedAt
	case d.Busy(m), m.Log != nil && !m.Ended():
		return m.StartedAt, now
	case m.Ended():
		return m.StartedAt, *m.EndedAt
	}
	return m.StartedAt, m.StartedAt
}

// Listing is the list of a data directory's runs when it was last read.
type Listing struct {
	DataDir string

	ids     []string
	changed time.Time // modification time of the folder when it was listed
	listed  time.Time
	failed  bool
}

// settled after a folder's last change, the next change gets a different time.
const settled = 2 * time.Second

// IDs returns the result of List, and whether it may differ from the last time. It lists the folder
// only if it has changed since.
func (l *Listing) IDs() (ids []string, changed bool, err error) {
	var at time.Time
	if info, err := os.Stat(Root(l.DataDir)); err == nil {
		at = info.ModTime()
	}
	if !l.failed && !l.listed.IsZero() && at.Equal(l.changed) && (at.IsZero() || l.listed.Sub(at) > settled) {
		return l.ids, false, nil
	}
	l.changed, l.listed = at, time.Now()
	ids, err = List(l.DataDir)
	l.failed = err != nil
	if err == nil {
		l.ids = ids
	}
	return ids, true, err
}
