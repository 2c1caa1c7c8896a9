package dashboards

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/benchwatch/benchwatch/internal/need"
)

// world is a cluster with two servers, hosts, exporters, and two runs on it: one in progress
// and one that is over. Servers of all worlds have the same names.
type world struct {
	name   string
	agents int
	runs   []string // suffixes of the names of the runs; none: nothing runs there
}

const inProgress, isOver = "live", "over"

// Panels that do not only show what belongs to runs.
var ofNoRun = map[string]string{
	"agent: Version":                   "all agents",
	"agent: CPU":                       "all agents",
	"agent: Memory":                    "all agents",
	"agent: Waiting":                   "all agents",
	"agent: Series":                    "all agents",
	"agent: Agent CPU":                 "all agents",
	"agent: Goroutines and open files": "all agents",
	"agent: Scrape duration":           "all agents",
	"agent: Markers":                   "all agents",
	"agent: Missed ticks":              "all agents",
	"agent: Free space for runs":       "all agents",
	"agent: Scrape targets":            "all of Prometheus",
	"live-run: Agent CPU":              "all agents",
}

// Each panel and annotation shows the same about a run whether or not there are other runs, on
// other clusters and hosts, and several agents that sample each server.
func TestRunsAreSeparate(t *testing.T) {
	need.Program(t, "prometheus")
	need.Program(t, "promtool")
	both := []string{inProgress, isOver}
	end := time.Now().Add(-time.Minute).Truncate(time.Second)
	alone := filled(t, end, world{"a", 1, both})
	among := filled(t, end, world{"a", 3, both}, world{"b", 1, both}, world{"c", 2, nil})
	from := end.Add(-length)
	for _, run := range both {
		w := Window{Name: run, From: from, To: end, Variables: map[string]string{
			"run": "a-" + run, "direct": "a-" + inProgress, "proxied": "a-" + isOver, "baseline": "a-" + isOver,
		}}
		shown := 0
		asked := map[string]bool{} // several dashboards show the same panels
		for _, d := range dashboards(t) {
			for _, p := range d.Graphs() {
				place := d.Name + ": " + p.Title
				for _, target := range p.Targets {
					if _, ok := ofNoRun[place]; ok || asked[target.Expr] {
						continue
					}
					asked[target.Expr] = true
					want := alone.ask(t, place, &target, w)
					shown += len(want)
					if diff := cmp.Diff(want, among.ask(t, place, &target, w)); diff != "" {
						t.Errorf("%s, query %s of run %s shows something else with other runs (+):\n%s\n%s", place, target.RefID, run, shortened(diff), target.Expr)
					}
				}
			}
			for _, a := range d.Annotations.List {
				target := Target{RefID: "Anno", Expr: a.Expr, Interval: "1s", Range: true}
				place := d.Name + ": annotation " + a.Name
				if asked[a.Expr] {
					continue
				}
				asked[a.Expr] = true
				if diff := cmp.Diff(alone.ask(t, place, &target, w), among.ask(t, place, &target, w)); diff != "" {
					t.Errorf("%s of run %s differs with other runs (+):\n%s\n%s", place, run, shortened(diff), target.Expr)
				}
			}
		}
		if shown < 200 {
			t.Errorf("only %d series for run %s: the comparison shows little", shown, run)
		}
	}
}

// With two simultaneous runs on two clusters in the Prometheus of PROMETHEUS_URL, no panel or
// annotation of one run names the other run or its servers.
func TestPanelsShowOnlyTheRun(t *testing.T) {
	p := askedPrometheus(t)
	for _, w := range askedWindows(t) {
		shown := 0
		asked := map[string]bool{}
		check := func(place string, target *Target) {
			if _, ok := ofNoRun[place]; ok || asked[target.Expr] {
				return
			}
			asked[target.Expr] = true
			for series := range p.ask(t, place, target, w) {
				shown++
				words := strings.FieldsFunc(series, func(r rune) bool { return strings.ContainsRune(`"{}, `, r) })
				for _, name := range w.Foreign {
					if slices.Contains(words, name) {
						t.Errorf("%s of %s shows %s: %s\n%s", place, w.Name, name, series, target.Expr)
					}
				}
			}
		}
		for _, d := range dashboards(t) {
			for _, panel := range d.Graphs() {
				for _, target := range panel.Targets {
					check(d.Name+": "+panel.Title, &target)
				}
			}
			for _, a := range d.Annotations.List {
				check(d.Name+": annotation "+a.Name, &Target{RefID: "Anno", Expr: a.Expr, Interval: "1s", Range: true})
			}
		}
		if len(w.Foreign) == 0 || shown < 100 {
			t.Errorf("%s: %d series, foreign are %q: that shows little", w.Name, shown, w.Foreign)
		}
	}
}

func shortened(diff string) string {
	if len(diff) > 400 {
		return diff[:400] + "…"
	}
	return diff
}

