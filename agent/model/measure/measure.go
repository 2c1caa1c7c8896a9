// Package measure is the model between what servers and tools report and
// everything that shows it.
//
// A [Metric] is what Prometheus scrapes: a name, a help text, its labels. A
// [Measure] is what people look at: a value with a title and a unit, computed
// from metrics. An engine declares both as package variables, side by side, and
// names a measure's sources once:
//
//	var (
//		paused      = measure.NewCounter("galera_flow_control_paused_seconds_total", "…")
//		flowControl = engine.FlowControl.Or(measure.ShareOf(paused))
//	)
//
// The page, charts, tables, CSV heads and `status` iterate over [All] and
// evaluate each measure with [Measure.Values], over the history of a run or
// over the last two samples of a server. None of them knows a metric by name.
package measure

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Scope is what a measure describes.
type Scope string

const (
	Run    Scope = "run"    // what the benchmark tool reports
	Server Scope = "server" // one sampled target
	Host   Scope = "host"   // one machine
	// Cluster compares the servers of a run, or the shards behind them, with each other.
	Cluster Scope = "cluster"
)

// Unit is the base unit of a measure's values.
type Unit string

const (
	PerSecond Unit = "per_second"
	PerMinute Unit = "per_minute"
	Seconds   Unit = "seconds"
	Ratio     Unit = "ratio" // 0 to 1
	Bytes     Unit = "bytes"
	Count     Unit = "count"
)

// Summary is how the values of a run become one number.
type Summary string

const (
	Mean Summary = "mean"
	Max  Summary = "max"
	// Median of the intervals' values, for percentiles, which must not be averaged.
	Median Summary = "median"
	Last   Summary = "last" // for a value that hardly changes, such as a limit
	// Increase is the growth of the source's counter over the run. It is a Count even if the values
	// are PerSecond.
	Increase Summary = "increase"
	// Cost is the growth of the source's counters per transaction of the run. Such a measure has no
	// values over time.
	Cost Summary = "cost"
)

// Placement says which columns a measure of servers has in tables with one line per run.
type Placement string

const (
	NoColumn   Placement = ""
	WorstOfAll Placement = "worst" // one column: the largest value among the servers
	EachServer Placement = "each"  // one column per server
	EachHost   Placement = "host"  // one column per machine
)

// Measure is a value that is shown or compared.
type Measure struct {
	// ID names the measure in JSON, CSV and the page's data: lower case with underscores, without
	// the unit.
	ID string
	// Noun replaces the ID in names and fields if the ID contains a unit, such as qps.
	Noun string
	// Title heads a chart. Short heads a column in the terminal; a measure without Short has no
	// column there.
	Title, Short string
	// Note describes the numbers in a few words.
	Note    string
	Unit    Unit
	Scope   Scope
	Summary Summary
	Column  Placement
	// NoChart: the measure has no chart, since it hardly changes.
	NoChart bool
	// OnlyChanges: the chart is left out if the value never changes. EvenZero: it is drawn even if all
	// values are 0.
	OnlyChanges, EvenZero bool
	// ChartOf is the measure whose chart shows this one as a line; nil: the measure has its own
	// chart.
	ChartOf *Measure
	// Supersedes is a measure that has no EachServer column for servers that report this one.
	Supersedes *Measure
	// MoreIsBetter: the largest value is the best.
	MoreIsBetter bool
	// Stacked: the lines of the chart add up to a whole.
	Stacked bool
	// Spread: reports show how long the values were above a limit.
	Spread bool
	// Of is the measure of servers that this cluster measure compares: the value is how far the
	// largest part exceeds the mean. By is the label that distinguishes the parts; empty: each
	// server is a part.
	Of *Measure
	By string
	// Line is the name in a chart of several measures; default: Short, otherwise the title.
	Line string
	// Rank orders measures within their scope, smallest first.
	Rank int

	sources []Source
}

var catalogue struct {
	sync.Mutex
	all, evidence []*Measure
}

// New declares a measure. Tools and engines declare theirs as package variables beside the metrics. It panics if the
// scope has a measure with this ID: two declarations of one value are a mistake in the program.
func New(m Measure) *Measure {
	catalogue.Lock()
	defer catalogue.Unlock()
	if slices.ContainsFunc(catalogue.all, func(other *Measure) bool { return other.Scope == m.Scope && other.ID == m.ID }) {
		panic("measure: " + string(m.Scope) + " measure " + m.ID + " is declared twice")
	}
	catalogue.all = append(catalogue.all, &m)
	return &m
}

