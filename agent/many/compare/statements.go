package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// StatementDifference is the change of one kind of statement between groups of runs.
type StatementDifference struct {
	Text string `json:"text"`
	// Groups are in the order of the comparison's groups.
	Groups []StatementGroup `json:"groups"`
}

// StatementGroup sums up one kind of statement over a group's runs with recorded statements. It is
// unknown in a group without such runs.
type StatementGroup struct {
	// Executions and Seconds are per transaction of the tool. MeanSeconds, RowsExamined and
	// FullScans (the share of executions without an index) are per execution.
	Executions   series.Optional[float64] `json:"executions,omitzero"`
	Seconds      series.Optional[float64] `json:"seconds,omitzero"`
	MeanSeconds  series.Optional[float64] `json:"mean_seconds,omitzero"`
	RowsExamined series.Optional[float64] `json:"rows_examined,omitzero"`
	FullScans    series.Optional[float64] `json:"full_scans,omitzero"`
}

const (
	// comparedStatements bounds the kept differences. Only leastStatements may be below
	// leastStatementChange of the time of all statements.
	comparedStatements   = 25
	leastStatements      = 3
	leastStatementChange = 0.01
)

// compareStatements returns the statements whose time per transaction differs the most between the
// first group and any other; nothing unless all groups have recorded statements.
func compareStatements(groups []Group) []StatementDifference {
	type sum struct {
		engine.StatementCounts
		known bool
	}
	kinds := map[string][]sum{}
	transactions := make([]float64, len(groups))
	for i, g := range groups {
		for j := range g.Runs {
			r := &g.Runs[j]
			done := r.CountedTransactions()
			if !(done > 0) {
				continue
			}
			transactions[i] += done
			for _, k := range r.Executed.Kinds {
				if kinds[k.Text] == nil {
					kinds[k.Text] = make([]sum, len(groups))
				}
				s := &kinds[k.Text][i]
				s.Add(&k.StatementCounts)
				s.known = true
			}
		}
		if transactions[i] == 0 {
			return nil
		}
	}
	var all []StatementDifference
	for text, sums := range kinds {
		d := StatementDifference{Text: text}
		for i, s := range sums {
			g := StatementGroup{Executions: series.Some(s.Executions / transactions[i]),
				Seconds: series.Some(s.Seconds / transactions[i])}
			if s.known && s.Executions > 0 {
				g.MeanSeconds = series.Some(s.Seconds / s.Executions)
				g.RowsExamined = series.Some(s.RowsExamined / s.Executions)
				g.FullScans = series.Some(s.FullScans / s.Executions)
			}
			d.Groups = append(d.Groups, g)
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b StatementDifference) int {
		return cmp.Or(cmp.Compare(b.largest(), a.largest()), strings.Compare(a.Text, b.Text))
	})
	all = all[:min(len(all), comparedStatements)]
	total := 0.0
	for _, d := range all {
		total += d.Groups[0].Seconds.Value
	}
	n := len(all)
	for n > leastStatements && all[n-1].largest() < leastStatementChange*total {
		n--
	}
	return all[:n]
}

const (
	// paidChange is the smallest change of the time of all statements for which a statement is named; paidShare is the
	// smallest share of the change that this statement must have.
	paidChange, paidShare = 0.05, 0.25
	// otherRows is the factor by which the rows of an execution must differ to be mentioned.
	otherRows = 1.5
)

// paidNotes names, for each group except the first, the statement that most changed the servers'
// time per transaction, if one stands out.
func (c *Comparison) paidNotes() []string {
	var notes []string
	for i := 1; i < len(c.Groups) && len(c.Statements) > 0; i++ {
		before, change := 0.0, 0.0
		for _, d := range c.Statements {
			before += d.Groups[0].Seconds.Value
			change += d.change(i)
		}
		if !(math.Abs(change) >= paidChange*before) {
			continue
		}
		paid := slices.MaxFunc(c.Statements, func(a, b StatementDifference) int {
			return cmp.Or(cmp.Compare(a.change(i)/change, b.change(i)/change), strings.Compare(b.Text, a.Text))
		})
		if share := paid.change(i) / change; share < paidShare {
			continue
		}
		direction := "more"
		if change < 0 {
			direction = "less"
		}
		text := fmt.Sprintf("%s spent %s ms %s in statements per transaction than %s, of which %s ms in %s",
			c.Groups[i], table.Milliseconds.Format(math.Abs(change)), direction, c.Groups[0],
			table.Milliseconds.Format(math.Abs(paid.change(i))), table.Clip(paid.Text, 120))
		if why := paid.reads(i); why != "" {
			text += ", which " + why
		}
		notes = append(notes, text)
	}
	return notes
}

// change is the change of the time per transaction from the first group to group i.
func (d *StatementDifference) change(i int) float64 {
	return d.Groups[i].Seconds.Value - d.Groups[0].Seconds.Value
}

// reads describes how an execution in group i reads rows differently than in the first group; empty
// if it does not.
func (d *StatementDifference) reads(i int) string {
	was, is := d.Groups[0], d.Groups[i]
	if !was.RowsExamined.Known || !is.RowsExamined.Known {
		return ""
	}
	text := ""
	if few, many := min(was.RowsExamined.Value, is.RowsExamined.Value),
		max(was.RowsExamined.Value, is.RowsExamined.Value); many >= 1 && many > otherRows*few {
		text = fmt.Sprintf("read %s rows instead of %s",
			table.Digits.Format(is.RowsExamined.Value), table.Digits.Format(was.RowsExamined.Value))
	}
	const most, least = 0.9, 0.1 // shares of the executions
	switch {
	case text == "":
	case is.FullScans.Value > most && was.FullScans.Value < least:
		text += ", now without an index"
	case is.FullScans.Value < least && was.FullScans.Value > most:
		text += ", before without an index"
	}
	return text
}

// largest is the largest difference of the time per transaction.
func (d *StatementDifference) largest() float64 {
	most := 0.0
	for i := range d.Groups {
		most = max(most, math.Abs(d.change(i)))
	}
	return most
}

// StatementTable has a row for each statement that differs, the largest difference first.
func (c *Comparison) StatementTable() *table.Table {
	t := table.New(table.Column{Name: "statement", Cut: true})
	for _, g := range c.Groups {
		t.Columns = append(t.Columns, table.Named(g+" ms/trx")...)
	}
	for _, g := range c.Groups[1:] {
		suffix := ""
		if len(c.Groups) > 2 {
			suffix = " " + g
		}
		t.Columns = append(t.Columns, table.Named("difference"+suffix)...)
	}
	t.Columns = append(t.Columns, table.Named("mean ms", "rows read")...)
	for _, d := range c.Statements {
		row := []table.Cell{table.Text(d.Text)}
		var means, rows []string
		for _, g := range d.Groups {
			row = append(row, table.Optional(g.Seconds, table.Milliseconds))
			means, rows = append(means, table.Optional(g.MeanSeconds, table.Milliseconds).String()),
				append(rows, table.Optional(g.RowsExamined, table.Digits).String())
		}
		for i := range d.Groups[1:] {
			change := d.change(i + 1)
			cell := table.Number(change, table.Milliseconds)
			if change > 0 {
				cell = cell.As("+" + cell.String())
			}
			row = append(row, cell)
		}
		t.Add(append(row, table.Text(strings.Join(means, " → ")), table.Text(strings.Join(rows, " → ")))...)
	}
	return t
}
