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

// Op is how a measure's values are computed from those of a metric.
type Op string

const (
	Value Op = "value" // the gauge as it was sampled
	Rate  Op = "rate"  // growth of a counter per second
	Share Op = "share" // Rate of a counter of seconds, at most 1
)

// Summary is how one number stands for all values of a run.
type Summary string

const (
	Mean     Summary = "mean"
	Max      Summary = "max"
	Last     Summary = "last"
	Increase Summary = "increase" // of the counter over the run
)

// Placement is whether tables that have one line per run have a column for a
// measure of servers.
type Placement string

const (
	NoColumn   Placement = ""
	WorstOfAll Placement = "worst" // one column: the largest value of all servers
	EachServer Placement = "each"  // a column for each server
)

// Source is one way to compute a measure. Of a metric with labels the values of
// all label sets are added up.
type Source struct {
	Metric *Metric
	Op     Op
}

// Measure is a value that is shown or compared. Charts, tables, CSV heads, the
// page and the documentation take all they say of it from here.
type Measure struct {
	// ID names the measure in JSON, CSV and the page's data: lower case with
	// underscores, without the unit.
	ID string
	// Title heads a chart, Short a column of a narrow table.
	Title, Short string
	// Note says in a few words what the numbers are.
	Note    string
	Unit    Unit
	Scope   Scope
	Summary Summary
	Column  Placement
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

// Or adds sources after those that m has: the first one that a server reports is
// used.
func (m *Measure) Or(sources ...Source) *Measure {
	catalogue.Lock()
	defer catalogue.Unlock()
	m.sources = append(m.sources, sources...)
	return m
}

// Prefer adds sources before those that m has. An engine that knows better than
// the shared metrics does so.
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
