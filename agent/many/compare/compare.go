// Package compare compares groups of runs: what differs, by how much, and whether the difference is
// more than noise.
package compare

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
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
	// Runs are the ids of the runs if each group has one and is named by what distinguishes it.
	Runs []string `json:"runs,omitempty"`
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
	Lines   []Line   `json:"lines"`
	// Statements of the servers, by the difference of their time per transaction.
	Statements []StatementDifference `json:"statements,omitempty"`
	// Limits are the results of --fail-if.
	Limits []LimitResult `json:"limits,omitempty"`
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
	// place is the sentence of the summary with the measure, for changes of at least least.
	place      place
	least      float64
	isHeadline bool
	isDetail   bool
	isCost     bool
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
	if !slices.ContainsFunc(groups, func(g Group) bool { return len(g.Runs) != 1 || !g.isRenamed }) {
		for _, g := range groups {
			c.Runs = append(c.Runs, g.Runs[0].ID)
		}
	}
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
	c.addNotes()
	c.compareSettings(groups)
	return c
}

// newLine compares the groups by a measure in one combination.
func newLine(m *review.Measure, groups []Group, x combination) Line {
	line := Line{Combination: x.Values, Measure: m.Name, Unit: m.Unit.Sign, isThroughput: m.Field == tool.Throughput.Field(), isHeadline: m.IsHeadline, isDetail: m.IsDetail, isCost: m.IsCost, of: m.Of}
	line.place, line.least = placeOf(m)
	line.values, line.intervals = make([][]float64, len(groups)), make([]review.IntervalValues, len(groups))
	for i := range groups {
		for _, j := range x.Runs[i] {
			if v := m.Value(&groups[i].Runs[j]); series.IsKnown(v) {
				line.values[i] = append(line.values[i], v*m.Unit.Factor)
				line.intervals[i] = groups[i].Runs[j].IntervalValues[m.Field].Scaled(m.Unit.Factor)
			}
		}
		line.Samples = append(line.Samples, Sample{Spread: NewSpread(line.values[i])})
	}
	line.setVerdicts()
	return line
}

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
	c.dropEchoes(groups)
	c.dropRepeats(groups)
}

// dropRepeats removes varied labels that only number the runs of a group, so that these count as
// repeats instead of combinations.
func (c *Comparison) dropRepeats(groups []Group) {
	if len(groups) < 2 {
		return
	}
	for _, name := range slices.Clone(c.Varied) {
		others := slices.DeleteFunc(slices.Clone(c.Varied), func(n string) bool { return n == name })
		if !numbersRepeats(groups, name, others) {
			continue
		}
		c.Varied = others
		c.Notes = append(c.Notes, fmt.Sprintf("%s numbers the runs of a group: runs with the same %s are repeats, not pairs", name, name))
	}
}

