package mysqlslap

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

func TestGolden(t *testing.T) {
	for _, dir := range tooltest.Cases(t, "testdata/*/*") {
		t.Run(strings.TrimPrefix(dir, "testdata/"), func(t *testing.T) {
			tooltest.Golden(t, filepath.Join(dir, "golden.txt"), tooltest.Parse(Tool, tooltest.Recorded(t, dir)).String())
		})
	}
}

const sample = "Benchmark\n\tAverage number of seconds to run all queries: 4.880 seconds\n\tMinimum number of seconds to run all queries: 4.777 seconds\n" +
	"\tMaximum number of seconds to run all queries: 4.984 seconds\n\tNumber of clients running queries: 4\n\tAverage number of queries per client: 500\n\n"

func TestDamagedOutput(t *testing.T) {
	for _, text := range []string{
		strings.Replace(sample, "4.880", "1e999", 1), strings.Replace(sample, "4.880", "-nan", 1), strings.Replace(sample, ": 4\n", ": 99999999999999999999\n", 1),
		strings.Replace(sample, ": 500", ": 50\xff", 1), ",mixed,0.970,0.851,1.09,4,250\n", ",mixed,0.970,0.851,1.090,4,\n", ",mixed,0.970,0.851,1.090,-4,250\n",
	} {
		res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(text)))
		if len(res.Reports) > 0 || res.Malformed != 1 {
			t.Errorf("%q: %s", text, res)
		}
		// The next block is complete again.
		if res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(text+sample))); len(res.Reports) != 2 {
			t.Errorf("%q and a whole block: %s", text, res)
		}
	}
	if v := NewParser().Parse(tool.Line{Text: []byte("Benchmark"), Cut: true}, nil); v != tool.Malformed {
		t.Errorf("a line over the limit: %v", v)
	}
	// The first half of a block has no values.
	if res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(sample[:200]))); len(res.Reports) > 0 {
		t.Errorf("%s", res)
	}
}

func TestNoTime(t *testing.T) {
	res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte("innodb,query,0.000,0.000,0.001,4,250\n")))
	want := `{"kind":"start","run":1,"tool":"mysqlslap","workload":"query","threads":4}
{"kind":"summary","run":1,"elapsed_seconds":0,"threads":4,"checkpoint":false,"counts":{"transaction":1000,"query":1000}}
lines: 1 reported, 0 ignored, 0 malformed
`
	if diff := cmp.Diff(want, res.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMessages(t *testing.T) {
	for text, want := range map[string]int{
		"mysqlslap: Cannot run query select x ERROR : Unknown column 'x'\n":       1,
		"/usr/bin/mysqlslap: [ERROR] unknown option '--x'.\n":                     1,
		"mysqlslap: [Warning] Using a password on the command line is insecure\n": 0,
		"the mysqlslap: x\n": 0,
	} {
		for _, stream := range []tool.Stream{tool.Stdout, tool.Stderr} {
			res := tooltest.Parse(Tool, tooltest.Lines(stream, []byte(text)))
			if len(res.Reports) != want || want > 0 && (res.Reports[0].Kind != tool.Error || !res.Reports[0].Failed) {
				t.Errorf("%q: %s", text, res)
			}
		}
	}
}

func TestSniff(t *testing.T) {
	tooltest.Sniffs(t, Tool, 60, tooltest.Cases(t, "testdata/*/*/stdout.txt"), "Benchmark\n", "1,2,3,4,5,6,7\n", "a,b,c,d,e,f,g\n")
}

func FuzzParser(f *testing.F) {
	tooltest.Fuzz(f, Tool)
}

func BenchmarkBlock(b *testing.B) {
	lines := tooltest.Lines(tool.Stdout, []byte(sample))
	p := NewParser()
	emit := func(*tool.Report) {}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		p.Parse(lines[i], emit)
		if i++; i == len(lines) {
			i = 0
		}
	}
}
