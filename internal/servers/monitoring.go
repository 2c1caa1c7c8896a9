package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Monitoring is Prometheus with the repository's rules, Alertmanager, exporters and the agent for a
// group of servers, in their own folder. DIR/benchwatch.yml is the agent's configuration.
type Monitoring struct {
	Dir string
	// Port is Prometheus's port. The next four are for Alertmanager, node_exporter, the agent and
	// our own Grafana; the exporters of the servers start at Port+6.
	Port int

	attached bool
}

// MonitoringOptions are the options for starting monitoring.
type MonitoringOptions struct {
	Port     int    // default: a free one
	Cluster  string // the agent's name for all servers; may be empty
	Binary   string // the benchwatch to run
	Grafana  Grafana
	Attached bool
}

// monitoringState is the state kept in the folder.
type monitoringState struct {
	Kind    Kind   `json:"kind"`
	Port    int    `json:"port"`
	Grafana string `json:"grafana,omitempty"` // URL of a foreign Grafana
	Filled  bool   `json:"filled,omitempty"`  // it contains our dashboards
}

const monitoring Kind = "monitoring"

// StartMonitoring starts the monitoring of a group of servers.
func StartMonitoring(ctx context.Context, dir string, g *Group, o MonitoringOptions) (_ *Monitoring, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	release, err := claim(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer release()
	state := monitoringState{Kind: monitoring, Port: o.Port, Grafana: o.Grafana.URL}
	if state.Port == 0 {
		base, err := FreePorts(6 + g.N)
		if err != nil {
			return nil, err
		}
		state.Port = base + 1
	}
	if err := writeState(dir, state); err != nil {
		return nil, err
	}
	m := &Monitoring{Dir: dir, Port: state.Port, attached: o.Attached}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.stopAll())
		}
	}()
	if err := m.configure(g, o); err != nil {
		return nil, err
	}
	if err := m.startExporters(ctx, g); err != nil {
		return nil, err
	}
	if err := m.daemon(ctx, "alertmanager", m.port(1), "/-/ready",
		"prometheus-alertmanager", "--config.file="+dir+"/alerts/alertmanager.yml",
		"--storage.path="+dir+"/alertmanager", "--cluster.listen-address=", "--log.level=warn"); err != nil {
		return nil, err
	}
	if err := m.daemon(ctx, "agent", m.port(3), "/-/ready", o.Binary, "agent", "--config.file="+dir+"/benchwatch.yml"); err != nil {
		return nil, err
	}
	if err := m.daemon(ctx, "prometheus", m.port(0), "/-/ready", "prometheus", "--config.file="+dir+"/prometheus/prometheus.yml",
		"--storage.tsdb.path="+dir+"/prometheus/data", "--log.level=warn"); err != nil {
		return nil, err
	}
	if o.Grafana.own {
		if err := m.startGrafana(ctx, &o.Grafana); err != nil {
			return nil, err
		}
	}
	if !o.Grafana.Fill {
		return m, nil
	}
	if err := o.Grafana.expectNoDemo(ctx); err != nil {
		return m, err
	}
	state.Filled = !o.Grafana.own
	return m, errors.Join(writeState(dir, state), m.fillGrafana(ctx, o.Grafana))
}

func (m *Monitoring) startExporters(ctx context.Context, g *Group) error {
	if err := m.daemon(ctx, "node_exporter", m.port(2), "/", "prometheus-node-exporter", "--log.level=warn"); err != nil {
		return err
	}
	for n := range g.exporters() {
		if err := m.exporter(ctx, g, n+1); err != nil {
			return err
		}
	}
	return nil
}

// OpenMonitoring returns the monitoring in a folder.
func OpenMonitoring(dir string) (*Monitoring, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var state monitoringState
	if err := readState(dir, &state); err != nil {
		return nil, err
	}
	if state.Kind != monitoring {
		return nil, fmt.Errorf("%s holds no monitoring", dir)
	}
	return &Monitoring{Dir: dir, Port: state.Port}, nil
}

