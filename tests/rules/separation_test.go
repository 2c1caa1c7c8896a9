package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/internal/need"
)

// unitTest is a file of promtool tests.
type unitTest struct {
	RuleFiles  []string   `yaml:"rule_files"`
	Evaluation string     `yaml:"evaluation_interval"`
	Order      []string   `yaml:"group_eval_order,omitempty"`
	Tests      []testCase `yaml:"tests"`
}

type testCase struct {
	Name       string           `yaml:"name"`
	Interval   string           `yaml:"interval"`
	Input      []inputSeries    `yaml:"input_series"`
	Alerts     []alertTest      `yaml:"alert_rule_test,omitempty"`
	Expression []expressionTest `yaml:"promql_expr_test,omitempty"`
}

type inputSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertTest struct {
	At       string `yaml:"eval_time"`
	Name     string `yaml:"alertname"`
	Expected []struct {
		Labels map[string]string `yaml:"exp_labels"`
	} `yaml:"exp_alerts"`
}

type expressionTest struct {
	Expr    string           `yaml:"expr"`
	At      string           `yaml:"eval_time"`
	Samples []expectedSample `yaml:"exp_samples"`
}

type expectedSample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

// The first two cases of an alert's tests, one that fires and one that does not, have the
// same alerts if both happen in one Prometheus, and if two agents sample the servers.
func TestAlertsAreSeparate(t *testing.T) {
	need.Program(t, promtool)
	files, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range alerts(t) {
		t.Run(rule.Alert, func(t *testing.T) {
			t.Parallel()
			path, test := separation(t, rule.Alert)
			check(t, promtool, "test", "rules", copied(t, t.TempDir(), path, test, files))
		})
	}
}

// separation returns a test and its path: the first case of an alert's tests together with the
// second case and a second agent. The second case's run, cluster and hosts have different names,
// but its servers have the same names.
func separation(t *testing.T, alert string) (path string, test []byte) {
	t.Helper()
	var file unitTest
	if err := yaml.Unmarshal(read(t, "tests/rules/"+alert+"_test.yml"), &file); err != nil {
		t.Fatal(err)
	}
	own := file.Tests[0]
	next := slices.IndexFunc(file.Tests[1:], func(c testCase) bool { return c.Interval == own.Interval })
	if next < 0 {
		t.Fatalf("%s: no other case has the interval of the first", alert)
	}
	other := file.Tests[1+next]
	file.Tests = []testCase{{
		Name: own.Name + ", in company", Interval: own.Interval,
		Input:      slices.Concat(own.Input, secondAgent(t, own.Input), renamed(t, other.Input)),
		Expression: append(firing(own, false), firing(other, true)...),
	}}
	test, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return "tests/rules/" + alert + ".separation_test.yml", test
}

// identity are the labels that differ between runs, clusters and hosts; each alert has one of them.
var identity = []string{"run", "generator_run", "cluster", "nodename", "generator", "instance", "server", "dimension_DBInstanceIdentifier"}

const foreign = "-foreign"

// renamed returns the series of another run on another cluster with other hosts.
func renamed(t *testing.T, input []inputSeries) []inputSeries {
	t.Helper()
	var out []inputSeries
	for _, in := range input {
		name, l := parseSeries(t, in.Series)
		// The components of TiDB have the label if there are several clusters.
		if prefix, _, _ := strings.Cut(name, "_"); l["cluster"] == "" && (prefix == "tidb" || prefix == "tikv" || prefix == "process") {
			l["cluster"] = "c"
		}
		rename(l)
		out = append(out, inputSeries{formatSeries(name, l), in.Values})
	}
	return out
}

func rename(l map[string]string) {
	for _, name := range identity {
		if l[name] != "" {
			l[name] += foreign
		}
	}
}

// shared are metrics that every agent sees alike: limits, and what is compared between samples.
var shared = map[string]bool{
	"benchwatch_db_connections_limit":            true,
	"benchwatch_galera_cluster_configuration_id": true,
	"benchwatch_galera_cluster_size":             true,
	"benchwatch_mongodb_cache_limit_bytes":       true,
}

// number matches a number in the notation of promtool: 5, 5+0.1x20.
var number = regexp.MustCompile(`(^| )[0-9.]+([+-][0-9.]+)?`)

// secondAgent returns the series of an agent that serves the same runs, and samples the
// same servers, but sees nothing in them.
func secondAgent(t *testing.T, input []inputSeries) []inputSeries {
	t.Helper()
	var out []inputSeries
	for _, in := range input {
		name, l := parseSeries(t, in.Series)
		sample := l["target"] != "" && l["run"] == ""
		if !strings.HasPrefix(name, "benchwatch_") || l["instance"] != "" || !sample && l["run"] == "" {
			continue
		}
		l["instance"] = "second:9838"
		switch {
		case name == "benchwatch_db_threads_running": // at least the thread that is sampled with
			in.Values = number.ReplaceAllString(in.Values, "${1}1")
		case sample && !shared[name]:
			in.Values = number.ReplaceAllString(in.Values, "${1}0")
		}
		out = append(out, inputSeries{formatSeries(name, l), in.Values})
	}
	return out
}

