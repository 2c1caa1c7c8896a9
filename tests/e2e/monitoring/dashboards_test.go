//go:build e2e

package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
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
	Foreign   []string          `json:"foreign,omitempty"`
}

// monitored is the complete monitoring, with the configuration and rules of the project.
type monitored struct {
	*agents.Agent
	agents.Prometheus
	*servers.Monitoring
}

func startMonitoring(t *testing.T, grafanaAddress string) *monitored {
	t.Helper()
	m, err := servers.StartMonitoring(t.Context(), filepath.Join(t.TempDir(), "monitoring"), env.Cluster, servers.MonitoringOptions{
		Cluster: "e2e", Binary: env.Binary, Attached: true,
		Grafana: servers.Grafana{URL: "http://" + grafanaAddress, Token: grafanaToken},
	})
	must(t, err)
	t.Cleanup(func() { must(t, m.Stop(context.Background())) })
	return &monitored{
		Agent:      &agents.Agent{Binary: env.Binary, Config: m.Dir + "/benchwatch.yml", DataDir: m.Dir + "/data", Address: m.Agent()},
		Prometheus: agents.Prometheus{Address: m.Prometheus()},
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
	agents.Wait(t, 60*time.Second, expression, func() error {
		v, err := m.Query(expression)
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
	address := agents.FreeAddress(t)
	g.serve(t, address)
	m := startMonitoring(t, address)

	const first, second, live = "dashboards-t2", "dashboards-t8", "dashboards-live"
	m.finish(t, first, "--threads=2", "--time=5", "--rate=100")
	// Until the exporters have been scraped twice the hosts have no data.
	m.has(t, "instance:node_cpu_utilisation:rate20s")
	// The CPU of a run is known after 20 s.
	m.finish(t, second, "--threads=8", "--time=25", "--rate=200")
	m.slowed(t, live)
	now := time.Now()
	m.interrupt(t, live)
	alone := m.withoutAgent(t)

	m.testDashboards(t, "^TestPanelsReturnData$|^TestMetricsAreExposed$", []window{
		{Name: "live", From: now.Add(-15 * time.Minute), To: now},
		m.opened(t, second),
		{Name: "exporters alone", From: alone.Add(-withoutAgentFor), To: alone, Partial: true},
	})
}

// Two runs at the same time on two clusters, which one agent samples and one Prometheus
// records: no panel and no annotation of a run shows the other one's servers, neither live nor
// when both have ended, although a node of one cluster is slow and alerts fire.
func TestDashboardsOfTwoClusters(t *testing.T) {
	var g grafana
	address := agents.FreeAddress(t)
	g.serve(t, address)
	m := startMonitoring(t, address)
	pair := startCluster(t, 2)
	config, err := os.ReadFile(m.Config)
	must(t, err)
	second, own := "targets:\n", map[string][]string{}
	for n := 1; n <= pair.N; n++ {
		second += fmt.Sprintf("  - {name: p%d, engine: mysql, cluster: pair, address: '%s', user: monitor, password_file: %s/monitor.password}\n", n, pair.Address(n), pair.Dir)
		own["on-pair"] = append(own["on-pair"], fmt.Sprintf("p%d", n), pair.Address(n))
	}
	for n := 1; n <= env.Cluster.N; n++ {
		own["on-galera"] = append(own["on-galera"], fmt.Sprintf("n%d", n), env.Cluster.Address(n))
	}
	own["on-pair"], own["on-galera"] = append(own["on-pair"], "pair", "on-pair"), append(own["on-galera"], "e2e", "on-galera")
	must(t, os.WriteFile(m.Config, []byte(strings.Replace(string(config), "targets:\n", second, 1)), 0o600))
	must(t, m.ReloadAgent())
	m.has(t, `benchwatch_db_up{target="p2"}`)

	wrappers := []*agents.Process{
		m.Run(t, "on-galera", options("--threads=4", "--time=35")...), m.Run(t, "on-pair", writing(pair, 35, "run")...),
	}
	must(t, env.Cluster.Limit(t.Context(), 3, 5))
	defer func() { must(t, env.Cluster.Unlimit(context.Background(), 3)) }()
	m.has(t, `run_nodename_role:node_cpu_utilisation:rate20s{run="on-pair"}`)
	m.has(t, `run:benchwatch_galera_flow_control_paused:ratio_rate15s{run="on-galera"}`)
	windows := func(when string) (all []window) {
		for id, other := range map[string]string{"on-galera": "on-pair", "on-pair": "on-galera"} {
			meta := m.Meta(t, id)
			all = append(all, window{
				Name: id + " " + when, From: meta.StartedAt, To: time.Now(), Foreign: own[other],
				Variables: map[string]string{"run": id, "direct": id, "proxied": id, "baseline": id},
			})
		}
		return all
	}
	live := windows("live")
	for _, w := range wrappers {
		if status := w.Status(t, 60*time.Second); status != 0 {
			t.Errorf("benchwatch run exited with %d:\n%s", status, w.Output(t))
		}
	}
	must(t, env.Cluster.Unlimit(t.Context(), 3))
	for id := range own {
		m.Closed(t, id, 60*time.Second)
		m.has(t, fmt.Sprintf(`run:benchwatch_run_summary_latency_seconds:headline{run=%q}`, id))
	}
	m.testDashboards(t, "^TestPanelsShowOnlyTheRun$", append(live, windows("over")...))
	for id, foreign := range map[string][]string{"on-galera": own["on-pair"], "on-pair": own["on-galera"]} {
		for _, a := range g.of(id) {
			for _, name := range foreign {
				if slices.ContainsFunc(a.Tags, func(tag string) bool { return strings.HasSuffix(tag, ":"+name) }) {
					t.Errorf("a marker of %s is about %s: %q %q", id, name, a.Tags, a.Text)
				}
			}
		}
	}
}

// options returns the load for the dashboards.
func options(more ...string) []string {
	return append(env.Sysbench("oltp_write_only", "--report-interval=1"), append(more, "run")...)
}

// finish runs a benchmark to its end.
func (m *monitored) finish(t *testing.T, id string, more ...string) {
	t.Helper()
	wrapper := m.Run(t, id, options(more...)...)
	if status := wrapper.Status(t, 60*time.Second); status != 0 {
		t.Fatalf("benchwatch run exited with %d:\n%s", status, wrapper.Output(t))
	}
	m.Closed(t, id, 60*time.Second)
	m.has(t, fmt.Sprintf(`benchwatch_run_drain_seconds{run=%q,target="n2"}`, id))
	m.has(t, fmt.Sprintf(`run:benchwatch_run_summary_latency_seconds:headline{run=%q}`, id))
}

// opened returns the window in which the table of the dashboard Runs opens a run, with the
// servers selected one by one.
func (m *monitored) opened(t *testing.T, id string) window {
	t.Helper()
	meta := m.Meta(t, id)
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
	m.Run(t, id, options("--threads=8", "--time=120")...)
	if out, err := exec.Command(env.Binary, "mark", "--config.file="+m.Config, "--run="+id, "n3 becomes slow").CombinedOutput(); err != nil {
		t.Fatalf("mark: %v\n%s", err, out)
	}
	must(t, env.Cluster.Limit(t.Context(), 3, 2))
	defer func() { must(t, env.Cluster.Unlimit(t.Context(), 3)) }()
	m.has(t, `target:benchwatch_galera_flow_control_sent:share_rate30s{target="n3"} > 0.5`)
	m.has(t, `ALERTS{alertname="GaleraFlowControlHigh",alertstate="firing"}`)
	m.has(t, fmt.Sprintf(`benchwatch_run_active{run=%q} == 1`, id))
}

func (m *monitored) interrupt(t *testing.T, id string) {
	t.Helper()
	if err := syscall.Kill(m.Meta(t, id).PID, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	m.Closed(t, id, 60*time.Second)
}

// withoutAgentFor is long enough for a rate of what is scraped every five seconds.
const withoutAgentFor = 25 * time.Second

// withoutAgent stops the agent and returns a time before which Prometheus only has data of the
// exporters for a while.
func (m *monitored) withoutAgent(t *testing.T) time.Time {
	t.Helper()
	must(t, m.StopAgent())
	// The series end with the first scrape that fails, some seconds after their last sample on a full machine.
	m.hasSeries(t, fmt.Sprintf("last_over_time(benchwatch_db_up[%s])", withoutAgentFor+5*time.Second), false)
	return time.Now()
}

// testDashboards runs the tests of the dashboards against this Prometheus.
func (m *monitored) testDashboards(t *testing.T, tests string, windows []window) {
	t.Helper()
	text, err := json.Marshal(windows)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-count=1", "-run", tests, ".")
	cmd.Dir = filepath.Join(env.Root, "tests", "dashboards")
	cmd.Env = append(os.Environ(), "PROMETHEUS_URL=http://"+m.Prometheus.Address, "PROMETHEUS_WINDOWS="+string(text),
		"PROMETHEUS_DASHBOARDS=live-run,runs,galera,mysql,agent")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("dashboards: %v\n%s", err, out)
	}
}
