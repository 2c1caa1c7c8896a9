// Package compare compares groups of runs: what differs, by how much, and whether the difference is
// more than noise.
package compare

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Group is a set of runs of the same thing: repeats, or several combinations of parameters.
type Group struct {
	Name string
	// Facts are the facts in Name; none if it is another name.
	Facts []rundir.Fact
	Runs  []review.Row

	isRenamed bool // by NameByDifference
}

// Comparison compares groups, combination by combination, with the first group as the baseline.
type Comparison struct {
	Groups []string `json:"groups"`
	// Runs are the ids of the runs if each group has one with another name than its id.
	Runs []string `json:"runs,omitempty"`
	// Headings are the groups' names in headings: the ids and titles of runs that are not named by what distinguishes them.
	Headings []string `json:"-"`
	// Varied are the names of the facts that vary within the groups. The table has a line for each
	// combination of their values.
	Varied []string `json:"varied,omitempty"`
	// Differs are the facts that are constant within each group but differ between groups: what is
	// compared.
	Differs []Difference `json:"differs,omitempty"`
	// ServerSettings are the servers' settings that are constant within each group but differ
	// between groups.
	ServerSettings []Difference `json:"server_settings,omitempty"`
	// Summary introduces the comparison in three sentences: what differs, what limited the runs, and what the
	// difference cost.
	Summary []string `json:"summary,omitempty"`
	// Division is the line of Summary that says where a transaction spent more or less time; empty if that is not known.
	Division string `json:"-"`
	Lines    []Line `json:"lines"`
	// Statements of the servers, by the difference of their time per transaction.
	Statements []StatementDifference `json:"statements,omitempty"`
	// Limits are the results of --fail-if.
	Conditions []ConditionResult `json:"limits,omitempty"`
	// Figures show the runs over a parameter, as requested by compare --x.
	Figures []FigureData `json:"figures,omitempty"`
	// Notes that concern the comparison as a whole.
	Notes []string `json:"notes,omitempty"`

	Combinations []combination `json:"-"`
	Arranged     *FigureSet    `json:"-"`

	facts [][]rundir.Fact // of the groups
}

// combination is a set of values of the varied facts, with the matching runs of each group, by
// index.
type combination struct {
	Values []string
	Runs   [][]int
}

// Difference is a fact and its value in each group.
type Difference struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Line is one measure of one combination.
type Line struct {
	// Combination has the value of each fact that varies within the groups, in the order of varied.
	Combination []string `json:"combination,omitempty"`
	Measure     string   `json:"measure"`
	// Unit of the samples' values, for people: /s, ms, s or %.
	Unit    string   `json:"unit,omitempty"`
	Samples []Sample `json:"samples"`

	// values are the runs' values by group; intervals is the evidence from the intervals of a group's
	// only run. Both are in the unit of the line.
	values    [][]float64
	intervals []review.IntervalValues
	// isThroughput: the intervals add up to the value of the run.
	isThroughput bool
	of           *measure.Measure // of servers or machines, nil: of the tool
	// place is the sentence of the summary with the measure, least the smallest change that is mentioned there.
	place      place
	least      float64
	isHeadline bool
	isDetail   bool
	isCost     bool
	// isIncomparable: it is about transactions, which the groups' tools count differently.
	isIncomparable bool
}

// Sample is one group's values of a measure, in the unit of the line.
type Sample struct {
	Spread
	// Ratio to the first group's median. It is unknown for the first group itself, and if either
	// median is unknown or the first is 0.
	Ratio series.Optional[float64] `json:"ratio,omitzero"`
	// Low and High bound the ratio of the intervals of two single runs with 99 % confidence.
	Low  series.Optional[float64] `json:"low,omitzero"`
	High series.Optional[float64] `json:"high,omitzero"`
	// P is the probability of a difference at least as large if there were none: for repeated runs by the Mann-Whitney
	// U test, for two single runs by their intervals. It is unknown with too few of these, or if only one group has a
	// single run.
	P series.Optional[float64] `json:"p,omitzero"`
	// Verdict is whether the difference is more than noise.
	Verdict Verdict `json:"verdict,omitempty"`
	// Reason is why the runs do not allow a verdict.
	Reason string `json:"reason,omitempty"`
	// Shape is how the throughput of two single runs differs.
	Shape *Shape `json:"shape,omitempty"`
}

// Bookkeeping are labels that only number runs and do not affect them.
var Bookkeeping = []string{"sweep", "step", "repeat", "ab", "block"}

// Compare compares groups. selected are the names of the facts by which the runs
// of the groups were selected.
func Compare(groups []Group, selected []string) Comparison {
	c := Comparison{}
	var rows []review.Row
	for _, g := range groups {
		c.Groups, c.facts = append(c.Groups, g.Name), append(c.facts, g.Facts)
		rows = append(rows, g.Runs...)
	}
	c.nameRuns(groups)
	c.compareFacts(groups, selected)
	c.Combinations = c.combine(groups)
	for _, m := range review.Measures(rows) {
		for _, x := range c.Combinations {
			line := newLine(&m, groups, x)
			// A measure that is 0 everywhere, such as errors, needs no line. For servers 0 is worth
			// one: flow control or lag was 0.
			if slices.ContainsFunc(line.Samples, func(s Sample) bool { return s.N > 0 && (m.Server || s.Min != 0 || s.Max != 0) }) {
				c.Lines = append(c.Lines, line)
			}
		}
	}
	c.Statements = compareStatements(groups)
	c.summarize(groups)
	c.Notes = slices.Concat(sampledNotes(groups), c.Notes)
	c.addNotes(groups)
	c.compareSettings(groups)
	return c
}

// newLine compares the groups by a measure in one combination.
func newLine(m *review.Measure, groups []Group, x combination) Line {
	line := Line{
		Combination: x.Values, Measure: m.Name, Unit: m.Unit.Sign, of: m.Of,
		isThroughput: m.Field == tool.Throughput.Field(), isHeadline: m.IsHeadline, isDetail: m.IsDetail, isCost: m.IsCost,
		values: make([][]float64, len(groups)), intervals: make([]review.IntervalValues, len(groups)),
	}
	line.place, line.least = placeOf(m)
	for i := range groups {
		for _, j := range x.Runs[i] {
			if v := m.Value(&groups[i].Runs[j]); series.IsKnown(v) {
				line.values[i] = append(line.values[i], v*m.Unit.Factor)
				line.intervals[i] = groups[i].Runs[j].IntervalValues[m.Field].Scaled(m.Unit.Factor)
			}
		}
		line.Samples = append(line.Samples, Sample{Spread: NewSpread(line.values[i])})
	}
	line.isIncomparable = m.Of == nil && line.place == inDiffers && toolsDiffer(groups) || m.IsCost && toolsDiffer(groups)
	line.setVerdicts()
	return line
}

// Over replaces the comparison's table by the table of the figures.
func (c *Comparison) Over(s *FigureSet) { c.Arranged, c.Figures = s, s.Data() }
