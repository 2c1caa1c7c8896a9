package metrics

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
)

// forgottenAfter is the number of scrapes after which the labels of a series that is
// no longer exposed are dropped.
const forgottenAfter = 60

// Gatherer makes the families of a scrape from what is true now: which series there are
// depends on the runs and servers. It builds a family and the labels of a series once,
// and a scrape only adds the values. A prometheus.Registry would check, hash and sort
// all series at each scrape, which costs several times as much.
type Gatherer struct {
	sources Sources
	now     func() time.Time

	mu       sync.Mutex // held during a scrape; guards what follows
	roles    map[string]string
	families map[string]*exposedFamily // by name
	order    []*exposedFamily          // by name
	scrape   uint64                    // number of the current scrape
	key      []byte                    // scratch
	problems []error                   // series of the current scrape that could not be made
}

// exposedFamily is one family with the series that recent scrapes had.
type exposedFamily struct {
	name, help string
	kind       dto.MetricType
	series     map[string]*exposedSeries // by key
	order      []*exposedSeries          // by the values of their labels
}

// exposedSeries is one series. Its labels and its histogram do not change: an earlier
// scrape may still be writing them.
type exposedSeries struct {
	key       string
	labels    []*dto.LabelPair // by name
	scrape    uint64           // the last scrape that had it
	value     float64
	histogram *dto.Histogram
	from      *histogram.Histogram // what histogram was made of
}

// NewGatherer returns a gatherer of sources.
func NewGatherer(sources Sources) *Gatherer {
	now := sources.Now
	if now == nil {
		now = time.Now
	}
	return &Gatherer{sources: sources, now: now, roles: map[string]string{}, families: map[string]*exposedFamily{}}
}

// Gather returns the series that are true now: the families by name, their series by the
// values of their labels. The error names the series that could not be made, because a
// label is not valid or the series exists twice; the families have all others.
func (g *Gatherer) Gather() ([]*dto.MetricFamily, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.scrape++
	g.problems = nil
	g.collect()
	all := make([]*dto.MetricFamily, 0, len(g.order))
	for _, f := range g.order {
		if family := f.at(g.scrape); family != nil {
			all = append(all, family)
		}
	}
	return all, errors.Join(g.problems...)
}

// emit adds one series to the current scrape.
func (g *Gatherer) emit(f *Family, v float64, labels ...string) {
	if s := g.series(f, labels); s != nil {
		s.value = v
	}
}

// emitHistogram adds one histogram to the current scrape.
func (g *Gatherer) emitHistogram(f *Family, h *histogram.Histogram, sum float64, labels ...string) {
	s := g.series(f, labels)
	if s == nil || s.from == h {
		return
	}
	count := h.Count()
	s.from, s.histogram = h, &dto.Histogram{SampleCount: &count, SampleSum: &sum}
	for _, bound := range histogram.Ladder {
		n := h.CountUpTo(bound)
		s.histogram.Bucket = append(s.histogram.Bucket, &dto.Bucket{CumulativeCount: &n, UpperBound: &bound})
	}
}

// series returns a series for the current scrape, or nil if it can't be made.
func (g *Gatherer) series(f *Family, values []string) *exposedSeries {
	family := g.families[f.Name]
	if family == nil {
		family = g.family(f)
	}
	g.key = g.key[:0]
	for i, value := range values {
		if f.varies && i < len(f.Labels) {
			g.key = append(append(g.key, f.Labels[i]...), 0xff)
		}
		g.key = append(append(g.key, value...), 0xff)
	}
	s := family.series[string(g.key)]
	if s == nil {
		labels, err := pairs(f, values)
		if err != nil {
			g.problems = append(g.problems, err)
			return nil
		}
		s = family.add(string(g.key), labels)
	}
	if s.scrape == g.scrape {
		g.problems = append(g.problems, fmt.Errorf("%s exists twice with the labels %q", f.Name, values))
		return nil
	}
	s.scrape = g.scrape
	return s
}

