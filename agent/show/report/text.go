package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Text writes the report for a terminal: everything but charts and settings that
// are the same on all servers.
func (d *Document) Text(w io.Writer, t terminal.Terminal) error {
	var b bytes.Buffer
	for i := range d.Runs {
		if i > 0 {
			b.WriteString("\n\n")
		}
		d.Runs[i].text(&textWriter{b: &b, t: t})
	}
	_, err := w.Write(b.Bytes())
	return err
}

// textWriter writes the sections of a report for a terminal.
type textWriter struct {
	b *bytes.Buffer
	t terminal.Terminal
}

func (w *textWriter) heading(text string) {
	fmt.Fprintf(w.b, "\n%s\n", w.t.Paint(terminal.Strong, table.Plain(text)))
}

// table writes a table under a heading, nothing if it is empty.
func (w *textWriter) table(heading string, t *table.Table) {
	if len(t.Rows) > 0 {
		w.heading(heading)
		_ = t.Text(w.b) // a Buffer takes everything
	}
}

// list writes lines with hanging indents under a heading, nothing if there are none.
func (w *textWriter) list(heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	w.heading(heading)
	for _, l := range lines {
		w.b.WriteString("- " + w.t.Wrap(table.Plain(l), 2, 2) + "\n")
	}
}

func (r *Report) text(w *textWriter) {
	shade := terminal.Bad
	if r.Result == rundir.Succeeded && r.FailedShare.Value < review.ManyFailures {
		shade = terminal.Good
	}
	title := r.Title
	if title == "" {
		title = r.ID
	}
	fmt.Fprintf(w.b, "%s\n%s, started %s %s, %s, %s\n", w.t.Paint(terminal.Strong, table.Plain(title)), r.ID, table.Instant(r.StartedAt), zone(r.StartedAt),
		table.Duration(r.DurationSeconds), w.t.Paint(shade, table.Plain(r.Status())))
	for _, f := range r.Failure {
		fmt.Fprintf(w.b, "%s: %s\n", f.Name, w.t.Wrap(table.Plain(f.Value), len(f.Name)+2, 2))
	}
	if lines := review.LimitLines(r.Limits); len(lines) > 0 {
		w.heading("What limited this run")
		for _, l := range lines {
			w.b.WriteString("- " + w.t.Wrap(table.Plain(l.Strong+l.Rest), 2, 2) + "\n")
		}
	}
	w.table("Operations", review.OperationTable(r.Operations))
	w.table("Distribution of the latencies", review.DistributionTable(r.AllDistributions()))
	w.list("What the distribution leaves out", review.DistributionNotes(r.Distributions))
	w.table("Servers", review.ServerTable(r.Servers))
	w.table("Who took the load", review.BalanceTable(r.Balances))
	w.table("Machines", review.MachineTable(r.Machines))
	w.table("Cost per transaction", review.CostTable(r.Costs))
	w.table("Statements by their time in the servers", shortStatements(r.Statements, w.t.Width))
	w.list("About the statements", review.StatementNotes(r.Statements))
	w.list("What was observed", r.Observed)
	w.heading("How far to trust this")
	for _, f := range r.Trust {
		writeFinding(f, w.b, w.t, 0)
	}
	var markers []string
	for _, m := range r.Markers {
		markers = append(markers, table.Clock(m.ElapsedSeconds)+" "+m.Text)
	}
	w.list("Markers", markers)
	for i := range r.Settings {
		s := &r.Settings[i]
		w.table("Settings of "+s.Title()+" that differ", s.Differing())
	}
	w.list("Settings of the servers", r.SettingsUnknown)
	if len(r.Parameters) > 0 {
		var facts []string
		for _, f := range r.Parameters {
			facts = append(facts, f.Name+" "+f.Value)
		}
		w.heading("Parameters")
		w.b.WriteString(w.t.Wrap(table.Plain(strings.Join(facts, ", ")), 0, 0) + "\n")
	}
}

// shades are the colours of the levels.
var shades = map[review.Level]terminal.Shade{review.Good: terminal.Good, review.Warning: terminal.Bad, review.Unknown: terminal.Doubt}

// writeFinding writes a finding for a terminal, its lines indented.
func writeFinding(f review.Finding, b *bytes.Buffer, t terminal.Terminal, indent int) {
	const level = len(review.Warning) + 2
	begin := strings.Repeat(" ", indent) + t.Paint(shades[f.Level], string(f.Level)) + strings.Repeat(" ", level-len(f.Level))
	b.WriteString(begin + t.Wrap(table.Plain(f.Text), indent+level, indent+level) + "\n")
}
