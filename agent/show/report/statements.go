package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// Statements is what the run's servers executed by statement, by their own counters.
type Statements struct {
	// Servers are those that were asked, each with its own time.
	Servers []CountedServer `json:"servers"`
	// Total is the sum over all statements.
	Total engine.StatementCounts `json:"total"`
	// Kinds are the statements that took the most time, on all servers together; statements
	// that differ only in literals are one.
	Kinds []StatementKind `json:"kinds,omitempty"`
	// Rest is the sum over all other statements.
	Rest *engine.StatementCounts `json:"rest,omitempty"`
	// Distribution is how long the statements took in the servers.
	Distribution *Distribution `json:"latency_distribution,omitempty"`
}

// CountedServer is one server whose statements were read.
type CountedServer struct {
	Target string `json:"target"`
	// From and To are between which places on the run's axis the statements were counted.
	From series.Optional[float64] `json:"from_seconds,omitzero"`
	To   series.Optional[float64] `json:"to_seconds,omitzero"`
	// Executions are those counted by statement, Questions what the server's own counter of
	// its clients' statements grew by.
	Executions series.Optional[float64] `json:"executions,omitzero"`
	Questions  series.Optional[float64] `json:"questions,omitzero"`
	// Error is why nothing is known.
	Error string `json:"error,omitempty"`
}

// StatementKind is what the servers counted of one kind of statement.
type StatementKind struct {
	Schema string `json:"schema,omitempty"`
	// Text has no literals and may be cut.
	Text string `json:"text"`
	engine.StatementCounts
	// MeanSeconds is the mean time of an execution, Share the share of the time of all
	// statements.
	MeanSeconds float64 `json:"mean_seconds"`
	Share       float64 `json:"share"`
	// Percentiles are those of this time, known within the bounds of a bucket. They are absent
	// if the server does not measure them, or did not for all of the time.
	Percentiles []Percentile `json:"percentiles,omitempty"`

	histogram *histogram.Histogram
}

// unnamed reports whether the kind is a sum of others.
func (k *StatementKind) unnamed() bool { return k.Text == textPrepared || k.Text == textOthers }

const (
	textPrepared = "(prepared statements, which this server does not count by text)"
	textOthers   = "(statements beyond the server's table of digests)"
	textRest     = "(all others)"
)

// statementText is what a statement is called.
func statementText(s *engine.Statement) string {
	switch {
	case s.Text != "":
		return s.Text
	case s.Digest == engine.DigestPrepared:
		return textPrepared
	case s.Digest == "":
		return textOthers
	}
	return "(digest " + s.Digest + ")"
}

// statementsOf adds up what the servers of a run executed; nil if nothing was recorded.
func statementsOf(h *record.History) *Statements {
	var all Statements
	var distribution []*histogram.Histogram
	index := map[[2]string]int{}
	for i := range h.Statements {
		s := &h.Statements[i]
		if server := h.Snapshot.Meta.Servers.Server(s.Target); server == nil || server.Proxy {
			continue
		}
		one := CountedServer{Target: s.Target, Questions: s.Questions, Error: s.Error}
		if s.Error == "" {
			total := s.Total()
			one.From, one.To, one.Executions = series.Some(h.Elapsed(s.From)), series.Some(h.Elapsed(s.To)), series.Some(total.Executions)
			all.Total.Add(&total)
			distribution = append(distribution, histogram.New(s.Latency...))
		}
		all.Servers = append(all.Servers, one)
		for j := range s.Statements {
			all.add(index, &s.Statements[j])
		}
		if s.Rest != nil {
			if all.Rest == nil {
				all.Rest = &engine.StatementCounts{}
			}
			all.Rest.Add(s.Rest)
		}
	}
	if len(all.Servers) == 0 {
		return nil
	}
	slices.SortStableFunc(all.Kinds, func(a, b StatementKind) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(b.Executions, a.Executions), strings.Compare(a.Text, b.Text))
	})
	for i := range all.Kinds {
		k := &all.Kinds[i]
		k.MeanSeconds, k.Share = quotient(k.Seconds, k.Executions), quotient(k.Seconds, all.Total.Seconds)
		k.Percentiles = percentiles(k.histogram, statementStats)
	}
	if merged := histogram.Merge(distribution...); merged.Count() > 0 {
		d := newDistribution("statements, in the servers", merged)
		all.Distribution = &d
	}
	return &all
}

// add adds a statement of one server. Of a kind that one server has no histogram of there is
// none.
func (all *Statements) add(index map[[2]string]int, s *engine.Statement) {
	text := statementText(s)
	key := [2]string{s.Schema, text}
	i, known := index[key]
	if !known {
		i = len(all.Kinds)
		index[key] = i
		all.Kinds = append(all.Kinds, StatementKind{Schema: s.Schema, Text: text, histogram: &histogram.Histogram{}})
	}
	k := &all.Kinds[i]
	k.Add(&s.StatementCounts)
	if s.Latency == nil || k.histogram == nil {
		k.histogram = nil
	} else {
		k.histogram = histogram.Merge(k.histogram, histogram.New(s.Latency...))
	}
}

