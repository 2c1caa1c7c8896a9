package pattern

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

const document = "../../../../docs/patterns.md"

// documented returns the tool in the first YAML block of the documentation.
func documented(t testing.TB) *tool.Tool {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(tools:.*?)```").FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s has no example", document)
	}
	documented, err := load(string(m[1]))
	if err != nil {
		t.Fatalf("%s: the example: %v", document, err)
	}
	return documented
}

// The example of the documentation, applied to recorded output of db_bench 7.8.
func TestDocumentedExample(t *testing.T) {
	dbBench := documented(t)
	for _, dir := range tooltest.Cases(t, "testdata/dbbench/*") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			out := tooltest.Read(t, tool.Stdout, filepath.Join(dir, "stdout.txt"))
			err := tooltest.Read(t, tool.Stderr, filepath.Join(dir, "stderr.txt"))
			got := tooltest.Parse(dbBench, slices.Concat(err, out))
			tooltest.Golden(t, filepath.Join(dir, "golden.txt"), got.String())
			for name, lines := range map[string][]tool.Line{
				"stdout first": slices.Concat(out, err), "in turns": tooltest.Alternate(err, out),
				"in one file": tooltest.On(tool.Stdout, slices.Concat(err, out)),
			} {
				if diff := cmp.Diff(got.Sorted(), tooltest.Parse(dbBench, lines).Sorted()); diff != "" {
					t.Errorf("%s: other reports:\n%s", name, diff)
				}
			}
			command, e := os.ReadFile(filepath.Join(dir, "cmd.txt"))
			if e != nil {
				t.Fatal(e)
			}
			args := strings.Fields(string(command))
			if !dbBench.MatchArgs(args[0], args[1:]) {
				t.Errorf("the command %q is not recognised", args)
			}
			want := 0
			if slices.Contains(args, "--threads=1") {
				want = 1
			}
			if d := dbBench.Describe(tool.Invocation{Program: args[0], Args: args[1:]}); d.Threads != want {
				t.Errorf("%q: %d threads", args, d.Threads)
			}
			for _, name := range []string{"stderr.txt", "stdout.txt"} {
				head, e := os.ReadFile(filepath.Join(dir, name))
				if e == nil && dbBench.Sniff(head) == 0 && !strings.Contains(string(head), "open error: ") {
					t.Errorf("%s is not recognised", name)
				}
			}
		})
	}
}

// The first block of output in the documentation is recorded output.
func TestDocumentedOutput(t *testing.T) {
	doc, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```\n(2026/.*?)```").FindSubmatch(doc)
	if m == nil {
		t.Fatalf("%s shows no output", document)
	}
	var recorded []string
	for _, name := range []string{"stderr.txt", "stdout.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata/dbbench/readrandom", name))
		if err != nil {
			t.Fatal(err)
		}
		recorded = append(recorded, strings.Split(string(text), "\n")...)
	}
	for line := range strings.Lines(string(m[1])) {
		if line = strings.TrimSpace(line); line != "…" && !slices.Contains(recorded, line) {
			t.Errorf("db_bench did not print %q", line)
		}
	}
}

func BenchmarkDBBench(b *testing.B) {
	dbBench := documented(b)
	lines := tooltest.Lines(tool.Stderr, []byte("2026/11/23-02:21:44  ... thread 0: (63000,98000) ops and (62814.9,48479.7) ops/second in (1.002947,2.021463) seconds\n"))
	p := dbBench.NewParser(tool.Description{})
	emit := func(*tool.Report) {}
	b.SetBytes(int64(len(lines[0].Text) + 1))
	b.ReportAllocs()
	for b.Loop() {
		if p.Parse(lines[0], emit) != tool.Reported {
			b.Fatal("not reported")
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
