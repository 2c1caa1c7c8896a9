package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/host"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// FigureOptions are what the figures of a comparison show.
type FigureOptions struct {
	// X is the fact along the axis; empty: the one that varies, threads before others.
	// Beside facts it can be a setting of the servers.
	X string
	// Lines are facts or settings whose values make a line each, besides the groups;
	// [EachRun] makes a line of each run.
	Lines []string
	// Measures name them as [MeasureNamed] does; empty: in figures those of
	// FigureMeasures, in tables all.
	Measures []string
	// Average of repeated runs; empty: the median.
	Average Average
}

// EachRun is the name by which [FigureOptions] ask for each run by itself.
const EachRun = "run"

// FigureSet is runs arranged as figures and their tables show them.
type FigureSet struct {
	x       string
	average Average
	rows    []Row
	lines   []string // of the rows
	named   []Measure
	// given: the axis was asked for, not found. each: so was each run by itself.
	given, each bool
}

// NewFigureSet arranges groups of runs over a fact; if none is asked for and none varies it
// is empty.
func NewFigureSet(c *Comparison, groups []Group, o FigureOptions) (*FigureSet, error) {
	s := &FigureSet{x: o.X, given: o.X != "", each: slices.Contains(o.Lines, EachRun), average: cmp.Or(o.Average, ByMedian)}
	if s.x == "" {
		for _, name := range c.Varied {
			if s.x == "" || name == "threads" {
				s.x = name
			}
		}
	}
	if s.x == "" {
		return s, nil
	}
	names := o.Lines
	if len(names) == 0 {
		names = slices.DeleteFunc(slices.Clone(c.Varied), func(name string) bool { return sameNumbers(groups, name, s.x) })
	}
	short := map[string]func(string) string{}
	for _, name := range names {
		var values []string
		for _, g := range groups {
			for i := range g.Runs {
				values = append(values, figureFact(&g.Runs[i], name))
			}
		}
		short[name] = shortSizes(name, values)
	}
	for _, g := range groups {
		own := strings.Split(g.Name, ",")
		runs := slices.Clone(g.Runs)
		slices.SortStableFunc(runs, func(a, b Row) int {
			for _, name := range names {
				if order := rundir.CompareValues(figureFact(&a, name), figureFact(&b, name)); order != 0 && name != EachRun {
					return order
				}
			}
			return 0
		})
		for i := range runs {
			r := &runs[i]
			var words []string
			if len(groups) > 1 && !slices.ContainsFunc(own, func(part string) bool { return strings.HasPrefix(part, s.x+"=") }) { // else it is along the axis
				words = append(words, g.Name)
			}
			for _, name := range names {
				v := figureFact(r, name)
				switch _, number := rundir.SizeOf(v); {
				case name == EachRun:
					words = append(words, v)
				case name == s.x || v == "" || len(words) > 0 && slices.Contains(own, name+"="+v):
				case number:
					words = append(words, name+" "+short[name](v))
				default: // the value names itself
					words = append(words, v)
				}
			}
			s.rows, s.lines = append(s.rows, *r), append(s.lines, strings.Join(words, ", "))
		}
	}
	for _, name := range append(slices.Clone(o.Lines), s.x) {
		if !slices.ContainsFunc(s.rows, func(r Row) bool { return figureFact(&r, name) != "" }) {
			return nil, fmt.Errorf("no run has %s", name)
		}
	}
	for _, name := range o.Measures {
		measures, err := MeasuresNamed(s.rows, name)
		if err != nil {
			return nil, err
		}
		s.named = append(s.named, measures...)
	}
	return s, nil
}

// sameNumbers reports whether two facts have the same number in each run, such as a label 2G and
// the setting that it sets. Lines by one of them over the other have a point each.
func sameNumbers(groups []Group, a, b string) bool {
	for _, g := range groups {
		for i := range g.Runs {
			x, okX := rundir.SizeOf(figureFact(&g.Runs[i], a))
			y, okY := rundir.SizeOf(figureFact(&g.Runs[i], b))
			if !okX || !okY || x != y {
				return false
			}
		}
	}
	return true
}

// figureFact returns a fact of a run or a setting of its servers.
func figureFact(r *Row, name string) string {
	if name == EachRun {
		return r.ID
	}
	if v := factOf(r, name); v != "" {
		return v
	}
	return r.settings[name]
}

// points returns the points of a measure, line by line.
func (s *FigureSet) points(m *Measure) []FigurePoint {
	return FigureRows(s.rows, m, s.x, func(i int) string { return s.lines[i] })
}