const (
	length = 40 * time.Second
	tick   = 2 * time.Second
)

// filled starts a Prometheus with the series of the worlds that the dashboards ask for.
func filled(t *testing.T, end time.Time, worlds ...world) Prometheus {
	t.Helper()
	dir := t.TempDir()
	series := map[string]labels.Labels{}
	for _, w := range worlds {
		for _, s := range w.series(t) {
			series[s.String()] = s
		}
	}
	byName := map[string][]labels.Labels{}
	for _, key := range slices.Sorted(maps.Keys(series)) {
		name := series[key].Get(model.MetricNameLabel)
		byName[name] = append(byName[name], series[key])
	}
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		fmt.Fprintf(&text, "# TYPE %s unknown\n", name)
		for _, s := range byName[name] {
			for at := end.Add(-length); !at.After(end); at = at.Add(tick) {
				fmt.Fprintf(&text, "%s{%s} %g %d\n", name, pairs(s), value(s, at, end), at.Unix())
			}
		}
	}
	text.WriteString("# EOF\n")
	input := filepath.Join(dir, "series")
	if err := os.WriteFile(input, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "tsdb", "create-blocks-from", "openmetrics", input, dir+"/data").CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	return started(t, dir)
}

// pairs returns the labels in the form of OpenMetrics, without blanks.
func pairs(s labels.Labels) string {
	var all []string
	s.Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel {
			all = append(all, fmt.Sprintf("%s=%q", l.Name, l.Value))
		}
	})
	return strings.Join(all, ",")
}

// started runs a Prometheus on dir/data, which scrapes nothing.
func started(t *testing.T, dir string, more ...string) Prometheus {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if err := os.WriteFile(dir+"/prometheus.yml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("prometheus", append(more, "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data",
		"--web.listen-address="+address, "--log.level=error")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p := Prometheus{URL: "http://" + address}
	ready := time.NewTicker(50 * time.Millisecond)
	defer ready.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ready.C {
		if _, err := p.query(t.Context(), "/api/v1/query", url.Values{"query": {"vector(1)"}}); err == nil || time.Now().After(deadline) {
			return p
		}
	}
}

// ask returns the values of each series of a query's result, NaN included.
func (p Prometheus) ask(t *testing.T, place string, target *Target, w Window) map[string][]any {
	t.Helper()
	interval, err := time.ParseDuration(target.Interval)
	if err != nil {
		t.Fatal(err)
	}
	form, path := url.Values{"query": {w.expand(target.Expr, interval)}, "time": {seconds(w.To)}}, "/api/v1/query"
	if target.Range {
		path = "/api/v1/query_range"
		form.Set("start", seconds(w.From))
		form.Set("end", seconds(w.To))
		form.Set("step", "2")
	}
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  []any
			Values [][]any
		}
	}
	if err := p.get(context.Background(), "POST", path, form, &data); err != nil {
		t.Errorf("%s, query %s: %v\n%s", place, target.RefID, err, target.Expr)
		return nil
	}
	found := map[string][]any{}
	for _, s := range data.Result {
		key, _ := json.Marshal(s.Metric)
		for _, v := range append(s.Values, s.Value) {
			if len(v) == 2 {
				found[string(key)] = append(found[string(key)], v[1])
			}
		}
	}
	return found
}

// value is the value of a series at a time: facts are 1, everything else differs by series but
// not by the agent that sampled it, and grows.
func value(s labels.Labels, at, end time.Time) float64 {
	name := s.Get(model.MetricNameLabel)
	switch {
	case strings.HasSuffix(name, "_info"), strings.HasSuffix(name, ":benchwatch_run_active"), strings.HasSuffix(name, ":line"), name == "up", name == "benchwatch_db_up", name == "benchwatch_run_active",
		name == "benchwatch_run_phase", name == "benchwatch_run_result", name == "ALERTS", name == "benchwatch_aurora_writer":
		return 1
	case strings.HasSuffix(name, "_timestamp_seconds"), name == "ALERTS_FOR_STATE":
		return float64(end.Unix() - 10)
	}
	h := fnv.New32a()
	fmt.Fprint(h, name, s.MatchLabels(false, "instance"))
	size := float64(h.Sum32()%1000 + 1)
	return size * (1000 + at.Sub(end).Seconds())
}

// series returns what the selectors of all dashboards match in a world.
func (w world) series(t *testing.T) []labels.Labels {
	t.Helper()
	names := known(t)
	var all []labels.Labels
	for _, d := range dashboards(t) {
		for _, q := range queries(t, &d) {
			expr, err := Parse(q.expr)
			if err != nil {
				continue // TestEveryQueryParses
			}
			for _, s := range Selectors(expr) {
				matched := map[string]string{}
				for _, m := range s.LabelMatchers {
					switch m.Type {
					case labels.MatchEqual:
						matched[m.Name] = m.Value
					case labels.MatchRegexp:
						if v := strings.Trim(strings.Split(m.Value, "|")[0], "()"); !strings.ContainsAny(v, ".*+[") {
							matched[m.Name] = v
						}
					}
				}
				for _, name := range Names(s, names) {
					all = append(all, w.of(name, matched, names[name])...)
				}
			}
		}
	}
	return all
}

