package report

import (
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

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

// addFigures adds the table with its note, under the name of the measure if there is one.
func addFigures(s *compare.FigureSet, doc *table.Document) {
	if len(s.Named) == 1 {
		doc.Heading(3, s.Named[0].Head()+" by "+s.X)
	}
	doc.Table(s.Table())
	if note := s.Note(); note != "" {
		doc.Paragraph(table.Line{Text: note})
	}
}