// FigureRows returns the points of a measure of runs, in the order of the runs: the line's
// name is what lineOf returns.
func FigureRows(rows []Row, m *Measure, x string, lineOf func(i int) string) []FigurePoint {
	type key struct{ line, x string }
	values := map[key][]float64{}
	var order []key
	for i := range rows {
		k := key{lineOf(i), figureFact(&rows[i], x)}
		if v := m.Value(&rows[i]); series.IsKnown(v) && k.x != "" {
			if values[k] == nil {
				order = append(order, k)
			}
			values[k] = append(values[k], v)
		}
	}
	var points []FigurePoint
	for _, k := range order {
		points = append(points, FigurePoint{Line: k.line, X: k.x, Spread: NewSpread(values[k])})
	}
	return points
}

// FigurePlots returns a figure of each measure.
func FigurePlots(s *FigureSet) []*Plot {
	measures := s.named
	if measures == nil {
		measures = FigureMeasures(s.rows)
	}
	var plots []*Plot
	for _, f := range Figures(measures) {
		p := PlotFigure(f, s.x, s.average, s.points)
		if !p.Empty() && (s.given || len(p.X.Ticks) > 1) {
			plots = append(plots, p)
		}
	}
	return plots
}

// FigureData is what a figure shows, in the base unit of its measure.
type FigureData struct {
	Measure string `json:"measure"`
	// Field has the base unit.
	Field  string       `json:"field"`
	X      string       `json:"x"`
	Points []FigureJSON `json:"points"`
}

// FigureJSON is a point of a figure.
type FigureJSON struct {
	Line string `json:"line,omitempty"`
	X    string `json:"x"`
	Spread
}

// Data returns what the tables of the set show.
func (s *FigureSet) Data() []FigureData {
	var all []FigureData
	for _, m := range s.measures() {
		d := FigureData{Measure: m.Name, Field: m.Field, X: s.x, Points: []FigureJSON{}}
		for _, p := range s.points(&m) {
			d.Points = append(d.Points, FigureJSON(p))
		}
		all = append(all, d)
	}
	return all
}

// measures are those of the tables.
func (s *FigureSet) measures() []Measure {
	if s.named != nil {
		return s.named
	}
	return Measures(s.rows)
}

// figureTable finds the points of a set by measure, line and place.
type figureTable struct {
	measures []Measure
	lines    []string
	xs       []string
	at       map[[3]string]Spread
}

func (s *FigureSet) table() figureTable {
	t := figureTable{measures: s.measures(), at: map[[3]string]Spread{}}
	for i := range t.measures {
		m := &t.measures[i]
		for _, p := range s.points(m) {
			t.at[[3]string{m.Field, p.Line, p.X}] = p.Spread
			if !slices.Contains(t.lines, p.Line) {
				t.lines = append(t.lines, p.Line)
			}
			if !slices.Contains(t.xs, p.X) {
				t.xs = append(t.xs, p.X)
			}
		}
	}
	slices.SortStableFunc(t.xs, rundir.CompareValues)
	return t
}

