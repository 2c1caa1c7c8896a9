package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// SweepPage is the result of a sweep with its figures.
type SweepPage struct {
	*sweep.Result
	Made    time.Time
	Version string
}

// Figures returns a figure of each measure over the set that is scaled up, with a line for
// each combination of the others. If name is not empty it is the only measure. The fits
// of the Universal Scalability Law are drawn in.
func (p *SweepPage) Figures(name string) ([]*Plot, error) {
	r := p.Result
	measures := review.FigureMeasures(r.Runs)
	if name != "" {
		var err error
		if measures, err = review.MeasuresNamed(r.Runs, name); err != nil {
			return nil, err
		}
	}
	var plots []*Plot
	for _, f := range compare.Figures(measures) {
		plot := PlotFigure(f, r.Scale, r.Average, r.Points)
		if f[0].Condition == "tps" {
			addLaws(r, plot)
		}
		if !plot.Empty() {
			plots = append(plots, plot)
		}
	}
	return plots, nil
}

// fitPoints is how many points a curve has.
const fitPoints = 60

// addLaws draws the fits into the figure of the throughput.
func addLaws(r *sweep.Result, p *Plot) {
	for _, a := range r.Advice {
		i := slices.IndexFunc(p.Lines, func(l PlotLine) bool { return l.Name == r.Describe(a.Others) })
		if a.USL == nil || a.USL.R2 < 0.9 || i < 0 {
			continue
		}
		points := p.Lines[i].Points
		first, last := points[0].X, points[len(points)-1].X
		law := PlotLine{Name: fmt.Sprintf("Universal Scalability Law, R² %.3f", a.USL.R2), Fit: true, Colour: i + 1}
		for k := range fitPoints + 1 {
			n := first * math.Pow(last/first, float64(k)/fitPoints)
			v := a.USL.At(n)
			law.Points = append(law.Points, Point{X: n, Y: v, Low: v, High: v})
		}
		p.Lines = append(p.Lines, law)
	}
}

// HTML writes the figures, what follows from them and the table as one page.
func (p *SweepPage) HTML(w io.Writer) error {
	r := p.Result
	plots, err := p.Figures("")
	if err != nil {
		return err
	}
	page := FigurePage{Title: "Sweep " + r.ID, Made: p.Made, Version: p.Version, Figures: plots, Table: r.Table(), Note: r.Note()}
	if r.Found != nil {
		page.Lists = append(page.Lists, FigureList{Lines: r.Found.Lines})
	}
	for _, a := range r.Advice {
		page.Lists = append(page.Lists, FigureList{Title: r.Describe(a.Others), Lines: a.Lines})
	}
	if failed := r.Failures(); len(failed) > 0 {
		page.Lists = append(page.Lists, FigureList{Title: "failed", Lines: failed})
	}
	return page.HTML(w)
}

// sweepDocument has the table, the advice and the failed steps.
func sweepDocument(r *sweep.Result) *table.Document {
	doc := &table.Document{}
	doc.Table(r.Table())
	if note := r.Note(); note != "" {
		doc.Paragraph(table.Line{Text: note})
	}
	if r.Found != nil {
		doc.List(r.Found.Lines...)
	}
	var shared []string
	if len(r.Advice) > 1 {
		shared = slices.DeleteFunc(slices.Clone(r.Advice[0].Lines), func(line string) bool {
			return slices.ContainsFunc(r.Advice[1:], func(a sweep.Advice) bool { return !slices.Contains(a.Lines, line) })
		})
	}
	for _, a := range r.Advice {
		if len(a.Others) > 0 {
			doc.Heading(3, r.Describe(a.Others))
		}
		doc.List(slices.DeleteFunc(slices.Clone(a.Lines), func(line string) bool { return slices.Contains(shared, line) })...)
	}
	doc.Section(3, "all combinations", func() { doc.List(shared...) })
	doc.List(r.Failures()...)
	return doc
}

// Text writes the result for a terminal.
func (p *SweepPage) Text(w io.Writer) error { return sweepDocument(p.Result).Text(w) }

// Markdown writes the result as Markdown.
func (p *SweepPage) Markdown(w io.Writer) error { return sweepDocument(p.Result).Markdown(w) }
