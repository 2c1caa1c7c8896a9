package review

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Server is what was observed of one server during a run.
type Server struct {
	Target   string   `json:"target"`
	Engine   string   `json:"engine"`
	Role     string   `json:"role,omitempty"`
	Versions []string `json:"versions,omitempty"`

	// Values sum up the measures that the server has, in the catalogue's order. In
	// JSON each has a field of its own, see [measure.Measure.SummaryField].
	Values []Value `json:"-"`

	// DrainSeconds may be too long by DrainResolution.
	DrainSeconds    series.Optional[float64] `json:"drain_seconds,omitzero"`
	DrainResolution float64                  `json:"drain_resolution_seconds,omitempty"`
	DrainTimedOut   bool                     `json:"drain_timed_out,omitempty"`

	Restarts float64 `json:"restarts"`
	// Ticks is the number of samples taken while the tool ran, Unanswered the number of samples without an answer.
	// Missed is the number of samples that the agent did not take.
	Ticks      int `json:"ticks"`
	Unanswered int `json:"unanswered"`
	Missed     int `json:"missed,omitempty"`
	// SampledSeconds is how much of the run the samples of the server cover. Its rates, means and costs are of these
	// seconds; below half of the run they are absent.
	SampledSeconds float64  `json:"sampled_seconds"`
	Errors         []string `json:"errors,omitempty"`
	// Settings are the values that hardly change, by the name of the metric.
	Settings map[string]float64 `json:"settings,omitempty"`

	Coverage record.Coverage `json:"-"`
}

// Value is one number for a measure's values over a run.
type Value struct {
	Measure *measure.Measure
	// Value is in the base unit; for an increase, it is a count.
	Value float64
	// At is where a largest value was reached, in seconds on the run's axis.
	At float64
}

// Value returns the server's value of m, [series.Unknown] if it has none.
func (s *Server) Value(m *measure.Measure) float64 {
	v, _ := valueOf(s.Values, m)
	return v.Value
}

// valueOf returns the value of a measure, unknown if there is none.
func valueOf(values []Value, m *measure.Measure) (Value, bool) {
	i := slices.IndexFunc(values, func(v Value) bool { return v.Measure == m })
	if i < 0 {
		return Value{Value: series.Unknown()}, false
	}
	return values[i], true
}

// drain returns the server's drain as it was recorded.
func (s *Server) drain() rundir.Drain {
	d := rundir.Drain{ResolutionSeconds: s.DrainResolution, TimedOut: s.DrainTimedOut}
	if s.DrainSeconds.Known {
		d.Seconds = &s.DrainSeconds.Value
	}
	return d
}

// superseded reports whether the server has a measure to show in place of m.
func (s *Server) superseded(m *measure.Measure) bool {
	return slices.ContainsFunc(s.Values, func(v Value) bool { return v.Measure.Supersedes == m })
}

// ServerField is the name of a measure's field in the JSON of a Server or a Machine. A ratio is called a share here. A
// maximum has a second field with its time, whose name ends in _at.
func ServerField(m *measure.Measure) string {
	if m.Unit == measure.Ratio && m.Summary == measure.Mean {
		return m.ID + "_share"
	}
	return m.SummaryField()
}

// MarshalJSON returns the server with a field for each measure.
func (s Server) MarshalJSON() ([]byte, error) {
	type plain Server
	return table.MarshalFields(plain(s), valueFields(s.Values))
}

// valueFields are the fields of values in JSON.
func valueFields(values []Value) []table.Field {
	var fields []table.Field
	for _, v := range values {
		if v.Measure.Summary == measure.Last {
			continue // in the settings
		}
		name := ServerField(v.Measure)
		fields = append(fields, table.Field{Name: name, Value: v.Value})
		if v.Measure.Summary == measure.Max {
			fields = append(fields, table.Field{Name: name + "_at", Value: v.At})
		}
	}
	return fields
}

// servers sums up each server over the time that the tool ran.
func servers(h *record.History) []Server {
	all := make([]Server, 0, len(h.Servers))
	for _, s := range h.Servers {
		all = append(all, newServer(h, s))
	}
	return all
}

