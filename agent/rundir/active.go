package rundir

// Active returns the ids of the runs whose tool still runs, oldest first. Of a
// run that a log file holds that is not known: it counts as long as nobody saw
// its end.
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
			continue // a damaged one is reported by who follows the runs
		}
		if meta.Log != nil || dir.Running(&meta) {
			active = append(active, id)
		}
	}
	return active, nil
}

// Busy reports whether somebody still writes into a run's directory: the tool
// runs, or an observer waits for its replicas.
func (d Directory) Busy(m *Meta) bool {
	if m.Closed() {
		return false
	}
	return m.Log == nil && d.Running(m) || d.held(ObserverLock)
}
