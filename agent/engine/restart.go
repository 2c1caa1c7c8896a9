package engine

import "time"

// restartTolerance is how far a server's start may seem to move between two
// samples without a restart: uptimes are whole seconds, and answers take up to
// an interval.
const restartTolerance = 3 * time.Second

// restartCounter counts a server's restarts from its uptime. It compares
// starting times, since an uptime may have grown past the old one by the time
// a restarted server answers. Counters that fall without it (FLUSH STATUS) are
// no restart.
type restartCounter struct {
	started time.Time // zero: not known yet
	n       uint64
}

// see takes the uptime that was answered at a moment; 0 is unknown.
func (r *restartCounter) see(answered time.Time, uptime time.Duration) {
	if uptime <= 0 {
		return
	}
	started := answered.Add(-uptime)
	if !r.started.IsZero() && started.Sub(r.started) > restartTolerance {
		r.n++
	}
	r.started = started
}
