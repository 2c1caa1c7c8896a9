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
	// Measures are names as for [review.MeasureNamed]; empty: FigureMeasures in figures, all in tables.
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
	varied  []string // facts that are not the same in all runs
	Named   []review.Measure
	// Given: the user chose the axis. each: the user requested a line per run.
	Given, each bool
}

// NewFigureSet arranges groups of runs over a fact. It is empty if no fact is requested and none
// varies.
func NewFigureSet(c *Comparison, groups []Group, o FigureOptions) (*FigureSet, error) {
	s := &FigureSet{X: o.X, Given: o.X != "", varied: c.Varied, each: slices.Contains(o.Lines, EachRun), Average: cmp.Or(o.Average, ByMedian)}
	if s.X == "" && len(c.Varied) > 0 {
		if s.X = c.Varied[0]; slices.Contains(c.Varied, "threads") {
			s.X = "threads"
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
		facts := g.Facts
		if len(groups) == 1 || slices.ContainsFunc(facts, func(f rundir.Fact) bool { return f.Name == s.X }) { // the group is along the axis
			g.Name, facts = "", nil
		}
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
			var words []string
			if g.Name != "" {
				words = append(words, g.Name)
			}
			for _, name := range names {
				v := figureFact(&runs[i], name)
				switch _, number := rundir.SizeOf(v); {
				case name == EachRun:
					words = append(words, v)
				case name == s.X || v == "" || slices.Contains(facts, rundir.Fact{Name: name, Value: v}):
				case number:
					words = append(words, name+" "+short[name](v))
				default: // the value is self-explanatory
					words = append(words, v)
				}
			}
			s.Rows, s.lines = append(s.Rows, runs[i]), append(s.lines, strings.Join(words, ", "))
		}
	}
	return s, s.choose(o)
}

// choose finds the named measures. It fails if no run has one of them, or one of the named facts.
func (s *FigureSet) choose(o FigureOptions) error {
	for _, name := range append(slices.Clone(o.Lines), s.X) {
		if !slices.ContainsFunc(s.Rows, func(r review.Row) bool { return figureFact(&r, name) != "" }) {
			return fmt.Errorf("no run has %s", name)
		}
	}
	for _, name := range o.Measures {
		measures, err := review.MeasuresNamed(s.Rows, name)
		if err != nil {
			return err
		}
		s.Named = append(s.Named, measures...)
	}
	return nil
}

// sameNumbers reports whether two facts have the same number in each run, such as a label 2G and the setting with that
// value. Lines by one of them over the other would have only one point each.
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
	Field  string        `json:"field"`
	X      string        `json:"x"`
	Points []FigurePoint `json:"points"`
}

// Data returns the contents of the set's tables.
func (s *FigureSet) Data() []FigureData {
	var all []FigureData
	for _, m := range s.measures() {
		all = append(all, FigureData{Measure: m.Name, Field: m.Field, X: s.X, Points: append([]FigurePoint{}, s.Points(&m)...)})
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
	average  Average
}

func (s *FigureSet) table() figureTable {
	t := figureTable{measures: s.measures(), at: map[[3]string]Spread{}, average: s.Average}
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
	out := table.New()
	switch {
	case len(t.measures) == 0 || len(t.lines) == 0:
	case s.each || len(t.measures) > 1 && (len(t.lines) < 2 || isLong(t.xs)):
		lead := []string{s.X, EachRun}
		switch {
		case s.each:
		case len(t.lines) < 2:
			lead = lead[:1]
		default:
			lead[1] = "line"
		}
		out.Columns = table.Named(lead...)
		for i := range t.measures {
			out.Columns = append(out.Columns, t.measures[i].Column())
		}
		for _, x := range t.xs {
			for _, line := range t.lines {
				row := []table.Cell{sizeCell(x), table.Text(line)}[:len(lead)]
				for i := range t.measures {
					row = append(row, t.cell(&t.measures[i], line, x))
				}
				if len(lead) < 2 || anyKnown(row[len(lead):]) {
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
				row = append(row, t.cell(m, line, x))
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
					row = append(row, t.cell(m, line, x))
				}
				if anyKnown(row[2:]) {
					out.Add(row...)
				}
			}
		}
	}
	return out
}

// isLong reports whether the values of a parameter are texts, and too many for a column each.
func isLong(xs []string) bool {
	const most = 8
	return len(xs) > most && slices.ContainsFunc(xs, func(x string) bool {
		_, isSize := rundir.SizeOf(x)
		return !isSize
	})
}

// cell returns the runs' values of a measure.
func (t *figureTable) cell(m *review.Measure, line, x string) table.Cell {
	p, ok := t.at[[3]string{m.Field, line, x}]
	if !ok {
		return table.Cell{}
	}
	return table.Number(p.Average(t.average), m.Unit).As(p.Text(m.Unit, t.average))
}

func anyKnown(cells []table.Cell) bool {
	return slices.ContainsFunc(cells, func(c table.Cell) bool { return !c.IsUnknown() })
}

// sizeCell formats a value of the parameter, right-aligned if it is a number.
func sizeCell(x string) table.Cell {
	if v, ok := rundir.SizeOf(x); ok {
		return table.Number(v, table.Digits).As(x)
	}
	return table.Text(x)
}

// Note explains the cells of the table, and names the facts that differ among the runs of a cell; empty if each cell shows
// one run.
func (s *FigureSet) Note() string {
	for _, p := range s.table().at {
		if p.N > 1 {
			return s.Average.Note() + s.mixed()
		}
	}
	return ""
}

// mixed names the facts that differ among the runs of one cell.
func (s *FigureSet) mixed() string {
	var names []string
	for _, name := range s.varied {
		cells := map[[2]string]string{}
		for i := range s.Rows {
			cell, v := [2]string{s.lines[i], figureFact(&s.Rows[i], s.X)}, figureFact(&s.Rows[i], name)
			if first, known := cells[cell]; known && first != v && cell[1] != "" {
				names = append(names, name)
				break
			}
			cells[cell] = v
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; these runs differ in " + table.Join(names) + ", which --lines separates"
}

// CSV writes a line for each point, in base units.
func (s *FigureSet) CSV(w io.Writer) error {
	t := table.New(table.Named("measure", "line", s.X, "n", "median", "mean", "min", "max")...)
	for _, d := range s.Data() {
		for _, p := range d.Points {
			t.Add(table.Text(d.Field), table.Text(p.Line), table.Text(p.X), table.Whole(p.N),
				table.Number(p.Median, table.Digits), table.Number(p.Mean, table.Digits),
				table.Number(p.Min, table.Digits), table.Number(p.Max, table.Digits))
		}
	}
	return t.CSV(w)
}
