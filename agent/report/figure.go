package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/measure"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/table"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// KneeShare is how much of the best throughput the knee reaches: the smallest value of a
// parameter from which on more brings little.
const KneeShare = 0.95

// FigurePoint is what runs with one value of a parameter have.
type FigurePoint struct {
	// Line names the line that the point belongs to, X is the value of the parameter.
	Line, X string
	// Spread is in the measure's base unit.
	Spread
}

// NewFigure draws a measure over a parameter: the medians, with the extremes of the runs.
// Values that are numbers are placed by their size, on a logarithmic axis if they double
// rather than add up; others stand side by side. Of a throughput the best point of each
// line and its knee are marked.
func NewFigure(m *Measure, x string, points []FigurePoint) *Plot {
	points = slices.DeleteFunc(slices.Clone(points), func(p FigurePoint) bool { return p.N == 0 || p.X == "" })
	p := &Plot{Title: m.Name + " by " + x, X: Axis{Title: x}}
	var notes []string
	switch m.Unit.Sign {
	case "":
	case table.PerSecond.Sign:
		notes = append(notes, "per second")
	default:
		notes = append(notes, m.Unit.Sign)
	}
	if slices.ContainsFunc(points, func(q FigurePoint) bool { return q.N > 1 }) {
		notes = append(notes, "median with the smallest and the largest run")
	}
	p.Unit = strings.Join(notes, ", ")
	var texts, names []string
	for _, q := range points {
		if !slices.Contains(texts, q.X) {
			texts = append(texts, q.X)
		}
		if !slices.Contains(names, q.Line) {
			names = append(names, q.Line)
		}
	}
	slices.SortStableFunc(texts, compareSizes)
	places, numbers := placesOf(texts)
	for _, text := range texts {
		p.X.Ticks = append(p.X.Ticks, Tick{places[text], text})
	}
	p.X.Log = numbers && doubles(texts, places)
	for _, name := range names[:min(len(names), maxLines)] {
		line := PlotLine{Name: name}
		for _, q := range points {
			if q.Line == name {
				f := m.Unit.Factor
				line.Points = append(line.Points, Point{X: places[q.X], Y: q.Median * f, Low: q.Min * f, High: q.Max * f})
			}
		}
		sortPoints(line.Points)
		p.Lines = append(p.Lines, line)
	}
	if n := len(names) - maxLines; n > 0 {
		p.Notes = append(p.Notes, table.Plural(n, "line")+" left out")
	}
	if isRate(m) {
		for i := range p.Lines {
			p.mark(i, m, numbers)
		}
	}
	return p
}

// isRate reports whether more of a measure is better, so that it has a best point.
func isRate(m *Measure) bool {
	return slices.ContainsFunc([]*measure.Measure{tool.Throughput, tool.QueryRate, tool.TpmC}, func(t *measure.Measure) bool { return t.Field() == m.Field })
}

// mark marks the best point of a line and, if the parameter is a number, its knee.
func (p *Plot) mark(i int, m *Measure, numbers bool) {
	l := &p.Lines[i]
	if len(l.Points) < 2 {
		return
	}
	best := l.Points[0]
	for _, q := range l.Points {
		if q.Y > best.Y {
			best = q
		}
	}
	name := ""
	if l.Name != "" {
		name = l.Name + ": "
	}
	at := func(q Point) string {
		j := slices.IndexFunc(p.X.Ticks, func(t Tick) bool { return t.At == q.X })
		return p.X.Title + " " + p.X.Ticks[j].Text
	}
	p.Marks = append(p.Marks, PlotMark{best.X, best.Y, fmt.Sprintf("%sbest, %s %s at %s", name, m.Unit.Format(best.Y/m.Unit.Factor), m.Name, at(best)), i})
	if !numbers {
		return
	}
	for _, q := range l.Points {
		if q.Y >= KneeShare*best.Y {
			if q.X < best.X {
				p.Marks = append(p.Marks, PlotMark{q.X, q.Y, fmt.Sprintf("%sknee, %.1f %% of the best at %s", name, 100*q.Y/best.Y, at(q)), i})
			}
			return
		}
	}
}

// numberOf reads a value such as 16, 0.5, 8G or 128MiB.
func numberOf(text string) (float64, bool) {
	digits := strings.TrimRight(text, "KMGTkmgtiB")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, false
	}
	switch unit := strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(text[len(digits):], "B"), "i")); unit {
	case "":
		return v, true
	case "K", "M", "G", "T":
		return v * math.Pow(1024, float64(strings.Index("KMGT", unit)+1)), true
	}
	return 0, false
}