func (g *Gatherer) family(f *Family) *exposedFamily {
	family := &exposedFamily{name: f.Name, help: f.Help, kind: kinds[f.Type], series: map[string]*exposedSeries{}}
	g.families[f.Name] = family
	i, _ := slices.BinarySearchFunc(g.order, f.Name, func(o *exposedFamily, name string) int { return strings.Compare(o.name, name) })
	g.order = slices.Insert(g.order, i, family)
	return family
}

var kinds = map[string]dto.MetricType{
	"gauge": dto.MetricType_GAUGE, "counter": dto.MetricType_COUNTER, "untyped": dto.MetricType_UNTYPED,
	"histogram": dto.MetricType_HISTOGRAM,
}

// pairs returns the labels of a series, by name.
func pairs(f *Family, values []string) ([]*dto.LabelPair, error) {
	if len(values) != len(f.Labels) {
		return nil, fmt.Errorf("%s has %d labels, and there are %d values", f.Name, len(f.Labels), len(values))
	}
	values = slices.Clone(values) // the caller's
	all := make([]*dto.LabelPair, len(values))
	for i, value := range values {
		if !utf8.ValidString(value) {
			return nil, fmt.Errorf("%s: label %s is not UTF-8: %q", f.Name, f.Labels[i], value)
		}
		all[i] = &dto.LabelPair{Name: &f.Labels[i], Value: &values[i]}
	}
	slices.SortFunc(all, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, nil
}

func (f *exposedFamily) add(key string, labels []*dto.LabelPair) *exposedSeries {
	s := &exposedSeries{key: key, labels: labels}
	i, _ := slices.BinarySearchFunc(f.order, s, byLabels)
	f.order = slices.Insert(f.order, i, s)
	f.series[key] = s
	return s
}

func byLabels(a, b *exposedSeries) int {
	return slices.CompareFunc(a.labels, b.labels, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetValue(), b.GetValue()) })
}

// at returns the family as a scrape has it, nil if it has no series then. It drops the
// series that were not exposed for long.
func (f *exposedFamily) at(scrape uint64) *dto.MetricFamily {
	n := 0
	f.order = slices.DeleteFunc(f.order, func(s *exposedSeries) bool {
		if s.scrape == scrape {
			n++
		}
		old := scrape-s.scrape > forgottenAfter
		if old {
			delete(f.series, s.key)
		}
		return old
	})
	if n == 0 {
		return nil
	}
	// One allocation for the series of a family, not several for each of them. They are
	// new in each scrape, since another one may still be writing its own.
	values, metrics, list := make([]float64, 0, n), make([]dto.Metric, n), make([]*dto.Metric, 0, n)
	var gauges []dto.Gauge
	var counters []dto.Counter
	var untyped []dto.Untyped
	switch f.kind {
	case dto.MetricType_COUNTER:
		counters = make([]dto.Counter, n)
	case dto.MetricType_UNTYPED:
		untyped = make([]dto.Untyped, n)
	case dto.MetricType_GAUGE:
		gauges = make([]dto.Gauge, n)
	}
	for _, s := range f.order {
		if s.scrape != scrape {
			continue
		}
		i := len(list)
		values = append(values, s.value)
		metric := &metrics[i]
		metric.Label = s.labels
		switch f.kind {
		case dto.MetricType_COUNTER:
			metric.Counter = &counters[i]
			metric.Counter.Value = &values[i]
		case dto.MetricType_UNTYPED:
			metric.Untyped = &untyped[i]
			metric.Untyped.Value = &values[i]
		case dto.MetricType_HISTOGRAM:
			metric.Histogram = s.histogram
		default:
			metric.Gauge = &gauges[i]
			metric.Gauge.Value = &values[i]
		}
		list = append(list, metric)
	}
	return &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: &f.kind, Metric: list}
}
