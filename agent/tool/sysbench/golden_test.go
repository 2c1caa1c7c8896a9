package sysbench

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/tool"
)

var update = flag.Bool("update", false, "write the golden files anew")

// captures are the outputs in testdata, by path. Beside X.txt, standard output,
// stands X.stderr if there was standard error.
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

// output collects what a parser reports, as `benchwatch parse` prints it.
type output struct {
	parser   *Parser
	reports  bytes.Buffer
	verdicts [3]int
}

func newOutput() *output { return &output{parser: NewParser(tool.Description{})} }

func (o *output) emit(r *tool.Report) {
	o.reports.Write(append(tool.AppendJSON(nil, r), '\n'))
}

func (o *output) feed(stream tool.Stream, data []byte) {
	for len(data) > 0 {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte("\n"))
		o.verdicts[o.parser.Parse(tool.Line{Stream: stream, Text: line}, o.emit)]++
	}
}

func (o *output) close() string {
	o.parser.Close(o.emit)
	return o.reports.String()
}

func parse(stdout, stderr []byte) string {
	o := newOutput()
	o.feed(tool.Stdout, stdout)
	o.feed(tool.Stderr, stderr)
	return o.close()
}

func TestGolden(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(strings.TrimPrefix(path, "testdata/"), func(t *testing.T) {
			stdout, stderr := readCapture(t, path)
			got := parse(stdout, stderr)
			golden := strings.TrimSuffix(path, ".txt") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
