// Package causetest has records for tests of causes.
package causetest

import (
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Record is a [cause.Record] of constants.
type Record struct {
	// Over are values over the run, one a second; Grown are increases.
	Over  map[*measure.Measure][]float64
	Grown map[*measure.Measure]float64
	// Together are increases of all servers, where they differ from Grown.
	Together map[*measure.Measure]float64
	By       map[*measure.Measure]map[string]float64
	// Settings are the server's settings.
	Settings map[string]string
}

// Values implements cause.Record.
func (r *Record) Values(m *measure.Measure) []float64 { return r.Over[m] }

// Tally implements cause.Record.
func (r *Record) Tally(m *measure.Measure) series.Tally {
	t := series.NewTally(true)
	for i, v := range r.Over[m] {
		t.Add(float64(i), v)
	}
	return t
}

// Increase implements cause.Record.
func (r *Record) Increase(m *measure.Measure) float64 {
	if v, known := r.Grown[m]; known {
		return v
	}
	return series.Unknown()
}

// IncreaseBy implements cause.Record.
func (r *Record) IncreaseBy(m *measure.Measure, _ string) map[string]float64 { return r.By[m] }

// Cluster implements cause.Record.
func (r *Record) Cluster(m *measure.Measure) float64 {
	if v, known := r.Together[m]; known {
		return v
	}
	return r.Increase(m)
}

// Setting implements cause.Record.
func (r *Record) Setting(name string) string { return r.Settings[name] }
