package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// caseRun is what is expected of a run. A zero value is not compared; noRate and noLatency are unknown values.
type caseRun struct {
	title, verb, workload, result string
	threads                       int
	tps, latency                  float64 // latency is the headline in seconds
	seconds, covered, failed      float64
	reads                         float64
	errors                        float64
	labels                        string // name=value, separated by blanks
	start                         rundir.StartSource
	intervals, monitors, dumps    int // files
}

const noRate, noLatency = -1, -1

// publicCases are logs from public issues, articles and repositories, as people keep and paste them, with the values
// that their text shows. Names and addresses are replaced; lines around quoted ones were added in the tool's form.
var publicCases = []struct {
	folder string
	left   string // why nothing is imported
	runs   []caseRun
}{
	{folder: "serverscamp", runs: []caseRun{
		{title: "bench100/run1 32 threads", workload: "tpcb-like", threads: 32, tps: 3976.442323, latency: 0.008047, labels: "scale=100 protocol=prepared jobs=4", start: rundir.StartFromLog, intervals: 4},
		{title: "bench100/run2 32 threads", tps: 3967.670593, intervals: 4},
		{title: "bench1000/run1 32 threads", tps: 2577.79961, labels: "scale=1000", intervals: 4},
	}},
	{folder: "sb05-underflow", runs: []caseRun{{threads: 16, tps: 1394.53, latency: 0.01553, labels: "rate=1500"}}},
	{folder: "sb-memory-zero", runs: []caseRun{{workload: "memory", latency: noLatency}}},
	{folder: "sbtpcc-errs", runs: []caseRun{{threads: 56, tps: 45.802, seconds: 97, covered: 5}}},
	{folder: "sb-rate-1011", runs: []caseRun{{tps: 30.94, labels: "rate=100"}}},
	{folder: "ycsb-ms", runs: []caseRun{
		{title: "a.log", workload: "workloada", tps: 98.911968, latency: 0.001, result: "succeeded", labels: "binding=BasicDB"},
		{title: "no-banner.log", tps: 98.911968, latency: 0.001, result: "succeeded"},
	}},
	{folder: "ycsb-redis-hist", runs: []caseRun{{tps: 47865.211564, latency: 0.004}}},
	{folder: "gotpc-pr12", left: "no tool's output was recognised"},
	{folder: "pgbench-92", runs: []caseRun{{workload: "tpcb-like", threads: 1, tps: 108.83263, latency: 0.009188}}},
	{folder: "pgbench-nancy", runs: []caseRun{{workload: "select-only", tps: 47300.265299, latency: 0.000169, labels: "scale=50 transactions=100000"}}},
	{folder: "koding-pgbench", runs: []caseRun{{threads: 16, tps: 589.544342, latency: noLatency, labels: "scale=32"}}},
	{folder: "sb-fileio", runs: []caseRun{
		{title: "async-169.log 32 threads", workload: "fileio", tps: noRate},
		{title: "sb0412-12.log 4 threads", tps: 91.6, latency: 0.05147},
		{title: "sb10-old-72.log 8 threads", reads: 8259.22, latency: 0.00054},
		{title: "summary-only-99.log", tps: 34817.3548},
	}},
	{folder: "tpcc-tidb-nan", runs: []caseRun{{result: "failed", failed: 1, errors: 57}}},
	{folder: "tpcc-issue16", runs: []caseRun{{threads: 1, labels: "warehouses=1 ramp_up_seconds=10"}}},
	{folder: "tpcc-annotated", runs: []caseRun{{threads: 10, tps: (157.05 + 160.9) / 2, labels: "warehouses=10 ramp_up_seconds=100"}}},
	{folder: "ycsb-cpp", left: "no tool's output was recognised"},
	{folder: "goycsb-old", runs: []caseRun{
		{title: "goycsb268.log", tps: 702.959063, labels: "recordcount=1000000"},
		{title: "tikv10586.log", tps: 9148.025, failed: 0.0279},
	}},
	{folder: "gotpc-2020", runs: []caseRun{
		{title: "three-runs.log", workload: "tpcc", failed: 0.027}, {title: "three-runs.log 4 threads", workload: "tpcc", threads: 4},
		{title: "tpcc.log", failed: 0.0244}, {title: "tpch.log", workload: "tpch"},
	}},
	{folder: "sb-tikv-fatal", runs: []caseRun{{result: "failed", threads: 512, tps: 3349.5025}}},
	{folder: "sb-mongo", runs: []caseRun{{title: "a.log 10 threads", tps: 85.61}, {title: "unindented.log 10 threads", tps: 85.61}}},
	{folder: "pgbench-stalled", runs: []caseRun{{latency: noLatency}}},
	{folder: "pgbench-hugo", left: "source code, SQL, a document or a table"},
	{folder: "sb-mac-479", runs: []caseRun{{workload: "cpu", tps: 13373155.28, latency: 2.7856e-08}}},
	{folder: "kinvolk-dstat", runs: []caseRun{{threads: 32, tps: 11310.42, latency: 0.00291}}},
	{folder: "percona-dstat", runs: []caseRun{{threads: 112, tps: 5930.71, start: rundir.StartFromBeside, monitors: 1}}},
	{folder: "dstat-csv", runs: []caseRun{{start: rundir.StartFromBeside, monitors: 1}}},
	{folder: "dstat-two", runs: []caseRun{{start: rundir.StartFromBeside, monitors: 1}}},
	{folder: "vmstat-res", runs: []caseRun{{start: rundir.StartFromFile, monitors: 1}}},
	{folder: "pxc-156", runs: []caseRun{{result: "failed", tps: 380.11, errors: 1248}}},
	{folder: "status-overflow", runs: []caseRun{{dumps: 2}}},
	{folder: "load-verb", runs: []caseRun{
		{title: "go-tpc-1.0.12-master_prepare-w1.log", verb: "prepare", workload: "tpcc"},
		{title: "goycsb-load.log 4 threads", verb: "load", workload: "core", result: "succeeded"},
		{title: "sysbench-1.0.20_prepare-oltp_read_write-t2.log", verb: "prepare", result: "succeeded"},
		{title: "tpcc-mysql-2017-01_load-w1.log", verb: "load", result: "succeeded", labels: "warehouses=1"},
		{title: "ycsb-0.17.0_jdbc-load-a-t10-int1.log 10 threads", verb: "load", workload: "workloada", result: "succeeded", tps: 382.8973, seconds: 15.67},
	}},
	{folder: "other-tools", left: "no tool's output was recognised"},
	{folder: "fileio-two", runs: []caseRun{{title: "ext4.log 8 threads", reads: 1000.5}, {title: "xfs.log 8 threads", reads: 2000.75}}},
	{folder: "pasted-indented", runs: []caseRun{
		{title: "notes.txt (1 of 2) 8 threads", workload: "tpcb-like", threads: 8, tps: 803.714402, latency: 0.009951, seconds: 30, labels: "scale=50 jobs=2"},
		{title: "notes.txt (2 of 2) 8 threads", tps: 2809.500113, latency: 0.002849, seconds: 20},
		{title: "report.txt", tps: 114.5, latency: 0.01421, seconds: 60.0088},
	}},
	{folder: "pasted-quoted", runs: []caseRun{
		{title: "bold.txt 4 threads", tps: 20444.25, labels: "scale=20 protocol=prepared"},
		{title: "comments.txt (1 of 2) 4 threads", workload: "select-only", tps: 20222.5}, {title: "comments.txt (2 of 2) 4 threads", tps: 20333.25},
		{title: "mail.txt 4 threads", tps: 20111.5, labels: "scale=20"},
	}},
	{folder: "pasted-remarks", runs: []caseRun{{threads: 4, tps: 4012.5, latency: 0.00199, seconds: 60.01, result: "succeeded"}}},
	{folder: "tickets", runs: []caseRun{
		{title: "bold.txt", workload: "core", tps: 500, latency: 0.003265, seconds: 100.5, result: "succeeded"},
		{title: "excerpts.txt (1 of 2) 56 threads", tps: 2200, covered: 2}, {title: "excerpts.txt (2 of 2) 56 threads", tps: 1060, covered: 2},
		{title: "patch.txt 200 threads", tps: 1163.85},
		{title: "second.txt 32 threads", tps: 5200, covered: 3},
		{title: "slap.txt 100 threads", tps: 400, seconds: 0.5}, {title: "slap.txt 50 threads", threads: 50, tps: noRate},
	}},
	{folder: "pasted-commands", runs: []caseRun{
		{title: "notes.txt 8 threads", workload: "oltp_read_write", threads: 8, tps: 215, labels: "tables=10 table_size=100000"},
		{title: "notes.txt 16 threads", threads: 16, tps: 415},
		{title: "notes.txt 8 threads", workload: "select-only", threads: 8, tps: 2628, labels: "jobs=4 max_tries=3"},
	}},
	{folder: "excerpts", runs: []caseRun{
		{title: "pgbench.txt (1 of 4) 4 threads", tps: 2514.5}, {title: "pgbench.txt (2 of 4)", tps: 2577.75},
		{title: "pgbench.txt (3 of 4)", tps: 2761.5}, {title: "pgbench.txt (4 of 4)", tps: 2883.25},
		{title: "sysbench.txt (1 of 3)", tps: 5512.25}, {title: "sysbench.txt (2 of 3)", tps: 6012.5}, {title: "sysbench.txt (3 of 3)", tps: 7012.75},
	}},
	{folder: "two-tools", runs: []caseRun{
		{title: "all.txt 4 threads", tps: 3512.5}, {title: "all.txt 16 threads", workload: "core", tps: 100000 / 10.105},
		{title: "all.txt 4 threads", workload: "select-only", tps: 1512.25},
	}},
	{folder: "gotpc-mean", runs: []caseRun{{latency: 4878.1 / 21500}}},
	{folder: "k6", left: "no tool's output was recognised"},
}

