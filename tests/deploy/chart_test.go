// Package deploy tests the Helm chart. What needs Helm is in deploy_test.go.
package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// source is the chart without rules and dashboards, which packaging/chart.sh adds.
const source = "../../deploy/helm/benchwatch"

// TestVersions guards that chart and citation have the version of the program.
func TestVersions(t *testing.T) {
	version := strings.TrimSpace(read(t, "../../VERSION"))
	for _, c := range []struct{ file, key string }{
		{source + "/Chart.yaml", "version"},
		{source + "/Chart.yaml", "appVersion"},
		{"../../CITATION.cff", "version"},
	} {
		m := regexp.MustCompile(`(?m)^` + c.key + `: (\S+)$`).FindStringSubmatch(read(t, c.file))
		if m == nil || m[1] != version {
			t.Errorf("%s: %s is %q, VERSION has %s", c.file, c.key, m, version)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
