package benchbase

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

func parse(text string) string {
	return tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(text))).String()
}

// TestVariants reads what other versions and forks print.
func TestVariants(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"OLTPBench", `Benchmark:     TPCC {com.oltpbenchmark.benchmarks.tpcc.TPCCBenchmark}
02:24:40,148 (ThreadBench.java:341) INFO  - PHASE START :: [Workload=TPCC] [Serial=false] [Time=60] [WarmupTime=0] [Rate=10000] [Arrival=REGULAR] [Ratios=[45.0]] [ActiveWorkers=2]
02:24:40,150 (ThreadBench.java:492) INFO  - MEASURE :: Warmup complete, starting measurements.
02:25:40,167 (DBWorkload.java:861) INFO  - Rate limited reqs/s: Results(nanoSeconds=60000641400, measuredRequests=1235) = 20.583113299852158 requests/sec
`, `{"kind":"start","run":1,"tool":"benchbase","workload":"tpcc","command":"run","threads":2,"phase":"warmup"}
{"kind":"summary","run":1,"elapsed_seconds":60.0006414,"threads":2,"checkpoint":false,"rates":{"transaction":20.583113299852158},"counts":{"transaction":1235}}
lines: 4 reported, 0 ignored, 0 malformed
`},
		{"a fork with tpmC", `18:01:57,149 (DBWorkload.java:895) INFO  - Rate limited reqs/s: Results(nanoSeconds=2000000000, measuredRequests=20) = 10.0 requests/sec
18:01:57,150 (DBWorkload.java:901) INFO  - TPM-C: 1273
`, `{"kind":"start","run":1,"tool":"benchbase"}
{"kind":"summary","run":1,"elapsed_seconds":2,"checkpoint":false,"rates":{"transaction":10},"counts":{"transaction":20},"tpmc":1273}
lines: 2 reported, 0 ignored, 0 malformed
`},
		{"two phases are one run", `[INFO ] 2026-11-27 14:33:29,379 [main]  a.B c - PHASE START :: [Workload=YCSB] [Rate=100] [ActiveWorkers=2]
[INFO ] 2026-11-27 14:33:29,379 [main]  a.B c - PHASE START :: [Workload=YCSB] [Rate=200] [ActiveWorkers=4]
`, `{"kind":"start","run":1,"tool":"benchbase","workload":"ycsb","command":"run","threads":2,"phase":"warmup"}
lines: 2 reported, 0 ignored, 0 malformed
`},
		{"only loaded", `Benchmark:                       TPCC {com.oltpbenchmark.benchmarks.tpcc.TPCCBenchmark}
Terminals:                       2
[INFO ] 2026-11-27 14:34:55,637 [main]  a.B main - Skipping benchmark workload execution
`, `{"kind":"start","run":1,"tool":"benchbase","workload":"tpcc","command":"load","threads":2}
lines: 3 reported, 0 ignored, 0 malformed
`},
		{"failed", `[INFO ] 2026-11-27 14:33:29,379 [main]  a.B c - PHASE START :: [Workload=YCSB] [ActiveWorkers=2]
[INFO ] 2026-11-27 14:34:29,379 [main]  a.B c - Rate limited reqs/s: Results(state=ERROR, nanoSeconds=1000000000, measuredRequests=3) = 3.0 requests/sec (throughput), 3.0 requests/sec (goodput)
[ERROR] 2026-11-27 14:34:29,380 [main]  a.B main - Unexpected error when executing benchmarks.
`, `{"kind":"start","run":1,"tool":"benchbase","workload":"ycsb","command":"run","threads":2,"phase":"warmup"}
{"kind":"error","run":1,"failed":true,"message":"Unexpected error when executing benchmarks."}
{"kind":"summary","run":1,"elapsed_seconds":1,"threads":2,"checkpoint":false,"rates":{"transaction":3},"counts":{"transaction":3},"failed":true,"message":"BenchBase ended in the state ERROR"}
lines: 3 reported, 0 ignored, 0 malformed
`},
	} {
		if diff := cmp.Diff(test.want, parse(test.text)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.name, diff)
		}
	}
}

func TestDamagedOutput(t *testing.T) {
	for _, text := range []string{
		"Throughput: many txn/sec\n", "Throughput: 12.0 t\n", "Rate limited reqs/s: Results(nanoSeconds=x, measuredRequests=1) = 1.0 requests/sec\n",
		"Rate limited reqs/s: Results(nanoSeconds=1, measuredReq\n", "Time (seconds),Requests,Throughput (requests/second)\n0,1,1\n1,1\n",
		"Time (seconds),Requests,Throughput (requests/second)\n1,1,1\n1,1,1\n", "Time (seconds),Requests,Throughput (requests/second)\n0,1,1\n1,-5,1\n",
	} {
		if res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(text))); res.Malformed != 1 {
			t.Errorf("%q: %s", text, res)
		}
	}
}

func TestSniff(t *testing.T) {
	tooltest.Sniffs(t, Tool, 90, tooltest.Cases(t, "testdata/*/*/stdout.txt"), "Throughput: 1 MB/s\n", "Benchmark: x\n")
}

func FuzzParser(f *testing.F) { tooltest.Fuzz(f, Tool) }

func TestNoAllocation(t *testing.T) {
	p := &Parser{}
	emit := func(*tool.Report) {}
	tool.ParseAll(p, tool.Stdout, []byte("Starting MonitorThread Interval [1000ms]\nThroughput: 0.0 txn/sec\n"), emit)
	line := tool.Line{Text: []byte("[INFO ] 2026-11-27 14:35:18,708 [Thread-4]  com.oltpbenchmark.api.collectors.monitoring.DatabaseMonitor run - Throughput: 393.0 txn/sec")}
	if n := testing.AllocsPerRun(100, func() { p.Parse(line, emit) }); n > 0 {
		t.Errorf("%v allocations per interval line", n)
	}
}

func BenchmarkInterval(b *testing.B) {
	p := &Parser{}
	emit := func(*tool.Report) {}
	line := tool.Line{Text: []byte("Throughput: 393.0 txn/sec")}
	b.ReportAllocs()
	for b.Loop() {
		p.Parse(line, emit)
	}
}