// Table returns the table that goes with the figures. One measure has a column for each
// line; one line, and each run by itself, has a column for each measure; several of both
// have the values of the parameter as columns.
func (s *FigureSet) Table() *table.Table {
	t := s.table()
	cell := func(m *Measure, line, x string) table.Cell {
		p, ok := t.at[[3]string{m.Field, line, x}]
		if !ok {
			return table.Cell{}
		}
		return table.Number(p.Average(s.average), m.Unit).As(p.Text(m.Unit, s.average))
	}
	out := table.New()
	switch {
	case len(t.measures) == 0 || len(t.lines) == 0:
	case s.each:
		out.Columns = table.Named(s.x, EachRun)
		for i := range t.measures {
			out.Columns = append(out.Columns, t.measures[i].Column())
		}
		for _, x := range t.xs {
			for _, line := range t.lines {
				row := []table.Cell{sizeCell(x), table.Text(line)}
				for i := range t.measures {
					row = append(row, cell(&t.measures[i], line, x))
				}
				if slices.ContainsFunc(row[2:], func(c table.Cell) bool { return !c.IsUnknown() }) {
					out.Add(row...)
				}
			}
		}
	case len(t.measures) == 1:
		m := &t.measures[0]
		out.Columns = table.Named(s.x)
		for _, line := range t.lines {
			out.Columns = append(out.Columns, table.Column{Name: strings.TrimSpace(m.Field + " " + line), Head: cmp.Or(line, m.Head())})
		}
		for _, x := range t.xs {
			row := []table.Cell{sizeCell(x)}
			for _, line := range t.lines {
				row = append(row, cell(m, line, x))
			}
			out.Add(row...)
		}
	case len(t.lines) < 2:
		out.Columns = table.Named(s.x)
		for i := range t.measures {
			out.Columns = append(out.Columns, t.measures[i].Column())
		}
		for _, x := range t.xs {
			row := []table.Cell{sizeCell(x)}
			for i := range t.measures {
				row = append(row, cell(&t.measures[i], t.lines[0], x))
			}
			out.Add(row...)
		}
	default:
		out.Columns = []table.Column{{Name: "measure"}, {Name: "line", Head: s.x + " →"}}
		for _, x := range t.xs {
			out.Columns = append(out.Columns, table.Column{Name: x})
		}
		for i := range t.measures {
			m := &t.measures[i]
			for _, line := range t.lines {
				row := []table.Cell{table.Text(m.Head()), table.Text(line)}
				for _, x := range t.xs {
					row = append(row, cell(m, line, x))
				}
				if slices.ContainsFunc(row[2:], func(c table.Cell) bool { return !c.IsUnknown() }) {
					out.Add(row...)
				}
			}
		}
	}
	return out
}

// sizeCell is a value of the parameter, to the right if it is a number.
func sizeCell(x string) table.Cell {
	if v, ok := rundir.SizeOf(x); ok {
		return table.Number(v, table.Digits).As(x)
	}
	return table.Text(x)
}

// Note says what the cells of the table are, empty if each is of one run.
func (s *FigureSet) Note() string {
	for _, p := range s.table().at {
		if p.N > 1 {
			return s.average.Note()
		}
	}
	return ""
}

// addFigures adds the table with its note, under the name of the measure if there is one.
func addFigures(s *FigureSet, doc *table.Document) {
	if len(s.named) == 1 {
		doc.Heading(3, s.named[0].Head()+" by "+s.x)
	}
	doc.Table(s.Table())
	if note := s.Note(); note != "" {
		doc.Paragraph(table.Line{Text: note})
	}
}

// CSV writes a line for each point, in base units.
func (s *FigureSet) CSV(w io.Writer) error {
	t := table.New(table.Named("measure", "line", s.x, "n", "median", "mean", "min", "max")...)
	for _, d := range s.Data() {
		for _, p := range d.Points {
			t.Add(table.Text(d.Field), table.Text(p.Line), table.Text(p.X), table.Whole(p.N), table.Number(p.Median, table.Digits), table.Number(p.Mean, table.Digits), table.Number(p.Min, table.Digits), table.Number(p.Max, table.Digits))
		}
	}
	return t.CSV(w)
}

// FigureMeasures are those that figures show if none are named: throughput, the
// mean and the headline statistics of the latency, then the worst of the servers and the
// CPU of each machine.
func FigureMeasures(rows []Row) []Measure {
	all := slices.DeleteFunc(Measures(rows), func(m Measure) bool {
		if m.Server {
			return m.Condition == ""
		}
		if m.Condition == "errors" || m.Condition == "min" || m.Condition == "max" {
			return true
		}
		if m.Condition == "qps" { // the same line again if an event is one statement
			return !slices.ContainsFunc(rows, func(r Row) bool { return r.QPS.Known && r.TPS.Known && r.QPS.Value > 1.001*r.TPS.Value })
		}
		return false
	})
	return append(all, measuresOfMachines(machinesOf(rows))...)
}

// MeasuresNamed returns the measure that [MeasureNamed] does or, for the name of a figure of
// machines, such as cpu_busy, that of each machine.
func MeasuresNamed(rows []Row, name string) ([]Measure, error) {
	each := slices.DeleteFunc(measuresOfMachines(machinesOf(rows)), func(m Measure) bool { return underscored(m.Figure) != name })
	if len(each) > 0 {
		return each, nil
	}
	m, err := MeasureNamed(rows, name)
	return []Measure{m}, err
}