func (m *Monitoring) port(i int) string { return address(m.Port + i) }

// Prometheus returns the address of Prometheus.
func (m *Monitoring) Prometheus() string { return m.port(0) }

// Agent returns the address of the agent.
func (m *Monitoring) Agent() string { return m.port(3) }

// Status returns a line for each program: its name and URL.
func (m *Monitoring) Status() (lines []string) {
	for i, name := range []string{"prometheus", "alertmanager", "node_exporter", "agent", "grafana"} {
		if m.process(name).pid() != 0 {
			lines = append(lines, fmt.Sprintf("%s http://%s/", name, m.port(i)))
		}
	}
	return lines
}

func (m *Monitoring) process(name string) process { return process(filepath.Join(m.Dir, name+".pid")) }

// daemon starts a program and waits until one of its paths answers.
func (m *Monitoring) daemon(ctx context.Context, name, address, path string, args ...string) error {
	return m.daemonWith(ctx, name, address, path, nil, append(args, "--web.listen-address="+address)...)
}

func (m *Monitoring) daemonWith(ctx context.Context, name, address, path string, env []string, args ...string) error {
	log := filepath.Join(m.Dir, name+".log")
	p := m.process(name)
	if err := p.start(program{args: args, env: env, log: log, attached: m.attached}); err != nil {
		return err
	}
	err := p.await(ctx, 30*time.Second, log, func(ctx context.Context) bool { return answers(ctx, "http://"+address+path) })
	if err != nil {
		return fmt.Errorf("%s at %s: %w", name, address, err)
	}
	return nil
}

func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// configure writes the repository's own configuration with this folder's ports.
func (m *Monitoring) configure(g *Group, o MonitoringOptions) error {
	root, err := Repository()
	if err != nil {
		return err
	}
	for from, to := range map[string]string{"prometheus/rules": "prometheus/rules", "alerts": "alerts"} {
		to = filepath.Join(m.Dir, to)
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(filepath.Join(root, from)))); err != nil {
			return err
		}
	}
	exporters := m.exporterTargets(g, o.Cluster)
	mysqld := "[]"
	if g.Kind == PostgreSQL {
		targets := filepath.Join(m.Dir, "prometheus", "targets")
		if err := errors.Join(os.MkdirAll(targets, 0o755), writeFile(targets+"/postgres.yml", "- targets: "+exporters+"\n", 0o644)); err != nil {
			return err
		}
	} else {
		mysqld = strings.ReplaceAll(exporters, "\n", "\n      ")
	}
	ports := strings.NewReplacer("127.0.0.1:9838", m.port(3), "127.0.0.1:9100", m.port(2), `["127.0.0.1:9104"]`, mysqld, "127.0.0.1:9093", m.port(1), "127.0.0.1:9090", m.port(0))
	for _, file := range []string{"prometheus/prometheus.yml", "alerts/alertmanager.yml"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(m.Dir, file), ports.Replace(string(text)), 0o644); err != nil {
			return err
		}
	}
	// With this token, Alertmanager may send firing alerts to the agent, which marks them on the
	// run.
	if err := writeFile(m.Dir+"/alerts/webhook_token", rand.Text()+"\n", 0o600); err != nil {
		return err
	}
	if o.Grafana.own {
		o.Grafana.URL = "http://" + m.port(4)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "data_dir: %s/data\nsample_interval: 1s\ntargets:\n", m.Dir)
	for n := 1; n <= g.N; n++ {
		fmt.Fprintf(&b, "  - {name: n%d, engine: %s, cluster: '%s', address: '%s', user: monitor, password_file: %s/monitor.password}\n",
			n, g.engine(), o.Cluster, g.Address(n), g.Dir)
	}
	fmt.Fprintf(&b, "webhook_token_file: %s/alerts/webhook_token\nprometheus:\n  url: http://%s\n", m.Dir, m.port(0))
	if o.Grafana.URL != "" {
		fmt.Fprintf(&b, "grafana:\n  url: %s\n  token_file: %s\n", o.Grafana.URL, m.grafanaToken())
		if err := writeFile(m.grafanaToken(), o.Grafana.Token+"\n", 0o600); err != nil {
			return err
		}
	}
	return writeFile(m.Dir+"/benchwatch.yml", b.String(), 0o644)
}

