// Package report builds documents about runs: of one run, of a comparison, of a sweep, of the
// history of a measure. Which sections a document has, in which order, under which title, and what
// is folded, is decided here; package document writes them. Charts and figures are drawn here, too,
// and runs are written as CSV and lines of JSON.
package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// Document is a report about one run or several.
type Document struct {
	// Made is when the report was made.
	Made time.Time `json:"made_at"`
	// Version is benchwatch's.
	Version string   `json:"benchwatch_version"`
	Runs    []Report `json:"runs"`
	// VerdictLast: the result of a run and its limits are at the end, where a terminal without a pager shows them.
	VerdictLast bool `json:"-"`
}

// Report is a run with its charts and sections.
type Report struct {
	review.Run
	Layout

	Charts []Chart `json:"-"`
}

// MarshalJSON returns the fields of the run and its sections.
func (r Report) MarshalJSON() ([]byte, error) { return table.MarshalJoined(r.Run, r.Layout) }

// Layout is how a report of any format is laid out.
type Layout struct {
	// Sections are what the other formats show of the run, in human-readable form.
	Sections []document.Section `json:"sections"`
}

// New returns the report of one run. others are runs of the same data directory; the report names the ones that used
// the same servers at the same time.
func New(h *record.History, others ...rundir.Meta) Report {
	r := Report{Run: review.NewRun(h, others...), Charts: Charts(h)}
	r.Sections = r.sections()
	return r
}

// Page returns the report as a page, with a table of contents for several runs.
func (d *Document) Page() *document.Page {
	verdict := []string{"result", "limits", "stalls", "observed", "trust"}
	p := &document.Page{Title: d.Title(), Made: d.Made, Version: d.Version,
		About: " from the tool's raw output and the recorded samples of the servers"}
	if len(d.Runs) > 1 {
		p.Contents = table.New(table.Named("run", "threads", "tps", "latency", "errors", "duration", "result")...)
	}
	for i := range d.Runs {
		r := &d.Runs[i]
		one := r.Document()
		if d.VerdictLast {
			one.Sections = slices.Clone(one.Sections)
			slices.SortStableFunc(one.Sections, func(a, b document.Section) int {
				return slices.Index(verdict, a.ID) - slices.Index(verdict, b.ID)
			})
		}
		p.Documents = append(p.Documents, one)
		if p.Contents != nil {
			p.Contents.Add(table.Text(r.title()), r.ThreadsCell(),
				table.Optional(r.Values.Of(tool.Throughput), table.PerSecond), table.Text(r.Headline()),
				table.Optional(r.Values.Of(tool.Errors), table.Count),
				table.Text(table.Duration(r.DurationSeconds)), table.Text(r.Status()))
		}
	}
	return p
}

// CSV writes a line for each run.
func (d *Document) CSV(w io.Writer) error {
	rows := make([]review.Row, len(d.Runs))
	for i := range d.Runs {
		rows[i] = d.Runs[i].Row
	}
	return CSV(w, rows)
}

// Title returns the run's title, or how many runs there are.
func (d *Document) Title() string {
	if len(d.Runs) == 1 {
		return d.Runs[0].title()
	}
	return table.Plural(len(d.Runs), "benchmark run")
}

func (r *Report) title() string { return cmp.Or(r.Row.Title, r.ID) }

// Document returns the document of the run.
func (r *Report) Document() document.Document {
	about := ""
	if r.StartEstimated {
		about = "about "
	}
	note := document.Sentence{Level: document.Warning, Strong: r.Status(), Text: fmt.Sprintf("%s, started %s%s, %s, ",
		r.ID, about, table.Moment(r.StartedAt), table.Duration(r.DurationSeconds))}
	unmet, unknown := review.CountUnmet(r.Requirements)
	if r.Result == rundir.Succeeded && r.FailedShare.Value < review.ManyFailures && unmet+unknown == 0 {
		note.Level = document.Good
	}
	if text := review.RequirementsText(r.Requirements); text != "" {
		note.Strong += ", " + text
	}
	return document.Document{ID: r.ID, Title: r.title(), Note: note, Sections: r.Sections}
}

