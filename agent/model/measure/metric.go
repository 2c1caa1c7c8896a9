package measure

import (
	"slices"
	"strings"
	"sync"
)

// Kind is how a metric behaves over time.
type Kind uint8

const (
	Gauge Kind = iota
	Counter
)

// Metric describes one family of series. Engines declare theirs as package variables; package
// engine declares the shared ones.
type Metric struct {
	// Name has no prefix (benchwatch_), names the base unit, and ends in `_total` for counters.
	Name string
	Help string
	Kind Kind
	// Labels in addition to target, engine, cluster and role.
	Labels []string
}

// declared are the metrics of all engines in this binary, listed in docs/reference/metrics.md.
var declared struct {
	sync.Mutex
	all []*Metric
}

// NewCounter declares a metric that only grows until its server restarts. Its
// name ends in _total.
func NewCounter(name, help string, labels ...string) *Metric {
	return declare(&Metric{Name: name, Help: help, Kind: Counter, Labels: labels})
}

// NewGauge declares a metric that goes up and down.
func NewGauge(name, help string, labels ...string) *Metric {
	return declare(&Metric{Name: name, Help: help, Labels: labels})
}

// declare panics if two metrics have one name, as the registries of Prometheus do.
func declare(m *Metric) *Metric {
	declared.Lock()
	defer declared.Unlock()
	if slices.ContainsFunc(declared.all, func(other *Metric) bool { return other.Name == m.Name }) {
		panic("measure: metric " + m.Name + " is declared twice")
	}
	declared.all = append(declared.all, m)
	return m
}

// Metrics returns all declared metrics, ordered by name.
func Metrics() []*Metric {
	declared.Lock()
	defer declared.Unlock()
	all := slices.Clone(declared.all)
	slices.SortFunc(all, func(a, b *Metric) int { return strings.Compare(a.Name, b.Name) })
	return all
}
