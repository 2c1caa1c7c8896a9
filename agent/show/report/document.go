// Package report makes documents about runs: of one run or several, of a comparison, of a sweep,
// of the history of a measure. It draws their charts and figures, and writes runs as CSV and as
// lines of JSON.
package report

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Document is a report about one run or several.
type Document struct {
	// Made is when the report was made.
	Made time.Time `json:"made_at"`
	// Version is benchwatch's.
	Version string   `json:"benchwatch_version"`
	Runs    []Report `json:"runs"`
}

// Report is a run with its charts.
type Report struct {
	review.Run

	Charts []Chart `json:"-"`
}

// New returns the report of one run. others are runs of the same data directory:
// those that used the same servers at the same time are named.
func New(h *record.History, others ...rundir.Meta) Report {
	return Report{Run: review.NewRun(h, others...), Charts: Charts(h)}
}

// Markdown writes the tables and findings as Markdown.
func (d *Document) Markdown(w io.Writer) error {
	var doc table.Document
	for i := range d.Runs {
		d.Runs[i].add(&doc)
	}
	return doc.Markdown(w)
}

func (r *Report) add(doc *table.Document) {
	doc.Heading(2, r.Title)
	doc.Paragraph(table.Line{Text: r.ID + ", started " + r.StartedAt.UTC().Format("2006-01-02 15:04:05 MST") + ", " + table.Duration(r.DurationSeconds) + ", ", Strong: r.Status()})
	failed := make([]table.Line, len(r.Failure))
	for i, f := range r.Failure {
		failed[i] = table.Line{Strong: f.Name, Rest: " " + f.Value}
	}
	doc.Lines(failed)
	doc.Section(3, "What limited this run", func() { doc.Lines(review.LimitLines(r.Limits)) })
	doc.Table(review.OperationTable(r.Operations))
	doc.Section(3, "Distribution of the latencies", func() {
		if all := r.AllDistributions(); len(all) > 0 {
			doc.Table(review.DistributionTable(all))
			doc.List(review.DistributionNotes(all)...)
		}
	})
	doc.Section(3, "What was observed", func() { doc.List(r.Observed...) })
	doc.Section(3, "How far to trust this", func() {
		lines := make([]table.Line, len(r.Trust))
		for i, f := range r.Trust {
			lines[i] = table.Line{Strong: string(f.Level), Rest: " " + f.Text}
		}
		doc.Lines(lines)
	})
	doc.Section(3, "Markers", func() {
		lines := make([]string, len(r.Markers))
		for i, m := range r.Markers {
			lines[i] = table.Clock(m.ElapsedSeconds) + " " + m.Text
		}
		doc.List(lines...)
	})
	doc.Section(3, "Servers", func() {
		if len(r.Servers) > 0 {
			t := review.ServerTable(r.Servers)
			doc.Fold(table.Plural(len(t.Rows), "measure")+" of "+table.Plural(len(r.Servers), "server"), func() { doc.Table(t) })
		}
	})
	doc.Section(3, "Who took the load", func() { doc.Table(review.BalanceTable(r.Balances)) })
	doc.Section(3, "Machines", func() {
		if len(r.Machines) > 0 {
			t := review.MachineTable(r.Machines)
			doc.Fold(table.Plural(len(t.Rows), "measure")+" of "+table.Plural(len(r.Machines), "machine"), func() { doc.Table(t) })
		}
	})
	doc.Section(3, "Cost per transaction", func() { doc.Table(review.CostTable(r.Costs)) })
	doc.Section(3, "Statements", func() {
		doc.List(r.StatementNotes()...)
		if t := r.StatementTable(); len(t.Rows) > 0 {
			doc.Fold(table.Plural(len(t.Rows), "statement"), func() { doc.Table(t) })
		}
	})
	for i := range r.Settings {
		s := &r.Settings[i]
		doc.Section(3, "Settings of "+s.Title(), func() {
			doc.Table(s.Differing())
			same := s.Same()
			doc.Fold(table.Plural(len(same.Rows), "setting"), func() { doc.Table(same) })
		})
	}
	if len(r.Settings) == 0 && len(r.SettingsUnknown) > 0 {
		doc.Heading(3, "Settings of the servers")
	}
	doc.List(r.SettingsUnknown...)
	doc.Section(3, "Parameters", func() {
		t := table.New(table.Named("parameter", "value")...)
		for _, f := range r.Parameters {
			t.Add(table.Text(f.Name), table.Text(f.Value))
		}
		doc.Fold(table.Plural(len(t.Rows), "parameter"), func() { doc.Table(t) })
	})
}

// CSV writes a line for each run.
func (d *Document) CSV(w io.Writer) error {
	rows := make([]review.Row, len(d.Runs))
	for i := range d.Runs {
		rows[i] = d.Runs[i].Row
	}
	return CSV(w, rows)
}

//go:embed report.html
var reportHTML string

// page holds the templates of all HTML that this package writes.
var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"instant": table.Instant, "duration": table.Duration, "clock": table.Clock, "command": commandLine,
	"figures": figures, "hasBand": hasBand, "operationTable": review.OperationTable, "serverTable": review.ServerTable, "machineTable": review.MachineTable, "costTable": review.CostTable, "balanceTable": review.BalanceTable, "limitLines": review.LimitLines,
	"statementTable": func(r Report) *table.Table { return r.StatementTable() }, "statementNotes": review.StatementNotes, "allDistributions": func(r Report) []review.Distribution { return r.AllDistributions() },
	"unbroken":          func(c table.Cell) string { return strings.ReplaceAll(c.String(), " … ", "\u00a0…\u00a0") }, // a range is on one line
	"distributionTable": review.DistributionTable, "distributionNotes": review.DistributionNotes, "distributionPlots": DistributionPlots,
}).Parse(reportHTML))

// HTML writes one file that needs nothing else.
func (d *Document) HTML(w io.Writer) error { return page.Execute(table.PlainWriter{W: w}, d) }

// Title returns the run's title, or how many runs there are.
func (d *Document) Title() string {
	if len(d.Runs) == 1 {
		return d.Runs[0].Row.Title
	}
	return table.Plural(len(d.Runs), "benchmark run")
}

// figures are the numbers at the head of a run's page.
func figures(r review.Row) []review.Fact {
	var facts []review.Fact
	for _, m := range review.ToolMeasures([]review.Row{r}) {
		if v := m.Value(&r); series.IsKnown(v) {
			facts = append(facts, review.Fact{Name: m.Column().Head, Value: m.Unit.Format(v)})
		}
	}
	return facts
}

func hasBand(charts []Chart, kind string) bool {
	return slices.ContainsFunc(charts, func(c Chart) bool {
		return slices.ContainsFunc(c.Bands, func(b Band) bool { return b.Kind == kind })
	})
}

// commandLine joins arguments as a shell takes them.
func commandLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = table.Plain(table.ShellWord(a))
	}
	return strings.Join(quoted, " ")
}
