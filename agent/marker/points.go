package marker

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

const (
	// maxPoints is how many points of one queue are exposed as series.
	maxPoints = 100
	// maxPointText is how much of a point's text, in runes.
	maxPointText = 200
)

// PointInTime is a point as it is exposed to Prometheus. No two have the same
// Run and Text.
type PointInTime struct {
	Run  string // empty: of no run
	Text string // one line, cut
	Time time.Time
}

// Points returns the newest points of the watched queues, 100 of each at the
// most, sorted by run and time. Ranges are not among them: a run has series of
// its own.
func (d *Deliverer) Points() []PointInTime {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.points)
}

// newestPoints picks the points to expose. Of those that look the same, the
// newest counts.
func newestPoints(states []*State) []PointInTime {
	type key struct{ run, text string }
	newest := map[key]time.Time{}
	for _, s := range states {
		if s.Kind != Point {
			continue
		}
		k := key{s.Run, Cut(strings.Join(strings.Fields(s.Text), " "), maxPointText)}
		if at, found := newest[k]; !found || s.Start.After(at) {
			newest[k] = s.Start
		}
	}
	points := make([]PointInTime, 0, len(newest))
	for k, at := range newest {
		points = append(points, PointInTime{Run: k.run, Text: k.text, Time: at})
	}
	slices.SortFunc(points, func(a, b PointInTime) int {
		return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.Run, b.Run), strings.Compare(a.Text, b.Text))
	})
	return points[:min(len(points), maxPoints)]
}

// sortPoints sorts by run and time and leaves only the newest of those that
// look the same.
func sortPoints(points []PointInTime) []PointInTime {
	slices.SortFunc(points, func(a, b PointInTime) int {
		return cmp.Or(strings.Compare(a.Run, b.Run), strings.Compare(a.Text, b.Text), b.Time.Compare(a.Time))
	})
	points = slices.CompactFunc(points, func(a, b PointInTime) bool { return a.Run == b.Run && a.Text == b.Text })
	slices.SortFunc(points, func(a, b PointInTime) int {
		return cmp.Or(strings.Compare(a.Run, b.Run), a.Time.Compare(b.Time), strings.Compare(a.Text, b.Text))
	})
	return points
}
