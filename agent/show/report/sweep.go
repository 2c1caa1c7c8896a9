package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/show/document"
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

// Text writes the result for a terminal.
func (p *SweepPage) Text(w io.Writer, t terminal.Terminal) error {
	return p.write(func(page *document.Page) error { return page.Text(w, t) })
}

// Markdown writes the result as Markdown.
func (p *SweepPage) Markdown(w io.Writer) error {
	return p.write(func(page *document.Page) error { return page.Markdown(w) })
}

// HTML writes one file that needs nothing else.
func (p *SweepPage) HTML(w io.Writer) error {
	return p.write(func(page *document.Page) error { return page.HTML(w) })
}

func (p *SweepPage) write(write func(*document.Page) error) error {
	plots, err := p.Figures("")
	if err != nil {
		return err
	}
	r := p.Result
	d := document.Document{Title: "Sweep " + r.ID}
	if r.Found != nil {
		d.Add("found", "Result", document.List(r.Found.Lines...))
	}
	d.Add("figures", "Figures", document.Block{Drawings: plotDrawings(plots)})
	d.Add("combinations", "Combinations", document.Table(r.Table()), proseOf(r.Note()))
	d.Add("threads", "Number of threads", adviceBlocks(r)...)
	d.Add("failed", "Failed steps", document.List(r.Failures()...))
	return write(&document.Page{Title: d.Title, Made: p.Made, Version: p.Version, Documents: []document.Document{d}})
}

// adviceBlocks are what follows for the number of threads in each combination of the others. What
// follows in all of them is a block of its own.
func adviceBlocks(r *sweep.Result) []document.Block {
	var shared []string
	if len(r.Advice) > 1 {
		shared = slices.DeleteFunc(slices.Clone(r.Advice[0].Lines), func(line string) bool {
			return slices.ContainsFunc(r.Advice[1:], func(a sweep.Advice) bool { return !slices.Contains(a.Lines, line) })
		})
	}
	var blocks []document.Block
	for _, a := range r.Advice {
		b := document.List(slices.DeleteFunc(slices.Clone(a.Lines), func(line string) bool { return slices.Contains(shared, line) })...)
		b.Title = r.Describe(a.Others)
		blocks = append(blocks, b)
	}
	all := document.List(shared...)
	all.Title = "all combinations"
	return append(blocks, all)
}
