package rundir

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
			continue // the watcher reports a damaged run
		}
		if meta.Log != nil || dir.Running(&meta) {
			active = append(active, id)
		}
	}
	return active, nil
}

// Busy reports whether a process still writes into the directory: the tool runs, or
// an observer waits for replicas.
func (d Directory) Busy(m *Meta) bool {
	if m.Closed() {
		return false
	}
	return m.Log == nil && d.Running(m) || d.held(ObserverLock)
}