func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

var statementStats = []distributionStat{{"p95", .95}, {"p99", .99}}

// statementTable has a row for each of the statements that took the most time, at most rows.
func statementTable(all *Statements, rows int) *table.Table {
	t := table.New(table.Named("statement", "calls", "time %", "mean ms", "p95 ms", "p99 ms", "rows read", "rows sent", "lock ms", "tmp tables", "on disk", "full scans", "errors")...)
	if all == nil {
		return t
	}
	add := func(k *StatementKind) {
		per := func(v float64, u table.Unit) table.Cell {
			if v == 0 {
				return table.Cell{}
			}
			return table.Number(quotient(v, k.Executions), u)
		}
		count := func(v float64) table.Cell {
			if v == 0 {
				return table.Cell{}
			}
			return table.Number(v, table.Count)
		}
		row := []table.Cell{table.Text(k.Text), table.Number(k.Executions, table.Count), table.Number(k.Share, table.Percent), table.Number(k.MeanSeconds, table.Milliseconds)}
		for _, stat := range statementStats {
			cell := table.Cell{}
			if i := slices.IndexFunc(k.Percentiles, func(p Percentile) bool { return p.Stat == stat.name }); i >= 0 {
				cell = table.Optional(k.Percentiles[i].High, table.Milliseconds)
			}
			row = append(row, cell)
		}
		t.Add(append(row, per(k.RowsExamined, table.Digits), per(k.RowsSent, table.Digits), per(k.LockSeconds, table.Milliseconds),
			count(k.TemporaryTables), count(k.TemporaryDiskTables), count(k.FullScans), count(k.Errors))...)
	}
	rest := StatementKind{Text: textRest}
	if all.Rest != nil {
		rest.Add(all.Rest)
	}
	for i := range all.Kinds {
		if k := &all.Kinds[i]; len(t.Rows) < rows {
			add(k)
		} else {
			rest.Add(&k.StatementCounts)
		}
	}
	if rest.Executions > 0 {
		rest.MeanSeconds, rest.Share = quotient(rest.Seconds, rest.Executions), quotient(rest.Seconds, all.Total.Seconds)
		add(&rest)
	}
	t.DropUnknown()
	return t
}

// StatementTable has a row for each of the statements that took the most time, none if they
// were not recorded.
func (r *Run) StatementTable() *table.Table {
	return statementTable(r.Statements, statementsInPage)
}

// StatementNotes are what the reader of StatementTable has to know.
func (r *Run) StatementNotes() []string { return statementNotes(r.Statements) }

// shortStatements is the table for a terminal of some width, 0 for any: texts are cut.
func shortStatements(all *Statements, width int) *table.Table {
	t := statementTable(all, statementsInText)
	longest := 60
	if width > 0 {
		texts := 0
		for _, row := range t.Rows {
			texts = max(texts, utf8.RuneCountInString(row[0].String()))
		}
		longest = max(24, width-(t.Width()-texts))
	}
	for _, row := range t.Rows {
		row[0] = table.Text(table.Clip(row[0].String(), longest))
	}
	return t
}

// How many statements are shown.
const (
	statementsInText = 10
	statementsInPage = 25
)

// statementNotes are what the reader of the table has to know.
func statementNotes(all *Statements) []string {
	if all == nil {
		return nil
	}
	var notes []string
	for _, s := range all.Servers {
		switch {
		case s.Error != "":
			notes = append(notes, "the statements of "+s.Target+" are not known: "+strings.TrimPrefix(s.Error, "statements: "))
		case s.Questions.Value > 0:
			notes = append(notes, fmt.Sprintf("%s counted %s executions from %s to %s, %s of the statements that its clients sent", s.Target,
				table.Count.Format(s.Executions.Value), table.Clock(s.From.Value), table.Clock(s.To.Value), table.Percent.Signed(s.Executions.Value/s.Questions.Value)))
		}
	}
	if i := slices.IndexFunc(all.Kinds, func(k StatementKind) bool { return k.Text == textPrepared }); i >= 0 && all.Kinds[i].Share > 0.1 {
		notes = append(notes, "MariaDB does not count executions of prepared statements by text: with sysbench, --db-ps-mode=disable makes its statements visible")
	}
	widest := 0.0
	for _, k := range all.Kinds {
		for _, p := range k.Percentiles {
			if p.High.Value > 0 {
				widest = max(widest, (p.High.Value-p.Low)/p.High.Value)
			}
		}
	}
	if widest > 0 {
		notes = append(notes, "percentiles are upper bounds of the server's buckets, over the time of the run only: the true ones are lower by at most "+table.Percent.Signed(widest))
	}
	return notes
}

// StatementDifference is what changed of one kind of statement between groups of runs.
type StatementDifference struct {
	Text string `json:"text"`
	// Groups are in the order of the comparison's.
	Groups []StatementGroup `json:"groups"`
}

