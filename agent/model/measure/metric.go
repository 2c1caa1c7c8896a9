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

// Metric describes one series family. Engines declare theirs as package
// variables; those that several engines share are in package engine.
type Metric struct {
	// Name without the prefix benchwatch_, base units, `_total` for counters.
	Name string
	Help string
	Kind Kind
	// Labels beside target, engine, cluster and role.
	Labels []string
}

// declared holds the metrics of all engines in this binary, for the list in
// docs/metrics.md.
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

func declare(m *Metric) *Metric {
	declared.Lock()
	defer declared.Unlock()
	declared.all = append(declared.all, m)
	return m
}

// Metrics returns all declared metrics by name.
func Metrics() []*Metric {
	declared.Lock()
	defer declared.Unlock()
	all := slices.Clone(declared.all)
	slices.SortFunc(all, func(a, b *Metric) int { return strings.Compare(a.Name, b.Name) })
	return all
}
