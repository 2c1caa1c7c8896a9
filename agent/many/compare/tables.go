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
)

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

// DetailTable is like Table, but for the details: the cost of a transaction, and single servers.
func (c *Comparison) DetailTable() *table.Table {
	return c.linesWhere(func(l *Line) bool { return l.isDetail && !c.isFolded(l) })
}

// FoldedTable is like Table, but for the measures that are alike in all groups.
func (c *Comparison) FoldedTable() *table.Table { return c.linesWhere(c.isFolded) }

// FoldedLine names the measures whose rows the tables leave out; empty if there are none.
func (c *Comparison) FoldedLine() string {
	var names []string
	for i := range c.Lines {
		if l := &c.Lines[i]; c.isFolded(l) && !slices.Contains(names, l.Measure) {
			names = append(names, l.Measure)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "0 or alike on all sides: " + strings.Join(names, ", ")
}

func (c *Comparison) linesWhere(wanted func(*Line) bool) *table.Table {
	t := table.New(table.Named(slices.Concat(c.Varied, []string{"measure"}, c.Groups)...)...)
	t.Columns[len(c.Varied)].Cut = true
	for i := range c.Groups {
		t.Columns[len(c.Varied)+1+i].Kept = true
	}
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
	if s.Verdict == Incomparable {
		return string(Incomparable)
	}
	if !s.Ratio.Known && before.N > 0 && s.N > 0 && s.Median != before.Median {
		return fmt.Sprintf("%s from %s, %s", table.Rounded(s.Median-before.Median), table.Rounded(before.Median), s.proof())
	}
	return s.difference()
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

// isFolded reports whether the line is 0 or alike in all groups, so that it is only named. The most important measures
// of the tool always have a row.
func (l *Line) isFolded() bool {
	if l.isHeadline {
		return false
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range l.Samples {
		s := &l.Samples[i]
		if s.N == 0 || s.Verdict.isProven() {
			return false
		}
		low, high = min(low, s.Min), max(high, s.Max)
	}
	return high-low <= alikeChange*math.Abs(high)
}

// isFolded reports whether all lines of a measure are folded.
func (c *Comparison) isFolded(l *Line) bool {
	for i := range c.Lines {
		if c.Lines[i].Measure == l.Measure && !c.Lines[i].isFolded() {
			return false
		}
	}
	return true
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
			t.Add(append(texts(l.Combination), table.Text(l.Measure), table.Text(l.Unit), table.Text(c.Groups[j]),
				table.Whole(s.N), table.Number(s.Median, table.Digits), table.Number(s.Min, table.Digits),
				table.Number(s.Max, table.Digits), table.Optional(s.Ratio, table.Digits), table.Optional(s.P, table.Digits),
				table.Text(string(s.Verdict)))...)
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
