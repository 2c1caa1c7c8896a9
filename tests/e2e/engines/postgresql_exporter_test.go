//go:build e2e || versions

package engines

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/need"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// exported are the values that both postgres_exporter and the agent have. Several series are added up; those of the
// database that the agent connects to are left out, since it reads there.
var exported = []struct {
	exporter, name string
	labels         []string
	within         float64
}{
	{`pg_stat_database_tup_inserted\{.*\}`, "postgresql_rows_total", []string{"others", "insert"}, 500},
	{`pg_stat_database_tup_updated\{.*\}`, "postgresql_rows_total", []string{"others", "update"}, 500},
	{`pg_stat_database_deadlocks\{.*\}`, "postgresql_deadlocks_total", []string{"others"}, 0},
	{`pg_stat_database_temp_bytes\{.*\}`, "postgresql_temporary_bytes_total", []string{"others"}, 0},
	{`pg_stat_archiver_archived_count\{.*\}`, "postgresql_wal_archived_total", []string{"archived"}, 0},
	{`pg_settings_max_connections\{.*\}`, "db_connections_limit", nil, 0},
	{`pg_settings_max_wal_size_bytes\{.*\}`, "postgresql_max_wal_size_bytes", nil, 0},
	{`pg_stat_bgwriter_checkpoints_req_total(?:\{.*\})?`, "postgresql_checkpoints_total", []string{"requested"}, 0},
	{`pg_stat_bgwriter_buffers_checkpoint_total(?:\{.*\})?`, "postgresql_buffers_written_total", []string{"checkpointer"}, 50},
	{`pg_stat_bgwriter_buffers_alloc_total(?:\{.*\})?`, "postgresql_buffers_allocated_total", nil, 200},
}

// exporterAgrees compares a tick with what postgres_exporter has at the same time. Debian's exporter does not know the
// views of version 17 and later, so its checkpoints are missing there.
func exporterAgrees(t *testing.T, s group, w *watcher) {
	t.Helper()
	need.Program(t, "prometheus-postgres-exporter")
	source, err := servers.ExporterSource(s.Group, 1)
	must(t, err)
	base, err := servers.FreePorts(1)
	must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", base+1)
	ctx, stop := context.WithCancel(t.Context())
	exporter := exec.CommandContext(ctx, "prometheus-postgres-exporter", "--web.listen-address="+address)
	exporter.Env = append(os.Environ(), "DATA_SOURCE_NAME="+source)
	must(t, exporter.Start())
	defer func() { stop(); _ = exporter.Wait() }()
	var text string
	for deadline := time.Now().Add(20 * time.Second); ; {
		if text, err = scrape(t.Context(), "http://"+address+"/metrics"); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		w.next()
	}
	f := w.next()
	compared := 0
	for _, e := range exported {
		want, found := 0.0, regexp.MustCompile(`(?m)^`+e.exporter+` (\S+)$`).FindAllStringSubmatch(text, -1)
		if found == nil {
			continue
		}
		for _, m := range found {
			if strings.Contains(m[0], `datname="postgres"`) {
				continue
			}
			v, err := strconv.ParseFloat(m[1], 64)
			must(t, err)
			want += v
		}
		compared++
		if got, ok := value(&f.Samples[0], e.name, e.labels...); !ok || math.Abs(got-want) > e.within {
			t.Errorf("%s%q is %v, the exporter has %v", e.name, e.labels, got, want)
		}
	}
	if compared < 6 {
		t.Errorf("only %d values compared with\n%.2000s", compared, text)
	}
}

func scrape(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}
