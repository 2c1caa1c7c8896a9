package pattern

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/tooltest"
)

const document = "../../../docs/patterns.md"

// documented returns the tool of the first YAML block of the documentation.
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

// The documentation's example, over what pgbench 15 really printed.
func TestDocumentedExample(t *testing.T) {
	pgbench := documented(t)
	for _, dir := range tooltest.Cases(t, "testdata/pgbench/*") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			out := tooltest.Read(t, tool.Stdout, filepath.Join(dir, "stdout.txt"))
			err := tooltest.Read(t, tool.Stderr, filepath.Join(dir, "stderr.txt"))
			got := tooltest.Parse(pgbench, slices.Concat(err, out))
			tooltest.Golden(t, filepath.Join(dir, "golden.txt"), got.String())
			for name, lines := range map[string][]tool.Line{
				"stdout first": slices.Concat(out, err), "in turns": tooltest.Alternate(err, out),
				"in one file": tooltest.On(tool.Stdout, slices.Concat(err, out)),
			} {
				if diff := cmp.Diff(got.Sorted(), tooltest.Parse(pgbench, lines).Sorted()); diff != "" {
					t.Errorf("%s: other reports:\n%s", name, diff)
				}
			}
			command, e := os.ReadFile(filepath.Join(dir, "cmd.txt"))
			if e != nil {
				t.Fatal(e)
			}
			args := strings.Fields(string(command))
			if !pgbench.MatchArgs(args[0], args[1:]) {
				t.Errorf("the command %q is not recognised", args)
			}
			want := 0
			if i := slices.Index(args, "-c"); i > 0 {
				want, _ = atoi(args[i+1])
			}
			if d := pgbench.Describe(tool.Invocation{Program: args[0], Args: args[1:]}); d.Threads != want {
				t.Errorf("%q: %d threads", args, d.Threads)
			}
			for _, name := range []string{"stderr.txt", "stdout.txt"} {
				head, e := os.ReadFile(filepath.Join(dir, name))
				if e == nil && pgbench.Sniff(head) == 0 && !strings.Contains(string(head), "pgbench: error") {
					t.Errorf("%s is not recognised", name)
				}
			}
		})
	}
}

// The text of the documentation's first block is what was recorded.
func TestDocumentedOutput(t *testing.T) {
	doc, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```\n(progress.*?)```").FindSubmatch(doc)
	if m == nil {
		t.Fatalf("%s shows no output", document)
	}
	var recorded []string
	for _, name := range []string{"stderr.txt", "stdout.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata/pgbench/tpcb", name))
		if err != nil {
			t.Fatal(err)
		}
		recorded = append(recorded, strings.Split(string(text), "\n")...)
	}
	for line := range strings.Lines(string(m[1])) {
		if line = strings.TrimSpace(line); line != "…" && !slices.Contains(recorded, line) {
			t.Errorf("pgbench did not print %q", line)
		}
	}
}

func BenchmarkPgbench(b *testing.B) {
	pgbench := documented(b)
	lines := tooltest.Lines(tool.Stderr, []byte("progress: 1.0 s, 1217.0 tps, lat 3.213 ms stddev 3.939, 0 failed\n"))
	p := pgbench.NewParser(tool.Description{})
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
