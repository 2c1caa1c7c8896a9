//go:build e2e

package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/app/setup"
	"github.com/benchwatch/benchwatch/internal/agents"
)

// The doctor finds nothing wrong with a Prometheus that has the repository's rules, and
// names each fault of one.
func TestDoctorOfAPrometheus(t *testing.T) {
	a := env.StartAgent(t, "")
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules")
	must(t, os.Mkdir(rules, 0o755))
	copyRules(t, rules)
	config := filepath.Join(dir, "prometheus.yml")
	configure := func(interval, more string) {
		must(t, os.WriteFile(config, fmt.Appendf(nil, "global: {scrape_interval: %s, scrape_timeout: 900ms, evaluation_interval: 1s}\nrule_files: ['%s/*.yml']\n"+
			"scrape_configs:\n  - {job_name: benchwatch, static_configs: [{targets: ['%s']}]}\n%s", interval, rules, a.Address, more), 0o644))
	}
	configure("1s", "")
	p := agents.FreeAddress(t)
	agents.Start(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p, "--web.enable-lifecycle", "--log.level=warn")
	reload := func() {
		t.Helper()
		answer, err := http.Post("http://"+p+"/-/reload", "", nil)
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("reload: %s", answer.Status)
		}
	}

	// expect waits until the doctor has found exactly these warnings and failures.
	expect := func(name, address string, want ...string) {
		t.Helper()
		file := a.Config
		must(t, os.WriteFile(file, fmt.Appendf(nil, "data_dir: %s\nprometheus: {url: 'http://%s'}\n", a.DataDir, address), 0o644))
		agents.Wait(t, 40*time.Second, name, func() error {
			out, err := exec.Command(env.Binary, "doctor", "--config.file="+file, "--format=json").Output()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
				return err
			}
			var found setup.Diagnosis
			if err := json.Unmarshal(out, &found); err != nil {
				return err
			}
			var wrong []string
			for _, check := range found.Checks {
				if check.Level == setup.Warning || check.Level == setup.Failed {
					wrong = append(wrong, fmt.Sprintf("%s %s: %s", check.Level, check.Name, check.Text))
				}
			}
			same := slices.EqualFunc(wrong, want, strings.HasPrefix)
			if !same || (found.Failed > 0) != (err != nil) {
				return fmt.Errorf("found %q, exit %w", wrong, err)
			}
			return nil
		})
	}
	expect("nothing wrong", p)

	must(t, os.Rename(filepath.Join(rules, "galera.rules.yml"), filepath.Join(dir, "galera")))
	edit(t, filepath.Join(rules, "run.rules.yml"), "- alert: RunFailed\n", "- alert: RunBroken\n")
	reload()
	expect("rules of another version", p, "warning rules: 1 of", "warning rules: of another version, or changed: run")
	copyRules(t, rules)

	closed := agents.FreeAddress(t)
	configure("1s", "  - {job_name: mysqld, static_configs: [{targets: ['"+closed+"']}]}\n")
	reload()
	expect("an exporter that is down", p, "warning scraped targets: "+closed+" of job mysqld: Get ")

	configure("5s", "")
	reload()
	expect("a long interval", p, "warning scrape: an agent was scraped ")

	configure("1s", "")
	reload()
	expect("nothing wrong again", p)

	at, err := url.Parse("http://" + p)
	must(t, err)
	late := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) },
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			return nil
		},
	})
	defer late.Close()
	expect("a wrong clock", strings.TrimPrefix(late.URL, "http://"), "warning clock of Prometheus: differs from this machine's by 1h0m")
	expect("no Prometheus", closed, "failed prometheus: ")
}

// The doctor compares the webhooks of a real Alertmanager with the agents that Prometheus scrapes.
func TestDoctorOfAnAlertmanager(t *testing.T) {
	a, b := env.StartAgent(t, ""), env.StartAgent(t, "")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	hooks := func(agents ...string) string {
		text := "route: {receiver: benchwatch}\nreceivers:\n  - name: benchwatch\n    webhook_configs:\n"
		for _, address := range agents {
			text += fmt.Sprintf("      - {url: 'http://%s/api/v1/alerts'}\n", address)
		}
		return file("alertmanager.yml", text)
	}
	m, p := agents.FreeAddress(t), agents.FreeAddress(t)
	agents.Start(t, "prometheus-alertmanager", "--config.file="+hooks(a.Address), "--storage.path="+filepath.Join(dir, "am"), "--web.listen-address="+m, "--cluster.listen-address=", "--log.level=warn")
	config := file("prometheus.yml", fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 900ms}\nalerting: {alertmanagers: [{static_configs: [{targets: ['%s']}]}]}\n"+
		"scrape_configs:\n  - {job_name: benchwatch, static_configs: [{targets: ['%s', '%s']}]}\n", m, a.Address, b.Address))
	agents.Start(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p, "--log.level=warn")
	must(t, os.WriteFile(a.Config, fmt.Appendf(nil, "data_dir: %s\nprometheus: {url: 'http://%s'}\nwebhook_token_file: %s\n", a.DataDir, p, file("token", "geheim")), 0o644))
	expect := func(want string) {
		t.Helper()
		agents.Wait(t, 40*time.Second, want, func() error {
			out, _ := exec.Command(env.Binary, "doctor", "--config.file="+a.Config).CombinedOutput() // it fails: there are no rules
			if !strings.Contains(string(out), want) {
				return fmt.Errorf("doctor: %s", out)
			}
			return nil
		})
	}
	expect("Alertmanager has 1 webhook for 2 agents: the runs of the others get no markers of alerts")
	hooks(a.Address, b.Address)
	answer, err := http.Post("http://"+m+"/-/reload", "", nil)
	must(t, err)
	answer.Body.Close()
	expect("Alertmanager has 2 webhooks for 2 agents")
}

// copyRules copies all rules of the repository into a folder.
func copyRules(t *testing.T, folder string) {
	t.Helper()
	for _, pattern := range []string{"alerts/*.rules.yml", "prometheus/rules/*.yml"} {
		files, err := filepath.Glob(filepath.Join(env.Root, pattern))
		must(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(filepath.Join(folder, filepath.Base(file)), data, 0o644))
		}
	}
}

// edit replaces a text in a file.
func edit(t *testing.T, file, from, to string) {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	if !strings.Contains(string(data), from) {
		t.Fatalf("%s does not contain %q", file, from)
	}
	must(t, os.WriteFile(file, []byte(strings.Replace(string(data), from, to, 1)), 0o644))
}