func TestPublicCases(t *testing.T) {
	t.Parallel()
	for _, c := range publicCases {
		t.Run(c.folder, func(t *testing.T) {
			t.Parallel()
			imported, rows, message := importCase(t, c.folder)
			if c.left != "" {
				if len(imported) > 0 || !strings.Contains(message, c.left) {
					t.Errorf("imported %d runs, %q; want %q", len(imported), message, c.left)
				}
				return
			}
			if len(imported) != len(c.runs) {
				t.Fatalf("%d runs, want %d: %s", len(imported), len(c.runs), message)
			}
			for i, want := range c.runs {
				want.check(t, &imported[i], rows[imported[i].ID])
			}
		})
	}
}

// The 15 runs of one file of pgbench's summaries have the rates that they print.
func TestManyPrintedRuns(t *testing.T) {
	t.Parallel()
	imported, rows, _ := importCase(t, "supabase-pgbench")
	text, err := os.ReadFile("testdata/cases/supabase-pgbench/PGBENCH_GET_SINGLE.txt")
	if err != nil {
		t.Fatal(err)
	}
	printed := strings.Split(string(text), "tps = ")
	if len(imported) != 15 || len(printed) != 31 {
		t.Fatalf("%d runs, %d rates", len(imported), len(printed)-1)
	}
	for i, run := range imported {
		if tps, _, _ := strings.Cut(printed[2*i+2], " "); jsonText(rows[run.ID]["transactions_per_second"]) != strings.TrimRight(tps, "0") {
			t.Errorf("run %d: %v, printed %s", i, rows[run.ID]["transactions_per_second"], tps)
		}
	}
}

