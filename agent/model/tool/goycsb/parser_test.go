package goycsb

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

const captures = "testdata/*/stdout.txt"

func streams(t testing.TB, file string) (out, err []tool.Line) {
	return tooltest.Read(t, tool.Stdout, file), tooltest.Read(t, tool.Stderr, filepath.Join(filepath.Dir(file), "stderr.txt"))
}

// Golden files: the meaning of each recorded run, however its streams interleave.
func TestCaptures(t *testing.T) {
	for _, file := range tooltest.Cases(t, captures) {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			out, err := streams(t, file)
			got := tooltest.Parse(Tool, slices.Concat(err, out))
			tooltest.Golden(t, filepath.Join(dir, "golden.txt"), got.String())
			for name, lines := range map[string][]tool.Line{
				"stdout first":   slices.Concat(out, err),
				"in turns":       tooltest.Alternate(err, out),
				"in one file":    tooltest.On(tool.Stdout, slices.Concat(out, err)),
				"with a CR each": carriageReturns(slices.Concat(err, out)),
			} {
				other := tooltest.Parse(Tool, lines)
				if diff := cmp.Diff(got.Sorted(), other.Sorted()); diff != "" {
					t.Errorf("%s: other reports:\n%s", name, diff)
				}
			}
		})
	}
}

func carriageReturns(lines []tool.Line) []tool.Line {
	for i := range lines {
		lines[i].Text = append(slices.Clone(lines[i].Text), '\r')
	}
	return lines
}
