package compare

import (
	"fmt"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// mostSettings is how many settings a note names: different server versions differ in dozens.
const mostSettings = 12

// compareSettings finds the settings of servers that are constant within each group but differ
// between groups, and adds a note if some are unknown.
func (c *Comparison) compareSettings(groups []Group) {
	var unknown, unsteady []string
	partial := 0
	for _, g := range groups {
		if slices.ContainsFunc(g.Runs, func(r review.Row) bool { return !knowsSettings(&r, groups) }) {
			unknown = append(unknown, g.Name)
		}
	}
	if n := len(unknown); n > 0 && n < len(groups) {
		c.Notes = append(c.Notes, fmt.Sprintf("whether the servers' settings differ is unknown: none were recorded for runs of %s", table.Join(unknown)))
	}
	for _, name := range settingsOf(groups) {
		values, varies := groupValues(groups, func(r *review.Row) string { return r.ServerSettings[name] })
		switch {
		case varies:
			if !slices.ContainsFunc(groups, func(g Group) bool {
				return slices.ContainsFunc(g.Runs, func(r review.Row) bool { return r.ServerSettings[name] == "" })
			}) {
				unsteady = append(unsteady, name)
			} else {
				partial++
			}
		case differ(values):
			for i := range values {
				values[i] = review.SettingText(values[i])
			}
			c.ServerSettings = append(c.ServerSettings, Difference{name, values})
		}
	}
	if partial > 0 {
		unsteady = append(unsteady, fmt.Sprintf("%d that some of the servers do not have", partial))
	}
	if n := len(unsteady); n > 0 {
		if n > mostSettings+1 {
			unsteady = append(unsteady[:mostSettings], fmt.Sprintf("%d more", n-mostSettings))
		}
		c.Notes = append(c.Notes, "server settings that are not the same in all runs of a group: "+table.Join(unsteady))
	}
}
