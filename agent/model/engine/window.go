package engine

import (
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Window presents the last two samples of one target as columns with two rows: the previous and the
// current sample. The current value of a measure is the last row of its Values.
type Window struct {
	columns map[string][]measure.Column // by metric
	values  map[string]*[2]float64      // by column
	// seconds is the time between the two answers; unknown if one is missing or the server
	// restarted between them.
	seconds float64
}

// NewWindow returns the columns of two samples of one target. Rates are unknown if previous is nil
// or has no answer.
func NewWindow(previous, current *Sample) *Window {
	w := &Window{columns: map[string][]measure.Column{}, values: map[string]*[2]float64{}, seconds: series.Unknown()}
	for row, s := range []*Sample{previous, current} {
		if s != nil && s.Target != nil {
			w.read(row, s)
		}
	}
	if previous != nil && previous.Up() && current.Up() && previous.Restarts == current.Restarts {
		w.seconds = current.Answered.Sub(previous.Answered).Seconds()
	}
	return w
}

func (w *Window) read(row int, s *Sample) {
	for v := range s.All {
		c := v.Column()
		values := w.values[c.Name]
		if values == nil {
			values = &[2]float64{series.Unknown(), series.Unknown()}
			w.values[c.Name] = values
			w.columns[c.Metric] = append(w.columns[c.Metric], c)
		}
		values[row] = v.V
	}
}

// Of implements measure.Columns.
func (w *Window) Of(metric string) []measure.Column { return w.columns[metric] }

// Values implements measure.Columns.
func (w *Window) Values(name string) []float64 {
	if c := w.values[name]; c != nil {
		return c[:]
	}
	return nil
}

// Rate implements measure.Columns.
func (w *Window) Rate(name string) []float64 {
	c := w.values[name]
	if c == nil {
		return nil
	}
	return []float64{series.Unknown(), series.PerSecond(c[0], c[1], w.seconds)}
}

// Now returns the value of m in the current sample. It is unknown if the server does not report it;
// a rate is also unknown if the previous sample can't be compared.
func (w *Window) Now(m *measure.Measure) series.Optional[float64] {
	values := m.Values(w)
	if values == nil {
		return series.Optional[float64]{}
	}
	return series.Of(values[1])
}

// Name returns the name of the value's column.
func (v *Value) Name() string { return v.Column().Name }

// Column returns the column that holds the value.
func (v *Value) Column() measure.Column {
	labels := make([]string, 0, 2*len(v.Labels))
	for i, l := range v.Labels {
		labels = append(labels, v.Metric.Labels[i], l)
	}
	return measure.NewColumn(v.Metric.Name, labels...)
}
