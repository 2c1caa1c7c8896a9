package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// PlotFigure draws a figure over a parameter; points returns the points of a measure.
func PlotFigure(f compare.Figure, x string, average compare.Average, points func(*review.Measure) []compare.FigurePoint) *Plot {
	var all []compare.FigurePoint
	for i := range f {
		m := &f[i]
		for _, p := range points(m) {
			switch {
			case p.Line == "":
				p.Line = m.Line
			case m.Line != "":
				p.Line += ", " + m.Line
			}
			all = append(all, p)
		}
	}
	m := f[0]
	m.Name = cmp.Or(m.Figure, m.Name)
	return newFigure(&m, x, all, average)
}

// newFigure draws a measure over a parameter: the averages, with the extremes of the runs. Values that are numbers are
// placed by their size, on a logarithmic axis if they grow by factors; other values are placed side by side. For a
// throughput, the best point of each line and its knee are marked.
func newFigure(m *review.Measure, x string, points []compare.FigurePoint, average compare.Average) *Plot {
	points = slices.DeleteFunc(slices.Clone(points), func(p compare.FigurePoint) bool { return p.N == 0 || p.X == "" })
	p := &Plot{Title: m.Name + " by " + x, X: Axis{Title: x}}
	var notes []string
	switch m.Unit.Sign {
	case "":
	case table.PerSecond.Sign:
		notes = append(notes, "per second")
	default:
		notes = append(notes, m.Unit.Sign)
	}
	if slices.ContainsFunc(points, func(q compare.FigurePoint) bool { return q.N > 1 }) {
		notes = append(notes, string(average)+" with the smallest and the largest run")
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
	slices.SortStableFunc(texts, rundir.CompareValues)
	places, numbers := placesOf(texts)
	short := compare.ShortSizes(x, texts)
	for _, text := range texts {
		p.X.Ticks = append(p.X.Ticks, Tick{places[text], short(text)})
	}
	p.X.Log = numbers && doubles(texts, places)
	spreads := make([][]compare.Spread, len(names))
	for i, name := range names[:min(len(names), maxLines)] {
		line := PlotLine{Name: name}
		for _, q := range points {
			if q.Line == name {
				f := m.Unit.Factor
				spreads[i] = append(spreads[i], q.Spread)
				line.Points = append(line.Points, Point{X: places[q.X], Y: q.Average(average) * f, Low: q.Min * f, High: q.Max * f})
			}
		}
		sortPoints(line.Points)
		p.Lines = append(p.Lines, line)
	}
	if n := len(names) - maxLines; n > 0 {
		p.Notes = append(p.Notes, table.Plural(n, "line")+" left out")
	}
	if m.MoreIsBetter {
		for i := range p.Lines {
			p.mark(i, m, numbers, spreads[i])
		}
	}
	return p
}

// mark marks the best point of a line and, if the parameter is a number, its knee: if an order stands out from the
// spread of the runs.
func (p *Plot) mark(i int, m *review.Measure, numbers bool, spreads []compare.Spread) {
	l := &p.Lines[i]
	if separation := compare.Separate(spreads, 1); len(l.Points) < 2 || !separation.HasOrder() {
		return
	}
	top, bend := compare.BestAndKnee(len(l.Points), func(i int) float64 { return l.Points[i].Y })
	best, knee := l.Points[top], l.Points[bend]
	name := ""
	if l.Name != "" {
		name = l.Name + ": "
	}
	at := func(q Point) string {
		j := slices.IndexFunc(p.X.Ticks, func(t Tick) bool { return t.At == q.X })
		return p.X.Title + " " + p.X.Ticks[j].Text
	}
	p.Marks = append(p.Marks, PlotMark{best.X, best.Y,
		fmt.Sprintf("%sbest, %s %s at %s", name, table.Digits.Format(best.Y), m.Name, at(best)), i})
	if numbers && bend < top {
		p.Marks = append(p.Marks, PlotMark{knee.X, knee.Y,
			fmt.Sprintf("%sknee, %s of the best at %s", name, table.Share(knee.Y/best.Y), at(knee)), i})
	}
}

// placesOf returns the places of values on an axis: at their size if all are numbers, else side by side.
func placesOf(texts []string) (places map[string]float64, numbers bool) {
	places = map[string]float64{}
	numbers = true
	for _, text := range texts {
		v, ok := rundir.SizeOf(text)
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

// FigurePlots returns a figure of each measure.
func FigurePlots(s *compare.FigureSet) []*Plot {
	measures := s.Named
	if measures == nil {
		measures = review.FigureMeasures(s.Rows)
	}
	var plots []*Plot
	for _, f := range compare.Figures(measures) {
		p := PlotFigure(f, s.X, s.Average, s.Points)
		if !p.Empty() && (s.Given || len(p.X.Ticks) > 1) {
			plots = append(plots, p)
		}
	}
	return plots
}
