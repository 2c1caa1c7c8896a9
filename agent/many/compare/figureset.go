package compare

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// FigureOptions select what the figures of a comparison show.
type FigureOptions struct {
	// X is the fact along the axis; empty: the fact that varies, preferably threads. It can also be
	// a setting of the servers.
	X string
	// Lines are facts or settings with a line per value, in addition to the groups; [EachRun] draws
	// a line per run.
	Lines []string
	// Measures are names as for [MeasureNamed]; empty: FigureMeasures in figures, all in tables.
	Measures []string
	// Average of repeated runs; empty: the median.
	Average Average
}

// EachRun is the name in [FigureOptions] that requests a line per run.
const EachRun = "run"

// FigureSet arranges runs for figures and their tables.
type FigureSet struct {
	X       string
	Average Average
	Rows    []review.Row
	lines   []string // of the rows
	Named   []review.Measure
	// Given: the user chose the axis. each: the user requested a line per run.
	Given, each bool
}

// NewFigureSet arranges groups of runs over a fact. It is empty if no fact is requested and none
// varies.
func NewFigureSet(c *Comparison, groups []Group, o FigureOptions) (*FigureSet, error) {
	s := &FigureSet{X: o.X, Given: o.X != "", each: slices.Contains(o.Lines, EachRun), Average: cmp.Or(o.Average, ByMedian)}
	if s.X == "" {
		for _, name := range c.Varied {
			if s.X == "" || name == "threads" {
				s.X = name
			}
		}
	}
	if s.X == "" {
		return s, nil
	}
	names := o.Lines
	if len(names) == 0 {
		names = slices.DeleteFunc(slices.Clone(c.Varied), func(name string) bool { return sameNumbers(groups, name, s.X) })
	}
	short := map[string]func(string) string{}
	for _, name := range names {
		var values []string
		for _, g := range groups {
			for i := range g.Runs {
				values = append(values, figureFact(&g.Runs[i], name))
			}
		}
		short[name] = ShortSizes(name, values)
	}
	for _, g := range groups {
		runs := slices.Clone(g.Runs)
		slices.SortStableFunc(runs, func(a, b review.Row) int {
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
			if len(groups) > 1 && !slices.ContainsFunc(g.Facts, func(f rundir.Fact) bool { return f.Name == s.X }) { // otherwise it is along the axis
				words = append(words, g.Name)
			}
			for _, name := range names {
				v := figureFact(r, name)
				switch _, number := rundir.SizeOf(v); {
				case name == EachRun:
					words = append(words, v)
				case name == s.X || v == "" || len(words) > 0 && slices.Contains(g.Facts, rundir.Fact{Name: name, Value: v}):
				case number:
					words = append(words, name+" "+short[name](v))
				default: // the value is self-explanatory
					words = append(words, v)
				}
			}
			s.Rows, s.lines = append(s.Rows, *r), append(s.lines, strings.Join(words, ", "))
		}
	}
	for _, name := range append(slices.Clone(o.Lines), s.X) {
		if !slices.ContainsFunc(s.Rows, func(r review.Row) bool { return figureFact(&r, name) != "" }) {
			return nil, fmt.Errorf("no run has %s", name)
		}
	}
	for _, name := range o.Measures {
		measures, err := review.MeasuresNamed(s.Rows, name)
		if err != nil {
			return nil, err
		}
		s.Named = append(s.Named, measures...)
	}
	return s, nil
}

// sameNumbers reports whether two facts have the same number in each run, such as a label 2G and
// the setting with that value. Lines by one of them over the other would have a point each.
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
func figureFact(r *review.Row, name string) string {
	if name == EachRun {
		return r.ID
	}
	if v := factOf(r, name); v != "" {
		return v
	}
	return r.ServerSettings[name]
}

// Points returns the points of a measure, line by line.
func (s *FigureSet) Points(m *review.Measure) []FigurePoint {
	return FigureRows(s.Rows, m, s.X, func(i int) string { return s.lines[i] })
}

// FigureRows returns the points of a measure, in the order of the runs. lineOf returns the name of
// a run's line.
func FigureRows(rows []review.Row, m *review.Measure, x string, lineOf func(i int) string) []FigurePoint {
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

// FigureData is the content of a figure, in the base unit of its measure.
type FigureData struct {
	Measure string `json:"measure"`
	// Field includes the base unit.
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

// Data returns the contents of the set's tables.
func (s *FigureSet) Data() []FigureData {
	var all []FigureData
	for _, m := range s.measures() {
		d := FigureData{Measure: m.Name, Field: m.Field, X: s.X, Points: []FigureJSON{}}
		for _, p := range s.Points(&m) {
			d.Points = append(d.Points, FigureJSON(p))
		}
		all = append(all, d)
	}
	return all
}

// measures are the measures of the tables.
func (s *FigureSet) measures() []review.Measure {
	if s.Named != nil {
		return s.Named
	}
	return review.Measures(s.Rows)
}

// figureTable finds the points of a set by measure, line and place.
type figureTable struct {
	measures []review.Measure
	lines    []string
	xs       []string
	at       map[[3]string]Spread
}

func (s *FigureSet) table() figureTable {
	t := figureTable{measures: s.measures(), at: map[[3]string]Spread{}}
	for i := range t.measures {
		m := &t.measures[i]
		for _, p := range s.Points(m) {
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

// Table returns the table for the figures. One measure has a column per line; one line, and each
// run on its own, has a column per measure; several of both have a column per value of the
// parameter.
func (s *FigureSet) Table() *table.Table {
	t := s.table()
	cell := func(m *review.Measure, line, x string) table.Cell {
		p, ok := t.at[[3]string{m.Field, line, x}]
		if !ok {
			return table.Cell{}
		}
		return table.Number(p.Average(s.Average), m.Unit).As(p.Text(m.Unit, s.Average))
	}
	out := table.New()
	switch {
	case len(t.measures) == 0 || len(t.lines) == 0:
	case s.each:
		out.Columns = table.Named(s.X, EachRun)
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
		out.Columns = table.Named(s.X)
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
		out.Columns = table.Named(s.X)
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
		out.Columns = []table.Column{{Name: "measure"}, {Name: "line", Head: s.X + " →"}}
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

// sizeCell formats a value of the parameter, right-aligned if it is a number.
func sizeCell(x string) table.Cell {
	if v, ok := rundir.SizeOf(x); ok {
		return table.Number(v, table.Digits).As(x)
	}
	return table.Text(x)
}

// Note explains the cells of the table; empty if each shows one run.
func (s *FigureSet) Note() string {
	for _, p := range s.table().at {
		if p.N > 1 {
			return s.Average.Note()
		}
	}
	return ""
}

// CSV writes a line for each point, in base units.
func (s *FigureSet) CSV(w io.Writer) error {
	t := table.New(table.Named("measure", "line", s.X, "n", "median", "mean", "min", "max")...)
	for _, d := range s.Data() {
		for _, p := range d.Points {
			t.Add(table.Text(d.Field), table.Text(p.Line), table.Text(p.X), table.Whole(p.N), table.Number(p.Median, table.Digits), table.Number(p.Mean, table.Digits), table.Number(p.Min, table.Digits), table.Number(p.Max, table.Digits))
		}
	}
	return t.CSV(w)
}