// compareSizes orders numbers by size and other texts by letters.
func compareSizes(a, b string) int {
	x, okX := numberOf(a)
	y, okY := numberOf(b)
	if okX && okY {
		return cmp.Compare(x, y)
	}
	return compareText(a, b)
}

// placesOf returns where values are on an axis: at their size if all are numbers, else one
// beside the other.
func placesOf(texts []string) (places map[string]float64, numbers bool) {
	places = map[string]float64{}
	numbers = true
	for _, text := range texts {
		v, ok := numberOf(text)
		numbers = numbers && ok
		places[text] = v
	}
	if !numbers {
		for i, text := range texts {
			places[text] = float64(i)
		}
	}
	return places, numbers
}

// doubles reports whether sorted values grow by factors rather than by steps.
func doubles(texts []string, places map[string]float64) bool {
	n := len(texts)
	return n > 2 && places[texts[0]] > 0 && places[texts[n-1]]/places[texts[0]] >= 2*float64(n-1)
}

// FigureRows returns the points of a measure of runs: the line's name is made of what
// lineOf returns.
func FigureRows(rows []Row, m *Measure, x string, lineOf func(i int) string) []FigurePoint {
	type key struct{ line, x string }
	values := map[key][]float64{}
	var order []key
	for i := range rows {
		k := key{lineOf(i), factOf(&rows[i], x)}
		if v := m.Value(&rows[i]); series.IsKnown(v) {
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

// FigureMeasures are those that figures show if none are named: throughput, the
// mean and the headline statistics of the latency, then the worst of the servers.
func FigureMeasures(rows []Row) []Measure {
	return slices.DeleteFunc(Measures(rows), func(m Measure) bool {
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
}

// MeasureNamed returns the measure of these runs that a condition would name so.
func MeasureNamed(rows []Row, name string) (Measure, error) {
	c, err := ParseName(name)
	if err != nil {
		return Measure{}, err
	}
	m, ok := c.measure(rows)
	if !ok {
		return Measure{}, fmt.Errorf("no run has the measure %s", name)
	}
	return m, nil
}

// FigureOptions are what the figures of a comparison show.
type FigureOptions struct {
	// X is the fact along the axis; empty: the one that varies, threads before others.
	X string
	// Lines are facts whose values make a line each, besides the groups.
	Lines []string
	// Measure names one, as conditions do; empty: those of FigureMeasures.
	Measure string
}

// Figures returns the figures of groups of runs over a fact that varies, and none if none
// varies.
func Figures(c *Comparison, groups []Group, o FigureOptions) ([]*Plot, error) {
	x := o.X
	if x == "" {
		for _, name := range c.Varied {
			if x == "" || name == "threads" {
				x = name
			}
		}
	}
	if x == "" {
		return nil, nil
	}
	var rows []Row
	var lines []string
	for _, g := range groups {
		for i := range g.Runs {
			var words []string
			if len(groups) > 1 && !strings.Contains(g.Name, x+"=") { // else it is along the axis
				words = append(words, g.Name)
			}
			for _, name := range slices.Concat(o.Lines, c.Varied) {
				if v := factOf(&g.Runs[i], name); name != x && v != "" && (slices.Contains(o.Lines, name) || len(o.Lines) == 0) {
					words = append(words, name+" "+v)
				}
			}
			rows, lines = append(rows, g.Runs[i]), append(lines, strings.Join(words, ", "))
		}
	}
	if !slices.ContainsFunc(rows, func(r Row) bool { return factOf(&r, x) != "" }) {
		return nil, fmt.Errorf("no run has %s", x)
	}
	measures := FigureMeasures(rows)
	if o.Measure != "" {
		m, err := MeasureNamed(rows, o.Measure)
		if err != nil {
			return nil, err
		}
		measures = []Measure{m}
	}
	var plots []*Plot
	for i := range measures {
		p := NewFigure(&measures[i], x, FigureRows(rows, &measures[i], x, func(j int) string { return lines[j] }))
		if !p.Empty() && (o.X != "" || len(p.X.Ticks) > 1) {
			plots = append(plots, p)
		}
	}
	return plots, nil
}

// FigurePage is figures with a table and lists of findings, as one file that needs nothing
// else.
type FigurePage struct {
	Title   string
	Made    time.Time
	Version string
	Figures []*Plot
	Lists   []FigureList
	Table   *table.Table
}

// FigureList is findings about a part of the runs; an empty title is about all.
type FigureList struct {
	Title string
	Lines []string
}

// HTML writes the page.
func (p *FigurePage) HTML(w io.Writer) error {
	return page.ExecuteTemplate(table.PlainWriter{W: w}, "figures", p)
}
