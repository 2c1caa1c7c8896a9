package sweep

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/show/report"
)

// Figures returns a figure of each measure over the set that is scaled up, with a line for
// each combination of the others. If name is not empty it is the only measure. The fits
// of the Universal Scalability Law are drawn in.
func (r *Result) Figures(name string) ([]*report.Plot, error) {
	measures := report.FigureMeasures(r.rows)
	if name != "" {
		var err error
		if measures, err = report.MeasuresNamed(r.rows, name); err != nil {
			return nil, err
		}
	}
	var plots []*report.Plot
	for _, f := range report.Figures(measures) {
		p := report.PlotFigure(f, r.scale, r.Average, r.points)
		if f[0].Condition == "tps" {
			r.addLaws(p)
		}
		if !p.Empty() {
			plots = append(plots, p)
		}
	}
	return plots, nil
}

// points returns the points of a measure.
func (r *Result) points(m *report.Measure) []report.FigurePoint {
	var points []report.FigurePoint
	for i := range r.Combinations {
		c := &r.Combinations[i]
		others := map[string]string{}
		for set, v := range c.Values {
			if set != r.scale {
				others[set] = v
			}
		}
		points = append(points, report.FigurePoint{Line: r.describe(others), X: c.Values[r.scale], Spread: spreadOf(m, c.rows)})
	}
	return points
}

// fitPoints is how many points a curve has.
const fitPoints = 60

// addLaws draws the fits into the figure of the throughput.
func (r *Result) addLaws(p *report.Plot) {
	for _, a := range r.Advice {
		i := slices.IndexFunc(p.Lines, func(l report.PlotLine) bool { return l.Name == r.describe(a.Others) })
		if a.USL == nil || a.USL.R2 < 0.9 || i < 0 {
			continue
		}
		points := p.Lines[i].Points
		first, last := points[0].X, points[len(points)-1].X
		law := report.PlotLine{Name: fmt.Sprintf("Universal Scalability Law, R² %.3f", a.USL.R2), Fit: true, Colour: i + 1}
		for k := range fitPoints + 1 {
			n := first * math.Pow(last/first, float64(k)/fitPoints)
			v := a.USL.At(n)
			law.Points = append(law.Points, report.Point{X: n, Y: v, Low: v, High: v})
		}
		p.Lines = append(p.Lines, law)
	}
}

// HTML writes the figures, what follows from them and the table as one page.
func (r *Result) HTML(w io.Writer, made time.Time, version string) error {
	plots, err := r.Figures("")
	if err != nil {
		return err
	}
	page := report.FigurePage{Title: "Sweep " + r.ID, Made: made, Version: version, Figures: plots, Table: r.table(), Note: r.note()}
	if r.Found != nil {
		page.Lists = append(page.Lists, report.FigureList{Lines: r.Found.Lines})
	}
	for _, a := range r.Advice {
		page.Lists = append(page.Lists, report.FigureList{Title: r.describe(a.Others), Lines: a.Lines})
	}
	if failed := r.failures(); len(failed) > 0 {
		page.Lists = append(page.Lists, report.FigureList{Title: "failed", Lines: failed})
	}
	return page.HTML(w)
}
