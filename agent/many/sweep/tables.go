package sweep

import (
	"io"
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// Table returns a table with a row for each combination and a column for each measure.
func (r *Result) Table() *table.Table { return r.tableOf(r.measures) }

// FirstTable is like Table, but only with the most important measures: throughput and headline latency and, if they
// vary, errors, flow control, lag, drain and the CPU of machines. If the CPU of one machine varies, all machines have a
// column: they are compared with each other.
func (r *Result) FirstTable() *table.Table {
	busy := slices.ContainsFunc(r.measures, func(m review.Measure) bool { return m.Of == host.Busy && r.varies(&m) })
	return r.tableOf(slices.DeleteFunc(slices.Clone(r.measures), func(m review.Measure) bool {
		switch {
		case m.IsHeadline, m.MoreIsBetter && m.Field != tool.QueryRate.Field():
			return false
		case m.Of == host.Busy:
			return !busy
		case m.Field == tool.Errors.Field(), m.Condition == review.DrainCondition,
			m.Of == engine.FlowControl, m.Of == engine.LagSeconds:
			return !r.varies(&m)
		}
		return true
	}))
}

// varies reports whether a measure differs between combinations by more than alike of its largest value, or
// is unknown for one.
func (r *Result) varies(m *review.Measure) bool {
	const alike = 0.02
	low, high, known, done := math.Inf(1), math.Inf(-1), 0, 0
	for i := range r.Combinations {
		done += min(1, len(r.Combinations[i].rows))
		if s, ok := r.Combinations[i].spreads[m.Field]; ok {
			v := s.Average(r.Average)
			low, high, known = min(low, v), max(high, v), known+1
		}
	}
	return high-low > alike*math.Abs(high) || known < done
}

func (r *Result) tableOf(measures []review.Measure) *table.Table {
	t := r.combinationTable("runs")
	for _, m := range measures {
		t.Columns = append(t.Columns, m.Column())
	}
	for i := range r.Combinations {
		c := &r.Combinations[i]
		runs := table.Whole(len(c.Runs))
		switch {
		case len(c.Runs) > 0:
		case c.State == Done:
			runs = runs.As("removed")
		default:
			runs = runs.As(string(c.State))
		}
		row := append(t.Rows[i], runs)
		for _, m := range measures {
			s, ok := c.spreads[m.Field]
			cell := table.Number(s.Average(r.Average), m.Unit)
			switch {
			case !ok:
				cell = table.Cell{}
			case m.MoreIsBetter:
				cell = cell.As(s.Text(m.Unit, r.Average))
			}
			row = append(row, cell)
		}
		t.Rows[i] = row
	}
	return t
}

// RunTable returns a table with a row for each run, and the ids of these.
func (r *Result) RunTable() (*table.Table, []string) {
	t := r.combinationTable()
	t.Rows = nil
	t.Columns = append(table.Named("run"), append(t.Columns, table.Named("started", "result", "tps", "latency", "limited by")...)...)
	var ids []string
	for i := range r.Combinations {
		c := &r.Combinations[i]
		for j := range c.rows {
			run := &c.rows[j]
			cells := []table.Cell{table.Text(run.ID)}
			for _, s := range r.sets {
				cells = append(cells, table.Text(c.Values[s.Name]))
			}
			t.Add(append(cells, table.Text(table.Instant(run.StartedAt)), table.Text(run.ShortStatus()),
				table.Optional(run.Values.Of(tool.Throughput), table.PerSecond),
				table.Text(run.Headline()), table.Text(string(run.Limits.First())))...)
			ids = append(ids, run.ID)
		}
	}
	return t, ids
}

// Note explains the table's cells; empty if each cell is from one run.
func (r *Result) Note() string {
	if slices.ContainsFunc(r.Combinations, func(c Combination) bool { return len(c.Runs) > 1 }) {
		return r.Average.Note()
	}
	return ""
}

// CSV writes a line for each combination, in base units.
func (r *Result) CSV(w io.Writer) error {
	t := r.combinationTable("state", "runs")
	for _, m := range r.measures {
		t.Columns = append(t.Columns, m.Column())
		if m.MoreIsBetter {
			t.Columns = append(t.Columns, table.Named(m.Field+"_min", m.Field+"_max")...)
		}
	}
	for i := range r.Combinations {
		c := &r.Combinations[i]
		row := append(t.Rows[i], table.Text(string(c.State)), table.Whole(len(c.Runs)))
		for _, m := range r.measures {
			s, ok := c.spreads[m.Field]
			if !ok {
				s = compare.Spread{Median: series.Unknown(), Mean: series.Unknown(), Min: series.Unknown(), Max: series.Unknown()}
			}
			row = append(row, table.Number(s.Average(r.Average), m.Unit))
			if m.MoreIsBetter {
				row = append(row, table.Number(s.Min, m.Unit), table.Number(s.Max, m.Unit))
			}
		}
		t.Rows[i] = row
	}
	return t.CSV(w)
}

// combinationTable returns a table whose first columns are the values of a combination, with a row
// for each.
func (r *Result) combinationTable(more ...string) *table.Table {
	var names []string
	for _, s := range r.sets {
		names = append(names, s.Name)
	}
	t := table.New(table.Named(append(names, more...)...)...)
	for i := range r.Combinations {
		row := make([]table.Cell, len(names))
		for j, name := range names {
			row[j] = table.Text(r.Combinations[i].Values[name])
		}
		t.Add(row...)
	}
	return t
}