// engine returns the agent's name of what the servers are.
func (g *Group) engine() string {
	switch g.Kind {
	case MongoDB:
		return "mongodb"
	case PostgreSQL:
		return "postgresql"
	}
	return "mysql"
}

// exporters returns the number of the servers' exporters.
func (g *Group) exporters() int {
	if g.engine() == "mongodb" {
		return 0
	}
	return g.N
}

// exporterTargets returns the addresses of the servers' exporters, and the label of their cluster, in the form of
// Prometheus's configuration.
func (m *Monitoring) exporterTargets(g *Group, cluster string) string {
	var all []string
	for n := range g.exporters() {
		all = append(all, fmt.Sprintf("%q", m.port(6+n)))
	}
	return fmt.Sprintf("[%s]\n  labels: {cluster: %q}", strings.Join(all, ", "), cluster)
}

// exporter starts an exporter for server n: Debian's mysqld_exporter observes only one server.
func (m *Monitoring) exporter(ctx context.Context, g *Group, n int) error {
	if g.Kind == PostgreSQL {
		source, err := ExporterSource(g, n)
		if err != nil {
			return err
		}
		return m.daemonWith(ctx, fmt.Sprintf("postgres_exporter-n%d", n), m.port(5+n), "/", []string{"DATA_SOURCE_NAME=" + source},
			"prometheus-postgres-exporter", "--log.level=warn", "--web.listen-address="+m.port(5+n))
	}
	name := fmt.Sprintf("mysqld_exporter-n%d", n)
	config := filepath.Join(m.Dir, name+".cnf")
	if err := WriteExporterConfig(config, g, n); err != nil {
		return err
	}
	return m.daemon(ctx, name, m.port(5+n), "/", "prometheus-mysqld-exporter", "--config.my-cnf="+config, "--log.level=warn")
}

// ExporterSource is what postgres_exporter gets as DATA_SOURCE_NAME to connect to server n.
func ExporterSource(g *Group, n int) (string, error) {
	secret, err := g.Password("monitor")
	return fmt.Sprintf("postgresql://monitor:%s@127.0.0.1:%d/sbtest?sslmode=disable", secret, g.Port+n), err
}

// WriteExporterConfig writes the configuration with which mysqld_exporter connects to server n.
func WriteExporterConfig(file string, g *Group, n int) error {
	secret, err := g.Password("monitor")
	if err != nil {
		return err
	}
	return writeFile(file, fmt.Sprintf("[client]\nhost=127.0.0.1\nport=%d\nuser=monitor\npassword=%s\n", g.Port+n, secret), 0o600)
}

// ReloadAgent makes the agent read its configuration again.
func (m *Monitoring) ReloadAgent() error { return m.process("agent").signal(syscall.SIGHUP) }

// StopAgent stops only the agent.
func (m *Monitoring) StopAgent() error { return m.process("agent").stop(10 * time.Second) }

// Stop stops everything, and removes from a foreign Grafana everything except the markers. The data
// stays.
func (m *Monitoring) Stop(ctx context.Context) error {
	release, err := lock(ctx, m.Dir)
	if err != nil {
		return err
	}
	defer release()
	return errors.Join(m.emptyGrafana(ctx), m.stopAll())
}

func (m *Monitoring) stopAll() (err error) {
	files, err := filepath.Glob(filepath.Join(m.Dir, "*.pid"))
	for _, file := range files {
		err = errors.Join(err, process(file).stop(10*time.Second))
	}
	return err
}
