package report

import (
	"strings"

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
	first := min(len(r.Stalls), firstStalls)
	for i := range r.Stalls[:first] {
		s := &r.Stalls[i]
		blocks = append(blocks, document.Lines(stallLine(s)))
		if len(s.Tree) > 0 {
			tree := document.Block{Code: strings.Join(s.Tree, "\n"), Long: true}
			tree.Fold = "Who waited for whom"
			blocks = append(blocks, tree)
		}
	}
	var rest []document.Sentence
	for i := range r.Stalls[first:] {
		rest = append(rest, stallLine(&r.Stalls[first+i]))
	}
	more := document.Lines(rest...)
	more.Long = true
	return append(blocks, more.Folded(len(rest), "more stall"))
}

// stallLine describes one stall.
func stallLine(s *review.Stall) document.Sentence {
	text := ": " + s.Evidence
	if len(s.Also) > 0 {
		text += "; also " + strings.Join(s.Also, ", ")
	}
	return document.Sentence{Strong: s.Title(), Rest: text + ".", At: &s.Start}
}
