package engine

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/measure"
	"github.com/benchwatch/benchwatch/agent/series"
)

// Window is the last two samples of one target as the columns of its metrics:
// two rows, the previous sample and the current one. A measure's value now is
// the last row of its Values.
type Window struct {
	columns map[string]*[2]float64
	// seconds lie between the two answers; unknown if one is missing or the
	// server restarted between them.
	seconds float64
}

// NewWindow returns the columns of two samples of one target. previous may be
// nil or unanswered, then no rate is known.
func NewWindow(previous, current *Sample) *Window {
	w := &Window{columns: map[string]*[2]float64{}, seconds: series.Unknown()}
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
	set := func(name string, v float64) {
		c := w.columns[name]
		if c == nil {
			c = &[2]float64{series.Unknown(), series.Unknown()}
			w.columns[name] = c
		}
		c[row] = v
	}
	set(RestartsTotal.Name, float64(s.Restarts))
	if !s.Up() {
		set(Up.Name, 0)
		return
	}
	set(Up.Name, 1)
	for i := range s.Status.Values {
		set(s.Status.Values[i].Name(), s.Status.Values[i].V)
	}
	if s.LagSeconds.Known {
		set(ReplicationLagSeconds.Name, s.LagSeconds.Value)
	}
	if s.LagTransactions.Known {
		set(ReplicationLagTransactions.Name, s.LagTransactions.Value)
	}
}

// Names implements measure.Columns.
func (w *Window) Names() []string {
	names := make([]string, 0, len(w.columns))
	for name := range w.columns {
		names = append(names, name)
	}
	return names
}

// Values implements measure.Columns.
func (w *Window) Values(name string) []float64 {
	if c := w.columns[name]; c != nil {
		return c[:]
	}
	return nil
}

// Rate implements measure.Columns.
func (w *Window) Rate(name string) []float64 {
	c := w.columns[name]
	if c == nil {
		return nil
	}
	return []float64{series.Unknown(), series.PerSecond(c[0], c[1], w.seconds)}
}

// Now returns the value of m in the current sample. It is unknown if the server
// does not report it, and for rates if the previous sample can't be compared.
func (w *Window) Now(m *measure.Measure) series.Optional[float64] {
	values := m.Values(w)
	if values == nil {
		return series.Optional[float64]{}
	}
	return series.Of(values[1])
}

// Name returns the metric's name and labels as in Prometheus' text format
// without the prefix.
func (v *Value) Name() string {
	if len(v.Labels) == 0 {
		return v.Metric.Name
	}
	var b strings.Builder
	b.WriteString(v.Metric.Name)
	for i, l := range v.Labels {
		b.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(&b, "%s=%q", v.Metric.Labels[i], l)
	}
	b.WriteByte('}')
	return b.String()
}
