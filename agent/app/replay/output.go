package replay

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// chunk is lines of an output that are written together.
type chunk struct {
	lines   []byte
	elapsed float64 // on the tool's clock
	last    bool    // what the tool printed at its end
}

// chunks splits an output after each line that completes an interval. Without a tool
// that is known, all of it comes at the end.
func chunks(output []byte, stream tool.Stream, t *tool.Tool, m *rundir.Meta) []chunk {
	var all []chunk
	begin := 0
	cut := func(to int, elapsed float64, last bool) {
		if to > begin {
			all = append(all, chunk{output[begin:to], elapsed, last})
			begin = to
		}
	}
	if t != nil {
		parser := t.NewParser(m.Description())
		for at := 0; at < len(output); {
			next := len(output)
			if i := bytes.IndexByte(output[at:], '\n'); i >= 0 {
				next = at + i + 1
			}
			parser.Parse(tool.Line{Stream: stream, Text: bytes.TrimRight(output[at:next], "\n")}, func(r *tool.Report) {
				if r.Kind != tool.Interval || !r.ElapsedSeconds.Known {
					return
				}
				if begin == 0 {
					cut(at, 0, false) // the head
				}
				cut(next, r.ElapsedSeconds.Value, false)
			})
			at = next
		}
	}
	cut(len(output), 0, true)
	return all
}
