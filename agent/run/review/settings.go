package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// ClusterSettings are the settings of a cluster's servers when a run began. A server
// without a cluster is a cluster by itself.
type ClusterSettings struct {
	Cluster string    `json:"cluster,omitempty"`
	Servers []string  `json:"servers"`
	Names   []Setting `json:"settings"`
}

// Setting is a configuration variable and its value on each server, in their order;
// empty if a server does not have it.
type Setting struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	// Differs is set if the servers do not all have the same value.
	Differs bool `json:"differs,omitempty"`
}

// SettingChange is a setting that changed during a run.
type SettingChange struct {
	Server         string    `json:"server"`
	Name           string    `json:"name"`
	Before         string    `json:"before"`
	After          string    `json:"after"`
	At             time.Time `json:"at"`
	ElapsedSeconds float64   `json:"elapsed_seconds"`
}

// Text returns the change as text.
func (c SettingChange) Text() string {
	return fmt.Sprintf("%s: %s was changed from %s to %s by %s", c.Server, c.Name,
		table.Dash(c.Before), table.Dash(c.After), table.Clock(c.ElapsedSeconds))
}

// SettingsByCluster groups known settings by cluster, those that differ first. The clusters are
// in the order of their titles, whichever was recorded first, and machines follow.
func SettingsByCluster(all record.SettingsHistory) []ClusterSettings {
	var clusters [][]record.TargetSettings
	for _, t := range all {
		if t.Error != "" {
			continue
		}
		i := slices.IndexFunc(clusters, func(c []record.TargetSettings) bool { return t.Cluster != "" && c[0].Cluster == t.Cluster })
		if i < 0 {
			clusters = append(clusters, nil)
			i = len(clusters) - 1
		}
		clusters[i] = append(clusters[i], t)
	}
	tables := make([]ClusterSettings, len(clusters)) // never nil: JSON's []
	for i, servers := range clusters {
		tables[i] = settingsTable(servers)
	}
	slices.SortStableFunc(tables, func(a, b ClusterSettings) int {
		return cmp.Or(a.machine()-b.machine(), strings.Compare(a.Title(), b.Title()))
	})
	return tables
}

// machine is 1 for the settings of a machine, else 0.
func (c *ClusterSettings) machine() int {
	if strings.HasPrefix(c.Servers[0], record.MachineSettings) {
		return 1
	}
	return 0
}

