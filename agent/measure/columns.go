package measure

import (
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/series"
)

// Columns are the values of one server's metrics over time. A metric with labels
// has a column for each set of label values, named as in Prometheus' text format
// without the prefix: name{label="value"}.
type Columns interface {
	// Names of all columns.
	Names() []string
	// Values of one column, nil if there is none.
	Values(name string) []float64
	// Rate is how much a column grew per second, each row against the previous
	// one; nil if there is none.
	Rate(name string) []float64
}

// Values computes m over columns by the first of its sources that they have;
// nil if they have none.
func (m *Measure) Values(c Columns) []float64 {
	for _, s := range m.sources {
		if values := s.values(c); values != nil {
			return values
		}
	}
	return nil
}

// Used returns the source by which Values computes m; false if there is none.
func (m *Measure) Used(c Columns) (Source, bool) {
	for _, s := range m.sources {
		if len(s.columns(c)) > 0 {
			return s, true
		}
	}
	return Source{}, false
}

func (s Source) values(c Columns) []float64 {
	var sum []float64
	for _, name := range s.columns(c) {
		values := c.Values(name)
		if s.Op != Value {
			values = c.Rate(name)
		}
		if sum == nil {
			sum = slices.Clone(values)
			continue
		}
		for i := range sum {
			sum[i] += values[i] // one that is unknown makes the sum unknown
		}
	}
	if s.Op == Share {
		series.Limit(sum, 1)
	}
	return sum
}

// columns are the names of the columns that belong to the source's metric.
func (s Source) columns(c Columns) []string {
	if len(s.Metric.Labels) == 0 {
		if c.Values(s.Metric.Name) == nil {
			return nil
		}
		return []string{s.Metric.Name}
	}
	var names []string
	for _, name := range c.Names() {
		if strings.HasPrefix(name, s.Metric.Name+"{") {
			names = append(names, name)
		}
	}
	return names
}
