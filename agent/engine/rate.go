package engine

// PerSecond is how fast a counter grew between two samples of one target, by
// the target's own times of answer. It is unknown if either sample lacks the
// counter, or if it fell: then the server was restarted or its counters were
// flushed.
func PerSecond(before, after *Sample, name string, labels ...string) (float64, bool) {
	if !before.Up() || !after.Up() || before.Restarts != after.Restarts {
		return 0, false
	}
	from, ok1 := before.Status.ByName(name, labels...)
	to, ok2 := after.Status.ByName(name, labels...)
	seconds := after.Answered.Sub(before.Answered).Seconds()
	if !ok1 || !ok2 || to < from || seconds <= 0 {
		return 0, false
	}
	return (to - from) / seconds, true
}

// ByName returns a value by its metric's name, for readers that know an
// engine's metrics by name only.
func (s *Status) ByName(name string, labels ...string) (float64, bool) {
	for i := range s.Values {
		if s.Values[i].Metric.Name == name {
			if v, ok := s.Get(s.Values[i].Metric, labels...); ok {
				return v, true
			}
		}
	}
	return 0, false
}