// firing turns the alerts expected by a case into a test of ALERTS without the alerts of the second
// case.
func firing(c testCase, renamed bool) []expressionTest {
	var own []string
	for _, name := range identity {
		own = append(own, fmt.Sprintf(`%s!~".+%s"`, name, foreign))
	}
	var out []expressionTest
	for _, a := range c.Alerts {
		all := fmt.Sprintf(`alertname=%q, alertstate="firing"`, a.Name)
		test := expressionTest{At: a.At, Expr: fmt.Sprintf("ALERTS{%s, %s}", all, strings.Join(own, ", "))}
		if renamed {
			test.Expr = fmt.Sprintf("ALERTS{%s} unless %s", all, test.Expr)
		}
		for _, expected := range a.Expected {
			l := maps.Clone(expected.Labels)
			l["alertname"], l["alertstate"] = a.Name, "firing"
			if renamed {
				if strings.HasPrefix(a.Name, "TiDB") || strings.HasPrefix(a.Name, "TiKV") {
					l["cluster"] = "c"
				}
				rename(l)
			}
			test.Samples = append(test.Samples, expectedSample{formatSeries("ALERTS", l), 1})
		}
		out = append(out, test)
	}
	return out
}

func parseSeries(t *testing.T, series string) (name string, l map[string]string) {
	t.Helper()
	parsed, err := promql.ParseMetric(series)
	if err != nil {
		t.Fatalf("%s: %v", series, err)
	}
	l = parsed.Map()
	name = l["__name__"]
	delete(l, "__name__")
	return name, l
}

func formatSeries(name string, l map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(l)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", key, l[key]))
	}
	return name + "{" + strings.Join(pairs, ",") + "}"
}

// A hundred runs at once, each on its own cluster with the same server names, each server sampled
// by four agents: each run has its own values.
func TestHundredRunsAreSeparate(t *testing.T) {
	const runs, agents = 100, 4
	c := testCase{Name: "a hundred runs", Interval: "1s"}
	add := func(values, format string, args ...any) {
		c.Input = append(c.Input, inputSeries{fmt.Sprintf(format, args...), values})
	}
	metrics := []string{
		"run:benchwatch_replication_lag_seconds:max", "max by (run) (run_cluster_target:benchwatch_db_threads_running:max)",
		"run:benchwatch_galera_flow_control_paused:ratio_rate15s",
		"run:node_cpu_utilisation:max", "run:generator_cpu_utilisation:max",
	}
	expected := make([][]expectedSample, len(metrics))
	for i := range runs {
		server, generator := float64(i)/runs, float64(i/2)/runs
		for a := range agents {
			instance := fmt.Sprintf("agent%d:9838", a)
			add("1x50", `benchwatch_run_active{run="r%d",instance=%q}`, i, instance)
			for _, target := range []string{"n1", "n2"} {
				add("1x50", `benchwatch_run_target_info{run="r%d",target=%q,cluster="c%d",instance=%q}`, i, target, i, instance)
				add(fmt.Sprintf("%dx50", i), `benchwatch_replication_lag_seconds{target=%q,cluster="c%d",instance=%q}`, target, i, instance)
				add(fmt.Sprintf("%dx50", 2*i), `benchwatch_db_threads_running{target=%q,cluster="c%d",instance=%q}`, target, i, instance)
				add(fmt.Sprintf("0+%gx50", server), `benchwatch_galera_flow_control_paused_seconds_total{target=%q,cluster="c%d",instance=%q}`, target, i, instance)
			}
			add("1x50", `benchwatch_run_host_info{run="r%d",nodename="db%d",role="server",instance=%q}`, i, i, instance)
			add("1x50", `benchwatch_run_host_info{run="r%d",nodename="gen%d",role="generator",instance=%q}`, i, i, instance)
		}
		for node, busy := range map[string]float64{"db": server, "gen": generator} {
			add("1x50", `node_uname_info{job="node",instance="%s%d:9100",nodename="%s%d"}`, node, i, node, i)
			add(fmt.Sprintf("0+%gx50", 1-busy), `node_cpu_seconds_total{job="node",instance="%s%d:9100",cpu="0",mode="idle"}`, node, i)
		}
		run := fmt.Sprintf(`{run="r%d"}`, i)
		for m, value := range []float64{float64(i), float64(2 * i), server, server, generator} {
			expected[m] = append(expected[m], expectedSample{run, value})
		}
	}
	for m, name := range metrics {
		c.Expression = append(c.Expression, expressionTest{Expr: "round(" + name + ", 0.01)", At: "40s", Samples: expected[m]})
	}
	file := unitTest{
		RuleFiles:  []string{"../../prometheus/rules/host.yml", "../../prometheus/rules/galera.yml", "../../prometheus/rules/run.yml"},
		Evaluation: "5s", Order: []string{"benchwatch_host", "benchwatch_galera", "benchwatch_run"}, Tests: []testCase{c},
	}
	test, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	check(t, promtool, "test", "rules", copied(t, t.TempDir(), "tests/rules/hundred_test.yml", test, files))
}
