// Package report makes tables and documents of runs.
//
// A [Row] is one run, with the values of the measures in the catalogue: those that
// its tool reported and, from [NewObservedRow], those that were observed of its
// servers. [Measures] lists what tables of several runs show. On top of that are a
// [Document] about runs, with charts and with what limits the trust in their numbers,
// and a [Comparison] of groups of runs. Everything is computed from histories; the
// package reads no files.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
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
	Run

	Charts []Chart `json:"-"`
}

// Run is everything that is computed of one run.
type Run struct {
	Row
	// Failure is how a run ended that did not succeed.
	Failure    []Fact   `json:"failure,omitempty"`
	Command    []string `json:"command,omitempty"`
	Parameters []Fact   `json:"parameters,omitempty"`

	Operations []Operation `json:"operations,omitempty"`
	// Distributions are the tool's own histograms.
	Distributions []Distribution `json:"latency_distributions,omitempty"`
	overTime      map[string]*histogram.OverTime
	// Statements are absent if the servers' were not recorded.
	Statements *Statements `json:"statements,omitempty"`
	Observed   []string    `json:"observed,omitempty"`
	Trust      []Finding   `json:"trust,omitempty"`
	Messages   []string    `json:"messages,omitempty"`
	// Settings are those of the servers when the run began, SettingChanges what
	// changed during the run. SettingsUnknown names the servers whose settings are
	// unknown, with the reason.
	Settings        []ClusterSettings `json:"server_settings,omitempty"`
	SettingChanges  []SettingChange   `json:"setting_changes,omitempty"`
	SettingsUnknown []string          `json:"settings_unknown,omitempty"`
	Markers         []Marker          `json:"markers,omitempty"`
}

// Fact is a name and a value.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Operation is what the tool's summary has about one operation. Latency is in
// seconds by statistic.
type Operation struct {
	Name    string                   `json:"name"`
	Count   series.Optional[float64] `json:"count,omitzero"`
	Rate    series.Optional[float64] `json:"per_second,omitzero"`
	Latency map[string]float64       `json:"latency_seconds,omitempty"`
}

// Marker is a point on the time axis, numbered as in the charts.
type Marker struct {
	Number         int       `json:"number"`
	At             time.Time `json:"at"`
	ElapsedSeconds float64   `json:"elapsed_seconds"`
	Text           string    `json:"text"`
}

func markersOf(h *record.History) []Marker {
	var markers []Marker
	for i, p := range h.Markers {
		markers = append(markers, Marker{i + 1, p.Start, h.Elapsed(p.Start), p.Text})
	}
	return markers
}

// New returns the report of one run. others are runs of the same data directory:
// those that used the same servers at the same time are named.
func New(h *record.History, others ...rundir.Meta) Report {
	return Report{Run: NewRun(h, others...), Charts: Charts(h)}
}

// NewRun returns what is computed of one run, see [New].
func NewRun(h *record.History, others ...rundir.Meta) Run {
	m := &h.Snapshot.Meta
	r := Run{
		Row: NewObservedRow(h), Failure: failure(&h.Snapshot), Command: m.Command, Operations: operations(h.Snapshot.Summary), Distributions: distributions(h.Snapshot.Summary), Messages: h.Snapshot.Messages,
		Settings: SettingsByCluster(h.Settings), SettingChanges: settingChanges(h), SettingsUnknown: unknownSettings(h),
	}
	r.overTime = h.Intervals.Distributions
	r.Limits = limits(h, &r.Row, others)
	r.Statements = r.statements
	r.Parameters = parameters(&r.Row, m)
	for _, c := range r.SettingChanges {
		r.Observed = append(r.Observed, c.Text())
	}
	r.Observed = append(r.Observed, observed(h, &r.Row, others)...)
	r.Trust = trust(h, &r.Row)
	r.Markers = markersOf(h)
	return r
}

// failure returns what is known of a failure: the reason, the exit status if the
// reason does not have it, and the tool's last error message.
func failure(s *ingest.Snapshot) []Fact {
	m := &s.Meta
	if m.Outcome == "" || m.Outcome == rundir.Succeeded {
		return nil
	}
	var facts []Fact
	add := func(name, value string) {
		if value = table.Clip(value, longestMessage); value != "" && !slices.ContainsFunc(facts, func(f Fact) bool { return strings.Contains(f.Value, value) }) {
			facts = append(facts, Fact{name, value})
		}
	}
	add("reason", m.Reason)
	if m.ExitCode != nil {
		add("exit status", fmt.Sprintf("exit status %d", *m.ExitCode))
	}
	add("last error message", s.LastMessage)
	return facts
}

// parameters are the run's known facts, and what it was asked to do.
func parameters(r *Row, m *rundir.Meta) []Fact {
	var facts []Fact
	for _, f := range r.facts() {
		if f.Value != "" {
			facts = append(facts, Fact{f.Name, f.Value})
		}
	}
	if m.DurationSeconds > 0 {
		facts = append(facts, Fact{"requested duration", table.Duration(m.DurationSeconds)})
	}
	return facts
}

