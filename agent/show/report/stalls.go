package report

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// firstStalls is how many stalls are listed before the others are folded.
const firstStalls = 20

// stallBlocks are the stalls of a run in the order of time, and what they cost.
func stallBlocks(r *review.Row) []document.Block {
	var blocks []document.Block
	if r.StallEffect != nil {
		blocks = append(blocks, document.Prose(r.StallEffect.String()+"."))
	}
	for i := range r.Captures[:min(len(r.Captures), firstStalls)] {
		c := &r.Captures[i]
		blocks = append(blocks, document.Lines(document.Sentence{Strong: "captured at " + table.Clock(c.At),
			Rest: " (" + table.Plain(c.Trigger) + "): " + c.Evidence + ".", At: &c.At}), treeBlock(c.Tree))
	}
	first := min(len(r.Stalls), firstStalls)
	for i := range r.Stalls[:first] {
		s := &r.Stalls[i]
		blocks = append(blocks, document.Lines(stallLine(s)), treeBlock(s.Tree))
	}
	var rest []document.Sentence
	for i := range r.Stalls[first:] {
		rest = append(rest, stallLine(&r.Stalls[first+i]))
	}
	more := document.Lines(rest...)
	more.Long = true
	return append(blocks, more.Folded(len(rest), "more stall"))
}

// treeBlock shows who waited for whom, folded.
func treeBlock(tree []string) document.Block {
	return document.Block{Code: strings.Join(tree, "\n"), Fold: "Who waited for whom", Long: true}
}

// stallLine describes one stall.
func stallLine(s *review.Stall) document.Sentence {
	text := ": " + s.Evidence
	if len(s.Also) > 0 {
		text += "; also " + strings.Join(s.Also, ", ")
	}
	return document.Sentence{Strong: s.Title(), Rest: text + ".", At: &s.Start}
}
