package report

import (
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// firstStalls is how many stalls are listed before the others are folded.
const firstStalls = 20

// stallBlocks are the stalls of a run in the order of time, and what they cost.
func stallBlocks(r *review.Row) []document.Block {
	if r.StallEffect == nil {
		return nil
	}
	blocks := []document.Block{document.Prose(r.StallEffect.String() + ".")}
	lines := make([]document.Sentence, len(r.Stalls))
	for i := range r.Stalls {
		s := &r.Stalls[i]
		lines[i] = document.Sentence{Strong: s.Title(), Rest: ": " + s.Evidence + ".", At: &s.Start}
	}
	first := min(len(lines), firstStalls)
	rest := document.Lines(lines[first:]...)
	rest.Long = true
	return append(blocks, document.Lines(lines[:first]...), rest.Folded(len(lines)-first, "more stall"))
}