// operations puts the summary's values of one operation together, transactions
// first.
func operations(s *ingest.Summary) []Operation {
	if s == nil {
		return nil
	}
	var all []Operation
	of := func(name string) *Operation {
		i := slices.IndexFunc(all, func(o Operation) bool { return o.Name == name })
		if i < 0 {
			i = len(all)
			all = append(all, Operation{Name: name, Latency: map[string]float64{}})
		}
		return &all[i]
	}
	of(tool.Transaction)
	for _, v := range s.Rates {
		of(v.Operation).Rate = series.Some(v.PerSecond)
	}
	for _, v := range s.Counts {
		of(v.Operation).Count = series.Some(float64(v.N))
	}
	for _, v := range s.Latencies {
		of(v.Operation).Latency[v.Stat] = v.Seconds
	}
	if t := &all[0]; !t.Rate.Known && !t.Count.Known && len(t.Latency) == 0 {
		all = all[1:]
	}
	return all
}

func operationTable(all []Operation) *table.Table {
	found := map[string]float64{}
	for _, o := range all {
		for stat := range o.Latency {
			found[stat] = 0
		}
	}
	stats := Stats(found)
	t := table.New(table.Named("operation", "count", "per second")...)
	for _, stat := range stats {
		t.Columns = append(t.Columns, table.Column{Name: tool.StatName(stat) + " ms"})
	}
	for _, o := range all {
		row := []table.Cell{table.Text(o.Name), table.Optional(o.Count, table.Count), table.Optional(o.Rate, table.PerSecond)}
		for _, stat := range stats {
			cell := table.Cell{}
			if v, ok := o.Latency[stat]; ok {
				cell = table.Number(v, table.Milliseconds)
			}
			row = append(row, cell)
		}
		t.Add(row...)
	}
	return t
}

// Markdown writes the tables and findings as Markdown.
func (d *Document) Markdown(w io.Writer) error {
	var doc table.Document
	for i := range d.Runs {
		d.Runs[i].add(&doc)
	}
	return doc.Markdown(w)
}

// allDistributions are the tool's and that of the servers.
func (r *Run) allDistributions() []Distribution {
	if r.Statements == nil || r.Statements.Distribution == nil {
		return r.Distributions
	}
	return append(slices.Clone(r.Distributions), *r.Statements.Distribution)
}

func (r *Report) add(doc *table.Document) {
	doc.Heading(2, r.Title)
	doc.Paragraph(table.Line{Text: r.ID + ", started " + r.StartedAt.UTC().Format("2006-01-02 15:04:05 MST") + ", " + table.Duration(r.DurationSeconds) + ", ", Strong: r.Status()})
	failed := make([]table.Line, len(r.Failure))
	for i, f := range r.Failure {
		failed[i] = table.Line{Strong: f.Name, Rest: " " + f.Value}
	}
	doc.Lines(failed)
	doc.Section(3, "What limited this run", func() { doc.Lines(limitLines(r.Limits)) })
	doc.Table(operationTable(r.Operations))
	doc.Section(3, "Distribution of the latencies", func() {
		if all := r.allDistributions(); len(all) > 0 {
			doc.Table(distributionTable(all))
			doc.List(distributionNotes(all)...)
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
			t := serverTable(r.Servers)
			doc.Fold(table.Plural(len(t.Rows), "measure")+" of "+table.Plural(len(r.Servers), "server"), func() { doc.Table(t) })
		}
	})
	doc.Section(3, "Who took the load", func() { doc.Table(balanceTable(r.Balances)) })
	doc.Section(3, "Machines", func() {
		if len(r.Machines) > 0 {
			t := machineTable(r.Machines)
			doc.Fold(table.Plural(len(t.Rows), "measure")+" of "+table.Plural(len(r.Machines), "machine"), func() { doc.Table(t) })
		}
	})
	doc.Section(3, "Cost per transaction", func() { doc.Table(costTable(r.Costs)) })
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
	rows := make([]Row, len(d.Runs))
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
	"figures": figures, "hasBand": hasBand, "operationTable": operationTable, "serverTable": serverTable, "machineTable": machineTable, "costTable": costTable, "balanceTable": balanceTable, "limitLines": limitLines,
	"statementTable": func(r Report) *table.Table { return r.StatementTable() }, "statementNotes": statementNotes, "allDistributions": func(r Report) []Distribution { return r.allDistributions() },
	"unbroken":          func(c table.Cell) string { return strings.ReplaceAll(c.String(), " … ", "\u00a0…\u00a0") }, // a range is on one line
	"distributionTable": distributionTable, "distributionNotes": distributionNotes, "distributionPlots": DistributionPlots,
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
func figures(r Row) []Fact {
	var facts []Fact
	for _, m := range toolMeasures([]Row{r}) {
		if v := m.Value(&r); series.IsKnown(v) {
			facts = append(facts, Fact{m.Column().Head, m.Unit.Format(v)})
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
