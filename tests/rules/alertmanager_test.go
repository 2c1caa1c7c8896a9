package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/internal/need"
)

// inhibited are alerts that a real Alertmanager inhibits by the source if all labels except the alert's name are equal,
// and does not inhibit if the last named label differs.
var inhibited = []struct {
	source, target string
	labels         []string
}{
	{"DatabaseDown", "GaleraNodeNotSynced", []string{"cluster", "target"}},
	{"DatabaseDown", "ReplicationLagHigh", []string{"target", "cluster"}},
	{"DatabaseDown", "GroupReplicationMemberNotOnline", []string{"target", "cluster"}},
	{"GaleraNodeNotPrimary", "GaleraNodeNotSynced", []string{"target", "cluster"}},
	{"GaleraNodeNotSynced", "ReplicationLagHigh", []string{"cluster", "target"}},
	{"ReplicationStopped", "ReplicationLagHigh", []string{"target", "cluster"}},
	{"ReplicationLagHigh", "ReplicationLagGrowing", []string{"target", "cluster"}},
	{"ReplicationLagHigh", "GaleraReceiveQueueGrowing", []string{"cluster", "target"}},
	{"ReplicationLagGrowing", "GroupReplicationApplierQueueGrowing", []string{"target", "cluster"}},
	{"MongoDBOplogWindowShort", "MongoDBReplicationLagHigh", []string{"member", "cluster"}},
	{"GaleraFlowControlCritical", "GaleraFlowControlHigh", []string{"cluster"}},
	{"GaleraFlowControlCritical", "GaleraNodeSlow", []string{"cluster"}},
	{"GaleraNodeSlow", "GaleraFlowControlHigh", []string{"cluster"}},
	{"GeneratorSaturated", "HostCPUSaturated", []string{"run", "nodename"}},
	{"GeneratorSaturated", "HostCPUSaturated", []string{"nodename", "run"}},
	{"GaleraCommitsStopped", "RunStalled", []string{"run"}},
	{"RunStalled", "RunThroughputCollapsed", []string{"run"}},
	{"RunThroughputCollapsed", "RunLatencyHigh", []string{"run"}},
}

func TestAlertmanagerInhibits(t *testing.T) {
	am := startAlertmanager(t)
	want := map[string]bool{} // whether it is inhibited, by name and case
	for i, c := range inhibited {
		l := map[string]string{"alertname": c.source, "source": "benchwatch"}
		for _, name := range c.labels {
			l[name] = fmt.Sprint(i)
		}
		am.post(l)
		l["case"], l["alertname"] = fmt.Sprint(i), c.target
		am.post(l)
		want[fmt.Sprint(c.target, " ", i)] = true
		l["case"], l[c.labels[len(c.labels)-1]] = fmt.Sprint(i, " of another"), fmt.Sprint("other ", i)
		am.post(l)
		want[fmt.Sprint(c.target, " ", i, " of another")] = false
	}
	var got map[string]bool
	am.eventually(func() bool {
		got = am.inhibited()
		return maps.Equal(got, want)
	}, func() string { return fmt.Sprintf("inhibited: got %v, want %v", got, want) })
}

