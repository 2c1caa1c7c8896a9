package cli

import (
	"errors"
	"io"

	"github.com/benchwatch/benchwatch/agent/report"
)

// writeFigure writes the first figure as a file of its own.
func writeFigure(w io.Writer, plots []*report.Plot) error {
	if len(plots) == 0 {
		return withHint(errors.New("nothing varies: there is no figure"), "name what is along the axis with --x")
	}
	return plots[0].WriteSVG(w)
}
