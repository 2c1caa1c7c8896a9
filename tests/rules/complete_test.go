package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root     = "../.."
	runbooks = "https://github.com/benchwatch/benchwatch/blob/main/alerts/runbooks/"
)

func alerts(t *testing.T) []Rule {
	t.Helper()
	all, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(r Rule) bool { return r.Alert == "" })
}

// Every alert has a promtool test that fires and resolves it, stays quiet, and
// loses data: a series that ends (stale) or has no sample (_).
func TestEveryAlertIsTested(t *testing.T) {
	for _, rule := range alerts(t) {
		text, err := os.ReadFile(rule.Alert + "_test.yml")
		if err != nil {
			t.Errorf("%s has no test: %v", rule.Alert, err)
			continue
		}
		test := string(text)
		for _, want := range []struct{ what, pattern string }{
			{"a case in which it fires", `exp_alerts:\n\s+- exp_labels:`},
			{"a case in which it stays quiet", `exp_alerts: \[\]`},
			{"a case in which data end or are missing", `\n\s+values: .*([ '"]_|\bstale\b)`},
		} {
			if !regexp.MustCompile(want.pattern).MatchString(test) {
				t.Errorf("%s_test.yml lacks %s", rule.Alert, want.what)
			}
		}
		if n := strings.Count(test, "alertname: "); n != strings.Count(test, "alertname: "+rule.Alert+"\n") {
			t.Errorf("%s_test.yml tests other alerts, too", rule.Alert)
		}
	}
}

func TestEveryTestHasItsAlert(t *testing.T) {
	known := map[string]bool{}
	for _, rule := range alerts(t) {
		if known[rule.Alert] {
			t.Errorf("two alerts are called %s", rule.Alert)
		}
		known[rule.Alert] = true
	}
	for _, glob := range []string{"*_test.yml", root + "/alerts/runbooks/*.md"} {
		paths, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".md"), "_test.yml")
			// <Alert>.<case>_test.yml, and <file of rules>.recording_test.yml.
			name, of, _ := strings.Cut(name, ".")
			if of == "recording" {
				if _, err := os.Stat(filepath.Join(root, "prometheus/rules", name+".yml")); err != nil {
					t.Errorf("%s belongs to no file of rules: %v", path, err)
				}
				continue
			}
			if !known[name] {
				t.Errorf("%s belongs to no alert", path)
			}
		}
	}
}

var runbookHeadings = []string{"## What it means", "## What to look at", "## What usually helps"}

func TestEveryAlertHasARunbook(t *testing.T) {
	for _, rule := range alerts(t) {
		if got, want := rule.Annotations["runbook_url"], runbooks+rule.Alert+".md"; got != want {
			t.Errorf("%s has runbook_url %q, want %q", rule.Alert, got, want)
		}
		text, err := os.ReadFile(filepath.Join(root, "alerts/runbooks", rule.Alert+".md"))
		if err != nil {
			t.Errorf("%s has no runbook: %v", rule.Alert, err)
			continue
		}
		if !strings.HasPrefix(string(text), "# "+rule.Alert+"\n") {
			t.Errorf("runbook of %s does not begin with its name", rule.Alert)
		}
		for _, heading := range runbookHeadings {
			if !strings.Contains(string(text), "\n"+heading+"\n") {
				t.Errorf("runbook of %s lacks %q", rule.Alert, heading)
			}
		}
	}
}

var camelCase = regexp.MustCompile(`^([A-Z]+[a-z0-9]*)+$`)

func TestAlertsFollowTheConventions(t *testing.T) {
	severities := map[string]bool{"critical": true, "warning": true, "info": true}
	for _, rule := range alerts(t) {
		if !camelCase.MatchString(rule.Alert) {
			t.Errorf("%s is not CamelCase", rule.Alert)
		}
		if !severities[rule.Labels["severity"]] {
			t.Errorf("%s has severity %q", rule.Alert, rule.Labels["severity"])
		}
		if rule.Labels["source"] != "benchwatch" {
			t.Errorf("%s lacks the label source=benchwatch, by which Alertmanager and the dashboards know it", rule.Alert)
		}
		summary, description := rule.Annotations["summary"], rule.Annotations["description"]
		if summary == "" || strings.Contains(summary, "{{") {
			t.Errorf("%s has summary %q; want a sentence without values, so that notifications group", rule.Alert, summary)
		}
		if !strings.Contains(description, "{{") {
			t.Errorf("%s has description %q; want one with the values", rule.Alert, description)
		}
	}
}
