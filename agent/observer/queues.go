package observer

import (
	"context"
	"os"
	"time"

	"github.com/benchwatch/benchwatch/agent/rundir"
)

// tendEvery is how often the queues of markers are looked through for those that
// nobody needs any more.
const tendEvery = time.Minute

// queueSize is a queue file's size and time; zero: of a run that is shown.
type queueSize struct {
	bytes int64
	at    time.Time
}

// tendQueues lets go of what is no longer needed until ctx is done.
func (b *Observer) tendQueues(ctx context.Context) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			b.markers.tend(b.dataDir, func() map[string]bool {
				shown := map[string]bool{}
				for _, s := range b.Snapshots() {
					shown[s.Meta.ID] = true
				}
				return shown
			})
		}
	}
}

// tend has the queues forgotten of runs that were removed and of those too old to
// be shown, once all in them is delivered: else memory and the series of points
// would grow with every run. A queue that somebody adds to later is taken up again
// for that. shown is asked when the runs on disk are known, so that a new run is
// among them or has not begun.
func (m *markers) tend(dataDir string, shown func() map[string]bool) {
	ids, err := rundir.List(dataDir)
	if err != nil {
		m.log.Error("can't look for queues of markers", "err", err)
		return
	}
	visible := shown()
	if m.moved.Swap(false) {
		m.tended = nil
	}
	present := make(map[string]queueSize, len(ids))
	for _, id := range ids {
		path := rundir.At(dataDir, id).Path(rundir.MarkersFile)
		if visible[id] {
			present[id] = queueSize{}
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		now := queueSize{info.Size(), info.ModTime()}
		if before, known := m.tended[id]; !known || before != now {
			m.deliverer.Watch(path)
			m.deliverer.Forget(path)
		}
		present[id] = now
	}
	for id := range m.tended {
		if _, there := present[id]; !there {
			m.deliverer.Forget(rundir.At(dataDir, id).Path(rundir.MarkersFile))
		}
	}
	m.tended = present
}