// A less severe alert fires first, because its limit is lower, and is not sent.
func TestAlertmanagerWaitsForTheCause(t *testing.T) {
	am := startAlertmanager(t)
	host := map[string]string{"alertname": "HostCPUSaturated", "source": "benchwatch", "run": "r1", "nodename": "gen", "case": "1"}
	am.post(host)
	am.post(map[string]string{"alertname": "ReplicationLagGrowing", "source": "benchwatch", "cluster": "c", "target": "n1", "case": "2"})
	am.eventually(func() bool { return len(am.inhibited()) == 2 }, func() string { return "the alerts have not arrived" })
	am.post(map[string]string{"alertname": "GeneratorSaturated", "source": "benchwatch", "run": "r1", "nodename": "gen"})
	am.post(map[string]string{"alertname": "ReplicationLagHigh", "source": "benchwatch", "cluster": "c", "target": "n1"})
	// On another host: it waits as long as the inhibited alerts, and began later.
	host["nodename"] = "db"
	am.post(host)
	var got []string
	am.eventually(func() bool {
		got = slices.Sorted(maps.Keys(am.received()))
		return slices.Contains(got, "HostCPUSaturated db")
	}, func() string { return fmt.Sprintf("received %q", got) })
	if want := []string{"GeneratorSaturated gen", "HostCPUSaturated db", "ReplicationLagHigh n1"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}

// An alert that was inhibited all the time is not sent when it resolves with its cause.
func TestAlertmanagerSendsNoResolvedAlertThatWasInhibited(t *testing.T) {
	am := startAlertmanager(t)
	of := func(name string) map[string]string {
		return map[string]string{"alertname": name, "source": "benchwatch", "cluster": "c", "target": "n1"}
	}
	receive := func(alert string) {
		t.Helper()
		am.eventually(func() bool { return am.received()[alert] }, func() string { return fmt.Sprintf("received %v", am.seen) })
	}
	am.post(of("ReplicationStopped"))
	receive("ReplicationStopped n1")
	am.post(of("ReplicationLagHigh"))
	am.resolve(of("ReplicationStopped"), of("ReplicationLagHigh"))
	receive("ReplicationStopped n1 resolved")
	if am.received()["ReplicationLagHigh n1 resolved"] {
		t.Error("the inhibited alert was sent when it resolved")
	}
}

// An inhibition whose labels one of the alerts does not have would have no effect.
func TestInhibitedAlertsHaveTheLabels(t *testing.T) {
	var config struct {
		Rules []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
			Equal  []string `yaml:"equal"`
		} `yaml:"inhibit_rules"`
	}
	text, err := os.ReadFile(filepath.Join(root, "alerts/alertmanager.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	for _, rule := range config.Rules {
		if len(rule.Equal) == 0 {
			t.Errorf("inhibition by %q lacks the labels that must be equal", rule.Source)
		}
		for _, matcher := range append(rule.Source, rule.Target...) {
			pattern := strings.Trim(strings.TrimLeft(strings.TrimPrefix(matcher, "alertname"), " =~"), `"`)
			matching := 0
			for _, alert := range alerts(t) {
				if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(alert.Alert) {
					continue
				}
				matching++
				test, err := os.ReadFile(alert.Alert + "_test.yml")
				if err != nil {
					t.Fatal(err)
				}
				for _, label := range rule.Equal {
					if !regexp.MustCompile(`exp_labels:\n(\s+\w+: .+\n)*\s+` + label + ": ").Match(test) {
						t.Errorf("%s is in an inhibition by %s but has no such label in its test", alert.Alert, label)
					}
				}
			}
			if matching == 0 {
				t.Errorf("no alert matches %s", matcher)
			}
		}
	}
}

// alertmanager is a real one with the shipped configuration, and its webhook.
type alertmanager struct {
	t    *testing.T
	url  string
	sent chan string // alerts that the webhook has received
	seen map[string]bool
}

func startAlertmanager(t *testing.T) *alertmanager {
	t.Helper()
	program := cmp.Or(os.Getenv("ALERTMANAGER"), "prometheus-alertmanager")
	need.Program(t, program)
	am := &alertmanager{t: t, sent: make(chan string, 1000), seen: map[string]bool{}}
	webhook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			Alerts []struct {
				Labels map[string]string `json:"labels"`
				Status string            `json:"status"`
			} `json:"alerts"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		for _, a := range m.Alerts {
			text := a.Labels["alertname"] + " " + a.Labels["nodename"] + a.Labels["target"]
			if a.Status == "resolved" {
				text += " resolved"
			}
			am.sent <- text
		}
	}))
	t.Cleanup(webhook.Close)
	text, err := os.ReadFile(filepath.Join(root, "alerts/alertmanager.yml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, change := range [][2]string{
		{"http://127.0.0.1:9838/api/v1/alerts", webhook.URL},
		{"group_wait: 10s", "group_wait: 2s"}, {"group_wait: 2s\n  group_interval", "group_wait: 1s\n  group_interval"},
	} {
		if !bytes.Contains(text, []byte(change[0])) {
			t.Fatalf("the configuration lacks %s", change[0])
		}
		text = bytes.ReplaceAll(text, []byte(change[0]), []byte(change[1]))
	}
	write(t, filepath.Join(dir, "alertmanager.yml"), text)
	write(t, filepath.Join(dir, "webhook_token"), []byte("token"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	am.url = "http://" + address
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+filepath.Join(dir, "alertmanager.yml"),
		"--storage.path="+filepath.Join(dir, "data"), "--cluster.listen-address=", "--web.listen-address="+address, "--log.level=error")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() && log.Len() > 0 {
			t.Logf("alertmanager: %s", &log)
		}
	})
	am.eventually(func() bool {
		r, err := http.Get(am.url + "/-/ready")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, func() string { return "Alertmanager is not ready: " + log.String() })
	return am
}

func (am *alertmanager) eventually(done func() bool, problem func() string) {
	am.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(30 * time.Second); !done(); {
		select {
		case <-tick.C:
		case <-limit:
			am.t.Fatal(problem())
		}
	}
}

func (am *alertmanager) post(l map[string]string) {
	am.t.Helper()
	am.send([]map[string]any{{"labels": l}})
}

// resolve ends alerts at the same time.
func (am *alertmanager) resolve(all ...map[string]string) {
	am.t.Helper()
	var alerts []map[string]any
	now := time.Now()
	for _, l := range all {
		alerts = append(alerts, map[string]any{"labels": l, "endsAt": now})
	}
	am.send(alerts)
}

func (am *alertmanager) send(alerts []map[string]any) {
	am.t.Helper()
	body, err := json.Marshal(alerts)
	if err != nil {
		am.t.Fatal(err)
	}
	r, err := http.Post(am.url+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	if err != nil {
		am.t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusOK {
		am.t.Fatalf("post of %v: %s", alerts, r.Status)
	}
}

// inhibited returns the alerts of the cases and whether each is inhibited.
func (am *alertmanager) inhibited() map[string]bool {
	am.t.Helper()
	r, err := http.Get(am.url + "/api/v2/alerts")
	if err != nil {
		am.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var all []struct {
		Labels map[string]string `json:"labels"`
		Status struct {
			InhibitedBy []string `json:"inhibitedBy"`
		} `json:"status"`
	}
	if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
		am.t.Fatal(err)
	}
	out := map[string]bool{}
	for _, a := range all {
		if c := a.Labels["case"]; c != "" {
			out[a.Labels["alertname"]+" "+c] = len(a.Status.InhibitedBy) > 0
		}
	}
	return out
}

// received returns the alerts that the webhook has received so far.
func (am *alertmanager) received() map[string]bool {
	for {
		select {
		case alert := <-am.sent:
			am.seen[alert] = true
		default:
			return am.seen
		}
	}
}
