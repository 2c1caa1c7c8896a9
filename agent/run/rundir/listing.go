package rundir

import (
	"os"
	"time"
)

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
