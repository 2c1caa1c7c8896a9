package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/measure"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/table"
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

	DrainSeconds  series.Optional[float64] `json:"drain_seconds,omitzero"`
	DrainTimedOut bool                     `json:"drain_timed_out,omitempty"`

	Restarts float64 `json:"restarts"`
	// Ticks are the samples taken while the tool ran, Unanswered those without
	// an answer.
	Ticks      int      `json:"ticks"`
	Unanswered int      `json:"unanswered"`
	Errors     []string `json:"errors,omitempty"`
	// Settings are the values that hardly change, by the name of the metric.
	Settings map[string]float64 `json:"settings,omitempty"`
}

// Value is one number for a measure's values over a run.
type Value struct {
	Measure *measure.Measure
	// Value is in the base unit; of an increase it is a count.
	Value float64
	// At is where a largest value was reached, in seconds on the run's axis.
	At float64
}

// Value returns the server's value of m, [series.Unknown] if it has none.
func (s *Server) Value(m *measure.Measure) float64 {
	v, ok := s.find(m)
	if !ok {
		return series.Unknown()
	}
	return v.Value
}

func (s *Server) find(m *measure.Measure) (Value, bool) {
	i := slices.IndexFunc(s.Values, func(v Value) bool { return v.Measure == m })
	if i < 0 {
		return Value{}, false
	}
	return s.Values[i], true
}

// superseded reports whether the server has a measure to show in place of m.
func (s *Server) superseded(m *measure.Measure) bool {
	return slices.ContainsFunc(s.Values, func(v Value) bool { return v.Measure.Supersedes == m })
}

// MarshalJSON returns the server with a field for each measure. A ratio is
// called a share here.
func (s Server) MarshalJSON() ([]byte, error) {
	type plain Server
	data, err := json.Marshal(plain(s))
	if err != nil {
		return nil, err
	}
	var fields []table.Field
	for _, v := range s.Values {
		if v.Measure.Summary == measure.Last {
			continue // in the settings
		}
		name := v.Measure.SummaryField()
		if v.Measure.Unit == measure.Ratio && v.Measure.Summary == measure.Mean {
			name = v.Measure.ID + "_share"
		}
		fields = append(fields, table.Field{Name: name, Value: v.Value})
		if v.Measure.Summary == measure.Max {
			fields = append(fields, table.Field{Name: name + "_at", Value: v.At})
		}
	}
	return table.AppendFields(data, fields), nil
}

// servers sums up each server over the time that the tool ran.
func servers(h *history.History) []Server {
	all := make([]Server, 0, len(h.Servers))
	for _, s := range h.Servers {
		all = append(all, newServer(h, s))
	}
	return all
}

func newServer(h *history.History, s *history.ServerHistory) Server {
	first, last := running(h, s)
	out := Server{Target: s.Target, Engine: s.Engine, Role: s.Role, Versions: s.Versions, Errors: s.Errors, Ticks: last - first}
	for row := first; row < last; row++ {
		if !s.Up(row) {
			out.Unanswered++
		}
	}
	if restarts := s.Restarts(); first < last {
		out.Restarts = restarts[len(restarts)-1] - restarts[first]
	}
	if d, ok := h.Snapshot.Meta.Drain[s.Target]; ok {
		out.DrainTimedOut = d.TimedOut
		if d.Seconds != nil {
			out.DrainSeconds = series.Some(*d.Seconds)
		}
	}
	for _, m := range measure.All(measure.Server) {
		if m == engine.Answered || m == engine.Restarts {
			continue // Unanswered and Restarts
		}
		v := summarize(m, s, first, last)
		if !series.IsKnown(v.Value) {
			continue
		}
		out.Values = append(out.Values, v)
		if source, ok := m.Used(s); ok && m.Summary == measure.Last {
			if out.Settings == nil {
				out.Settings = map[string]float64{}
			}
			out.Settings[source.Metric.Name] = v.Value
		}
	}
	return out
}

// summarize returns one number for a measure: means and increases over the rows
// from first to last, in which the tool ran; the largest and the last value also
// from the drain.
func summarize(m *measure.Measure, s *history.ServerHistory, first, last int) Value {
	out := Value{Measure: m, Value: series.Unknown()}
	values := m.Values(s)
	if values == nil {
		return out
	}
	switch m.Summary {
	case measure.Mean:
		out.Value = series.StatsOf(values[first:last]).Mean()
	case measure.Max:
		if stats := series.StatsOf(values); stats.MaxAt >= 0 {
			out.Value, out.At = stats.Max, s.Elapsed[stats.MaxAt]
		}
	case measure.Last:
		for _, v := range values {
			if series.IsKnown(v) {
				out.Value = v
			}
		}
	case measure.Increase:
		source, _ := m.Used(s)
		for _, name := range source.Columns(s) {
			grown := series.Increase(s.Values(name)[first:last], s.Restarts()[first:last])
			switch {
			case !series.IsKnown(out.Value):
				out.Value = grown
			case series.IsKnown(grown):
				out.Value += grown
			}
		}
	}
	return out
}