// sections returns the sections of a run. Empty sections are left out.
func (r *Report) sections() []document.Section {
	var d document.Document
	d.Add("result", "Result", failureBlock(r.Failure), figuresBlock(&r.Run),
		document.Lines(requirementLines(r.Requirements, (*review.Requirement).String)...))
	d.Add("limits", "What limited this run", document.Lines(limitLines(r.Limits)...))
	d.Add("stalls", "Stalls", stallBlocks(&r.Row)...)
	blocks := chartBlocks(r.Charts, r.Limits)
	d.Add(document.Time, "Over time", axisNotes(r.Charts), markerBlock(r.Markers), blocks[0])
	d.Add("observed", "What was observed", document.List(r.Observed...))
	d.Add("trust", "How far to trust this", document.Lines(trustLines(r.Trust)...))
	d.Add(document.More, "More over time", blocks[1:]...)
	d.Add("generators", "Generators", generatorBlock(&r.Run), groupNote(&r.Run))
	d.Add("operations", "The tool's summary", document.Table(review.OperationTable(r.Operations)))
	d.Add("distributions", "Distribution of the latencies", r.distributionBlocks()...)
	servers := review.ServerTable(r.Servers)
	alike := document.Facts(alikeFacts(servers)...)
	d.Add("servers", "Servers", alike, document.Table(servers).Folded(len(servers.Rows), "measure"))
	d.Add("load", "Who took the load", document.Table(review.BalanceTable(r.Balances)))
	machines := review.MachineTable(r.Machines)
	d.Add("machines", "Machines", document.Table(machines).Folded(len(machines.Rows), "measure"))
	costs := review.CostTable(r.Costs)
	d.Add("costs", "Cost per transaction", document.Table(costs).Folded(len(costs.Rows), "measure"))
	statements := r.StatementTable()
	d.Add("statements", "Statements", document.List(r.StatementNotes()...),
		document.Table(statements).Folded(len(statements.Rows), "statement"))
	addSettings(&d, r.Settings, r.SettingChanges, r.SettingsUnknown)
	parameters := make([]document.Term, len(r.Parameters))
	for i, f := range r.Parameters {
		parameters[i] = document.Term(f)
	}
	d.Add("parameters", "Parameters", document.Facts(parameters...), document.Command(r.Command))
	d.Add("messages", "The tool's error messages", messageBlocks(&r.Run)...)
	return d.Sections
}

// alikeFacts takes the rows with one text for all of several columns out of a table with a column for
// each server, which they would make wide, such as a version.
func alikeFacts(t *table.Table) []document.Term {
	var alike []document.Term
	if len(t.Columns) < 3 {
		return nil
	}
	t.Rows = slices.DeleteFunc(t.Rows, func(row []table.Cell) bool {
		if row[1].IsNumber() || row[1].IsUnknown() || slices.ContainsFunc(row[2:],
			func(c table.Cell) bool { return c.IsNumber() || c.String() != row[1].String() }) {
			return false
		}
		alike = append(alike, document.Term{Name: row[0].String(), Value: row[1].String()})
		return true
	})
	return alike
}

func failureBlock(facts []rundir.Fact) document.Block {
	b := document.Block{Marked: true}
	for _, f := range facts {
		b.Lines = append(b.Lines, document.Sentence{Strong: f.Name, Rest: ": " + f.Value})
	}
	return b
}

// requirementLines are what the user required, and whether it is met.
func requirementLines(all []review.Requirement, text func(*review.Requirement) string) []document.Sentence {
	var lines []document.Sentence
	for i := range all {
		level := document.Warning
		switch {
		case !all[i].IsMet.Known:
			level = document.Unknown
		case all[i].IsMet.Value:
			level = document.Good
		}
		lines = append(lines, document.Sentence{Level: level, Text: text(&all[i])})
	}
	return lines
}

// RequirementsNow is what the user requires of a run that has not ended, with the values that it has now.
func RequirementsNow(h *record.History) document.Section {
	row := review.NewObservedRow(h)
	all := review.Requirements(h.Snapshot.Meta.Required, &row)
	values := document.Sentence{Text: "Rates and latencies are those of the last interval. At the end, those of the whole run count."}
	return document.Section{ID: "required", Title: "Required", Blocks: []document.Block{
		document.Lines(requirementLines(all, (*review.Requirement).Now)...),
		{Prose: true, Lines: []document.Sentence{values}},
	}}
}

// leastLag is the lag or drain in seconds above which it is among the numbers that readers look for first.
const leastLag = 0.5