// numbersRepeats reports whether the values of a label are 1 to n or 0 to n-1 in each group for
// equal values of the other facts, or differ in each run. A label set by a sweep is a parameter.
func numbersRepeats(groups []Group, name string, others []string) bool {
	cells, used := map[string][]int{}, map[string]bool{}
	areNumbers, areUnique := true, true
	for i, g := range groups {
		for j := range g.Runs {
			r := &g.Runs[j]
			value, isLabel := r.Labels[name]
			if _, isSweep := r.Labels["sweep"]; isSweep || !isLabel {
				return false
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
		return true
	}
	for _, numbers := range cells {
		slices.Sort(numbers)
		for i, n := range numbers {
			areNumbers = areNumbers && n == numbers[0]+i
		}
		areNumbers = areNumbers && len(numbers) > 1 && (numbers[0] == 0 || numbers[0] == 1)
	}
	return areNumbers
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

// Spread summarises values: median, mean, smallest and largest. N is 0 without values.
type Spread struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`

	values []float64
}

// Average is how several values are represented by one.
type Average string

// The averages. The median is the default, since one odd run does not move it.
const (
	ByMedian Average = "median"
	ByMean   Average = "mean"
)

// Note explains the cells of a table with several runs.
func (a Average) Note() string { return string(a) + " [smallest … largest] of the runs" }

// Average returns the median or the mean.
func (s Spread) Average(a Average) float64 {
	if a == ByMean {
		return s.Mean
	}
	return s.Median
}

// NewSpread summarises the known values.
func NewSpread(values []float64) Spread {
	v := slices.DeleteFunc(slices.Clone(values), func(x float64) bool { return !series.IsKnown(x) || math.IsInf(x, 0) })
	n := len(v)
	if n == 0 {
		return Spread{}
	}
	mean := 0.0
	for _, x := range v {
		mean += x / float64(n)
	}
	return Spread{N: n, Median: series.Median(v), Mean: mean, Min: slices.Min(v), Max: slices.Max(v), values: v}
}

// Text formats the average in a unit, with the extremes if there are several values.
func (s Spread) Text(u table.Unit, a Average) string {
	if s.N < 2 {
		return u.Format(s.Median)
	}
	return fmt.Sprintf("%s [%s … %s]", u.Format(s.Average(a)), u.Format(s.Min), u.Format(s.Max))
}

// setVerdicts compares each group's sample with the first one's.
func (l *Line) setVerdicts() {
	base := l.Samples[0]
	if base.N == 0 {
		return
	}
	for i := 1; i < len(l.Samples); i++ {
		s := &l.Samples[i]
		if s.N == 0 {
			continue
		}
		if base.Median != 0 {
			s.Ratio = series.Some(s.Median / base.Median)
		}
		l.conclude(i, s)
	}
}

// conclude sets the verdict for group i's difference.
func (l *Line) conclude(i int, s *Sample) {
	e := l.evidence(i, 1)
	s.Verdict, s.Reason = e.verdict, e.reason
	if e.isTested() {
		s.P = series.Some(e.sides.Both())
	}
	if e.high > 0 {
		s.Low, s.High = series.Some(e.low), series.Some(e.high)
	}
	if !l.isThroughput || l.Samples[0].N != 1 || s.N != 1 {
		return
	}
	s.Shape = newShape(l.intervals[0], l.intervals[i])
	undecided := e.verdict == RunsUnclear || e.verdict == TooShort
	if undecided && s.stalls() {
		s.Verdict, s.Reason = RunsStall, oneSidedStalls
	}
}

// verdictNotes explain verdicts of a comparison.
var verdictNotes = []struct {
	verdicts []Verdict
	text     string
}{
	{[]Verdict{RunsDiffer, RunsAlike, RunsUnclear}, "one run each: (these runs p=…) compares the means over the intervals of the two runs. A p below 0.01 shows that these two runs differ, but not that another pair would: repeat the runs, at least 4 for each group"},
	{[]Verdict{RunsApart}, "one run each: (these runs do not overlap) means that the level of a run varies too much for a test, or a run has too few intervals, but every eighth of one run has a higher mean than every eighth of the other, by at least half of their spread, or three quarters of its intervals are above three times three quarters of the other's. It shows that these two runs differ, but not that another pair would: repeat the runs, at least 4 for each group"},
	{[]Verdict{RunsStall}, "one of these runs has stalls or slow phases that the other lacks. They are too few to know whether they recur: repeat the runs, at least 4 for each group"},
	{[]Verdict{TooShort}, "too short to tell: the intervals of a run depend too strongly on each other for a test, for example in slow waves, or noise may hide such waves. Repeat the runs, at least 4 for each group, or make them longer"},
	{[]Verdict{Single}, "one run says nothing about spread: where a group has one run, the difference may be noise. Repeat the runs, at least 4 for each group"},
	{[]Verdict{TooFew}, "too few runs: with fewer than 4 in each group, no difference can be distinguished from noise at the 5 % level"},
	{[]Verdict{Different, NotProven}, "(p=…) is the probability by the Mann-Whitney U test, at the 5 % level; cells are medians with the smallest and the largest run"},
}

func (c *Comparison) addNotes() {
	verdicts := map[Verdict]bool{}
	for _, l := range c.Lines {
		for i, s := range l.Samples {
			verdicts[s.Verdict] = true
			if text := s.shapeText(); text != "" && !strings.Contains(strings.Join(c.Summary, " "), text) {
				c.Notes = append(c.Notes, strings.Join(slices.Concat(c.named(l.Combination), []string{c.Groups[i], l.Measure}), " ")+fmt.Sprintf(": mean %+.1f %%: %s", 100*(s.Ratio.Value-1), text))
			}
		}
	}
	for _, note := range verdictNotes {
		if slices.ContainsFunc(note.verdicts, func(v Verdict) bool { return verdicts[v] }) {
			c.Notes = append(c.Notes, note.text)
		}
	}
	for _, d := range c.Differs {
		if slices.Contains([]string{"workload", "threads", "tool_version"}, d.Name) {
			c.Notes = append(c.Notes, fmt.Sprintf("the groups differ in %s (%s), which may be the reason for a difference", d.Name, table.Join(d.Values)))
		}
	}
}

// Over replaces the comparison's table by the table of the figures.
func (c *Comparison) Over(s *FigureSet) { c.Arranged, c.Figures = s, s.Data() }

// Table has a row for each of the most important lines, see first: the combination, the measure, each group's sample
// and, except for the first group, its ratio and difference.
func (c *Comparison) Table() *table.Table {
	first := c.first()
	return c.linesWhere(func(l *Line) bool { return slices.Contains(first, l.Measure) })
}

// MoreTable is like Table, but for the other measures that differ, without details.
func (c *Comparison) MoreTable() *table.Table {
	first := c.first()
	return c.linesWhere(func(l *Line) bool {
		return !l.isDetail && !c.isFolded(l) && !slices.Contains(first, l.Measure)
	})
}

// firstRows is how many rows a table has before the others are folded.
const firstRows = 8

// first returns the most important measures: the measures of the summary's sentences, then the ones that differ most,
// as many as fit in firstRows rows, at least one.
func (c *Comparison) first() []string {
	rows, weight := map[string]int{}, map[string]float64{}
	var names []string
	for i := range c.Lines {
		l := &c.Lines[i]
		if l.isDetail || c.isFolded(l) {
			continue
		}
		if rows[l.Measure]++; rows[l.Measure] == 1 {
			names = append(names, l.Measure)
		}
		weight[l.Measure] = max(weight[l.Measure], l.weight())
	}
	ranked := slices.Clone(names)
	slices.SortStableFunc(ranked, func(a, b string) int { return cmp.Compare(weight[b], weight[a]) })
	var chosen []string
	left := firstRows
	for i, name := range ranked {
		if left -= rows[name]; left < 0 && i > 0 {
			break
		}
		chosen = append(chosen, name)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(chosen, name) })
}

// weight orders the lines of a table by their importance.
func (l *Line) weight() float64 {
	change := 0.0
	for i := range l.Samples[1:] {
		s := &l.Samples[i+1]
		if v := math.Abs(series.Number(s.Ratio) - 1); v > 0 {
			change = max(change, min(v, 1))
		}
		if s.Verdict.isProven() {
			change++
		}
	}
	switch {
	case l.isThroughput:
		return 100
	case l.isHeadline:
		return 90
	case l.place != inNone, l.Measure == errorsName:
		return 10 + change
	}
	return change
}

// errorsName is the errors' name in tables.
const errorsName = "errors"

// Charted returns the measures of servers and machines whose values over time show what differs.
func (c *Comparison) Charted() []*measure.Measure {
	var all []*measure.Measure
	for i := range c.Lines {
		l := &c.Lines[i]
		if l.of == nil || l.isDetail || len(l.of.Charted()) == 0 || slices.Contains(all, l.of) {
			continue
		}
		for j := range l.Samples[1:] {
			before, s := &l.Samples[0], &l.Samples[j+1]
			if one := (change{l, before.Median, s}); before.N > 0 && s.N > 0 &&
				l.place != inNone && !l.isCost && one.isNotable() && !slices.Contains(all, l.of) {
				all = append(all, l.of)
			}
		}
	}
	return all
}

// DetailTable is like Table, but for the details: the cost of a transaction, and single servers.
func (c *Comparison) DetailTable() *table.Table {
	return c.linesWhere(func(l *Line) bool { return l.isDetail && !c.isFolded(l) })
}

// FoldedTable is like Table, but for the measures that are alike in all groups.
func (c *Comparison) FoldedTable() *table.Table { return c.linesWhere(c.isFolded) }

func (c *Comparison) linesWhere(wanted func(*Line) bool) *table.Table {
	t := table.New(table.Named(slices.Concat(c.Varied, []string{"measure"}, c.Groups)...)...)
	t.Columns[len(c.Varied)].Cut = true
	for _, g := range c.Groups[1:] {
		suffix := ""
		if len(c.Groups) > 2 {
			suffix = " " + g
		}
		// The differences repeat the ratios.
		t.Columns = append(t.Columns, table.Column{Name: "ratio" + suffix, Spare: true},
			table.Column{Name: "difference" + suffix, Cut: true})
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		if !wanted(l) {
			continue
		}
		name := l.Measure
		if l.Unit != table.PerSecond.Sign {
			name += " " + l.Unit
		}
		row := append(texts(l.Combination), table.Text(strings.TrimSpace(name)))
		for j := range l.Samples {
			row = append(row, l.Samples[j].cell())
		}
		for j := range l.Samples[1:] {
			s := &l.Samples[j+1]
			ratio := table.Optional(s.Ratio, table.Digits)
			if s.Ratio.Known {
				ratio = ratio.As(strconv.FormatFloat(s.Ratio.Value, 'f', 3, 64))
			}
			row = append(row, ratio, table.Text(l.difference(j+1)))
		}
		t.Add(row...)
	}
	return t
}

// All returns what differs between the groups: facts, then settings of the servers.
func (c *Comparison) All() []Difference {
	named := func(d Difference) bool { // a label that repeats a setting, or the name of the groups
		return slices.ContainsFunc(c.Differs, func(other Difference) bool { return other.Name == d.Name })
	}
	return slices.Concat(c.Differs, slices.DeleteFunc(slices.Clone(c.ServerSettings), named))
}

// DifferenceTable has a row for each fact or setting that differs between the groups.
func (c *Comparison) DifferenceTable(all []Difference) *table.Table {
	t := table.New(table.Named(append([]string{""}, c.Groups...)...)...)
	for _, d := range all {
		t.Add(append([]table.Cell{table.Text(d.Name)}, texts(d.Values)...)...)
	}
	return t
}

// CSV writes a line for each measure, combination and group or, over a parameter, for each point.
func (c *Comparison) CSV(w io.Writer) error {
	if c.Arranged != nil {
		return c.Arranged.CSV(w)
	}
	t := table.New(table.Named(append(slices.Clone(c.Varied), "measure", "unit",
		"group", "n", "median", "min", "max", "ratio", "p", "verdict")...)...)
	for i := range c.Lines {
		l := &c.Lines[i]
		for j := range l.Samples {
			s := &l.Samples[j]
			if s.N == 0 {
				continue
			}
			t.Add(append(texts(l.Combination), table.Text(l.Measure), table.Text(l.Unit), table.Text(c.Groups[j]), table.Whole(s.N),
				table.Number(s.Median, table.Digits), table.Number(s.Min, table.Digits), table.Number(s.Max, table.Digits), table.Optional(s.Ratio, table.Digits), table.Optional(s.P, table.Digits), table.Text(string(s.Verdict)))...)
		}
	}
	return t.CSV(w)
}

func texts(values []string) []table.Cell {
	cells := make([]table.Cell, len(values))
	for i, v := range values {
		cells[i] = table.Text(v)
	}
	return cells
}

func (s *Sample) cell() table.Cell {
	switch s.N {
	case 0:
		return table.Cell{}
	case 1:
		return table.Number(s.Median, table.Digits)
	}
	return table.Number(s.Median, table.Digits).As(fmt.Sprintf("%s n=%d", s.Text(table.Digits, ByMedian), s.N))
}

// difference formats a group's difference. There is no ratio to a value of 0.
func (l *Line) difference(i int) string {
	before, s := &l.Samples[0], &l.Samples[i]
	if !s.Ratio.Known && before.N > 0 && s.N > 0 && s.Median != before.Median {
		return fmt.Sprintf("%s from %s, %s", table.Rounded(s.Median-before.Median), table.Rounded(before.Median), s.proof())
	}
	return s.difference()
}
