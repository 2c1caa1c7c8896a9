//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/servers"
)

// window is a time range, and the values of variables, for which the queries of dashboards
// are run. tests/dashboards reads it.
type window struct {
	Name      string            `json:"name"`
	From      time.Time         `json:"from"`
	To        time.Time         `json:"to"`
	Variables map[string]string `json:"variables,omitempty"`
	Partial   bool              `json:"partial,omitempty"`
}

// monitored is the complete monitoring, with the configuration and rules of the project.
type monitored struct {
	*agent
	prometheus
	*servers.Monitoring
}

func startMonitoring(t *testing.T, grafanaAddress string) *monitored {
	t.Helper()
	m, err := servers.StartMonitoring(t.Context(), filepath.Join(t.TempDir(), "monitoring"), env.cluster, servers.MonitoringOptions{
		Cluster: "e2e", Binary: env.binary, Attached: true,
		Grafana: servers.Grafana{URL: "http://" + grafanaAddress, Token: grafanaToken},
	})
	must(t, err)
	t.Cleanup(func() { must(t, m.Stop(context.Background())) })
	return &monitored{
		agent:      &agent{config: m.Dir + "/benchwatch.yml", dataDir: m.Dir + "/data", address: m.Agent()},
		prometheus: prometheus{address: m.Prometheus()},
		Monitoring: m,
	}
}

// has waits until an expression has a series.
func (m *monitored) has(t *testing.T, expression string) {
	t.Helper()
	m.hasSeries(t, expression, true)
}

func (m *monitored) hasSeries(t *testing.T, expression string, want bool) {
	t.Helper()
	wait(t, 60*time.Second, expression, func() error {
		v, err := m.query(expression)
		if err == nil && (len(v) > 0) != want {
			err = fmt.Errorf("have %v", v)
		}
		return err
	})
}

// The panels of the dashboards for a Galera cluster have data during a run and for a
// finished run, and Prometheus refuses no query of any dashboard.
func TestDashboardsHaveData(t *testing.T) {
	var g grafana
	address := freeAddress(t)
	g.serve(t, address)
	m := startMonitoring(t, address)

	const first, second, live = "dashboards-t2", "dashboards-t8", "dashboards-live"
	m.finish(t, first, "--threads=2", "--time=5")
	// Until the exporters have been scraped twice the hosts have no data.
	m.has(t, "instance:node_cpu_utilisation:rate20s")
	m.finish(t, second, "--threads=8", "--time=6", "--rate=200")
	m.slowed(t, live)
	now := time.Now()
	m.interrupt(t, live)
	alone := m.withoutAgent(t)

	m.testDashboards(t, []window{
		{Name: "live", From: now.Add(-15 * time.Minute), To: now},
		m.opened(t, second),
		{Name: "exporters alone", From: alone.Add(-time.Minute), To: alone, Partial: true},
	})
}

// options returns the load for the dashboards.
func options(more ...string) []string {
	return append(sysbench("oltp_write_only", "--report-interval=1"), append(more, "run")...)
}

// finish runs a benchmark to its end.
func (m *monitored) finish(t *testing.T, id string, more ...string) {
	t.Helper()
	wrapper := m.run(t, id, options(more...)...)
	if status := wrapper.status(t, 60*time.Second); status != 0 {
		t.Fatalf("benchwatch run exited with %d:\n%s", status, wrapper.output(t))
	}
	m.closed(t, id, 60*time.Second)
	m.has(t, fmt.Sprintf(`benchwatch_run_drain_seconds{run=%q,target="n2"}`, id))
	m.has(t, fmt.Sprintf(`run:benchwatch_run_summary_latency_seconds:headline{run=%q}`, id))
}

// opened returns the window in which the table of the dashboard Runs opens a run, with the
// servers selected one by one.
func (m *monitored) opened(t *testing.T, id string) window {
	t.Helper()
	meta := m.meta(t, id)
	drained := 0.0
	for _, d := range meta.Drain {
		if d.Seconds != nil {
			drained = max(drained, *d.Seconds)
		}
	}
	complete := meta.EndedAt.Add(time.Duration((drained + 10) * float64(time.Second)))
	return window{Name: "finished", From: meta.StartedAt, To: complete,
		Variables: map[string]string{"run": id, "cluster": "e2e", "target": "(n1|n2|n3)"}}
}

// slowed starts a run, marks it, and slows a node down until an alert fires.
func (m *monitored) slowed(t *testing.T, id string) {
	t.Helper()
	m.run(t, id, options("--threads=8", "--time=120")...)
	if out, err := exec.Command(env.binary, "mark", "--config.file="+m.config, "--run="+id, "n3 becomes slow").CombinedOutput(); err != nil {
		t.Fatalf("mark: %v\n%s", err, out)
	}
	must(t, env.cluster.Limit(t.Context(), 3, 5))
	defer func() { must(t, env.cluster.Unlimit(t.Context(), 3)) }()
	m.has(t, `target:benchwatch_galera_flow_control_sent:share_rate30s{target="n3"} > 0.5`)
	m.has(t, `ALERTS{alertname="GaleraFlowControlHigh",alertstate="firing"}`)
	m.has(t, fmt.Sprintf(`benchwatch_run_active{run=%q} == 1`, id))
}

func (m *monitored) interrupt(t *testing.T, id string) {
	t.Helper()
	if err := syscall.Kill(m.meta(t, id).PID, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	m.closed(t, id, 60*time.Second)
}

// withoutAgent stops the agent and returns a time at which Prometheus only has data of the
// exporters.
func (m *monitored) withoutAgent(t *testing.T) time.Time {
	t.Helper()
	must(t, m.StopAgent())
	m.hasSeries(t, "benchwatch_db_up", false)
	return time.Now()
}

// testDashboards runs the tests of the dashboards against this Prometheus.
func (m *monitored) testDashboards(t *testing.T, windows []window) {
	t.Helper()
	text, err := json.Marshal(windows)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestPanelsReturnData$|^TestMetricsAreExposed$", ".")
	cmd.Dir = filepath.Join(env.root, "tests", "dashboards")
	cmd.Env = append(os.Environ(), "PROMETHEUS_URL=http://"+m.prometheus.address, "PROMETHEUS_WINDOWS="+string(text),
		"PROMETHEUS_DASHBOARDS=live-run,runs,galera,mysql,agent")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("dashboards: %v\n%s", err, out)
	}
}
