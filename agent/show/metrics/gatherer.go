package metrics

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
)

// forgottenAfter is the number of scrapes after which the labels of a series that is
// no longer exposed are dropped.
const forgottenAfter = 60

// Gatherer writes the text of a scrape from the current state: the series depend on the runs and servers. It makes the
// heads of the families and the names and labels of the series once, and a scrape only adds the values. A
// prometheus.Registry would check, hash and sort all series at each scrape, which costs several times as much.
type Gatherer struct {
	sources Sources
	now     func() time.Time

	mu       sync.Mutex // held during a scrape; guards what follows
	roles    map[string]string
	families map[string]*exposedFamily // by name
	order    []*exposedFamily          // by name
	ended    map[string]*endedRun      // by run
	made     *[]*exposedSeries         // receives the series of the run being made; nil: no run that has ended
	scrape   uint64                    // number of the current scrape
	key      []byte                    // scratch
	values   []string                  // scratch
	problems []error                   // series of the current scrape that could not be made
}

// exposedFamily is one family with the series that recent scrapes had.
type exposedFamily struct {
	name      string
	heads     [2]string // HELP and TYPE in the formats
	histogram bool
	series    map[string]*exposedSeries // by key
	order     []*exposedSeries          // by the values of their labels
}

// exposedSeries is one series.
type exposedSeries struct {
	key    string
	values []string // of the labels, by the labels' names
	labels string   // as text in braces, empty without labels
	scrape uint64   // the last scrape that had it
	value  float64  // of a histogram: the sum
	from   *histogram.Histogram
	counts []uint64 // up to the bounds of the ladder, and of all values
}

// endedRun has the series of an ended run, whose values no longer change.
type endedRun struct {
	edition uint64
	scrape  uint64 // the last scrape that had the run
	series  []*exposedSeries
}

// NewGatherer returns a gatherer of sources.
func NewGatherer(sources Sources) *Gatherer {
	now := sources.Now
	if now == nil {
		now = time.Now
	}
	return &Gatherer{sources: sources, now: now, roles: map[string]string{}, families: map[string]*exposedFamily{}, ended: map[string]*endedRun{}}
}

// Append appends the current series to a text: the families by name, their series by the values of their labels. The
// error names the series that could not be made, because a label is not valid or the series exists twice; the text has
// all others.
func (g *Gatherer) Append(text []byte, format Format) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.scrape++
	g.problems = nil
	g.collect()
	for _, f := range g.order {
		text = f.append(text, format, g.scrape)
	}
	if format == OpenMetrics {
		text = append(text, "# EOF\n"...)
	}
	return text, errors.Join(g.problems...)
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
	if s == nil {
		return
	}
	s.value = sum
	if s.from == h {
		return
	}
	s.from, s.counts = h, s.counts[:0]
	for _, bound := range histogram.Ladder {
		s.counts = append(s.counts, h.CountUpTo(bound))
	}
	s.counts = append(s.counts, h.Count())
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
		var err error
		if s, err = newSeries(f, slices.Clone(values)); err != nil {
			g.problems = append(g.problems, err)
			return nil
		}
		s.key = string(g.key)
		family.add(s)
	}
	if s.scrape == g.scrape {
		g.problems = append(g.problems, fmt.Errorf("%s exists twice with the labels %q", f.Name, slices.Clone(values)))
		return nil
	}
	s.scrape = g.scrape
	if g.made != nil {
		*g.made = append(*g.made, s)
	}
	return s
}

// run adds the series of a run to the current scrape.
func (g *Gatherer) run(s *ingest.Snapshot, now time.Time) {
	e := g.ended[s.Meta.ID]
	switch {
	case s.Edition == 0:
		emitRun(g.emit, g.emitHistogram, s, now)
	case e != nil && e.edition == s.Edition:
		for _, one := range e.series {
			one.scrape = g.scrape
		}
		e.scrape = g.scrape
	default:
		before := len(g.problems)
		e = &endedRun{edition: s.Edition, scrape: g.scrape}
		g.made = &e.series
		emitRun(g.emit, g.emitHistogram, s, now)
		g.made = nil
		if len(g.problems) == before { // otherwise each scrape reports them
			g.ended[s.Meta.ID] = e
		}
	}
}

