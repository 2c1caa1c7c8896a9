package compose

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/internal/need"
)

// prometheusConfig is the part of prometheus.yml that the tests read.
type prometheusConfig struct {
	Global    map[string]string `yaml:"global"`
	RuleFiles []string          `yaml:"rule_files"`
	Alerting  struct {
		Alertmanagers []struct {
			Static []targetGroup `yaml:"static_configs"`
		} `yaml:"alertmanagers"`
	} `yaml:"alerting"`
	Jobs []job `yaml:"scrape_configs"`
}

type targetGroup struct {
	Targets []string `yaml:"targets"`
}

type job struct {
	Name     string        `yaml:"job_name"`
	Interval string        `yaml:"scrape_interval"`
	Timeout  string        `yaml:"scrape_timeout"`
	Static   []targetGroup `yaml:"static_configs"`
	DNS      []struct {
		Names []string `yaml:"names"`
		Type  string   `yaml:"type"`
		Port  int      `yaml:"port"`
	} `yaml:"dns_sd_configs"`
	Metrics []struct {
		Action string   `yaml:"action"`
		Source []string `yaml:"source_labels"`
		Regex  string   `yaml:"regex"`
	} `yaml:"metric_relabel_configs"`
}

func prometheus(t *testing.T, path string) prometheusConfig {
	t.Helper()
	var c prometheusConfig
	if err := yaml.Unmarshal([]byte(read(t, path)), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// servicePorts is where each scraped service serves its metrics.
var servicePorts = map[string]int{
	"agent": 9838, "alertmanager": 9093, "node-exporter": 9100, "mysqld-exporter": 9104,
	"galera1-exporter": 9104, "galera2-exporter": 9104, "galera3-exporter": 9104,
	"gr1-exporter": 9104, "gr2-exporter": 9104, "gr3-exporter": 9104,
	"primary-exporter": 9104, "replica1-exporter": 9104, "replica2-exporter": 9104, "haproxy": 8405, "proxysql": 6070, "tidb-balancer": 8405,
	"postgresql1-exporter": 9187, "postgresql2-exporter": 9187, "postgresql3-exporter": 9187,
	"mongo1-exporter": 9216, "mongo2-exporter": 9216, "mongo3-exporter": 9216,
	"mongos-exporter": 9216, "config1-exporter": 9216, "config2-exporter": 9216, "config3-exporter": 9216,
	"shard1a-exporter": 9216, "shard1b-exporter": 9216, "shard2a-exporter": 9216, "shard2b-exporter": 9216, "shard3a-exporter": 9216, "shard3b-exporter": 9216,
	"tidb": 10080, "tidb2": 10080, "tidb3": 10080, "tikv1": 20180, "tikv2": 20180, "tikv3": 20180, "pd": 2379, "cloudwatch-exporter": 5000,
}

// Every target is a service on its port: core services always, others if they run. Every service with metrics is a
// target.
func TestScrapeTargets(t *testing.T) {
	c := prometheus(t, folder+"/prometheus/prometheus.yml")
	found := map[string]bool{}
	target := func(name, port string) {
		if name == "127.0.0.1" && port == "9090" {
			return // Prometheus itself
		}
		if _, err := everything(t).GetService(name); err != nil {
			t.Error(err)
		}
		if port != fmt.Sprint(servicePorts[name]) {
			t.Errorf("%s is scraped on port %s, not %d", name, port, servicePorts[name])
		}
		found[name] = true
	}
	groups := c.Alerting.Alertmanagers[0].Static
	for _, j := range c.Jobs {
		groups = append(groups, j.Static...)
		for _, dns := range j.DNS {
			for _, name := range dns.Names {
				service, absolute := strings.CutSuffix(name, ".")
				if !absolute || dns.Type != "A" {
					t.Errorf("job %s: %s would be resolved with the search domains of the host", j.Name, name)
				}
				target(service, fmt.Sprint(dns.Port))
			}
		}
	}
	for _, group := range groups {
		for _, address := range group.Targets {
			name, port, _ := strings.Cut(address, ":")
			if name != "127.0.0.1" && !slices.Contains(core, name) {
				t.Errorf("%s is down as long as its profile does not run", name)
			}
			target(name, port)
		}
	}
	for name := range servicePorts {
		if !found[name] {
			t.Errorf("%s is not scraped", name)
		}
	}
	for name := range everything(t).Services {
		if strings.HasSuffix(name, "-exporter") && !found[name] {
			t.Errorf("%s is not scraped", name)
		}
	}
}

// Dashboards and rules find the same jobs, at the same intervals, as with the configuration for
// use without containers.
func TestPrometheusIsTheSame(t *testing.T) {
	inside, outside := prometheus(t, folder+"/prometheus/prometheus.yml"), prometheus(t, root+"/prometheus/prometheus.yml")
	if got, want := fmt.Sprint(inside.Global, inside.RuleFiles), fmt.Sprint(outside.Global, outside.RuleFiles); got != want {
		t.Errorf("%s, without containers %s", got, want)
	}
	describe := func(c prometheusConfig) string {
		var all []string
		for _, j := range c.Jobs {
			all = append(all, strings.Join([]string{j.Name, j.Interval, j.Timeout}, " "))
		}
		return strings.Join(all, "\n")
	}
	if got, want := describe(inside), describe(outside); got != want {
		t.Errorf("jobs\n%s\nwithout containers\n%s", got, want)
	}
}

// Prometheus keeps the metrics of TiDB, TiKV and PD that dashboards and rules query.
func TestKeptMetrics(t *testing.T) {
	kept := map[string]*regexp.Regexp{}
	for _, j := range prometheus(t, folder+"/prometheus/prometheus.yml").Jobs {
		for _, m := range j.Metrics {
			if m.Action == "keep" && slices.Equal(m.Source, []string{"__name__"}) {
				kept[j.Name] = regexp.MustCompile(`^(?:` + m.Regex + `)$`)
			}
		}
	}
	files, _ := filepath.Glob(root + "/alerts/*.rules.yml")
	rules, _ := filepath.Glob(root + "/prometheus/rules/*.yml")
	boards, _ := filepath.Glob(root + "/dashboards/*.json")
	// In a query, a metric's name is followed by a selector or a range; in a description it is not.
	name := regexp.MustCompile(`\b((tidb|tikv|pd)_[a-z0-9_]+)(?:\{|\[)`)
	n := 0
	for _, file := range slices.Concat(files, rules, boards) {
		for _, m := range name.FindAllStringSubmatch(read(t, file), -1) {
			n++
			job := m[2]
			if strings.HasPrefix(m[1], "pd_client_") {
				job = "tidb" // TiDB's own view of PD
			}
			if !kept[job].MatchString(m[1]) {
				t.Errorf("%s: %s is dropped by job %s", file, m[1], job)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d names found", n)
	}
}

// The files that the configuration of Prometheus names are mounted there.
func TestPrometheusMounts(t *testing.T) {
	mounted := map[string]string{}
	for _, v := range everything(t).Services["prometheus"].Volumes {
		mounted[v.Target] = v.Source
	}
	for target, file := range map[string]string{
		"/etc/prometheus/rules": "run.yml", "/etc/alerts": "run.rules.yml", "/etc/prometheus/targets": ".gitignore",
	} {
		if _, err := os.Stat(filepath.Join(mounted[target], file)); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// The fragments form a configuration, and name servers that exist.
func TestAgentTargets(t *testing.T) {
	text := read(t, folder+"/agent/benchwatch.yml")
	fragments, err := filepath.Glob(folder + "/agent/targets/*.yml")
	if err != nil || len(fragments) != len(profiles)-2 { // Aurora's servers are elsewhere, fleet has none
		t.Fatalf("%v, %v", fragments, err)
	}
	for _, file := range fragments {
		text += read(t, file)
		if !slices.Contains(profiles, strings.TrimSuffix(filepath.Base(file), ".yml")) {
			t.Errorf("%s belongs to no profile", file)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"monitor-password": "x", "grafana-token": "x", "webhook-token": "x", "benchwatch.yml": strings.ReplaceAll(text, "/secrets/", dir+"/")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(dir, "benchwatch.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Targets) != 35 {
		t.Errorf("%d targets", len(c.Targets))
	}
	depends := everything(t).Services["configure"].DependsOn
	for _, target := range c.Targets {
		host, _, _ := strings.Cut(target.Address, ":")
		if _, found := depends[host]; host != target.Name || !found {
			t.Errorf("target %s at %s: configure does not wait for that service", target.Name, target.Address)
		}
		if want := filepath.Join(dir, "monitor-password"); target.PasswordFile != want && target.Engine != "haproxy" {
			t.Errorf("target %s: password file %s", target.Name, target.PasswordFile)
		}
	}
}

// The proxies are services in front of a cluster that has targets.
func TestAgentProxies(t *testing.T) {
	text := "targets:\n" + read(t, folder+"/agent/targets/mysql.yml") + read(t, folder+"/agent/targets/tidb.yml") + "proxies:\n"
	fragments, err := filepath.Glob(folder + "/agent/proxies/*.yml")
	if err != nil || len(fragments) == 0 {
		t.Fatalf("%v, %v", fragments, err)
	}
	for _, file := range fragments {
		text += read(t, file)
	}
	path := filepath.Join(t.TempDir(), "benchwatch.yml")
	if err := os.WriteFile(path, []byte(regexp.MustCompile(`(?m)^.*password_file:.*\n`).ReplaceAllString(text, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	depends := everything(t).Services["configure"].DependsOn
	for _, proxy := range c.Proxies {
		host, _, _ := strings.Cut(proxy.Address, ":")
		if _, found := depends[host]; !found {
			t.Errorf("proxy %s: configure does not wait for that service", proxy.Address)
		}
	}
	if len(c.Proxies) != len(fragments) {
		t.Errorf("%d proxies in %d files", len(c.Proxies), len(fragments))
	}
}

// Agent mode accepts what setup/forwarder.sh makes, which has all jobs and no rules.
func TestForwarder(t *testing.T) {
	need.Program(t, "promtool")
	out, err := exec.CommandContext(t.Context(), "sh", folder+"/setup/forwarder.sh", folder+"/prometheus/prometheus.yml", "http://thanos-router:19291/api/v1/receive").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "forwarder.yml")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", "--agent", "--syntax-only", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	got, want := prometheus(t, path), prometheus(t, folder+"/prometheus/prometheus.yml")
	if len(got.Jobs) == 0 || len(got.Jobs) != len(want.Jobs) || len(got.RuleFiles) > 0 || len(got.Alerting.Alertmanagers) > 0 {
		t.Errorf("%d jobs of %d, rules %v", len(got.Jobs), len(want.Jobs), got.RuleFiles)
	}
	if strings.Contains(string(out), `"targets/`) {
		t.Error("a folder that is relative to the new file")
	}
}

// The router knows all receivers, and the querier all that have samples.
func TestFleetAddresses(t *testing.T) {
	services := everything(t).Services
	address := regexp.MustCompile(`(?:"|--endpoint=|//)([a-z0-9-]+):(\d+)`)
	ports := map[string][]string{"alertmanager": {"9093"}}
	for name := range services {
		if strings.HasPrefix(name, "thanos-") {
			ports[name] = []string{"10901", "10902", "19291"}
		}
	}
	asked := map[string][]string{}
	for name, s := range services {
		if name != "forwarder" && !strings.HasPrefix(name, "thanos-") {
			continue
		}
		for _, word := range append(slices.Clone(s.Entrypoint), s.Command...) {
			for _, m := range address.FindAllStringSubmatch(word, -1) {
				if !slices.Contains(ports[m[1]], m[2]) {
					t.Errorf("%s: nothing listens on %s:%s", name, m[1], m[2])
				}
				asked[name] = append(asked[name], m[1])
			}
		}
	}
	receivers := []string{"thanos-receiver1", "thanos-receiver2", "thanos-receiver3"}
	for name, want := range map[string][]string{
		"forwarder": {"thanos-router"}, "thanos-router": receivers,
		"thanos-querier": append(slices.Clone(receivers), "thanos-ruler", "thanos-store"), "thanos-ruler": {"thanos-querier", "alertmanager"},
	} {
		if !slices.Equal(asked[name], want) {
			t.Errorf("%s asks %v, want %v", name, asked[name], want)
		}
	}
}

// HAProxy accepts its configurations. Names of servers have no address outside of compose.
func TestHAProxy(t *testing.T) {
	need.Program(t, "haproxy")
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		haproxy = "/usr/sbin/haproxy"
	}
	files, err := filepath.Glob(folder + "/proxy/*.cfg")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if out, err := exec.CommandContext(t.Context(), haproxy, "-c", "-f", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}

// The texts that configure.sh replaces exist.
func TestAlertmanager(t *testing.T) {
	text := read(t, root+"/alerts/alertmanager.yml")
	for _, want := range []string{"http://127.0.0.1:9838/", "credentials_file: webhook_token\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("alerts/alertmanager.yml does not have %q exactly once", want)
		}
	}
}

// Every JSON file that Grafana reads is a dashboard.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob(root + "/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, file := range files {
		var board struct{ UID, Title string }
		if err := json.Unmarshal([]byte(read(t, file)), &board); err != nil || board.UID == "" || board.Title == "" {
			t.Errorf("%s is no dashboard: %v", file, err)
		}
	}
	home := *everything(t).Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	read(t, strings.Replace(home, "/dashboards/", root+"/dashboards/", 1))
}

// The files of Grafana name the services and folders as compose.yaml does.
func TestGrafanaProvisioning(t *testing.T) {
	var sources struct {
		Datasources []struct {
			URL  string `yaml:"url"`
			JSON struct {
				Interval string `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		} `yaml:"datasources"`
	}
	var providers struct {
		Providers []struct {
			Options struct{ Path string }
		} `yaml:"providers"`
	}
	for file, into := range map[string]any{"datasources/prometheus.yaml": &sources, "dashboards/benchwatch.yaml": &providers} {
		if err := yaml.Unmarshal([]byte(read(t, folder+"/grafana/provisioning/"+file)), into); err != nil {
			t.Fatal(err)
		}
	}
	if len(sources.Datasources) != 1 || sources.Datasources[0].URL != "http://prometheus:9090" || sources.Datasources[0].JSON.Interval != "1s" {
		t.Errorf("data sources %+v", sources.Datasources)
	}
	mounted := false
	for _, v := range everything(t).Services["grafana"].Volumes {
		mounted = mounted || v.Target == providers.Providers[0].Options.Path && filepath.Base(v.Source) == "dashboards"
	}
	if !mounted {
		t.Errorf("%s is not where the dashboards are", providers.Providers[0].Options.Path)
	}
}

// The policy for CloudWatch only allows reading.
func TestCloudWatchRights(t *testing.T) {
	var policy struct {
		Statement []struct {
			Effect string
			Action []string
		}
	}
	if err := json.Unmarshal([]byte(read(t, folder+"/aurora/iam-policy.json")), &policy); err != nil {
		t.Fatal(err)
	}
	want := []string{"tag:GetResources", "cloudwatch:GetMetricData", "cloudwatch:GetMetricStatistics", "cloudwatch:ListMetrics"}
	if len(policy.Statement) != 1 || !slices.Equal(policy.Statement[0].Action, want) {
		t.Errorf("%+v", policy.Statement)
	}
}

// yace.yml queries the CloudWatch metrics of Aurora that rules and dashboards use.
func TestCloudWatchMetrics(t *testing.T) {
	var c struct {
		Discovery struct {
			Jobs []struct {
				Dimensions []string `yaml:"dimensionNameRequirements"`
				NilToZero  bool     `yaml:"nilToZero"`
				Metrics    []struct {
					Name       string
					Statistics []string
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, folder+"/aurora/yace.yml")), &c); err != nil {
		t.Fatal(err)
	}
	series := map[string]bool{}
	for _, j := range c.Discovery.Jobs {
		if len(j.Dimensions) != 1 || j.NilToZero {
			t.Errorf("a job with dimensions %v, missing as zero %v", j.Dimensions, j.NilToZero)
		}
		for _, m := range j.Metrics {
			for _, statistic := range m.Statistics {
				// YACE's rule: an underscore between a small letter or digit and a capital.
				name := regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(m.Name, "${1}_$2")
				series["aws_rds_"+strings.ToLower(name+"_"+statistic)] = true
			}
		}
	}
	rules, _ := filepath.Glob(root + "/prometheus/rules/*.yml")
	boards, _ := filepath.Glob(root + "/dashboards/*.json")
	used := regexp.MustCompile(`\b(aws_rds_[a-z0-9_]+_(?:average|maximum|minimum|sum))\b`)
	for _, file := range slices.Concat(rules, boards) {
		for _, m := range used.FindAllStringSubmatch(read(t, file), -1) {
			if !series[m[1]] {
				t.Errorf("%s: yace.yml does not query %s", file, m[1])
			}
		}
	}
}