// figuresBlock has the numbers that readers look for first.
func figuresBlock(run *review.Run) document.Block {
	r := &run.Row
	b := document.Block{Large: true}
	if r.Threads > 0 {
		b.Facts = append(b.Facts, document.Term{Name: "threads", Value: strconv.Itoa(r.Threads)})
	}
	for _, m := range review.ToolMeasures([]review.Row{*r}) {
		if v := m.Value(r); series.IsKnown(v) {
			value := m.Unit.Format(v)
			if m.Unit.Sign == table.PerSecond.Sign { // no more decimals than can be read at a glance
				value = table.Digits.Format(v)
			}
			b.Facts = append(b.Facts, document.Term{Name: m.Head(), Value: value})
		}
	}
	for _, m := range review.ServerMeasures(nil) {
		least := math.Inf(1)
		switch {
		case m.Of == engine.FlowControl:
			least = littleShare
		case m.Of == engine.LagSeconds, m.Condition == review.DrainCondition:
			least = leastLag
		}
		if v := m.Value(r); v >= least {
			b.Facts = append(b.Facts, document.Term{Name: m.Head(), Value: m.Unit.Format(v)})
		}
	}
	if run.MessageCount > 0 {
		b.Facts = append(b.Facts, document.Term{Name: "error messages", Value: table.Count.Format(float64(run.MessageCount))})
	}
	return b
}

// limitLines are the verdict in sentences, the findings first.
func limitLines(v *limits.Verdict) []document.Sentence {
	if v == nil {
		return nil
	}
	var lines []document.Sentence
	add := func(strong, rest string) { lines = append(lines, document.Sentence{Strong: strong, Rest: rest + "."}) }
	if u := v.Unexplained; u != nil {
		add(string(cause.Unknown), fmt.Sprintf(" for %s of the clients' time: %s", table.Share(u.Share), u.Evidence))
	}
	for i := range v.Findings {
		f := &v.Findings[i]
		add(f.Title(), ": "+f.Evidence)
		causeLines(f, add)
	}
	switch {
	case v.Unlimited != "":
		add(string(cause.Unlimited), ": "+v.Unlimited)
	case len(v.Findings) == 0 && v.Unexplained == nil && len(v.Missing) == 0:
		add(string(cause.Unknown), ": nothing that was observed explains it")
	case v.Unexplained != nil && !v.MostlyUnknown(): // after what explains more
		lines = append(lines[1:], lines[0])
	}
	if v.Division != nil && v.Division.Proxies != "" {
		add("a transaction took", " "+v.Division.String())
	}
	if len(v.Findings) > 1 {
		lines = append(lines, document.Sentence{Rest: "Shares are of the clients' time, and may overlap."})
	}
	for _, b := range v.Behind {
		add("replication lag", ": "+b)
	}
	for _, m := range v.Missing {
		text := ": " + m.What
		if m.Remedy != "" {
			text += "; " + m.Remedy
		}
		add(string(cause.Unknown), text)
	}
	return lines
}

// causeLines are the cause of a finding, and last what to do.
func causeLines(f *limits.LimitFinding, add func(strong, rest string)) {
	switch {
	case len(f.Causes) > 0:
		rest := ": " + f.Causes[0].Evidence
		for i, c := range f.Causes[1:] {
			if i == 0 {
				rest += "; also "
			} else {
				rest += ", "
			}
			rest += c.Cause
		}
		add("Because of "+f.Causes[0].Cause, rest)
	case f.Unexplained:
		add("", "No cause of it is known from what was recorded")
	}
	add("To test it", ": "+f.Advice())
}

func trustLines(findings []review.Finding) []document.Sentence {
	var lines []document.Sentence
	for _, f := range findings {
		lines = append(lines, document.Sentence{Level: document.Level(f.Level), Text: f.Text})
	}
	return lines
}

// axisNotes describe the axis of the charts.
func axisNotes(charts []Chart) document.Block {
	if len(charts) == 0 {
		return document.Block{}
	}
	text := "Seconds on the tool's own clock."
	has := func(kind string) bool {
		return slices.ContainsFunc(charts[0].Bands, func(b Band) bool { return b.Kind == kind && b.From < b.To })
	}
	if has("warmup") {
		text += " Orange is the warm-up."
	}
	if has("drain") {
		text += " Violet is the drain: the tool has ended and replicas catch up."
	}
	return document.Prose(text)
}

