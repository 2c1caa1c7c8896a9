package measure

import (
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// Op is how a source computes values from its metrics.
type Op string

const (
	Value Op = "value" // the gauge as it was sampled
	Rate  Op = "rate"  // growth of a counter per second
	Share Op = "share" // Rate of a counter in seconds, at most 1
)

// Source is one way to compute a measure. If a metric has labels, the source adds up the values of
// all label sets.
type Source struct {
	Metric *Metric
	Op     Op
	// Added are metrics that are added to Metric.
	Added []*Metric
	// only leaves out columns with other values of a label; nil: all columns count.
	only *labelValues
	// Divisors are metrics whose sum divides the value: counters by their rate, gauges by their
	// value. Division by 0 gives an unknown value.
	Divisors []*Metric
}

// labelValues are values of a label.
type labelValues struct {
	label  string
	values []string
}

// ValueOf returns the gauge m as a source.
func ValueOf(m *Metric) Source { return Source{Metric: m, Op: Value} }

// RateOf returns the growth of m per second as a source.
func RateOf(m *Metric) Source { return Source{Metric: m, Op: Rate} }

// ShareOf returns the growth of m per second as a source, where m counts seconds: a share of time
// from 0 to 1.
func ShareOf(m *Metric) Source { return Source{Metric: m, Op: Share} }

// Plus returns s with other metrics added, computed by the same Op. The result is unknown if one of
// them is unknown.
func (s Source) Plus(others ...*Metric) Source {
	s.Added = append(slices.Clone(s.Added), others...)
	return s
}

// Over returns s divided by the sum of metrics. The result is unknown if one of them is unknown.
func (s Source) Over(metrics ...*Metric) Source {
	s.Divisors = append(slices.Clone(s.Divisors), metrics...)
	return s
}

// On returns s for some values of a label instead of the sum over all values. It does not affect
// metrics without labels.
func (s Source) On(label string, values ...string) Source {
	s.only = &labelValues{label, values}
	return s
}

// Columns returns the columns of Metric and Added.
func (s *Source) Columns(c Columns) []Column {
	columns := columnsOf(s.Metric, s.only, c)
	for _, m := range s.Added {
		columns = append(columns, columnsOf(m, s.only, c)...)
	}
	return columns
}

// Metrics returns all metrics that the source reads.
func (s *Source) Metrics() []*Metric {
	return slices.Concat([]*Metric{s.Metric}, s.Added, s.Divisors)
}

// values computes the source; nil if one of its metrics has no column.
func (s *Source) values(c Columns) []float64 {
	values := total(append([]*Metric{s.Metric}, s.Added...), s.only, c, func(*Metric) bool { return s.Op != Value })
	if values == nil {
		return nil
	}
	if len(s.Divisors) > 0 {
		divisor := total(s.Divisors, s.only, c, func(m *Metric) bool { return m.Kind == Counter })
		if divisor == nil {
			return nil
		}
		values = slices.Clone(values)
		for i := range values {
			if values[i] /= divisor[i]; math.IsInf(values[i], 0) {
				values[i] = series.Unknown()
			}
		}
	}
	if s.Op == Share {
		values = slices.Clone(values)
		series.Limit(values, 1)
	}
	return values
}

// total adds up metrics; nil if one of them has no column. A row is unknown if one of the metrics
// is unknown there.
func total(metrics []*Metric, only *labelValues, c Columns, byRate func(*Metric) bool) []float64 {
	var sum []float64
	for i, m := range metrics {
		values := column(m, only, c, byRate(m))
		switch {
		case values == nil:
			return nil
		case i == 0:
			sum = values
			continue
		case i == 1:
			sum = slices.Clone(sum)
		}
		for row := range sum {
			sum[row] += values[row]
		}
	}
	return sum
}

// column adds up the label sets of a metric; nil if it has none. A server may leave out a label set
// until its count exceeds 0, so a row is unknown only if all label sets are.
func column(m *Metric, only *labelValues, c Columns, rate bool) []float64 {
	var sum []float64
	for i, of := range columnsOf(m, only, c) {
		values := c.Values(of.Name)
		if rate {
			values = c.Rate(of.Name)
		}
		switch i {
		case 0:
			sum = values
			continue
		case 1:
			sum = slices.Clone(sum)
		}
		for row, v := range values {
			if !series.IsKnown(sum[row]) {
				sum[row] = v
			} else if series.IsKnown(v) {
				sum[row] += v
			}
		}
	}
	return sum
}

// columnsOf returns the columns of a metric. only does not affect metrics without labels.
func columnsOf(m *Metric, only *labelValues, c Columns) []Column {
	columns := c.Of(m.Name)
	if only == nil || len(m.Labels) == 0 {
		return columns
	}
	return slices.DeleteFunc(slices.Clone(columns), func(of Column) bool {
		value, _ := of.Label(only.label)
		return !slices.Contains(only.values, value)
	})
}
