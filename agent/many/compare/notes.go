package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// verdictNotes explain verdicts of a comparison.
var verdictNotes = []struct {
	verdicts []Verdict
	text     string
}{
	{
		[]Verdict{RunsDiffer, RunsAlike, RunsUnclear},
		"one run each: (p=…, these runs) compares the means over the intervals of the two runs. A p below 0.01 shows that " +
			"these two runs differ, but not that another pair would: repeat the runs, at least 4 for each group",
	},
	{
		[]Verdict{RunsApart},
		"one run each: (no overlap of these runs) means that the level of a run varies too much for a test, or a run has " +
			"too few intervals, but every eighth of one run has a higher mean than every eighth of the other, by at least " +
			"half of their spread, or three quarters of its intervals are above three times three quarters of the other's. " +
			"It shows that these two runs differ, but not that another pair would: repeat the runs, at least 4 for each group",
	},
	{
		[]Verdict{RunsStall},
		"one of these runs has stalls or slow phases that the other lacks. They are too few to know whether they recur: " +
			"repeat the runs, at least 4 for each group",
	},
	{
		[]Verdict{TooShort},
		"too short to tell: the intervals of a run depend too strongly on each other for a test, for example in slow " +
			"waves, or noise may hide such waves. Repeat the runs, at least 4 for each group, or make them longer",
	},
	{
		[]Verdict{Single},
		"one run says nothing about spread: where a group has one run, the difference may be noise. Repeat the runs, at " +
			"least 4 for each group",
	},
	{
		[]Verdict{TooFew},
		"too few runs: with fewer than 4 in each group, no difference can be distinguished from noise at the 5 % level",
	},
	{
		[]Verdict{Different, NotProven},
		"(p=…) is the probability by the Mann-Whitney U test, at the 5 % level; cells are medians with the smallest and " +
			"the largest run",
	},
}

// addNotes adds what the shapes of single runs show, what the verdicts mean, and differences that may explain others.
func (c *Comparison) addNotes(groups []Group) {
	verdicts := map[Verdict]bool{}
	for _, l := range c.Lines {
		for i, s := range l.Samples {
			verdicts[s.Verdict] = true
			if text := s.shapeText(); text != "" && !strings.Contains(strings.Join(c.Summary, " "), text) {
				of := slices.Concat(c.named(l.Combination), []string{c.Groups[i], l.Measure})
				c.Notes = append(c.Notes,
					fmt.Sprintf("%s: mean %+.1f %%: %s", strings.Join(of, " "), 100*(s.Ratio.Value-1), text))
			}
		}
	}
	for _, note := range verdictNotes {
		if slices.ContainsFunc(note.verdicts, func(v Verdict) bool { return verdicts[v] }) {
			c.Notes = append(c.Notes, note.text)
		}
	}
	for _, d := range c.Differs {
		if d.Name == "tool_version" && toolsDiffer(groups) {
			continue
		}
		if slices.Contains([]string{"workload", "threads", "tool_version"}, d.Name) {
			values := slices.Clone(d.Values)
			for i, v := range values {
				values[i] = cmp.Or(v, "none")
			}
			c.Notes = append(c.Notes,
				fmt.Sprintf("the groups differ in %s (%s), which may be the reason for a difference", d.Name, table.Join(values)))
		}
	}
}

// sampledNotes names the servers and machines that were sampled too little to have values.
func sampledNotes(groups []Group) []string {
	var notes []string
	add := func(name, run string, covered record.Coverage) {
		if !covered.Represents() {
			notes = append(notes, fmt.Sprintf("%s was sampled for %s of run %s: its values are left out", name, covered, run))
		}
	}
	for _, g := range groups {
		for i := range g.Runs {
			r := &g.Runs[i]
			for j := range r.Servers {
				add(r.Servers[j].Target, r.ID, r.Servers[j].Coverage)
			}
			for j := range r.Machines {
				add(r.Machines[j].Host, r.ID, r.Machines[j].Coverage)
			}
		}
	}
	return notes
}