func settingsTable(servers []record.TargetSettings) ClusterSettings {
	t := ClusterSettings{Cluster: servers[0].Cluster}
	names := map[string]bool{}
	facts := make([]map[string]string, len(servers))
	for i := range servers {
		t.Servers = append(t.Servers, servers[i].Target)
		facts[i] = servers[i].Facts()
		for name := range facts[i] {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s := Setting{Name: name, Values: make([]string, len(servers))}
		for i := range servers {
			s.Values[i] = facts[i][name]
			s.Differs = s.Differs || s.Values[i] != s.Values[0]
		}
		t.Names = append(t.Names, s)
	}
	slices.SortStableFunc(t.Names, func(a, b Setting) int { return settingRank(&a) - settingRank(&b) })
	return t
}

func settingRank(s *Setting) int {
	switch {
	case s.Differs:
		return 0
	case s.Name == record.VersionSetting:
		return 1
	}
	return 2
}

// Title returns the names of the cluster and its servers.
func (c *ClusterSettings) Title() string {
	switch {
	case len(c.Servers) == 1:
		return c.Servers[0]
	case c.Cluster != "":
		return c.Cluster + ": " + table.Join(c.Servers)
	}
	return table.Join(c.Servers)
}

// Differing returns a table of the settings that are not the same on all servers.
func (c *ClusterSettings) Differing() *table.Table {
	t := table.New(table.Named(append([]string{"differs"}, c.Servers...)...)...)
	for _, s := range c.Names {
		if s.Differs {
			row := []table.Cell{table.Text(s.Name)}
			for _, v := range s.Values {
				row = append(row, table.Text(SettingText(v)))
			}
			t.Add(row...)
		}
	}
	return t
}

// Same returns a table of the settings that all servers share.
func (c *ClusterSettings) Same() *table.Table {
	head := "value"
	if len(c.Servers) > 1 {
		head = "on all"
	}
	t := table.New(table.Named("setting", head)...)
	for _, s := range c.Names {
		if !s.Differs {
			t.Add(table.Text(s.Name), table.Text(SettingText(s.Values[0])))
		}
	}
	return t
}

// SettingText adds MiB or GiB to a large number of bytes, and leaves out zeros at the
// end of a decimal fraction.
func SettingText(v string) string {
	if f, err := strconv.ParseFloat(v, 64); err == nil && strings.Contains(v, ".") {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	if short, ok := ShortSize(v); ok {
		return v + " (" + short + ")"
	}
	return table.Dash(v)
}

// ShortSize returns a number of bytes in MiB or GiB; false if it is no whole number of them.
func ShortSize(v string) (string, bool) {
	const mebibyte = 1 << 20
	n, err := strconv.ParseUint(v, 10, 63)
	switch {
	case err != nil || n == 0 || n%mebibyte != 0:
		return "", false
	case n%(mebibyte<<10) == 0:
		return fmt.Sprintf("%d GiB", n/(mebibyte<<10)), true
	}
	return fmt.Sprintf("%d MiB", n/mebibyte), true
}

// SettingChanges returns the changes of all servers in the order of their times, on an axis that
// begins at zero.
func SettingChanges(recorded record.SettingsHistory, zero time.Time) []SettingChange {
	var all []SettingChange
	for _, t := range recorded {
		for _, c := range t.Changes {
			all = append(all, SettingChange{t.Target, c.Name, c.Before, c.After, c.At, c.At.Sub(zero).Seconds()})
		}
	}
	slices.SortStableFunc(all, func(a, b SettingChange) int { return a.At.Compare(b.At) })
	return all
}

// UnreadSettings returns a sentence about each server whose settings could not be read.
func UnreadSettings(recorded record.SettingsHistory) []string {
	var lines []string
	for _, t := range recorded {
		if t.Error != "" {
			lines = append(lines, fmt.Sprintf("settings of %s are unknown: %s", t.Target, t.Error))
		}
	}
	return lines
}

// unknownSettings returns sentences about servers whose settings are unknown, and why.
func unknownSettings(h *record.History) []string {
	lines := UnreadSettings(h.Settings)
	var down, silent []string
	for _, s := range h.Servers {
		i := slices.IndexFunc(h.Settings, func(t record.TargetSettings) bool { return t.Target == s.Target })
		switch {
		case i < 0 && !s.Answered:
			down = append(down, s.Target)
		case i < 0:
			silent = append(silent, s.Target)
		}
	}
	if len(down) > 0 {
		lines = append(lines, fmt.Sprintf("settings of %s are unknown: no answer during the run", table.Join(down)))
	}
	if len(silent) > 0 {
		lines = append(lines, fmt.Sprintf("settings of %s were not recorded: the run was too short, or its record is of an older version", table.Join(silent)))
	}
	return lines
}

// settingsOfRun returns the settings with the value that all servers of a run share,
// or with each server's. A change during the run is part of the value.
func settingsOfRun(recorded record.SettingsHistory) map[string]string {
	all := slices.Clone(recorded)
	for i := range all {
		all[i].Settings = maps.Clone(all[i].Settings)
		for _, c := range all[i].Changes {
			if c.Name != record.VersionSetting && all[i].Settings != nil {
				all[i].Settings[c.Name] = table.Dash(all[i].Settings[c.Name]) + " → " + table.Dash(c.After)
			}
		}
	}
	facts := map[string]string{}
	for _, c := range SettingsByCluster(all) {
		for _, s := range c.Names {
			value := s.Values[0]
			if s.Differs {
				parts := make([]string, len(s.Values))
				for i, v := range s.Values {
					parts[i] = c.Servers[i] + " " + table.Dash(v)
				}
				slices.Sort(parts) // whichever server was read first
				value = strings.Join(parts, ", ")
			}
			if before, known := facts[s.Name]; known && before != value {
				value = before + "; " + c.Title() + " " + value
			}
			facts[s.Name] = value
		}
	}
	return facts
}

// SettingsOf returns settings of a run's servers as comparisons show them, nil if none
// were recorded.
func SettingsOf(recorded record.SettingsHistory) map[string]string {
	if len(recorded) == 0 {
		return nil
	}
	return settingsOfRun(recorded)
}
