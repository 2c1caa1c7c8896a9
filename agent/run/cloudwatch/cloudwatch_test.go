package cloudwatch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// start is 20 s into a minute.
var start = time.Date(2026, 11, 21, 10, 0, 20, 0, time.UTC)

// historyOf returns a run of some seconds that uses a target.
func historyOf(t *testing.T, seconds int, target string) *record.History {
	t.Helper()
	dir := rundir.Directory(filepath.Join(t.TempDir(), "runs", "r"))
	if err := os.MkdirAll(string(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	end := start.Add(time.Duration(seconds) * time.Second)
	meta := fmt.Sprintf(`{"id":"r","title":"r","generator":"g","started_at":%q,"ended_at":%q,"closed_at":%q,"result":"succeeded","selection":{"targets":[%q]}}`,
		start.Format(time.RFC3339), end.Format(time.RFC3339), end.Format(time.RFC3339), target)
	if err := os.WriteFile(dir.Path(rundir.MetaFile), []byte(meta), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := record.Read(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// source is a Prometheus with this answer.
func source(t *testing.T, status int, body string) (*Source, *string) {
	t.Helper()
	asked := new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.FormValue("query")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return &Source{URL: server.URL, Instances: map[string]string{"rds1": "bench-1"}, Names: Names{
		Instance: "id", CPU: "cpu", ReadIOPS: "reads", WriteIOPS: "writes", ReadThroughput: "read", WriteThroughput: "written", QueueDepth: "queue",
	}}, asked
}

func seriesOf(name string, values ...any) string {
	var all []string
	for i := 0; i < len(values); i += 2 {
		all = append(all, fmt.Sprintf(`[%d,"%v"]`, start.Truncate(time.Minute).Unix()+int64(values[i].(int)), values[i+1]))
	}
	return fmt.Sprintf(`{"metric":{"__name__":%q,"id":"bench-1"},"values":[%s]}`, name, strings.Join(all, ","))
}

// TestAdd guards that whole minutes of the run count, each once, and that nothing is between two of them.
func TestAdd(t *testing.T) {
	s, asked := source(t, http.StatusOK, `{"status":"success","data":{"resultType":"matrix","result":[`+strings.Join([]string{
		seriesOf("cpu", 0, 10, 60, 40, 75, 40, 120, 60, 240, 99),
		seriesOf("reads", 60, 100, 120, 300), seriesOf("writes", 60, 50, 120, 50),
		seriesOf("read", 60, 4096, 120, 4096), seriesOf("queue", 60, 2.5, 120, "NaN"),
	}, ",")+`]}}`)
	h := historyOf(t, 230, "rds1") // until 10 s into the fifth minute
	if err := s.Add(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(*asked, `{__name__=~"cpu|reads|writes|read|written|queue", id="bench-1"}[`) {
		t.Error(*asked)
	}
	if len(h.Hosts) != 1 || h.Hosts[0].Host != "rds1" || !h.Hosts[0].Has(rundir.ServerHost) {
		t.Fatalf("%+v", h.Hosts)
	}
	one := h.Hosts[0]
	for id, want := range map[string]float64{"cpu_busy": 0.5, "disk_operations": 250, "disk_read_rate": 4096, "disk_queue": 2.5} {
		for _, m := range measure.All(measure.Host) {
			tally := one.Tally(m)
			if m.ID == id && tally.Mean() != want {
				t.Errorf("%s is %v, want %v", id, tally.Mean(), want)
			}
		}
	}
	if tally := one.Tally(host.Busy); tally.Count != 2 {
		t.Errorf("%d values of the CPU in four minutes of which two have one", tally.Count)
	}
	// A machine of the server that is in the record is not replaced.
	if err := s.Add(t.Context(), h); err != nil || len(h.Hosts) != 1 {
		t.Errorf("%v, %d machines", err, len(h.Hosts))
	}
}

// TestAddNothing guards what a user reads if there are no values.
func TestAddNothing(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		body, want string
		is         error
	}{
		"no series":      {http.StatusOK, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, "CPU and disks of rds1: no series of CloudWatch in Prometheus for bench-1 with a whole minute of the run", ErrNoSeries},
		"a short run":    {http.StatusOK, `{"status":"success","data":{"resultType":"matrix","result":[` + seriesOf("cpu", 0, 10, 240, 99) + `]}}`, "no series", ErrNoSeries},
		"refused":        {http.StatusBadRequest, `{"status":"error","error":"invalid parameter"}`, "ask Prometheus: invalid parameter", nil},
		"no Prometheus":  {http.StatusOK, "<html>", "ask Prometheus: not an answer of Prometheus", nil},
		"not authorised": {http.StatusUnauthorized, "no", "ask Prometheus: it answers 401 Unauthorized", nil},
	} {
		s, _ := source(t, c.status, c.body)
		h := historyOf(t, 230, "rds1")
		err := s.Add(t.Context(), h)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) || len(h.Hosts) != 0 {
			t.Errorf("%s: %v, %d machines", name, err, len(h.Hosts))
		}
	}
	s, asked := source(t, http.StatusOK, "")
	if err := s.Add(t.Context(), historyOf(t, 230, "other")); err != nil || *asked != "" {
		t.Errorf("%v, asked %q for a server that is not managed", err, *asked)
	}
	s.URL = "http://user:geheim@127.0.0.1:1"
	if err := s.Add(t.Context(), historyOf(t, 230, "rds1")); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
}
