package sysbench

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

// captures returns the paths of the outputs in testdata. X.txt is standard output and X.stderr, if
// it exists, standard error.
func captures(tb testing.TB) []string {
	tb.Helper()
	var paths []string
	err := filepath.WalkDir("testdata", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".txt") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no captures: %v", err)
	}
	return paths
}

func readCapture(tb testing.TB, path string) (stdout, stderr []byte) {
	tb.Helper()
	stdout, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	stderr, err = os.ReadFile(strings.TrimSuffix(path, ".txt") + ".stderr")
	if err != nil && !os.IsNotExist(err) {
		tb.Fatal(err)
	}
	return stdout, stderr
}

func parse(stdout, stderr []byte) tooltest.Result {
	return tooltest.Parse(Tool, append(tooltest.Lines(tool.Stdout, stdout), tooltest.Lines(tool.Stderr, stderr)...))
}

func TestGolden(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(strings.TrimPrefix(path, "testdata/"), func(t *testing.T) {
			tooltest.Golden(t, strings.TrimSuffix(path, ".txt")+".golden", parse(readCapture(t, path)).JSON())
		})
	}
}