// of returns the series of a metric in a world, with the labels that a selector asks for.
func (w world) of(name string, matched map[string]string, has []string) []labels.Labels {
	base := map[string]string{model.MetricNameLabel: name}
	for label, v := range matched {
		if v != "" && label != model.MetricNameLabel && !slices.Contains([]string{"run", "cluster", "target"}, label) {
			base[label] = v
		}
	}
	level, recorded, _ := strings.Cut(name, ":")
	agent := strings.HasPrefix(name, "benchwatch_")
	for _, label := range has {
		if _, ok := base[label]; !ok && !slices.Contains([]string{"job", "instance", "run"}, label) {
			base[label] = label + " " + w.name
		}
	}
	var all []labels.Labels
	add := func(more ...string) {
		one := maps.Clone(base)
		for i := 0; i < len(more); i += 2 {
			if more[i+1] == "" {
				delete(one, more[i])
			} else {
				one[more[i]] = more[i+1]
			}
		}
		all = append(all, labels.FromMap(one))
	}
	hosts := []string{w.name + "-generator", w.name + "-server"}
	perRun := slices.Contains(has, "run") || level == "run"
	switch {
	case name == "benchwatch_run_host_info", name == "run_nodename_role:benchwatch_run_active":
		for _, run := range w.runs {
			add("run", w.name+"-"+run, "nodename", hosts[0], "role", "generator")
			add("run", w.name+"-"+run, "nodename", hosts[1], "role", "server")
		}
	case level == "run_cluster_target":
		for _, run := range w.runs {
			for _, target := range targetsIf(true) {
				add("run", w.name+"-"+run, "cluster", w.name, "target", target)
			}
		}
	case name == "run:benchwatch_run_info:line":
		for _, run := range w.runs {
			add("run", w.name+"-"+run, "line", "Run "+w.name+" "+run)
		}
	case strings.HasPrefix(name, "node_"), level == "instance":
		for _, host := range hosts {
			if name == "node_uname_info" {
				add("job", "node", "instance", host+":9100", "nodename", host)
			} else {
				add("job", "node", "instance", host+":9100")
			}
		}
	case strings.HasPrefix(name, "ALERTS"):
		add("run", "", "cluster", w.name, "target", "n1", "alertname", "OfServer")
		add("run", "", "cluster", w.name, "alertname", "OfCluster")
		add("run", "", "cluster", "", "nodename", hosts[1], "alertname", "OfHost")
		for _, run := range w.runs {
			add("run", w.name+"-"+run, "alertname", "OfRun")
		}
	case perRun:
		for _, run := range w.runs {
			gone := slices.Contains([]string{"benchwatch_run_active", "benchwatch_run_phase", "benchwatch_run_elapsed_seconds"}, name)
			only := slices.Contains([]string{"benchwatch_run_result", "benchwatch_run_end_timestamp_seconds"}, name) || strings.HasPrefix(name, "benchwatch_run_summary")
			if gone && run == isOver || only && run == inProgress {
				continue
			}
			for _, target := range targetsIf(slices.Contains(has, "target") && name != "benchwatch_run_info") {
				for _, instance := range w.instances(agent) {
					if name == "benchwatch_run_info" {
						add("run", w.name+"-"+run, "instance", instance, "title", "Run "+w.name+" "+run, "threads", "16")
						continue
					}
					cluster := ""
					if name == "benchwatch_run_target_info" {
						cluster = w.name
					}
					add("run", w.name+"-"+run, "cluster", cluster, "target", target, "instance", instance)
				}
			}
		}
	case agent && slices.Contains(has, "target"), level == "target" && recorded != "":
		for _, target := range targetsIf(true) {
			for _, instance := range w.instances(agent) {
				add("cluster", w.name, "target", target, "instance", instance)
			}
		}
	case level == "server" && recorded != "":
		add("server", "server "+w.name)
	default: // exporters, whose targets in Prometheus have a label cluster
		add("cluster", w.name, "instance", w.name+"-exporter:9000")
	}
	return all
}

func targetsIf(yes bool) []string {
	if yes {
		return []string{"n1", "n2"}
	}
	return []string{""}
}

func (w world) instances(ofAgents bool) []string {
	if !ofAgents {
		return []string{""}
	}
	var all []string
	for i := range w.agents {
		all = append(all, fmt.Sprintf("agent-%s-%d", w.name, i))
	}
	return all
}