func markerBlock(markers []review.Marker) document.Block {
	var b document.Block
	for _, m := range markers {
		b.Lines = append(b.Lines, document.Sentence{Strong: strconv.Itoa(m.Number),
			Rest: " at " + table.Clock(m.ElapsedSeconds) + ": " + m.Text, At: &m.ElapsedSeconds})
	}
	return b
}

func chartDrawings(charts []Chart) []document.Drawing {
	var all []document.Drawing
	for i := range charts {
		c := &charts[i]
		d := document.Drawing{Title: c.Title, Unit: c.Unit, Legend: c.Legend(), Draw: c.SVG}
		if c.Measure != nil {
			d.Chart = ChartID(c.Measure)
		}
		all = append(all, d)
	}
	return all
}

func plotDrawings(plots []*Plot) []document.Drawing {
	var all []document.Drawing
	for _, p := range plots {
		all = append(all, document.Drawing{Title: p.Title, Unit: p.Unit, Legend: p.Legend(),
			Notes: p.Footnotes(), Draw: func(width float64) document.Markup {
				p.Width = width
				return p.SVG()
			}})
	}
	return all
}

func (r *Report) distributionBlocks() []document.Block {
	t, notes := r.DistributionTable()
	if len(t.Rows) == 0 {
		return nil
	}
	about := "From the tool's own histogram, and from those of the servers for their statements. A percentile is known within the width of its bucket."
	return []document.Block{document.Prose(about), document.List(notes...),
		{Drawings: plotDrawings(r.DistributionPlots())}, document.Table(t).Folded(len(t.Rows), "percentile")}
}

func generatorBlock(r *review.Run) document.Block {
	b := document.Table(review.GeneratorTable(r.Generators))
	for i := range r.Generators {
		if r.Generators[i].Log == "" {
			b.Runs = append(b.Runs, r.Generators[i].Name)
		}
	}
	return b
}

// groupNote describes how the values of a group's generators are combined.
func groupNote(r *review.Run) document.Block {
	if len(r.Generators) == 0 {
		return document.Block{}
	}
	return document.Prose("Percentiles of the group are the worst generator's. A second without a generator that still runs has no values.")
}

// LiveSettings returns the sections with the servers' settings while a run lasts, on an axis that begins at zero.
func LiveSettings(recorded record.SettingsHistory, zero time.Time) []document.Section {
	var d document.Document
	addSettings(&d, review.SettingsByCluster(recorded), review.SettingChanges(recorded, zero), review.UnreadSettings(recorded))
	return d.Sections
}

// addSettings adds how servers are configured: what changed during the run, what differs, and the
// rest, folded.
func addSettings(d *document.Document, clusters []review.ClusterSettings, changed []review.SettingChange, unknown []string) {
	changes := document.Block{Marked: true}
	for _, c := range changed {
		changes.Lines = append(changes.Lines, document.Sentence{Text: c.Text(), At: &c.ElapsedSeconds})
	}
	blocks := []document.Block{changes}
	for i := range clusters {
		s := &clusters[i]
		differing := document.Table(s.Differing())
		differing.Title, differing.Marked = s.Title(), true
		same := document.Block{Long: true, Unprinted: true}
		for _, row := range s.Same().Rows {
			same.Facts = append(same.Facts, document.Term{Name: row[0].String(), Value: row[1].String()})
		}
		noun := "setting"
		if len(s.Servers) > 1 {
			noun = "equal setting"
		}
		same = same.Folded(len(same.Facts), noun)
		if len(differing.Rows) == 0 {
			same.Title = s.Title()
		}
		blocks = append(blocks, differing, same)
	}
	d.Add("settings", "Settings of the servers", append(blocks, document.List(unknown...))...)
}

// messageBlocks returns the messages of the tool; none if the reason of a failure has all of them.
func messageBlocks(r *review.Run) []document.Block {
	isRepeated := func(m string) bool {
		return slices.ContainsFunc(r.Failure, func(f rundir.Fact) bool { return strings.Contains(f.Value, table.Plain(m)) })
	}
	if int(r.MessageCount) == len(r.Messages) && !slices.ContainsFunc(r.Messages, func(m string) bool { return !isRepeated(m) }) {
		return nil
	}
	code := ""
	for _, m := range r.Messages {
		code += m + "\n"
	}
	more := document.Block{}
	if n := int(r.MessageCount) - len(r.Messages); n > 0 {
		more = document.List(fmt.Sprintf("%s more", strconv.Itoa(n)))
	}
	return []document.Block{{Code: code}, more}
}