// running returns the range of a server's ticks while the tool ran: [first, last).
func running(h *history.History, s *history.ServerHistory) (first, last int) {
	first = sort.SearchFloat64s(s.Elapsed, 0)
	last = len(s.Elapsed)
	if end := h.Snapshot.Meta.EndedAt; end != nil {
		last = sort.Search(len(s.Elapsed), func(i int) bool { return s.Elapsed[i] > h.Elapsed(*end) })
	}
	return first, max(first, last)
}

// serverTable has a row for each fact and measure and a column for each server.
// Measures that are 0 on all servers are left out.
func serverTable(all []Server) *table.Table {
	t := table.New(table.Column{Name: "measure"})
	add := func(head string, cell func(*Server) table.Cell) {
		row := []table.Cell{table.Text(head)}
		for i := range all {
			row = append(row, cell(&all[i]))
		}
		if slices.ContainsFunc(row[1:], func(c table.Cell) bool { return !c.IsUnknown() }) {
			t.Add(row...)
		}
	}
	for i := range all {
		t.Columns = append(t.Columns, table.Column{Name: all[i].Target})
	}
	add("role", func(s *Server) table.Cell { return table.Text(s.Role) })
	add("version", func(s *Server) table.Cell { return table.Text(table.Join(s.Versions)) })
	for _, m := range measure.All(measure.Server) {
		if !slices.ContainsFunc(all, func(s Server) bool { v := s.Value(m); return series.IsKnown(v) && v != 0 }) {
			continue
		}
		unit := table.UnitOf(m)
		head := m.Title
		switch {
		case m.Summary == measure.Max:
			head += ", highest"
		case unit.Sign == table.PerSecond.Sign:
			head += " per second"
		}
		add(head, func(s *Server) table.Cell {
			cell := table.Number(s.Value(m), unit)
			if unit.Sign == table.PerSecond.Sign {
				return cell
			}
			return cell.Signed()
		})
	}
	add("Drain", func(s *Server) table.Cell {
		if s.DrainTimedOut {
			return table.Text("not caught up")
		}
		return table.Optional(s.DrainSeconds, table.Seconds).Signed()
	})
	add("Restarts", func(s *Server) table.Cell { return table.Number(s.Restarts, table.Count) })
	add("Samples without an answer", func(s *Server) table.Cell { return table.Whole(s.Unanswered) })
	return t
}

// observations are sentences about what stood out.
func observations(all []Server) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if s, v := highest(all, engine.FlowControl); s != nil && v.Value > 0 {
		add("flow control held back writes for %s of the time (most on %s)", percent(v.Value), s.Target)
	}
	for _, m := range measure.All(measure.Server) {
		if m.Summary != measure.Increase {
			continue
		}
		var counts []string
		for i := range all {
			if v := all[i].Value(m); v > 0 {
				counts = append(counts, fmt.Sprintf("%.0f on %s", v, all[i].Target))
			}
		}
		if len(counts) > 0 {
			add("%s: %s", strings.ToLower(m.Title[:1])+m.Title[1:], table.Join(counts))
		}
	}
	if s, v := highest(all, engine.LagSeconds); s != nil && v.Value >= 0.1 {
		add("the highest replication lag was %.1f s, on %s at %s", v.Value, s.Target, table.Clock(v.At))
	}
	for i := range all {
		s := &all[i]
		switch {
		case s.DrainTimedOut:
			add("%s had not caught up when the drain timed out", s.Target)
		case s.DrainSeconds.Value >= 1:
			add("%s needed %.1f s after the end of the run to catch up", s.Target, s.DrainSeconds.Value)
		}
		if s.Restarts > 0 {
			add("%s restarted %s", s.Target, table.Plural(int(s.Restarts), "time"))
		}
		if s.Unanswered > 0 {
			add("%s did not answer %d of %s", s.Target, s.Unanswered, table.Plural(s.Ticks, "sample"))
		}
		if running, limit := s.Value(engine.RunningThreads), s.Value(engine.ConnectionLimit); running > 0.9*limit {
			add("%s ran %.0f threads; its limit is %s", s.Target, running, table.Plural(int(limit), "connection"))
		}
	}
	if len(all) == 0 {
		add("no server was sampled during this run")
	}
	return lines
}

// highest returns the server with the largest value of m, nil if none has one.
func highest(all []Server, m *measure.Measure) (*Server, Value) {
	var server *Server
	var most Value
	for i := range all {
		if v, ok := all[i].find(m); ok && (server == nil || v.Value > most.Value) {
			server, most = &all[i], v
		}
	}
	return server, most
}

// percent prints a share with one decimal.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 1, 64) + " %" }
