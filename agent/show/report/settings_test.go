package report

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// withSettings gives all runs of a group these settings of servers; each run has
// a list of target, name, value.
func withSettings(g compare.Group, perRun ...[][3]string) compare.Group {
	for i := range g.Runs {
		var all record.SettingsHistory
		for _, s := range perRun[min(i, len(perRun)-1)] {
			at := slices.IndexFunc(all, func(t record.TargetSettings) bool { return t.Target == s[0] })
			if at < 0 {
				at = len(all)
				all = append(all, record.TargetSettings{ServerSettings: record.ServerSettings{Target: s[0], Cluster: "c", Settings: map[string]string{}}})
			}
			all[at].Settings[s[1]] = s[2]
		}
		g.Runs[i].ServerSettings = review.SettingsOf(all)
	}
	return g
}

// TestCompareServerSettings guards that a comparison names the settings of the servers
// that differ between the groups, and the groups whose settings are unknown.
func TestCompareServerSettings(t *testing.T) {
	same := func(v string) [][3]string {
		return [][3]string{{"n1", "pool", "1073741824"}, {"n2", "pool", "1073741824"}, {"n1", "fc_limit", v}, {"n2", "fc_limit", v}}
	}
	uneven := [][3]string{{"n1", "pool", "1073741824"}, {"n2", "pool", "134217728"}, {"n1", "fc_limit", "16"}, {"n2", "fc_limit", "16"}}
	for name, c := range map[string]struct {
		a, b       [][][3]string
		want, note string
	}{
		"the same":        {[][][3]string{same("16")}, [][][3]string{same("16")}, "", ""},
		"one differs":     {[][][3]string{same("16")}, [][][3]string{same("100")}, "fc_limit: 16 / 100", ""},
		"on one server":   {[][][3]string{same("16")}, [][][3]string{uneven}, "pool: 1073741824 (1 GiB) / n1 1073741824, n2 134217728", ""},
		"not known of b":  {[][][3]string{same("16")}, [][][3]string{nil}, "", "none were recorded for runs of via=b"},
		"of no run":       {[][][3]string{nil}, [][][3]string{nil}, "", ""},
		"within a group":  {[][][3]string{same("16")}, [][][3]string{same("16"), same("100")}, "", "not the same in all runs of a group: fc_limit"},
		"not in one of a": {[][][3]string{same("16"), nil}, [][][3]string{same("16")}, "", "none were recorded for runs of via=a"},
	} {
		got := compare.Compare([]compare.Group{withSettings(group("a", 4, 100, 101), c.a...), withSettings(group("b", 4, 100, 101), c.b...)}, []string{"via"})
		var found []string
		for _, d := range got.ServerSettings {
			found = append(found, d.Name+": "+strings.Join(d.Values, " / "))
		}
		if text := strings.Join(found, "; "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
		notes := strings.Join(got.Notes, "\n")
		if strings.Contains(notes, "settings") != (c.note != "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: notes %q", name, notes)
		}
		if text := textOf(t, got); c.want != "" && !strings.Contains(text, strings.NewReplacer(": ", " ", " / ", " → ").Replace(c.want)) {
			t.Errorf("%s: not in the text:\n%s", name, text)
		}
	}
}

// TestSettingsPage guards that a report shows the settings of each cluster, with differing and changed settings apart,
// and why some are unknown.
func TestSettingsPage(t *testing.T) {
	text, _ := rendered(t, reportOf(recorded.Read(t, recorded.Galera(t))))
	for _, want := range []string{
		"galera: n1 and n2", "n2: wsrep_slave_threads was changed from 1 to 4 by 0:10", "<td>innodb_flush_log_at_trx_commit</td><td>1</td><td>0</td>",
		"<dt>gcs.fc_limit</dt><dd>100</dd>", "<dt>innodb_buffer_pool_size</dt><dd>134217728 (128 MiB)</dd>",
		"settings of n3 are unknown: SHOW GLOBAL VARIABLES: Error 1227 (42000): Access denied",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestUnits guards that a line of a comparison names the unit of its numbers.
func TestUnits(t *testing.T) {
	g := group("a", 4, 100)
	g.Runs[0].Servers = []review.Server{{Target: "n1", DrainSeconds: series.Some(2.5), Values: []review.Value{{Measure: engine.FlowControl, Value: 0.25}}}}
	other := group("b", 4, 50)
	other.Runs[0].Servers = []review.Server{{Target: "n1", DrainSeconds: series.Some(5.), Values: []review.Value{{Measure: engine.FlowControl, Value: 0.5}}}}
	c := compare.Compare([]compare.Group{g, other}, nil)
	var got []string
	for _, row := range c.Table().Rows {
		got = append(got, row[0].String()+" "+row[1].String())
	}
	for _, want := range []string{"p95 ms 10.00", "drain s 2.50", "flow control % 25.00"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// TestUnknownSettings guards that a report names the servers whose settings are
// unknown, and why, also if no settings are known at all.
func TestUnknownSettings(t *testing.T) {
	dir := recorded.Galera(t)
	if err := os.Remove(dir.Path(record.SettingsFile)); err != nil {
		t.Fatal(err)
	}
	h := recorded.Read(t, dir)
	h.Server("n2").Answered = false
	r := New(h)
	want := []string{
		"settings of n2 are unknown: no answer during the run",
		"settings of n1 and n3 were not recorded: the run was too short, or its record is of an older version",
	}
	if !slices.Equal(r.SettingsUnknown, want) || len(r.Settings) != 0 {
		t.Errorf("%q", r.SettingsUnknown)
	}
	if text, _ := rendered(t, &Document{Runs: []Report{r}}); !strings.Contains(text, want[0]) {
		t.Error("not on the page")
	}
}

// TestSettingsInOrder guards that runs with the same settings are the same in a comparison,
// whichever of their servers and machines answered first.
func TestSettingsInOrder(t *testing.T) {
	all := record.SettingsHistory{}
	for target, version := range map[string]string{"db1": "10.11", "db2": "11.8", record.MachineSettings + "vm": "6.18"} {
		all = append(all, record.TargetSettings{ServerSettings: record.ServerSettings{Target: target, Version: version}})
	}
	slices.SortFunc(all, func(a, b record.TargetSettings) int { return strings.Compare(a.Target, b.Target) })
	want := review.SettingsOf(all)[record.VersionSetting]
	if !strings.HasPrefix(want, "10.11") || !strings.HasSuffix(want, "machine vm 6.18") {
		t.Errorf("%q", want)
	}
	slices.Reverse(all)
	if got := review.SettingsOf(all)[record.VersionSetting]; got != want {
		t.Errorf("%q, before %q", got, want)
	}
}
