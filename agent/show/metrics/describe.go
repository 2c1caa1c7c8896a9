package metrics

import (
	"slices"
	"strings"
	"sync"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Family describes one family of series. Its name, help, labels and type are
// written down once; the gatherer, the backfill and docs/reference/metrics.md take them
// from here.
type Family struct {
	Name   string // with prefix
	Type   string // gauge, counter, histogram or untyped
	Labels []string
	Help   string

	// state is set for families that seldom change: a backfill does not repeat them at each report.
	state bool
	// varies is set if the names of the labels differ between the family's series.
	varies bool
}

// emit takes one series of a family as it is at an instant, with its labels'
// values.
type emit func(f *Family, v float64, labels ...string)

// emitHistogram takes one histogram of a family with the sum of its values, which may be
// unknown, and its labels' values.
type emitHistogram func(f *Family, h *histogram.Histogram, sum float64, labels ...string)

// histogramFamily declares a classic histogram. Its series are named with bucketSuffix,
// which has the label le, countSuffix and sumSuffix.
func histogramFamily(name, help string, labels ...string) *Family {
	f := family(name, help, labels...)
	f.Type = "histogram"
	return f
}

// member returns the family of some of a histogram's series, as a backfill has them.
func (f *Family) member(suffix string, labels ...string) *Family {
	return &Family{Name: f.Name + suffix, Type: f.Type, Labels: append(slices.Clip(f.Labels), labels...), Help: f.Help, state: f.state}
}

const bucketSuffix, countSuffix, sumSuffix = "_bucket", "_count", "_sum"

// declared are this package's own families.
var declared []*Family

// family declares a family of this package.
func family(name, help string, labels ...string) *Family {
	f := newFamily(name, help, labels)
	declared = append(declared, f)
	return f
}

// stateFamily declares a family that seldom changes.
func stateFamily(name, help string, labels ...string) *Family {
	f := family(name, help, labels...)
	f.state = true
	return f
}

func newFamily(name, help string, labels []string) *Family {
	f := &Family{Name: prefix + name, Type: "gauge", Labels: labels, Help: help}
	switch {
	case strings.HasSuffix(name, "_total"): // in a summary, one that has stopped
		f.Type = "counter"
	case strings.HasSuffix(name, "_count"): // a gauge's name, but for promtool only a histogram's
		f.Type = "untyped"
	}
	return f
}

// Families lists every family that benchwatch itself may expose, by name.
func Families() []*Family {
	all := slices.Clone(declared)
	for _, m := range measure.Metrics() {
		all = append(all, engineFamilies.of(m))
	}
	slices.SortFunc(all, func(a, b *Family) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// engineFamilies are the families of the engines' metrics, made once each.
var engineFamilies = familyCache{known: map[*measure.Metric]*Family{}}

type familyCache struct {
	mu    sync.RWMutex
	known map[*measure.Metric]*Family
}

func (c *familyCache) of(m *measure.Metric) *Family {
	c.mu.RLock()
	made := c.known[m]
	c.mu.RUnlock()
	if made != nil {
		return made
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[m] == nil {
		c.known[m] = newFamily(m.Name, m.Help, append(targetLabels[:4:4], m.Labels...))
	}
	return c.known[m]
}
