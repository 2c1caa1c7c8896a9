package cli

import (
	"errors"
	"io"

	"github.com/benchwatch/benchwatch/agent/report"
)

// writeFigure writes the first figure as a file of its own, as SVG or as PNG.
func writeFigure(w io.Writer, plots []*report.Plot, format string) error {
	if len(plots) == 0 {
		return withHint(errors.New("nothing varies: there is no figure"), "name what is along the axis with --x")
	}
	if format == "png" {
		return plots[0].WritePNG(w)
	}
	return plots[0].WriteSVG(w)
}
