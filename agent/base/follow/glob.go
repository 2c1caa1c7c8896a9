package follow

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Glob finds the files that match a pattern. It lists folders only after they have changed. One goroutine uses it.
type Glob struct {
	pattern  string
	notifier *Notifier // nil: nothing wakes
	wake     chan struct{}
	folders  []string
	changed  []time.Time // the folders, when they were listed
	listed   time.Time
	paths    []string
	cancel   []func() // unsubscribe from wake-ups
}

// NewGlob returns a Glob. wake, which must have room for one value, gets one after a folder of the pattern has
// changed.
func NewGlob(pattern string, notifier *Notifier, wake chan struct{}) *Glob {
	return &Glob{pattern: pattern, notifier: notifier, wake: wake}
}

// Paths returns the paths that match the pattern; none if it is malformed.
func (g *Glob) Paths() []string {
	folders, err := filepath.Glob(filepath.Dir(g.pattern))
	if err != nil {
		return nil
	}
	if !slices.Equal(folders, g.folders) {
		g.Close()
		g.folders, g.changed = folders, nil
		for _, folder := range folders {
			if g.notifier != nil {
				g.cancel = append(g.cancel, g.notifier.Wake(g.wake, folder))
			}
		}
	}
	changed, newest := make([]time.Time, len(folders)), time.Time{}
	for i, folder := range folders {
		if info, err := os.Stat(folder); err == nil {
			changed[i] = info.ModTime()
		}
		if changed[i].After(newest) {
			newest = changed[i]
		}
	}
	// Within two seconds, a folder's time may not show another change.
	isSame := g.changed != nil && slices.EqualFunc(g.changed, changed, time.Time.Equal)
	if !isSame || g.listed.Sub(newest) <= 2*time.Second {
		g.changed, g.listed = changed, time.Now()
		g.paths, _ = filepath.Glob(g.pattern)
	}
	return g.paths
}

// Close ends the wake-ups.
func (g *Glob) Close() {
	for _, cancel := range g.cancel {
		cancel()
	}
	g.cancel = nil
}
