package cli

import (
	"errors"
	"io"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// averaging is the flag that decides which value represents repeated runs.
type averaging struct{ mean bool }

func (a *averaging) declare(cmd command) {
	cmd.toggle(&a.mean, "mean", "Use means of repeated runs in the figures and their table instead of medians")
}

func (a averaging) average() compare.Average {
	if a.mean {
		return compare.ByMean
	}
	return compare.ByMedian
}

// writeFigure writes the first figure as a file of its own.
func writeFigure(w io.Writer, plots []*report.Plot) error {
	if len(plots) == 0 {
		return withHint(errors.New("nothing varies: there is no figure"), "name what is along the axis with --x")
	}
	return plots[0].WriteSVG(w)
}
