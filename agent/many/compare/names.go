package compare

import (
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// longestName bounds a value in the name of a group.
const longestName = 30

// NameByDifference names groups without facts by what distinguishes them: labels of the user, then
// options of the tool, then other facts, then settings of the servers, such as "fc_limit=16". One
// fact is enough if each group has its own value, else up to mostFacts together. A fact that a group
// lacks names none. Groups that differ in nothing keep their names.
func NameByDifference(groups []Group) {
	if len(groups) < 2 || slices.ContainsFunc(groups, func(g Group) bool { return len(g.Facts) > 0 }) {
		return
	}
	var differing []Difference
	add := func(name string, of func(*review.Row) string) {
		values, varies := groupValues(groups, of)
		if !varies && differ(values) && !slices.Contains(values, "") && !slices.ContainsFunc(differing,
			func(d Difference) bool { return d.Name == name || slices.Equal(d.Values, values) }) {
			differing = append(differing, Difference{name, values})
		}
	}
	for _, name := range factsByMeaning(groups) {
		add(name, func(r *review.Row) string { return factOf(r, name) })
	}
	for _, name := range settingsOf(groups) {
		add(name, func(r *review.Row) string { return r.ServerSettings[name] })
	}
	chosen := distinguishing(differing, len(groups))
	if len(chosen) == 0 {
		return
	}
	for i := range groups {
		var words []string
		groups[i].Facts = nil
		for _, d := range chosen {
			words = append(words, d.Name+"="+table.Clip(d.Values[i], longestName))
			groups[i].Facts = append(groups[i].Facts, rundir.Fact{Name: d.Name, Value: d.Values[i]})
		}
		groups[i].Name, groups[i].isRenamed = strings.Join(words, " "), true
	}
}

// nameRuns names the runs of groups with one run each: by what distinguishes them, or by id and title.
func (c *Comparison) nameRuns(groups []Group) {
	c.Headings = c.Groups
	isNamed := func(g Group) bool {
		return len(g.Runs) == 1 && g.Name != g.Runs[0].ID && (g.isRenamed || len(g.Facts) == 0)
	}
	if slices.ContainsFunc(groups, func(g Group) bool { return !isNamed(g) }) {
		return
	}
	c.Headings = nil
	for _, g := range groups {
		heading, title := g.Runs[0].ID, g.Runs[0].OwnTitle()
		if title != "" {
			heading += " (" + title + ")"
		}
		if g.isRenamed {
			heading = g.Name
		}
		c.Runs, c.Headings = append(c.Runs, g.Runs[0].ID), append(c.Headings, heading)
	}
}

// distinguishing returns the first difference that has a different value for each group or, if there is none, the
// fewest first differences that do so together; none if all of them do not suffice.
func distinguishing(all []Difference, groups int) []Difference {
	distinguish := func(chosen []Difference) bool {
		found := map[string]bool{}
		for i := range groups {
			key := ""
			for _, d := range chosen {
				key += table.Clip(d.Values[i], longestName) + "\x00"
			}
			found[key] = true
		}
		return len(found) == groups
	}
	for i := range all {
		if distinguish(all[i : i+1]) {
			return all[i : i+1]
		}
	}
	for n := 2; n <= min(len(all), mostFacts); n++ {
		if distinguish(all[:n]) {
			return all[:n]
		}
	}
	return nil
}

// factsByMeaning returns the names of the facts of runs: labels of the user, options of the tool, the rest.
func factsByMeaning(groups []Group) []string {
	var labels, options, facts []string
	for _, g := range groups {
		for i := range g.Runs {
			r := &g.Runs[i]
			for _, f := range DistinguishingFacts(r) {
				_, isLabel := r.Labels[f.Name]
				switch {
				case slices.Contains(r.Options, f.Name):
					options = append(options, f.Name)
				case isLabel:
					labels = append(labels, f.Name)
				default:
					facts = append(facts, f.Name)
				}
			}
		}
	}
	return slices.Concat(labels, options, facts)
}

// settingsOf returns the names of the servers' settings in order. If some runs lack servers' settings, it returns the
// names that all runs have, which are settings of machines. It leaves out "version", which servers and machines share.
func settingsOf(groups []Group) []string {
	count, runs, unknown := map[string]int{}, 0, false
	for _, g := range groups {
		for i := range g.Runs {
			runs++
			unknown = unknown || !knowsSettings(&g.Runs[i], groups)
			for name := range g.Runs[i].ServerSettings {
				count[name]++
			}
		}
	}
	names := slices.Sorted(maps.Keys(count))
	if unknown {
		names = slices.DeleteFunc(names, func(name string) bool { return count[name] < runs || name == record.VersionSetting })
	}
	return names
}

// knowsSettings reports whether the settings of a run's servers were recorded. Those of a machine may be although no
// server was sampled, as behind a proxy.
func knowsSettings(r *review.Row, groups []Group) bool {
	isSampled := func(g Group) bool {
		return slices.ContainsFunc(g.Runs, func(r review.Row) bool { return len(r.Servers) > 0 })
	}
	return len(r.ServerSettings) > 0 && (len(r.Servers) > 0 || !slices.ContainsFunc(groups, isSampled))
}
