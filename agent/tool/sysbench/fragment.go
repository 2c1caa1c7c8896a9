package sysbench

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/scan"
)

// resembles tells whether text, which follows a time stamp, was meant to be one
// of sysbench's lines rather than something that a script printed.
func resembles(text []byte) bool {
	for _, word := range []string{"thds: ", "threads: ", "queue length: ", "reads: ", "Checkpoint report:"} {
		n := min(len(text), len(word))
		if string(text[:n]) == word[:n] {
			return true
		}
	}
	return contains(text, fragments)
}

// fragments are found in interval lines and hardly anywhere else.
var fragments = []string{"thds: ", " tps: ", "(r/w/o: ", "lat (ms,", "reconn/s: ", "queue length: ", "response time: ", "] threads: "}

func contains(text []byte, words []string) bool {
	for _, w := range words {
		if bytes.Contains(text, []byte(w)) {
			return true
		}
	}
	return false
}

// fragment judges a line that is none of the known ones: Malformed if it holds
// a piece of an interval line.
func (p *Parser) fragment(line []byte) tool.Verdict {
	if !contains(line, fragments) && !cutStamp(line) {
		return tool.Ignored
	}
	p.run.gap = true
	return tool.Malformed
}

// cutStamp recognises the beginning of a time stamp: `[ 12`, `[ 12s`, `[ 12s ]`.
func cutStamp(line []byte) bool {
	s := scan.Line(line)
	if !s.Literal("[") {
		return false
	}
	s.Blanks()
	if _, ok := count(&s); !ok {
		return false
	}
	_ = s.Literal("s") && s.Literal(" ")
	s.Literal("]")
	return s.End()
}