func (g *Gatherer) family(f *Family) *exposedFamily {
	family := &exposedFamily{
		name: f.Name, heads: [2]string{Text: f.head(Text), OpenMetrics: f.head(OpenMetrics)},
		histogram: f.Type == "histogram", series: map[string]*exposedSeries{},
	}
	g.families[f.Name] = family
	i, _ := slices.BinarySearchFunc(g.order, f.Name, func(o *exposedFamily, name string) int { return strings.Compare(o.name, name) })
	g.order = slices.Insert(g.order, i, family)
	return family
}

// newSeries returns a series with its labels by name.
func newSeries(f *Family, values []string) (*exposedSeries, error) {
	if len(values) != len(f.Labels) {
		return nil, fmt.Errorf("%s has %d labels, and there are %d values", f.Name, len(f.Labels), len(values))
	}
	order := make([]int, len(values))
	for i, value := range values {
		if !utf8.ValidString(value) {
			return nil, fmt.Errorf("%s: label %s is not UTF-8: %q", f.Name, f.Labels[i], value)
		}
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(f.Labels[a], f.Labels[b]) })
	s := &exposedSeries{values: make([]string, len(values))}
	names := make([]string, len(values))
	for i, from := range order {
		names[i], s.values[i] = f.Labels[from], values[from]
	}
	if len(names) > 0 {
		s.labels = string(appendLabels(nil, names, s.values))
	}
	return s, nil
}

func (f *exposedFamily) add(s *exposedSeries) {
	i, _ := slices.BinarySearchFunc(f.order, s, func(a, b *exposedSeries) int { return slices.Compare(a.values, b.values) })
	f.order = slices.Insert(f.order, i, s)
	f.series[s.key] = s
}

// append appends the family as a scrape has it. It drops series that have not been exposed for long.
func (f *exposedFamily) append(text []byte, format Format, scrape uint64) []byte {
	before, old := len(text), 0
	text = append(text, f.heads[format]...)
	head := len(text)
	for _, s := range f.order {
		switch {
		case s.scrape == scrape && f.histogram:
			text = s.appendHistogram(text, f.name, format)
		case s.scrape == scrape:
			text = append(append(append(text, f.name...), s.labels...), ' ')
			text = append(format.appendValue(text, s.value), '\n')
		case scrape-s.scrape > forgottenAfter:
			old++
		}
	}
	if old > 0 {
		f.order = slices.DeleteFunc(f.order, func(s *exposedSeries) bool {
			old := scrape-s.scrape > forgottenAfter
			if old {
				delete(f.series, s.key)
			}
			return old
		})
	}
	if len(text) == head {
		return text[:before]
	}
	return text
}

func (s *exposedSeries) appendHistogram(text []byte, name string, format Format) []byte {
	labels := "{"
	if s.labels != "" {
		labels = strings.TrimSuffix(s.labels, "}") + ","
	}
	for i, n := range s.counts {
		bound := math.Inf(1)
		if i < len(histogram.Ladder) {
			bound = histogram.Ladder[i]
		}
		text = append(append(append(append(text, name...), bucketSuffix...), labels...), `le="`...)
		text = append(format.appendValue(text, bound), `"} `...)
		text = append(strconv.AppendUint(text, n, 10), '\n')
	}
	text = append(append(append(append(text, name...), sumSuffix...), s.labels...), ' ')
	text = append(format.appendValue(text, s.value), '\n')
	text = append(append(append(append(text, name...), countSuffix...), s.labels...), ' ')
	return append(strconv.AppendUint(text, s.counts[len(s.counts)-1], 10), '\n')
}
