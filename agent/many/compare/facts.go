package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// DistinguishingFacts returns the facts that distinguish runs, without bookkeeping. The name of a
// group is its run's id, so it does not describe the run.
func DistinguishingFacts(r *review.Row) []rundir.Fact {
	return slices.DeleteFunc(r.Facts(), func(f rundir.Fact) bool {
		return slices.Contains(Bookkeeping, f.Name) || f.Name == "group" && f.Value == r.ID
	})
}

func factOf(r *review.Row, name string) string {
	for _, f := range r.Facts() {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// compareFacts determines which facts vary within a group, and which only between groups.
func (c *Comparison) compareFacts(groups []Group, selected []string) {
	var names []string
	for _, g := range groups {
		for i := range g.Runs {
			for _, f := range DistinguishingFacts(&g.Runs[i]) {
				if !slices.Contains(names, f.Name) {
					names = append(names, f.Name)
				}
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Or(factRank(a)-factRank(b), strings.Compare(a, b)) })
	for _, name := range names {
		values, varies := groupValues(groups, func(r *review.Row) string { return factOf(r, name) })
		switch {
		case slices.Contains(selected, name):
		case varies:
			c.Varied = append(c.Varied, name)
		case differ(values):
			c.Differs = append(c.Differs, Difference{name, values})
		}
	}
	c.compareTitles(groups)
	c.dropEchoes(groups)
	c.dropRepeats(groups)
}

// compareTitles adds the titles of single runs that are not named by what distinguishes them: a title may be the only
// place that names it.
func (c *Comparison) compareTitles(groups []Group) {
	if slices.ContainsFunc(groups, func(g Group) bool { return len(g.Runs) != 1 || len(g.Facts) > 0 }) {
		return
	}
	if titles, _ := groupValues(groups, (*review.Row).OwnTitle); differ(titles) {
		c.Differs = append(c.Differs, Difference{"title", titles})
	}
}

// factRank orders the facts of a table by importance.
func factRank(name string) int {
	switch name {
	case "workload":
		return 0
	case "threads":
		return 1
	}
	return 2
}

// dropEchoes removes varied facts that equal a previous one in every run, such as a sweep's label
// that repeats an option of the tool.
func (c *Comparison) dropEchoes(groups []Group) {
	kept := c.Varied[:0]
	for _, name := range c.Varied {
		if !slices.ContainsFunc(kept, func(other string) bool { return sameFacts(groups, name, other) }) {
			kept = append(kept, name)
		}
	}
	c.Varied = kept
}

func sameFacts(groups []Group, a, b string) bool {
	for _, g := range groups {
		for i := range g.Runs {
			if factOf(&g.Runs[i], a) != factOf(&g.Runs[i], b) {
				return false
			}
		}
	}
	return true
}

// dropRepeats removes varied labels that only number the runs of a group, so that these count as
// repeats instead of combinations.
func (c *Comparison) dropRepeats(groups []Group) {
	if len(groups) < 2 {
		return
	}
	for _, name := range slices.Clone(c.Varied) {
		others := slices.DeleteFunc(slices.Clone(c.Varied), func(n string) bool { return n == name })
		isNumber, recurs := numbersRepeats(groups, name, others)
		if !isNumber {
			continue
		}
		c.Varied = others
		if !recurs {
			continue // no value pairs runs
		}
		c.Notes = append(c.Notes,
			fmt.Sprintf("%s numbers the runs of a group: runs with the same %s are repeats, not pairs", name, name))
	}
}

// numbersRepeats reports whether the values of a label are 1 to n or 0 to n-1 in each group for
// equal values of the other facts, or differ in each run, and whether values recur. A label set by a sweep is a parameter.
func numbersRepeats(groups []Group, name string, others []string) (isNumber, recurs bool) {
	cells, used := map[string][]int{}, map[string]bool{}
	areNumbers, areUnique := true, true
	for i, g := range groups {
		for j := range g.Runs {
			r := &g.Runs[j]
			value, isLabel := r.Labels[name]
			if _, isSweep := r.Labels["sweep"]; isSweep || !isLabel {
				return false, false
			}
			areUnique = areUnique && !used[value]
			used[value] = true
			n, err := strconv.Atoi(value)
			areNumbers = areNumbers && err == nil
			cell := strconv.Itoa(i)
			for _, other := range others {
				cell += "\x00" + factOf(r, other)
			}
			cells[cell] = append(cells[cell], n)
		}
	}
	if areUnique {
		return true, false
	}
	for _, numbers := range cells {
		slices.Sort(numbers)
		for i, n := range numbers {
			areNumbers = areNumbers && n == numbers[0]+i
		}
		areNumbers = areNumbers && len(numbers) > 1 && (numbers[0] == 0 || numbers[0] == 1)
	}
	return areNumbers, true
}

// groupValues returns each group's value. varies is true if a group's runs have different values.
func groupValues(groups []Group, of func(*review.Row) string) (values []string, varies bool) {
	values = make([]string, len(groups))
	for i, g := range groups {
		for j := range g.Runs {
			v := of(&g.Runs[j])
			varies = varies || j > 0 && v != values[i]
			values[i] = v
		}
	}
	return values, varies
}

func differ(values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
}

// combine groups the runs by the values of the varied facts.
func (c *Comparison) combine(groups []Group) []combination {
	var all []combination
	for i, g := range groups {
		for j := range g.Runs {
			values := make([]string, len(c.Varied))
			for k, name := range c.Varied {
				values[k] = factOf(&g.Runs[j], name)
			}
			at := slices.IndexFunc(all, func(x combination) bool { return slices.Equal(x.Values, values) })
			if at < 0 {
				at = len(all)
				all = append(all, combination{values, make([][]int, len(groups))})
			}
			all[at].Runs[i] = append(all[at].Runs[i], j)
		}
	}
	slices.SortStableFunc(all, func(a, b combination) int { return slices.CompareFunc(a.Values, b.Values, rundir.CompareValues) })
	return all
}

// All returns what differs between the groups: facts, then settings of the servers.
func (c *Comparison) All() []Difference {
	named := func(d Difference) bool { // a label that repeats a setting, or the name of the groups
		return slices.ContainsFunc(c.Differs, func(other Difference) bool { return other.Name == d.Name })
	}
	return slices.Concat(c.Differs, slices.DeleteFunc(slices.Clone(c.ServerSettings), named))
}