// NewEvidence declares a counter that only causes read: no chart and no table shows it, and only its increase over a run
// is computed. It panics for a gauge, whose increase would be unknown without a word: a gauge needs a measure of its own.
func NewEvidence(scope Scope, source Source) *Measure {
	for _, m := range append([]*Metric{source.Metric}, source.Added...) {
		if source.Op == Value || m.Kind != Counter {
			panic("measure: evidence of " + m.Name + " is no counter")
		}
	}
	m := &Measure{Scope: scope, Unit: PerSecond, Summary: Increase, NoChart: true, sources: []Source{source}}
	catalogue.Lock()
	defer catalogue.Unlock()
	catalogue.evidence = append(catalogue.evidence, m)
	return m
}

// Evidence returns what NewEvidence declared for a scope.
func Evidence(scope Scope) []*Measure {
	catalogue.Lock()
	defer catalogue.Unlock()
	return slices.DeleteFunc(slices.Clone(catalogue.evidence), func(m *Measure) bool { return m.Scope != scope })
}

// Or adds sources after the existing ones. Values uses the first source that a server reports.
func (m *Measure) Or(sources ...Source) *Measure {
	catalogue.Lock()
	defer catalogue.Unlock()
	m.sources = append(m.sources, sources...)
	return m
}

// Prefer adds sources before the existing ones, for an engine with a more accurate metric.
func (m *Measure) Prefer(sources ...Source) *Measure {
	catalogue.Lock()
	defer catalogue.Unlock()
	m.sources = append(slices.Clone(sources), m.sources...)
	return m
}

// IsRate reports whether the values are per second: such a value in Bytes comes from a counter.
func (m *Measure) IsRate() bool {
	switch {
	case m.Summary == Cost, m.Summary == Increase:
		return false
	case m.Unit == Bytes:
		return len(m.sources) > 0 && m.sources[0].Op == Rate
	}
	return m.Unit == PerSecond
}

// Sources returns the ways to compute m, the preferred one first.
func (m *Measure) Sources() []Source { return m.sources }

// All returns the declared measures of a scope, ordered by rank and ID.
func All(scope Scope) []*Measure {
	catalogue.Lock()
	defer catalogue.Unlock()
	var all []*Measure
	for _, m := range catalogue.all {
		if m.Scope == scope {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b *Measure) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), strings.Compare(a.ID, b.ID))
	})
	return all
}

// Charted returns the measures in the chart of m: m itself, then every measure with ChartOf m. It returns none if m has
// no own chart.
func (m *Measure) Charted() []*Measure {
	if m.NoChart || m.ChartOf != nil || m.Summary == Cost {
		return nil
	}
	lines := []*Measure{m}
	for _, other := range All(m.Scope) {
		if other.ChartOf == m {
			lines = append(lines, other)
		}
	}
	return lines
}

// Field returns the name of the current value in JSON and CSV: the ID with the base unit, such as
// queries_per_second or lag_seconds. Counts and tpmC, which means "per minute", have no unit.
func (m *Measure) Field() string {
	if m.Unit == Count || m.Unit == PerMinute {
		return m.ID
	}
	return m.Base() + "_" + string(m.Unit)
}

// SummaryField returns the name of the value that summarises a run: Field, or the plain ID for an
// increase, or Field with _max for the largest value.
func (m *Measure) SummaryField() string {
	switch m.Summary {
	case Increase:
		return m.ID
	case Max:
		return m.Field() + "_max"
	}
	return m.Field()
}

// Label returns the measure's name in a chart of several measures.
func (m *Measure) Label() string {
	return cmp.Or(m.Line, m.Short, strings.ToLower(m.Title))
}

// Name returns the ID as words, without the unit.
func (m *Measure) Name() string { return strings.ReplaceAll(m.Base(), "_", " ") }

// Base returns the ID without the unit. Two measures of the same thing in different units have the
// unit in their IDs.
func (m *Measure) Base() string {
	return cmp.Or(m.Noun, strings.TrimSuffix(m.ID, "_"+string(m.Unit)))
}