func newServer(h *record.History, s *record.Server) Server {
	out := Server{
		Target: s.Target, Engine: s.Engine, Role: s.Role, Versions: s.Versions, Errors: s.Errors,
		Ticks: s.Ticks, Unanswered: s.Unanswered, Missed: s.Missed, Restarts: s.Restarts,
		SampledSeconds: s.Coverage.Seconds, Coverage: s.Coverage,
	}
	if d, ok := h.Snapshot.Meta.Drain[s.Target]; ok {
		out.DrainTimedOut, out.DrainResolution = d.TimedOut, d.ResolutionSeconds
		if d.Seconds != nil {
			out.DrainSeconds = series.Some(*d.Seconds)
		}
	}
	for _, m := range measure.All(measure.Server) {
		if m == engine.Answered || m == engine.Restarts || m.Summary == measure.Cost {
			continue // Unanswered and Restarts
		}
		v := summarize(m, h, s)
		if !series.IsKnown(v.Value) {
			continue
		}
		out.Values = append(out.Values, v)
		if source, ok := s.Source(m); ok && m.Summary == measure.Last {
			if out.Settings == nil {
				out.Settings = map[string]float64{}
			}
			out.Settings[source.Metric.Name] = v.Value
		}
	}
	return out
}

// summarize returns one number for a measure: means and increases over the rows
// in which the tool ran; the largest and the last value also from the drain.
func summarize(m *measure.Measure, h *record.History, s *record.Server) Value {
	v := sumUp(m, h.Samples.Tally(record.ServerMeasure{Target: s.Target, Measure: m}), s)
	if isSessions(m) && series.IsKnown(v.Value) {
		v.Value = meanSessions(h, s.Target, m)
	}
	return v
}

// sumUp returns no value for a server or machine that was sampled too little, unless the value hardly
// changes.
func sumUp(m *measure.Measure, t series.Tally, s *record.Server) Value {
	if m.Summary != measure.Last && !s.Coverage.Represents() {
		return Value{Measure: m, Value: series.Unknown()}
	}
	if m.Summary == measure.Increase {
		return Value{Measure: m, Value: s.Increase(m)}
	}
	return tallied(m, t)
}

// tallied returns the number that sums up the values of a measure.
func tallied(m *measure.Measure, t series.Tally) Value {
	switch m.Summary {
	case measure.Mean:
		return Value{Measure: m, Value: t.Mean()}
	case measure.Max:
		return Value{Measure: m, Value: t.Max, At: t.MaxAt}
	case measure.Last:
		return Value{Measure: m, Value: t.Last}
	}
	return Value{Measure: m, Value: series.Unknown()}
}

// ServerTable has a row for each fact and measure and a column for each server.
func ServerTable(all []Server) *table.Table {
	t := newSideBySide(all, func(s *Server) string { return s.Target })
	t.add("role", func(s *Server) table.Cell { return table.Text(s.Role) })
	t.add("version", func(s *Server) table.Cell { return table.Text(table.Join(s.Versions)) })
	t.add("sampled", func(s *Server) table.Cell { return coverageCell(s.Coverage) })
	t.addMeasures(measure.All(measure.Server), (*Server).Value)
	t.add("Drain", func(s *Server) table.Cell {
		switch {
		case s.DrainTimedOut:
			return table.Text(s.drain().String())
		case !s.DrainSeconds.Known:
			return table.Text("")
		}
		return table.Optional(s.DrainSeconds, table.Seconds).As(s.drain().String())
	})
	t.add("Restarts", func(s *Server) table.Cell { return table.Number(s.Restarts, table.Count) })
	t.add("Samples without an answer", func(s *Server) table.Cell { return table.Whole(s.Unanswered) })
	return t.table
}

// coverageCell is empty if everything was sampled.
func coverageCell(c record.Coverage) table.Cell {
	if c.IsWhole() {
		return table.Text("")
	}
	return table.Text(c.String())
}

// highest returns the server with the largest value of m, nil if none has one.
func highest(all []Server, m *measure.Measure) (*Server, Value) {
	var server *Server
	var most Value
	for i := range all {
		if v, ok := valueOf(all[i].Values, m); ok && (server == nil || v.Value > most.Value) {
			server, most = &all[i], v
		}
	}
	return server, most
}
