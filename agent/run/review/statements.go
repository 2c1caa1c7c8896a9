package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// Statements is what the run's servers executed by statement, by their own counters.
type Statements struct {
	// Servers are the servers that were queried, each with its own time.
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
	// From and To bound the part of the run's axis in which the statements were counted.
	From series.Optional[float64] `json:"from_seconds,omitzero"`
	To   series.Optional[float64] `json:"to_seconds,omitzero"`
	// Executions is the number that was counted by statement, Questions the growth of the server's own counter of
	// client statements.
	Executions series.Optional[float64] `json:"executions,omitzero"`
	Questions  series.Optional[float64] `json:"questions,omitzero"`
	// Error is why the statements are unknown.
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
	// Percentiles of this time, known within the bounds of a bucket. They are absent
	// if the server does not measure them, or did not for all of the time.
	Percentiles []Percentile `json:"percentiles,omitempty"`

	histogram *histogram.Histogram
	of        kindOf
}

// kindOf is whether a kind is one statement or a sum of several, which has no text.
type kindOf int

const (
	oneStatement kindOf = iota
	allPrepared
	allBeyond // the server's table of digests
)

const textRest = "(all others)"

// newStatementKind returns the kind of a statement, without counts.
func newStatementKind(s *engine.Statement) StatementKind {
	k := StatementKind{Schema: s.Schema, Text: s.Text, histogram: &histogram.Histogram{}}
	switch {
	case s.Text != "":
	case s.Digest == engine.DigestPrepared:
		k.Text, k.of = "(prepared statements, which this server does not count by text)", allPrepared
	case s.Digest == "":
		k.Text, k.of = "(statements beyond the server's table of digests)", allBeyond
	default:
		k.Text = "(digest " + s.Digest + ")"
	}
	return k
}

// StatementsOf adds up what the servers of a run executed; nil if nothing was recorded.
func StatementsOf(h *record.History) *Statements {
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

// add adds a statement of one server. A kind has a histogram only if every server has one for it.
func (all *Statements) add(index map[[2]string]int, s *engine.Statement) {
	kind := newStatementKind(s)
	key := [2]string{kind.Schema, kind.Text}
	i, known := index[key]
	if !known {
		i = len(all.Kinds)
		index[key] = i
		all.Kinds = append(all.Kinds, kind)
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
	t := table.New(table.Named("statement", "calls", "time %", "mean ms", "p95 ms", "p99 ms",
		"rows read", "rows sent", "rows", "blocks", "blocks read", "plan ms", "jit ms", "log bytes", "temporary bytes",
		"lock ms", "tmp tables", "on disk", "full scans", "errors")...)
	t.Columns[0].Cut = true
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
		row := []table.Cell{table.Text(k.Text), table.Number(k.Executions, table.Count),
			table.Number(k.Share, table.Percent), table.Number(k.MeanSeconds, table.Milliseconds)}
		for _, stat := range statementStats {
			cell := table.Cell{}
			if i := slices.IndexFunc(k.Percentiles, func(p Percentile) bool { return p.Stat == stat.name }); i >= 0 {
				cell = table.Optional(k.Percentiles[i].High, table.Milliseconds)
			}
			row = append(row, cell)
		}
		t.Add(append(row, per(k.RowsExamined, table.Digits), per(k.RowsSent, table.Digits), per(k.Rows, table.Digits), per(k.Blocks, table.Digits),
			per(k.BlocksRead, table.Digits), per(k.PlanSeconds, table.Milliseconds), per(k.JITSeconds, table.Milliseconds), per(k.LogBytes, table.Digits), per(k.TemporaryBytes, table.Digits),
			per(k.LockSeconds, table.Milliseconds), count(k.TemporaryTables), count(k.TemporaryDiskTables), count(k.FullScans), count(k.Errors))...)
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
	return statementTable(r.Statements, shownStatements)
}

// StatementNotes are what the reader of StatementTable has to know.
func (r *Run) StatementNotes() []string { return StatementNotes(r.Statements) }

// shownStatements is how many have a row of their own.
const shownStatements = 20

// StatementNotes are what the reader of the table has to know.
func StatementNotes(all *Statements) []string {
	if all == nil {
		return nil
	}
	var notes []string
	unknown := map[string][]string{} // servers by the reason
	for _, s := range all.Servers {
		if s.Error != "" {
			unknown[s.Error] = append(unknown[s.Error], s.Target)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(unknown)) {
		notes = append(notes, "the statements of "+table.Join(unknown[reason])+" are not known: "+strings.TrimPrefix(reason, "statements: "))
	}
	for _, s := range all.Servers {
		if s.Error == "" && s.Questions.Value > 0 {
			notes = append(notes, fmt.Sprintf("%s counted %s executions from %s to %s, %s of the statements that its clients sent", s.Target,
				table.Count.Format(s.Executions.Value), table.Clock(s.From.Value),
				table.Clock(s.To.Value), table.Percent.Signed(s.Executions.Value/s.Questions.Value)))
		}
	}
	if i := slices.IndexFunc(all.Kinds, func(k StatementKind) bool { return k.of == allPrepared }); i >= 0 && all.Kinds[i].Share > 0.1 {
		notes = append(notes, "the server does not count executions of prepared statements by text: "+
			"an option of the tool that sends plain text, such as sysbench's --db-ps-mode=disable, makes them visible")
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
