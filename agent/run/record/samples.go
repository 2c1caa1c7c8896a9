package record

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// ServerMeasure names the values of a measure of one server.
type ServerMeasure struct {
	Target  string
	Measure *measure.Measure
}

// Server is what one target answered during a run, summed up. Its measures are in
// History.Samples.
type Server struct {
	*ServerFacts
	// Ticks is the number of samples taken while the tool ran, Unanswered the number without an answer. Missed is the
	// number that the agent did not take, including those before the first and after the last sample.
	Ticks, Unanswered, Missed int
	// Coverage is how much of the run the samples cover.
	Coverage Coverage
	// Sampled is from the first to the last tick while the tool ran.
	Sampled series.Span
	// Answered is set if it ever answered.
	Answered bool
	// Restarts is the number of restarts since the tool's start.
	Restarts float64

	scope    measure.Scope
	rows     *ServerRows // whose columns remain
	first    float64     // tick, unknown without one
	restarts series.Growth
	grown    map[string]*series.Growth // by column
	summed   map[string]float64        // by column, for the measures that ShareBy needs
}

// Silence returns why it never answered, the first error; empty if it did, or if no error is known.
func (s *Server) Silence() string {
	if s.Answered || len(s.Errors) == 0 {
		return ""
	}
	return s.Errors[0]
}

// Names returns the names of the values that the engine reported, as [ServerRows.Names].
func (s *Server) Names() []string { return s.rows.Names() }

// Source returns the source of a measure's values; false if it has none.
func (s *Server) Source(m *measure.Measure) (measure.Source, bool) {
	return m.Used(s.rows)
}

// Increase returns how much the counters of a measure grew while the tool ran,
// unknown if none of them was read twice or too little of the run was sampled.
func (s *Server) Increase(m *measure.Measure) float64 {
	sum := series.Unknown()
	source, ok := s.Source(m)
	if !ok || !s.Coverage.Represents() {
		return sum
	}
	for _, c := range source.Columns(s.rows) {
		g := s.grown[c.Name]
		if g == nil || !series.IsKnown(g.Sum()) {
			continue
		}
		if !series.IsKnown(sum) {
			sum = 0
		}
		sum += g.Sum()
	}
	return sum
}

// IncreaseBy is Increase for each value of a label of the measure's metric.
func (s *Server) IncreaseBy(m *measure.Measure, label string) map[string]float64 {
	source, ok := s.Source(m)
	if !ok || !s.Coverage.Represents() {
		return nil
	}
	sums := map[string]float64{}
	for _, c := range source.Columns(s.rows) {
		g := s.grown[c.Name]
		if value, has := c.Label(label); has && g != nil && series.IsKnown(g.Sum()) {
			sums[value] += g.Sum()
		}
	}
	return sums
}

// ShareBy returns how the sum of a stacked measure's values while the tool ran is divided among the
// values of a label of its metric; nil if the measure has no source.
func (s *Server) ShareBy(m *measure.Measure, label string) map[string]float64 {
	source, ok := s.Source(m)
	if !ok {
		return nil
	}
	shares, all := map[string]float64{}, 0.0
	for _, c := range source.Columns(s.rows) {
		if value, has := c.Label(label); has && s.summed[c.Name] > 0 {
			shares[value] += s.summed[c.Name]
			all += s.summed[c.Name]
		}
	}
	for value := range shares {
		shares[value] /= all
	}
	return shares
}

// add sums up the rows from Begin.
func (s *Server) add(toolEnd float64) {
	s.Answered = s.Answered || series.AnyKnown(s.rows.Answered)
	if len(s.rows.Elapsed) > 0 && !series.IsKnown(s.first) {
		s.first = s.rows.Elapsed[0]
	}
	begin, end := series.Running(s.rows.Elapsed[s.rows.Begin:], toolEnd)
	if ticks := s.rows.Elapsed[s.rows.Begin:][begin:end]; len(ticks) > 0 {
		if s.Sampled.To == 0 {
			s.Sampled.From = ticks[0]
		}
		s.Sampled.To = ticks[len(ticks)-1]
	}
	restarts := s.rows.Restarts()
	for row := s.rows.Begin + begin; row < len(s.rows.Elapsed); row++ {
		s.restarts.Add(restarts[row], 0)
		switch {
		case s.rows.Elapsed[row] > toolEnd || !s.rows.Sampled(row):
			continue
		case !s.rows.Up(row):
			s.Unanswered++
		}
		s.Ticks++
	}
	for _, g := range s.rows.gaps {
		s.Missed += g.missed(toolEnd)
	}
	if grown := s.restarts.Sum(); series.IsKnown(grown) {
		s.Restarts = grown
	}
	names := map[string]bool{}
	all := measure.All(s.scope)
	for _, m := range measure.All(measure.Cluster) {
		all = append(all, m.Of)
	}
	for _, m := range append(slices.Clone(all), measure.Evidence(s.scope)...) {
		if m.Summary != measure.Increase && m.Summary != measure.Cost {
			continue
		}
		for _, source := range m.Sources() {
			for _, c := range source.Columns(s.rows) {
				names[c.Name] = true
			}
		}
	}
	for name := range names {
		s.addGrowth(name, toolEnd)
	}
	s.addStacked(all, s.rows.Begin+begin, s.rows.Begin+end)
}

