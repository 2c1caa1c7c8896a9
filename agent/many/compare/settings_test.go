package compare

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/run/review"
)

// Runs through a proxy without sampled servers only have settings of their machine: the servers' settings are unknown
// there, not different.
func TestSettingsOfServersThatWereNotSampled(t *testing.T) {
	runs := func(servers int, settings map[string]string) []review.Row {
		row := review.Row{Servers: make([]review.Server, servers), ServerSettings: settings}
		return []review.Row{row, row}
	}
	groups := []Group{
		{Name: "direct", Runs: runs(1, map[string]string{"back_log": "90", "os": "Debian", "cpu_cores": "2", "version": "10.11; machine vm 6.1"})},
		{Name: "proxied", Runs: runs(0, map[string]string{"os": "Debian", "cpu_cores": "4", "version": "6.1"})},
	}
	c := Compare(slices.Clone(groups), nil)
	if len(c.ServerSettings) != 1 || c.ServerSettings[0].Name != "cpu_cores" {
		t.Errorf("different: %+v", c.ServerSettings)
	}
	if !slices.ContainsFunc(c.Notes, func(n string) bool { return strings.HasSuffix(n, "none were recorded for runs of proxied") }) {
		t.Errorf("notes: %q", c.Notes)
	}
	for i := range groups {
		groups[i].Name = ""
	}
	if NameByDifference(groups); groups[1].Name != "cpu_cores=4" {
		t.Errorf("named %q and %q", groups[0].Name, groups[1].Name)
	}
}
