package tool

import (
	"bytes"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/prefix"
)

// Front comes before the parser of one stream, wherever a log is read. It removes what other programs put before the
// lines (package prefix). In a log with lines of several containers it passes those of the first container whose output
// the parser understands, so that nothing is counted twice. The zero value is ready; one goroutine uses it.
type Front struct {
	// Written is about when the log was written; it completes dates without a year. Zero: now.
	Written time.Time

	stripper prefix.Stripper
	source   []byte // empty: none so far
}

// Parse passes a line to the parser. before, if not nil, is called first, with the time in the line's prefix or at the
// beginning of its text; it is zero if there is none.
func (f *Front) Parse(p Parser, l Line, before func(stamp time.Time), emit func(*Report)) Verdict {
	f.stripper.Written = f.Written
	stripped := f.stripper.Strip(l.Text)
	if len(f.source) > 0 && len(stripped.Source) > 0 && !bytes.Equal(f.source, stripped.Source) {
		return Ignored
	}
	if l.Text = stripped.Text; before != nil {
		stamp := stripped.Time
		if stamp.IsZero() {
			stamp, _ = LineTime(l.Text)
		}
		before(stamp)
	}
	verdict := p.Parse(l, emit)
	if verdict == Reported && len(f.source) == 0 {
		f.source = append(f.source, stripped.Source...)
	}
	return verdict
}
