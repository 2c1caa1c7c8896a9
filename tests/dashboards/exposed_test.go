package dashboards

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// absent are the lists of names of systems that the end-to-end test can't start.
var absent = []string{"aurora.txt", "mongodb_exporter.txt", "postgres_exporter.txt", "proxy.txt", "tidb.txt"}

// With PROMETHEUS_WINDOWS set, every metric that a dashboard queries must be in the Prometheus
// of the end-to-end test, in the recorded lists of systems that it does not scrape, or in
// not-exposed.txt with the reason. That a name is declared somewhere is not enough.
func TestMetricsAreExposed(t *testing.T) {
	if os.Getenv("PROMETHEUS_WINDOWS") == "" {
		t.Skip("PROMETHEUS_WINDOWS is not set; tests/e2e sets it")
	}
	p := askedPrometheus(t)
	windows := askedWindows(t)
	all := windows[0]
	for _, w := range windows {
		if w.From.Before(all.From) {
			all.From = w.From
		}
		if w.To.After(all.To) {
			all.To = w.To
		}
	}
	names, err := p.LabelValues(t.Context(), "", "__name__", all)
	if err != nil {
		t.Fatal(err)
	}
	exposed := map[string][]string{}
	for _, name := range names {
		exposed[name] = nil
	}
	recorded := map[string][]string{}
	for _, list := range absent {
		if err := namesIn(filepath.Join(root, "tests/metrics", list), recorded); err != nil {
			t.Fatal(err)
		}
	}
	excused := reasons(t, "not-exposed.txt")
	used := map[string]bool{}
	for name, places := range metricsOf(t, exposed) {
		_, seen := exposed[name]
		_, elsewhere := recorded[name]
		excuse := excuseOf(excused, name)
		used[excuse] = true
		switch {
		case seen && excuse != "" && !strings.HasPrefix(excused[excuse], "perhaps"):
			t.Errorf("%s is exposed: not-exposed.txt needs no %s", name, excuse)
		case !seen && !elsewhere && excuse == "":
			t.Errorf("%s is not exposed; used in %s", name, strings.Join(places, "; "))
		}
	}
	for excuse := range excused {
		if !used[excuse] {
			t.Errorf("not-exposed.txt: no dashboard queries %s", excuse)
		}
	}
}

// metricsOf returns the names that the dashboards query, with their places.
func metricsOf(t *testing.T, exposed map[string][]string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, d := range dashboards(t) {
		for _, q := range queries(t, &d) {
			expr, err := Parse(q.expr)
			if err != nil {
				continue // TestEveryQueryParses
			}
			for _, s := range Selectors(expr) {
				for _, name := range Names(s, exposed) {
					if !slices.Contains(found[name], q.place) {
						found[name] = append(found[name], q.place)
					}
				}
			}
		}
	}
	return found
}

// excuseOf returns the excuse for a name: the name itself, or a prefix and a *.
func excuseOf(excused map[string]string, name string) string {
	for excuse := range excused {
		if beginning, ok := strings.CutSuffix(excuse, "*"); excuse == name || ok && strings.HasPrefix(name, beginning) {
			return excuse
		}
	}
	return ""
}
