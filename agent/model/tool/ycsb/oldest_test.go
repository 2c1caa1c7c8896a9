package ycsb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// TestOldestForm reads the sample in YCSB's own wiki, of version 0.1: milliseconds, no blank after some commas, and
// Return=0 for success (brianfrankcooper/YCSB#318).
func TestOldestForm(t *testing.T) {
	const log = "YCSB Client 0.1\nCommand line: -t -db com.yahoo.ycsb.BasicDB -P workloads/workloada -s\n[OVERALL],RunTime(ms), 10110\n" +
		"[OVERALL],Throughput(ops/sec), 98.91196834817013\n[UPDATE], Operations, 491\n[UPDATE], AverageLatency(ms), 0.054989816700611\n" +
		"[UPDATE], MinLatency(ms), 0\n[UPDATE], MaxLatency(ms), 1\n[UPDATE], 95thPercentileLatency(ms), 1\n[UPDATE], 99thPercentileLatency(ms), 1\n" +
		"[UPDATE], Return=0, 491\n[UPDATE], 0, 464\n[UPDATE], 1, 27\n[UPDATE], 2, 0\n"
	if Tool.Sniff([]byte(log)) < 90 {
		t.Error("not recognised")
	}
	var got []string
	tool.ParseAll(Tool.NewFront(tool.Description{}).Parser(), tool.Stdout, []byte(log), func(r *tool.Report) {
		got = append(got, string(tool.AppendJSON(nil, r)))
	})
	want := []string{
		`{"kind":"start","run":1,"tool":"ycsb","tool_version":"0.1","workload":"workloada","command":"run","labels":{"binding":"BasicDB"}}`,
		`{"kind":"histogram","run":1,"op":"update","cumulative":true,"buckets":[[0.001,464],[0.002,27]]}`,
		`{"kind":"summary","run":1,"elapsed_seconds":10.11,"checkpoint":false,"rates":{"transaction":98.91196834817013,"update":48.56577645895153},` +
			`"counts":{"transaction":1000,"update":491,"error":0},"latency_seconds":{"update":{"avg":0.000054989816700611,"min":0,"max":0.001,"p95":0.001,"p99":0.001}}}`,
	}
	if d := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); d != "" {
		t.Error(d)
	}
}
