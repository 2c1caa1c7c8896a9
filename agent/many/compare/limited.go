package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// limited describes what limited each group, and how this differs between the groups.
func (c *Comparison) limited(groups []Group) string {
	all := make([]groupLimits, len(groups))
	first, isKnown := map[cause.Limit]bool{}, false
	for i := range groups {
		all[i] = limitsOf(groups[i].Runs)
		first[all[i].first] = true
		isKnown = isKnown || all[i].first != cause.Unknown
	}
	text, named := "What limited them is not known", map[cause.Limit]bool{}
	if isKnown {
		var parts []string
		hasShares := false
		for i := range all {
			l := &all[i]
			part := c.Groups[i] + l.firstText()
			hasShares = hasShares || l.first != cause.Unknown && l.first != cause.Unlimited
			if len(first) == 1 && l.second != "" {
				part += " and " + l.text(l.second)
				hasShares, named[l.second] = true, true
			}
			parts = append(parts, part)
		}
		text = "What limited them"
		if hasShares {
			text += ", in shares of the clients' time that may overlap"
		}
		text += ": " + strings.Join(parts, ", ")
	}
	for i := 1; i < len(groups); i++ {
		in := ""
		if len(groups) > 2 {
			in = " in " + c.Groups[i]
		}
		for _, difference := range c.limitDifferences(&all[0], &all[i], i, named) {
			text += "; " + difference + in
		}
	}
	return text
}

// firstText describes the limit of most runs, after the name of the group.
func (g *groupLimits) firstText() string {
	switch g.first {
	case cause.Unknown:
		return " is not known"
	case cause.Unlimited:
		return " by nothing: it reached the requested rate"
	}
	return " by " + g.text(g.first)
}

// limitDifferences describes how the limits of group i differ from the first group's: how strongly the servers hold each
// other back, and which limits and causes appeared or disappeared. It leaves out those in named, and adds to it.
func (c *Comparison) limitDifferences(before, after *groupLimits, i int, named map[cause.Limit]bool) (texts []string) {
	for _, m := range byMeasure(c.changes(inLimits, i)) {
		if most := largestChange(m); most.isNotable() {
			texts = append(texts, fmt.Sprintf("%s %s", most.line.Measure, most.values()))
			named[cause.FlowControl] = true
		}
	}
	for _, l := range cameOrVanished(before, after) {
		if !named[l] && max(before.share[l], after.share[l]) >= limits.LeastShare { // another load may have the rest
			texts = append(texts, string(l)+" "+shareOf(before, l)+" → "+shareOf(after, l))
		}
	}
	for _, name := range causesOnlyIn(before, after) {
		texts = append(texts, name+" disappeared")
	}
	for _, name := range causesOnlyIn(after, before) {
		texts = append(texts, name+" appeared")
	}
	return texts
}

// cameOrVanished returns the limits that most runs of one group and no run of the other have, in
// order. It omits the first limit of either group, which is named elsewhere, unless the other group
// has it too.
func cameOrVanished(before, after *groupLimits) []cause.Limit {
	var all []cause.Limit
	for _, pair := range [][2]*groupLimits{{before, after}, {after, before}} {
		is, other := pair[0], pair[1]
		for _, l := range is.order {
			if 2*is.runs[l] > is.of && other.of > 0 && other.runs[l] == 0 && l != is.first {
				all = append(all, l)
			}
		}
	}
	return all
}

// causesOnlyIn returns the causes that most runs of one group and no run of the other have, by name, with what they
// concern.
func causesOnlyIn(is, other *groupLimits) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(is.causes)) {
		if 2*is.causes[name].runs > is.of && other.of > 0 && other.causes[name].runs == 0 {
			if of := is.causes[name].of; of != "" {
				name += " (" + table.Clip(of, longestFact) + ")"
			}
			all = append(all, name)
		}
	}
	return all
}

func shareOf(g *groupLimits, l cause.Limit) string {
	if g.runs[l] == 0 {
		return "below " + table.Share(limits.LeastShare)
	}
	return table.Share(g.share[l])
}

// groupLimits are the limits that the runs of a group have.
type groupLimits struct {
	// first limited most runs; second is the next one in most of them; empty without one.
	first, second cause.Limit
	title         map[cause.Limit]string
	share         map[cause.Limit]float64 // mean of the runs that have it
	runs          map[cause.Limit]int
	order         []cause.Limit
	ranked        [2]map[cause.Limit]int // number of runs in which it is first, or second
	of            int                    // runs with a verdict
	causes        map[string]groupCause
}

func limitsOf(runs []review.Row) groupLimits {
	g := groupLimits{first: cause.Unknown, title: map[cause.Limit]string{},
		share: map[cause.Limit]float64{}, runs: map[cause.Limit]int{}, of: len(runs), causes: map[string]groupCause{}}
	g.ranked[0], g.ranked[1] = map[cause.Limit]int{}, map[cause.Limit]int{}
	for i := range runs {
		v := runs[i].Limits
		g.ranked[0][v.First()]++
		if v == nil {
			continue
		}
		g.addCauses(v)
		for j := range v.Findings {
			f := &v.Findings[j]
			if g.runs[f.Limit] == 0 {
				g.order, g.title[f.Limit] = append(g.order, f.Limit), f.Title()
			} else if g.title[f.Limit] != f.Title() {
				g.title[f.Limit] = string(f.Limit)
			}
			g.runs[f.Limit]++
			g.share[f.Limit] += f.Share
			if j == 1 {
				g.ranked[1][f.Limit]++
			}
		}
	}
	for l := range g.share {
		g.share[l] /= float64(g.runs[l])
	}
	for _, l := range append([]cause.Limit{cause.Unknown, cause.Unlimited}, g.order...) {
		if g.ranked[0][l] > g.ranked[0][g.first] || g.ranked[0][g.first] == 0 {
			g.first = l
		}
		if l != g.first && g.ranked[1][l] > 0 && g.ranked[1][l] > g.ranked[1][g.second] {
			g.second = l
		}
	}
	if g.second == g.first {
		g.second = ""
	}
	return g
}

// text formats a limit with its share, and the number of runs in which it has its rank.
func (g *groupLimits) text(l cause.Limit) string {
	text := g.title[l]
	if g.share[l] > 0 {
		text += " (" + table.Share(g.share[l]) + ")"
	}
	rank := 0
	if l == g.second {
		rank = 1
	}
	if n := g.ranked[rank][l]; n < g.of {
		text += fmt.Sprintf(" in %d of %d runs", n, g.of)
	}
	return text
}

// groupCause is in how many runs of a group a cause was found, and what it concerned in the first of them.
type groupCause struct {
	runs int
	of   string
}

// addCauses counts each cause of a run once.
func (g *groupLimits) addCauses(v *limits.Verdict) {
	found := map[string]string{}
	for i := range v.Findings {
		for _, c := range v.Findings[i].Causes {
			if _, known := found[c.Cause]; !known {
				found[c.Cause] = c.Of
			}
		}
	}
	for name, of := range found {
		one := g.causes[name]
		one.runs, one.of = one.runs+1, cmp.Or(one.of, of)
		g.causes[name] = one
	}
}