// MeasureNamed returns the measure of these runs that a condition would name so or, with _
// for blanks, the head of a column: n1_write_sets, read_avg, insert_count, duration, cpu.
func MeasureNamed(rows []Row, name string) (Measure, error) {
	if c, err := ParseName(name); err == nil {
		if m, ok := c.measure(rows); ok {
			return m, nil
		}
	}
	var known []string
	for _, m := range slices.Concat(Measures(rows), detailMeasures(rows)) {
		if name == m.Condition || name == m.Field || name == underscored(m.Name) {
			return m, nil
		}
		if !m.Server || m.Condition != "" {
			known = append(known, cmp.Or(m.Condition, underscored(m.Name)))
		}
	}
	return Measure{}, fmt.Errorf("no run has the measure %s: there are %s, and those of servers, such as n1_queries", name, strings.Join(slices.Compact(known), ", "))
}

func underscored(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "_") }

// detailMeasures are those that tables show only if they are named: the duration, what the
// tool counted of each operation and its latencies, and the CPU of the busiest machine.
func detailMeasures(rows []Row) []Measure {
	all := []Measure{{Name: "duration", Field: "duration_seconds", Unit: table.Seconds, Value: func(r *Row) float64 { return r.DurationSeconds }}}
	var operations []string
	for i := range rows {
		for _, c := range rows[i].counts {
			if !slices.Contains(operations, c.Operation) {
				operations = append(operations, c.Operation)
			}
		}
		for _, l := range rows[i].latencies {
			if !slices.Contains(operations, l.Operation) {
				operations = append(operations, l.Operation)
			}
		}
	}
	for _, operation := range operations {
		all = append(all, Measure{Name: operation + " count", Field: operation + "_count", Unit: table.Count, Value: func(r *Row) float64 {
			for _, c := range r.counts {
				if c.Operation == operation {
					return float64(c.N)
				}
			}
			return series.Unknown()
		}}, Measure{Name: operation + " rate", Field: operation + "_per_second", Unit: table.PerSecond, Value: func(r *Row) float64 {
			for _, c := range r.rates {
				if c.Operation == operation {
					return c.PerSecond
				}
			}
			return series.Unknown()
		}})
		stats := map[string]float64{}
		for i := range rows {
			for _, l := range rows[i].latencies {
				if l.Operation == operation {
					stats[l.Stat] = 0
				}
			}
		}
		for _, stat := range Stats(stats) {
			all = append(all, Measure{Name: operation + " " + tool.StatName(stat), Field: LatencyField(operation, stat), Unit: table.Milliseconds,
				Value: func(r *Row) float64 { return r.latencyOf(operation, stat) }})
		}
	}
	for _, target := range targetsOf(rows) {
		for _, m := range measure.All(measure.Server) {
			all = append(all, measureOfServer(target, m))
		}
		all = append(all, drainedRate(target))
	}
	all = append(all, busiest("cpu", ""), busiest("generator cpu", rundir.GeneratorHost), busiest("server cpu", rundir.ServerHost))
	return slices.DeleteFunc(all, func(m Measure) bool {
		return !slices.ContainsFunc(rows, func(r Row) bool { return series.IsKnown(m.Value(&r)) })
	})
}

// latencyOf returns a statistic of an operation's latency.
func (r *Row) latencyOf(operation, stat string) float64 {
	for _, l := range r.latencies {
		if l.Operation == operation && l.Stat == stat {
			return l.Seconds
		}
	}
	return series.Unknown()
}

// drainedRate is the transactions of the cluster in the time that a server needed for them: that
// of the run and its drain.
func drainedRate(target string) Measure {
	return newServerMeasure(target+" tps with drain", measure.PerSecond, table.PerSecond, func(r *Row) float64 {
		_, most := highest(r.Servers, engine.Replicated)
		i := slices.IndexFunc(r.Servers, func(s Server) bool { return s.Target == target })
		if i < 0 || most.Measure == nil || r.Servers[i].DrainTimedOut || r.DurationSeconds <= 0 {
			return series.Unknown()
		}
		return most.Value / (r.DurationSeconds + r.Servers[i].DrainSeconds.Value) // the server that was written to has no drain
	})
}

// busiest is the CPU of the busiest machine with a role, of all machines if it is empty.
func busiest(name string, role rundir.HostRole) Measure {
	m := newServerMeasure(name, host.Busy.Unit, table.UnitOf(host.Busy), func(r *Row) float64 {
		most := series.Unknown()
		for i := range r.Machines {
			one := &r.Machines[i]
			if v := one.Value(host.Busy); series.IsKnown(v) && !(v <= most) && (role == "" || slices.Contains(one.Roles, role)) {
				most = v
			}
		}
		return most
	})
	return m
}
