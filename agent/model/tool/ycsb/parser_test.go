package ycsb

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

const captures = "testdata/0*/*"

func streams(t testing.TB, dir string) (out, err []tool.Line) {
	return tooltest.Read(t, tool.Stdout, filepath.Join(dir, "stdout.txt")),
		tooltest.Read(t, tool.Stderr, filepath.Join(dir, "stderr.txt"))
}

// Golden files: the meaning of each recorded run. The reports must not depend on how the streams
// interleave, nor on whether they are mixed.
func TestCaptures(t *testing.T) {
	for _, dir := range tooltest.Cases(t, captures) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			out, err := streams(t, dir)
			got := tooltest.Parse(Tool, slices.Concat(err, out))
			mixed := tooltest.Parse(Tool, tooltest.On(tool.Stdout, slices.Concat(err, out)))
			text := got.String()
			if m := mixed.String(); m != text {
				text += "\nthe streams in one file:\n" + m
			}
			tooltest.Golden(t, filepath.Join(dir, "golden.txt"), text)
			for name, lines := range map[string][]tool.Line{
				"stdout first": slices.Concat(out, err), "in turns": tooltest.Alternate(err, out),
			} {
				other := tooltest.Parse(Tool, lines)
				if diff := cmp.Diff(got.Sorted(), other.Sorted()); diff != "" {
					t.Errorf("%s: the reports depend on the order of the streams:\n%s", name, diff)
				}
			}
		})
	}
}
