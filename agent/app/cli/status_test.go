package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// metricOf finds a metric of an engine, which are not exported.
func metricOf(t *testing.T, name string) *measure.Metric {
	t.Helper()
	for _, m := range measure.Metrics() {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no metric %s", name)
	return nil
}

// TestStatusLine guards the documented fields, that commits are the best ones that a server reports, and that no share
// of time is above 1.
func TestStatusLine(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	target := &engine.Target{Name: "n1"}
	sample := func(second float64) *engine.Sample {
		s := &engine.Status{}
		s.Set(engine.QueriesTotal, 1000*second)
		s.Set(engine.CommitsTotal, 0)
		s.Set(engine.RollbacksTotal, 0)
		s.Set(metricOf(t, "galera_local_commits_total"), 50*second)
		s.Set(metricOf(t, "galera_flow_control_paused_seconds_total"), 1.2*second)
		s.Set(engine.Connections, 12)
		tick := at.Add(time.Duration(second) * time.Second)
		return &engine.Sample{Target: target, Tick: tick, Answered: tick, Status: s}
	}
	line := newStatusLine(sample(0), sample(1))
	data, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conforms("status", data); err != nil {
		t.Error(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"time": "2026-11-21T12:00:01Z", "target": "n1", "up": true, "queries_per_second": 1000.0, "commits_per_second": 50.0, "rollbacks_per_second": 0.0,
		"ended_transactions_per_second": 50.0, "connections": 12.0, "flow_control_ratio": 1.0, "restarts": 0.0,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var b strings.Builder
	writeHeader(&b, statusMeasures(), len("n1"))
	line.write(&b, statusMeasures(), len("n1"))
	head, row, _ := strings.Cut(b.String(), "\n")
	if want := "Time Target QPS Commit Rollback TPS Conn Run RTT(ms) Paused Lag(trx) Lag(s) Queue"; strings.Join(strings.Fields(head), " ") != want {
		t.Errorf("head %q", head)
	}
	if fields := strings.Fields(row); strings.Join(fields[1:], " ") != "n1 1000 50 0 50 12 - - 100% - - -" {
		t.Errorf("row %q", row)
	}
	for width, want := range map[int]string{
		0:   "QPS Commit Rollback TPS Conn Run RTT(ms) Paused Lag(trx) Lag(s) Queue",
		300: "QPS Commit Rollback TPS Conn Run RTT(ms) Paused Lag(trx) Lag(s) Queue",
		80:  "QPS Commit Rollback TPS Conn Paused",
		60:  "QPS Commit Conn Paused",
		40:  "QPS Paused",
		10:  "QPS",
	} {
		var b strings.Builder
		columns := fitting([]statusLine{line}, width, len("Target"))
		writeHeader(&b, columns, len("Target"))
		if got := strings.Join(strings.Fields(b.String())[2:], " "); got != want {
			t.Errorf("at a width of %d: %s", width, got)
		}
		if n := len(strings.TrimSuffix(b.String(), "\n")); n > max(width, 27) && width > 0 {
			t.Errorf("%d columns at a width of %d", n, width)
		}
	}
}

// TestStatusOfHosts guards that --hosts prints a line of this machine beside the servers',
// as text and as JSON, once with --once, also if the server is down.
func TestStatusOfHosts(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		config := filepath.Join(t.TempDir(), "benchwatch.yml")
		if err := os.WriteFile(config, []byte("targets:\n  - {name: dead, engine: mysql, address: '127.0.0.1:1', user: x}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, failed bytes.Buffer
		status := Main([]string{"status", "--config.file=" + config, "--hosts", "--interval=200ms", "--once", "--format=" + format}, Streams{Out: &out, Err: &failed})
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		of := func(mark string) (found []string) {
			for _, l := range lines {
				if strings.Contains(l, mark) {
					found = append(found, l)
				}
			}
			return found
		}
		if status == 0 || len(of("dead")) != 1 {
			t.Errorf("%s: exit status %d\n%s%s", format, status, &out, &failed)
		}
		switch format {
		case "text":
			if hosts := of("  host "); len(hosts) != 1 || !strings.Contains(hosts[0], ": busy ") || !strings.Contains(hosts[0], " %") {
				t.Errorf("%s", &out)
			}
		default:
			hosts := of(`"host":`)
			if len(hosts) != 1 {
				t.Fatalf("%s", &out)
			}
			if _, err := conforms("status", []byte(hosts[0])); err != nil {
				t.Error(err)
			}
			if !strings.Contains(hosts[0], `"cpu_busy_ratio":`) || strings.Contains(hosts[0], `"target"`) {
				t.Error(hosts[0])
			}
		}
	}
}
