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

// Scope is what a measure is about.
type Scope string

const (
	Run    Scope = "run"    // what the benchmark tool reports
	Server Scope = "server" // one sampled target
	Host   Scope = "host"   // one machine
	// Cluster is all servers of a run, or the shards behind them, against each other.
	Cluster Scope = "cluster"
)

// Unit is the unit of a measure's values, always a base unit.
type Unit string

const (
	PerSecond Unit = "per_second"
	PerMinute Unit = "per_minute"
	Seconds   Unit = "seconds"
	Ratio     Unit = "ratio" // 0 to 1
	Bytes     Unit = "bytes"
	Count     Unit = "count"
)

// Summary is how a run's values of a measure become one number.
type Summary string

const (
	Mean Summary = "mean"
	Max  Summary = "max"
	// Median is that of the intervals' values: percentiles have no mean.
	Median Summary = "median"
	Last   Summary = "last" // of a value that hardly changes, such as a limit
	// Increase is how much the source's counter grew. It is a Count, also where
	// the measure's values are PerSecond.
	Increase Summary = "increase"
	// Cost is how much the source's counters grew for each transaction of the run. Such a
	// measure has no values over time.
	Cost Summary = "cost"
)

// Placement is whether tables that have one line per run have a column for a
// measure of servers.
type Placement string

const (
	NoColumn   Placement = ""
	WorstOfAll Placement = "worst" // one column: the largest value of all servers
	EachServer Placement = "each"  // a column for each server
	EachHost   Placement = "host"  // a column for each machine
)

// Measure is a value that is shown or compared.
type Measure struct {
	// ID names the measure in JSON, CSV and the page's data: lower case with
	// underscores, without the unit.
	ID string
	// Noun replaces the ID in names and fields, for an ID such as qps that has its unit in it.
	Noun string
	// Title heads a chart. Short heads a column of a terminal-wide table; a
	// measure without one has no column there.
	Title, Short string
	// Note describes the numbers in a few words.
	Note    string
	Unit    Unit
	Scope   Scope
	Summary Summary
	Column  Placement
	// NoChart is set if the measure is not charted, since it hardly changes.
	NoChart bool
	// OnlyChanges is set if the chart is left out while no value changes.
	OnlyChanges bool
	// ChartOf is the measure in whose chart this one is a line; nil: it has a
	// chart of its own.
	ChartOf *Measure
	// Supersedes is a measure that has no EachServer column for servers that
	// have this one.
	Supersedes *Measure
	// MoreIsBetter is set if the largest value is the best one.
	MoreIsBetter bool
	// Stacked is set if the lines of the chart add up to a whole.
	Stacked bool
	// Spread is set if it is of interest how long the values were above a limit.
	Spread bool
	// Of is the measure of servers whose imbalance this one of a cluster is: by how much the part
	// with the most exceeds the mean. By is the label of its metric by which the parts differ;
	// empty: they are the servers.
	Of *Measure
	By string
	// Line is its name in a chart of several measures; default: Short, else the title.
	Line string
	// Rank orders measures within their scope, smallest first.
	Rank int

	sources []Source
}

var catalogue struct {
	sync.Mutex
	all []*Measure
}

// New declares a measure. Tools and engines declare theirs as package variables,
// beside the metrics.
func New(m Measure) *Measure {
	catalogue.Lock()
	defer catalogue.Unlock()
	catalogue.all = append(catalogue.all, &m)
	return &m
}

// Or adds sources after those that m has. The first source that a server
// reports is used.
func (m *Measure) Or(sources ...Source) *Measure {
	catalogue.Lock()
	defer catalogue.Unlock()
	m.sources = append(m.sources, sources...)
	return m
}

// Prefer adds sources before those that m has, for an engine with a metric that
// is more accurate than the shared ones.
func (m *Measure) Prefer(sources ...Source) *Measure {
	catalogue.Lock()
	defer catalogue.Unlock()
	m.sources = append(slices.Clone(sources), m.sources...)
	return m
}

// Sources are the ways to compute m, the best one first.
func (m *Measure) Sources() []Source { return m.sources }

// All returns the declared measures of a scope by rank and id.
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

// Charted returns the measures that the chart of m shows: m itself first, then
// those whose ChartOf it is. It returns none if m has no chart of its own.
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
