package tidb

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recorded returns a recorded answer of a real server's status port.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".prom.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func describe(s *engine.Status) string {
	lines := make([]string, 0, len(s.Values))
	for _, v := range s.Values {
		lines = append(lines, fmt.Sprintf("%s%q %v", v.Metric.Name, v.Labels, v.V))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// Recorded answers of a real server under load.
func TestRecordedMetrics(t *testing.T) {
	for _, name := range []string{"metrics_start", "metrics_point_select_t5", "metrics_read_write_t5", "metrics_read_write_t10"} {
		t.Run(name, func(t *testing.T) {
			f, err := decode(bytes.NewReader(recorded(t, name)))
			if err != nil {
				t.Fatal(err)
			}
			var s engine.Status
			readFamilies(&s, f)
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(describe(&s)), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), describe(&s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Counted by hand in the recording: 49 + 5 texts and 310,736 executions were sent, 1,171 commits
// executed, nothing rolled back.
func TestQueriesAreTextAndPrepared(t *testing.T) {
	f, err := decode(bytes.NewReader(recorded(t, "metrics_read_write_t5")))
	if err != nil {
		t.Fatal(err)
	}
	var s engine.Status
	readFamilies(&s, f)
	enginetest.Want(t, &s, 310790, engine.QueriesTotal)
	enginetest.Want(t, &s, 1171, engine.CommitsTotal)
	enginetest.Absent(t, &s, engine.RollbacksTotal)
	enginetest.Want(t, &s, 303719, engine.OperationsTotal, "select")
	enginetest.Want(t, &s, 4, engine.Connections)
	enginetest.Want(t, &s, 1, engine.ThreadsRunning)
	enginetest.Want(t, &s, 103794962, engine.BytesTotal, "sent")
	enginetest.Want(t, &s, 5, commandErrors, "Query")
	enginetest.Absent(t, &s, statementSeconds, "internal")
}

// Labels differ between versions: existing ones are summed up.
func TestOtherVersionsLabels(t *testing.T) {
	f, err := decode(strings.NewReader(`tidb_server_query_total{result="OK",type="Query"} 10
tidb_server_query_total{result="OK",type="StmtExecute",resource_group="a"} 5
tidb_server_query_total{result="OK",type="StmtExecute",resource_group="b"} 2
tidb_executor_statement_total{type="Rollback",db="x"} 3
tidb_executor_statement_total{type="Rollback",db="y"} 4
tidb_server_connections 7
tidb_server_packet_io_bytes{type="read"} 100
tidb_server_packet_io_bytes{type="write"} 200
tidb_server_maxprocs NaN
`))
	if err != nil {
		t.Fatal(err)
	}
	var s engine.Status
	readFamilies(&s, f)
	enginetest.Want(t, &s, 17, engine.QueriesTotal)
	enginetest.Want(t, &s, 7, engine.RollbacksTotal)
	enginetest.Absent(t, &s, engine.CommitsTotal)
	enginetest.Want(t, &s, 7, engine.Connections)
	enginetest.Want(t, &s, 100, engine.BytesTotal, "received")
	enginetest.Want(t, &s, 200, engine.BytesTotal, "sent")
	enginetest.Absent(t, &s, cpuLimit)
	enginetest.Absent(t, &s, engine.ThreadsRunning)
}

// A server under load has a value for every measure of TiDB.
func TestMeasures(t *testing.T) {
	statuses := make([]engine.Status, 2)
	for i, name := range []string{"metrics_read_write_t5", "metrics_read_write_t10"} {
		f, err := decode(bytes.NewReader(recorded(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		readFamilies(&statuses[i], f)
	}
	enginetest.Measures(t, &statuses[0], &statuses[1], "queries", "commits", "connections", "threads_running", "server_latency",
		"process_cpu", "server_memory", "command_errors", "pessimistic_retries", "kv_backoffs", "plan_cache_hits")
}
