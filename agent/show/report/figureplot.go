package report

import (
	"github.com/benchwatch/benchwatch/agent/many/compare"
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