// StatementGroup is one kind of statement in the runs of a group that recorded statements, all
// together. It is unknown in a group without such a run.
type StatementGroup struct {
	// Executions and Seconds are per transaction of the tool; MeanSeconds, RowsExamined and
	// FullScans, the share of executions without an index, per execution.
	Executions   series.Optional[float64] `json:"executions,omitzero"`
	Seconds      series.Optional[float64] `json:"seconds,omitzero"`
	MeanSeconds  series.Optional[float64] `json:"mean_seconds,omitzero"`
	RowsExamined series.Optional[float64] `json:"rows_examined,omitzero"`
	FullScans    series.Optional[float64] `json:"full_scans,omitzero"`
}

// comparedStatements bounds the differences that are kept.
const comparedStatements = 25

// compareStatements returns the statements whose time per transaction differs the most between
// the first group and any other; nothing unless all groups have recorded statements.
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
			done := r.countedTransactions()
			if !(done > 0) {
				continue
			}
			transactions[i] += done
			for _, k := range r.statements.Kinds {
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
			g := StatementGroup{Executions: series.Some(s.Executions / transactions[i]), Seconds: series.Some(s.Seconds / transactions[i])}
			if s.known && s.Executions > 0 {
				g.MeanSeconds, g.RowsExamined, g.FullScans = series.Some(s.Seconds/s.Executions), series.Some(s.RowsExamined/s.Executions), series.Some(s.FullScans/s.Executions)
			}
			d.Groups = append(d.Groups, g)
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b StatementDifference) int {
		return cmp.Or(cmp.Compare(b.largest(), a.largest()), strings.Compare(a.Text, b.Text))
	})
	return all[:min(len(all), comparedStatements)]
}

const (
	// paidChange is the smallest change of the time of all statements for which one of them is
	// named, paidShare the smallest share of it that this one has.
	paidChange, paidShare = 0.05, 0.25
	// otherRows is how many times the rows of an execution must have become more or fewer to be
	// part of the sentence.
	otherRows = 1.5
)

// paidNotes names, for each group but the first, the statement that made the servers' time for
// a transaction longer or shorter, as far as one did.
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
		text := fmt.Sprintf("%s spent %s ms %s in statements per transaction than %s, of which %s ms in %s", c.Groups[i], table.Milliseconds.Format(math.Abs(change)), direction, c.Groups[0],
			table.Milliseconds.Format(math.Abs(paid.change(i))), table.Clip(paid.Text, 120))
		if why := paid.reads(i); why != "" {
			text += ", which " + why
		}
		notes = append(notes, text)
	}
	return notes
}

// change is that of the time per transaction from the first group to group i.
func (d *StatementDifference) change(i int) float64 {
	return d.Groups[i].Seconds.Value - d.Groups[0].Seconds.Value
}

// reads describes how an execution in group i reads other rows than one in the first group;
// empty if it does not.
func (d *StatementDifference) reads(i int) string {
	was, is := d.Groups[0], d.Groups[i]
	if !was.RowsExamined.Known || !is.RowsExamined.Known {
		return ""
	}
	text := ""
	if few, many := min(was.RowsExamined.Value, is.RowsExamined.Value), max(was.RowsExamined.Value, is.RowsExamined.Value); many >= 1 && many > otherRows*few {
		text = fmt.Sprintf("read %s rows instead of %s", table.Digits.Format(is.RowsExamined.Value), table.Digits.Format(was.RowsExamined.Value))
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

// countedTransactions is how many transactions the tool made in the time in which statements
// were counted, on average; unknown if none were.
func (r *Row) countedTransactions() float64 {
	if r.statements == nil {
		return series.Unknown()
	}
	seconds, servers := 0.0, 0.0
	for _, s := range r.statements.Servers {
		if s.Error == "" && s.From.Known {
			seconds, servers = seconds+min(s.To.Value, r.DurationSeconds)-max(s.From.Value, 0), servers+1
		}
	}
	if servers == 0 {
		return series.Unknown()
	}
	return series.Number(r.TPS) * seconds / servers
}

// StatementTable has a row for each statement that differs, the largest difference first.
func (c *Comparison) StatementTable() *table.Table {
	t := table.New(table.Column{Name: "statement"})
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
			means, rows = append(means, table.Optional(g.MeanSeconds, table.Milliseconds).String()), append(rows, table.Optional(g.RowsExamined, table.Digits).String())
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

// clippedStatements is StatementTable with texts that are cut, and without differences below
// 1 % of the time of all statements.
func (c *Comparison) clippedStatements() *table.Table {
	t := c.StatementTable()
	total := 0.0
	for _, d := range c.Statements {
		total += d.Groups[0].Seconds.Value
	}
	n := 0
	for i, row := range t.Rows {
		if i >= 3 && c.Statements[i].largest() < 0.01*total {
			break
		}
		row[0] = table.Text(table.Clip(row[0].String(), 60))
		n++
	}
	t.Rows = t.Rows[:n]
	return t
}