// Every prefixed form of one log is the same run.
func TestPrefixedCases(t *testing.T) {
	t.Parallel()
	imported, rows, message := importCase(t, "prefixes")
	if len(imported) != 13 || !strings.Contains(message, "1 file with UTF-16 text") {
		t.Fatalf("%d runs, %s", len(imported), message)
	}
	for _, run := range imported {
		(&caseRun{threads: 4, tps: 376.71, latency: 0.05289, result: "succeeded", seconds: 10.0074}).check(t, &run, rows[run.ID])
	}
}

func jsonText(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// importCase imports a folder and returns the runs, what `runs` shows of them by id, and the messages.
func importCase(t *testing.T, folder string) (runs []imported, rows map[string]map[string]any, message string) {
	t.Helper()
	data := t.TempDir()
	call := func(to any, args ...string) string {
		var out, messages bytes.Buffer
		Main(append(args, "--data-dir="+data, "--format=json"), Streams{In: strings.NewReader(""), Out: &out, Err: &messages})
		if out.Len() > 0 {
			if err := json.Unmarshal(out.Bytes(), to); err != nil {
				t.Fatalf("%v: %v: %s", args, err, &out)
			}
		}
		return messages.String()
	}
	var list []map[string]any
	message = call(&runs, "runs", "import", filepath.Join("testdata/cases", folder))
	call(&list, "runs")
	rows = map[string]map[string]any{}
	for _, row := range list {
		rows[row["id"].(string)] = row
	}
	return runs, rows, message
}

func (want *caseRun) check(t *testing.T, run *imported, row map[string]any) {
	t.Helper()
	text := func(what string, got any, want string) {
		if s, _ := got.(string); want != "" && s != want {
			t.Errorf("%s: %s %q, want %q", run.Title, what, s, want)
		}
	}
	number := func(what string, got any, want float64) {
		v, known := got.(float64)
		switch {
		case want == 0:
		case want == noRate && known:
			t.Errorf("%s: %s %v, want none", run.Title, what, v)
		case want != noRate && !(math.Abs(v-want) <= 0.002*want):
			t.Errorf("%s: %s %v, want %v", run.Title, what, got, want)
		}
	}
	text("title", run.Title, want.title)
	text("start", string(run.Start), string(want.start))
	text("verb", row["verb"], want.verb)
	text("workload", row["workload"], want.workload)
	text("result", row["result"], want.result)
	number("threads", row["threads"], float64(want.threads))
	number("tps", row["transactions_per_second"], want.tps)
	number("duration", row["duration_seconds"], want.seconds)
	number("covered seconds", row["covered_seconds"], want.covered)
	number("failed share", row["failed_share"], want.failed)
	number("reads", row["reads_per_second"], want.reads)
	number("errors", row["errors"], want.errors)
	latencies, _ := row["latency_seconds"].(map[string]any)
	headline := latencies["p95"]
	for _, stat := range []string{"p99", "avg"} {
		if headline == nil {
			headline = latencies[stat]
		}
	}
	number("latency", headline, want.latency)
	labels, _ := row["labels"].(map[string]any)
	for label := range strings.FieldsSeq(want.labels) {
		name, value, _ := strings.Cut(label, "=")
		text("label "+name, labels[name], value)
	}
	for _, files := range []struct {
		what      string
		got, want int
	}{{"interval logs", len(run.Intervals), want.intervals}, {"monitor logs", len(run.MonitorLogs), want.monitors}, {"dumps", len(run.Dumps), want.dumps}} {
		if files.got != files.want {
			t.Errorf("%s: %d %s, want %d", run.Title, files.got, files.what, files.want)
		}
	}
}
