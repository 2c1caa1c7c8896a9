package report

import (
	_ "embed"
	"html/template"
	"io"
	"maps"
	"slices"
)

//go:embed report.html
var reportHTML string

// page holds the templates of all HTML that this package writes.
var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"instant": instant, "duration": duration, "rate": rate, "count": count, "clock": clockText, "command": commandLine,
	"latencies": latencies, "hasBand": hasBand, "operationTable": operationTable, "serverTable": serverTable,
}).Parse(reportHTML))

// HTML writes one file that needs nothing else.
func (d *Document) HTML(w io.Writer) error { return page.Execute(w, d) }

// Title is the run's, or says how many there are.
func (d *Document) Title() string {
	if len(d.Runs) == 1 {
		return d.Runs[0].Row.Title
	}
	return count(ptr(float64(len(d.Runs)))) + " benchmark runs"
}

func ptr(v float64) *float64 { return &v }

// latencies are the transaction's statistics in reading order.
func latencies(r Row) []Fact {
	var facts []Fact
	for _, s := range stats([]Operation{{Latency: r.Latency}}) {
		facts = append(facts, Fact{s, milliseconds(r.Latency[s])})
	}
	return facts
}

func hasBand(charts []Chart, kind string) bool {
	return slices.ContainsFunc(charts, func(c Chart) bool {
		return slices.ContainsFunc(c.Bands, func(b Band) bool { return b.Kind == kind })
	})
}

// grid is a head and rows of text.
type grid struct {
	Head []string
	Rows [][]string
}

func operationTable(all []Operation) grid {
	names := stats(all)
	t := grid{Head: []string{"operation", "count", "per second"}}
	for _, s := range names {
		t.Head = append(t.Head, s+" ms")
	}
	for _, o := range all {
		row := []string{o.Name, count(o.Count), rate(o.Rate)}
		for _, s := range names {
			cell := "–"
			if v, ok := o.Latency[s]; ok {
				cell = milliseconds(v)
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// serverTable leaves out the columns that no server has anything in, and settings
// if these have a table of their own.
func serverTable(all []Server, settings bool) grid {
	columns := []struct {
		head string
		cell func(*Server) string
	}{
		{"server", func(s *Server) string { return s.Target }},
		{"role", func(s *Server) string { return dash(s.Role) }},
		{"version", func(s *Server) string { return dash(joinWords(s.Version)) }},
		{"queries/s", func(s *Server) string { return rate(s.QueriesPerSecond) }},
		{"commits/s", func(s *Server) string { return rate(s.CommitsPerSecond) }},
		{"write sets/s", func(s *Server) string { return rate(s.WriteSetsPerSecond) }},
		{"threads running, most", func(s *Server) string { return count(s.MostThreadsRunning) }},
		{"flow control", func(s *Server) string { return share(s.FlowControlShare) }},
		{"pauses sent", func(s *Server) string { return count(s.FlowControlSent) }},
		{"worst lag (s)", func(s *Server) string { return maybe(s.WorstLagSeconds) }},
		{"worst lag (trx)", func(s *Server) string { return count(s.WorstLagTransactions) }},
		{"drain (s)", drainCell},
		{"deadlocks", func(s *Server) string { return count(s.Deadlocks) }},
		{"restarts", func(s *Server) string { return count(&s.Restarts) }},
		{"not answered", func(s *Server) string { return count(ptr(float64(s.Unanswered))) }},
		{"settings", func(s *Server) string {
			if !settings {
				return "–"
			}
			return settingsCell(s)
		}},
	}
	t := grid{Rows: make([][]string, len(all))}
	for _, c := range columns {
		cells := make([]string, len(all))
		told := false
		for i := range all {
			cells[i] = c.cell(&all[i])
			told = told || cells[i] != "–"
		}
		if !told {
			continue
		}
		t.Head = append(t.Head, c.head)
		for i := range cells {
			t.Rows[i] = append(t.Rows[i], cells[i])
		}
	}
	return t
}

func drainCell(s *Server) string {
	if s.DrainTimedOut {
		return "not caught up"
	}
	return maybe(s.DrainSeconds)
}

func settingsCell(s *Server) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		words = append(words, name+" "+count(ptr(s.Settings[name])))
	}
	if len(words) == 0 {
		return "–"
	}
	return joinWords(words)
}

func maybe(v *float64) string {
	if v == nil {
		return "–"
	}
	return number(*v)
}

func share(v *float64) string {
	if v == nil {
		return "–"
	}
	return number(*v*100) + " %"
}
