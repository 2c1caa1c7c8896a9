package rundir

import "time"

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
