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

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/measure"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recorded is what the status port of a real server answered.
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

func mustGet(t *testing.T, s *engine.Status, want float64, m *measure.Metric, labels ...string) {
	t.Helper()
	if v, ok := s.Get(m, labels...); !ok || v != want {
		t.Errorf("%s %v is %v (known: %v), not %v", m.Name, labels, v, ok, want)
	}
}

func mustLack(t *testing.T, s *engine.Status, m *measure.Metric, labels ...string) {
	t.Helper()
	if v, ok := s.Get(m, labels...); ok {
		t.Errorf("%s %v is %v, but is unknown", m.Name, labels, v)
	}
}

func describe(s *engine.Status) string {
	lines := make([]string, 0, len(s.Values))
	for _, v := range s.Values {
		lines = append(lines, fmt.Sprintf("%s%q %v", v.Metric.Name, v.Labels, v.V))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// The answers of a real server under load.
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

// By hand from the recording: 49 + 5 texts and 310,736 executions were asked,
// 1,171 commits executed, nothing rolled back.
func TestQueriesAreTextAndPrepared(t *testing.T) {
	f, err := decode(bytes.NewReader(recorded(t, "metrics_read_write_t5")))
	if err != nil {
		t.Fatal(err)
	}
	var s engine.Status
	readFamilies(&s, f)
	mustGet(t, &s, 310790, engine.QueriesTotal)
	mustGet(t, &s, 1171, engine.CommitsTotal)
	mustLack(t, &s, engine.RollbacksTotal)
	mustGet(t, &s, 303719, engine.OperationsTotal, "select")
	mustGet(t, &s, 4, engine.Connections)
	mustGet(t, &s, 1, engine.ThreadsRunning)
	mustGet(t, &s, 103794962, engine.BytesTotal, "sent")
	mustGet(t, &s, 5, commandErrors, "Query")
	mustLack(t, &s, statementSeconds, "internal")
}

// Labels changed over versions: sums over those that came.
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
	mustGet(t, &s, 17, engine.QueriesTotal)
	mustGet(t, &s, 7, engine.RollbacksTotal)
	mustLack(t, &s, engine.CommitsTotal)
	mustGet(t, &s, 7, engine.Connections)
	mustGet(t, &s, 100, engine.BytesTotal, "received")
	mustGet(t, &s, 200, engine.BytesTotal, "sent")
	mustLack(t, &s, cpuLimit)
	mustLack(t, &s, engine.ThreadsRunning)
}
