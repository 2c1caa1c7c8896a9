package rundir

import (
	"os"
	"time"
)

// Listing is the runs of a data directory as they were last listed.
type Listing struct {
	DataDir string

	ids     []string
	changed time.Time // the folder, when it was listed
	listed  time.Time
	failed  bool
}

// settled is how long after a folder's last change a later one has another time.
const settled = 2 * time.Second

// IDs returns what List does, and whether that may differ from the last time. It
// lists again only if the folder has changed since.
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