// addStacked sums up the rows from begin to end of the stacked measures, for ShareBy.
func (s *Server) addStacked(all []*measure.Measure, begin, end int) {
	for _, m := range all {
		if !m.Stacked {
			continue
		}
		for _, source := range m.Sources() {
			for _, c := range source.Columns(s.rows) {
				for _, v := range s.rows.Values(c.Name)[begin:end] {
					if series.IsKnown(v) {
						s.summed[c.Name] += v
					}
				}
			}
		}
	}
}

func (s *Server) addGrowth(name string, toolEnd float64) {
	g := s.grown[name]
	if g == nil {
		g = &series.Growth{}
		s.grown[name] = g
	}
	values, restarts := s.rows.Values(name), s.rows.Restarts()
	begin, end := series.Running(s.rows.Elapsed, toolEnd)
	for row := max(begin, s.rows.Begin); row < end; row++ {
		g.Add(values[row], restarts[row])
	}
}

// Coverage is how many Seconds of a run of Of seconds a server or machine answered.
type Coverage struct{ Seconds, Of float64 }

// enoughOfTheRun is the share of a run's seconds below which the sampled seconds do not represent
// the run.
const enoughOfTheRun = 0.5

// Represents reports whether rates, means and extremes of the sampled seconds may stand for the
// run.
func (c Coverage) Represents() bool { return c.Seconds >= enoughOfTheRun*c.Of }

// IsWhole reports whether no second is missing.
func (c Coverage) IsWhole() bool { return c.Seconds >= c.Of }

// Share is the part of the run that was sampled, 1 if the run has no length.
func (c Coverage) Share() float64 {
	if !(c.Of > 0) {
		return 1
	}
	return c.Seconds / c.Of
}

// String returns "2 of 5 s".
func (c Coverage) String() string {
	decimals := 0
	if c.Of < 2 {
		decimals = 1
	}
	return fmt.Sprintf("%.*f of %.*f s", decimals, c.Seconds, decimals, c.Of)
}

// cover counts the ticks that were missed before the first and after the last sample, and sets the
// coverage. It is called once, after all rows. A run in progress counts until the last tick of all
// servers.
func cover(servers []*Server, toolEnd float64) {
	end := toolEnd
	if math.IsInf(end, 1) {
		end = 0
		for _, s := range servers {
			if n := len(s.rows.Elapsed); n > 0 {
				end = max(end, s.rows.Elapsed[n-1])
			}
		}
	}
	for _, s := range servers {
		step, n := s.rows.interval, len(s.rows.Elapsed)
		if s.Coverage = (Coverage{end, end}); !(step > 0) || n == 0 {
			continue
		}
		last := s.rows.Elapsed[n-1]
		before := gap{s.first - (math.Floor(max(0, s.first)/step)+1)*step, s.first, step}
		after := gap{last, last + (math.Floor(max(0, end-last)/step)+1)*step, step}
		s.Missed += before.missed(end) + after.missed(end)
		s.Coverage.Seconds = max(0, end-step*float64(s.Missed+s.Unanswered))
	}
}

// unrepresented returns a function that reports whether a column belongs to a server that
// was sampled too little.
func unrepresented(servers []*Server) func(ServerMeasure) bool {
	targets := map[string]bool{}
	for _, s := range servers {
		targets[s.Target] = !s.Coverage.Represents()
	}
	return func(k ServerMeasure) bool { return targets[k.Target] }
}

// addSamples adds the rows of all servers.
func (h *History) addSamples(rows []*ServerRows) {
	h.Servers = addServers(measure.Server, h.Servers, &h.Samples, rows, h.part)
}

// addServers adds the rows of all targets to their sums, and the values of the measures of a scope to samples.
func addServers(scope measure.Scope, servers []*Server,
	samples *series.Thinned[ServerMeasure], all []*ServerRows, part series.Span) []*Server {
	for _, rows := range all[len(servers):] {
		servers = append(servers, &Server{ServerFacts: rows.ServerFacts, rows: rows, scope: scope,
			first: series.Unknown(), grown: map[string]*series.Growth{}, summed: map[string]float64{}})
	}
	var ticks []float64
	for _, s := range servers {
		s.add(samples.ToolEnd)
		ticks = series.Union(ticks, s.rows.Elapsed[s.rows.Begin:])
	}
	var columns []int
	var values [][]float64
	for _, m := range measure.All(scope) {
		if m.Summary == measure.Cost {
			continue
		}
		for _, s := range servers {
			if v := m.Values(s.rows); v != nil {
				columns = append(columns, samples.Column(ServerMeasure{s.Target, m}))
				values = append(values, series.Spread(ticks, s.rows.Elapsed[s.rows.Begin:], v[s.rows.Begin:]))
			}
		}
	}
	addRows(samples, ticks, columns, values, part)
	return servers
}

// addRows adds the rows of columns that lie in a part of the axis.
func addRows[K comparable](t *series.Thinned[K], axis []float64, columns []int, values [][]float64, part series.Span) {
	for i, elapsed := range axis {
		if elapsed < part.From || elapsed > part.To || !t.Row(elapsed) {
			continue
		}
		for j, column := range columns {
			t.SetAt(column, values[j][i])
		}
	}
}
