package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// longestCell bounds a title in a table for a terminal, shortCell where that is narrow. wideCell is for titles without
// which runs can't be distinguished, where there is room.
const (
	wideCell    = 64
	longestCell = 40
	shortCell   = 20
)

// idNumbers ends an id: the threads, and the number among runs of one second.
var idNumbers = regexp.MustCompile(`(-t\d+)?(-\d+)?$`)

// titlesTellApart reports whether only their titles distinguish some of the runs: their ids have the same words.
func titlesTellApart(rows []review.Row) bool {
	titles := map[string]string{}
	for i := range rows {
		_, words, _ := strings.Cut(rows[i].ID, "-")
		words = idNumbers.ReplaceAllString(words, "")
		if title, known := titles[words]; known && title != rows[i].OwnTitle() {
			return true
		}
		titles[words] = rows[i].OwnTitle()
	}
	return false
}

// clipTitles shortens titles for a table, at their ends or, if these distinguish them, in the middle.
func clipTitles(rows []review.Row, longest int) []string {
	clipped := make([]string, len(rows))
	whole := map[string]string{}
	same := false
	for i := range rows {
		title := rows[i].OwnTitle()
		clipped[i] = table.Clip(title, longest)
		other, known := whole[clipped[i]]
		same = same || known && other != title
		whole[clipped[i]] = title
	}
	if !same {
		return clipped
	}
	for i := range rows {
		own := rows[i].OwnTitle()
		clipped[i] = table.Clip(own, longest)
		if title := []rune(table.Plain(own)); len(title) > longest {
			clipped[i] = string(title[:longest/2]) + "…" + string(title[len(title)-(longest-longest/2-1):])
		}
	}
	return clipped
}

// alike are columns that are not printed on a narrow terminal if all runs have the same value there, which a last line
// then names.
var alike = []string{"TOOL", "VERB", "WORKLOAD", "THREADS", "RESULT", "ERRORS"}

// List writes a table of runs, a line each, that fits the terminal: columns with the same value in each line are left out
// first, and then columns that repeat a part of the id. Last lines have these values, and name the columns that are left out.
func List(w io.Writer, rows []review.Row, terminal terminal.Terminal) error {
	fits := func(t *table.Table) bool { return terminal.Width == 0 || t.Width() <= terminal.Width }
	for _, longest := range []int{wideCell, longestCell} {
		if t := list(rows, longest); fits(t) && (longest == longestCell || titlesTellApart(rows)) {
			return t.Text(w)
		}
	}
	same, dropped := sameInAll(list(rows, shortCell))
	narrow := func(longest int) *table.Table {
		t := list(rows, longest)
		for _, name := range dropped {
			t.Drop(name)
		}
		return t
	}
	t := narrow(shortCell)
	latency := latencyHead(rows)
	lacking := []string{"VERB", latency, "STARTED", "TITLE", "DURATION", "ERRORS", "TOOL", "THREADS", "WORKLOAD"}
	if titlesTellApart(rows) {
		lacking = []string{"VERB", "TITLE", latency, "STARTED", "DURATION", "ERRORS", "TOOL", "THREADS", "WORKLOAD"}
	}
	lacking = slices.DeleteFunc(lacking, func(name string) bool { return !t.Has(name) })
	for i := 0; i < len(lacking); { // from the most important one
		more := narrow(shortCell)
		for j, name := range lacking {
			if j != i {
				more.Drop(name)
			}
		}
		if fits(more) {
			lacking = slices.Delete(lacking, i, i+1)
		} else {
			i++
		}
	}
	for _, longest := range []int{longestCell, 34, 28, 24, shortCell} { // with what is left, titles as long as there is room
		t = narrow(longest)
		for _, name := range lacking {
			t.Drop(name)
		}
		if fits(t) {
			break
		}
	}
	if err := t.Text(w); err != nil {
		return err
	}
	slices.Sort(lacking)
	for _, part := range []struct{ what, names string }{{"in all runs: ", same}, {"too wide for this terminal: ", strings.Join(lacking, ", ")}} {
		if part.names == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, terminal.Wrap(part.what+part.names, 0, 2)); err != nil {
			return err
		}
	}
	return nil
}

// sameInAll returns the alike columns of a table of several runs that have one value, as text and by name.
func sameInAll(t *table.Table) (text string, names []string) {
	if len(t.Rows) < 2 {
		return "", nil
	}
	var all []string
	for i, c := range t.Columns {
		value := t.Rows[0][i].String()
		if slices.Contains(alike, c.Name) && !slices.ContainsFunc(t.Rows, func(row []table.Cell) bool { return row[i].String() != value }) {
			all, names = append(all, strings.ToLower(c.Name)+" "+value), append(names, c.Name)
		}
	}
	return strings.Join(all, ", "), names
}

// latencyHead heads the column of the headline latency. If all runs have the same statistic, it names that.
func latencyHead(rows []review.Row) string {
	name := ""
	for i := range rows {
		own := rows[i].HeadlineName()
		if own == "" {
			continue
		}
		if name != "" && own != name {
			return "LATENCY (ms)"
		}
		name = own
	}
	return strings.ToUpper(cmp.Or(name, "p95")) + " (ms)"
}

// list is the table of all columns that have a value. It has verbs if a run has another one than run.
func list(rows []review.Row, longest int) *table.Table {
	started := table.Column{Name: "STARTED"}
	zones := map[string]bool{}
	verbs := false
	for i := range rows {
		zones[zone(rows[i].StartedAt)] = true
		verbs = verbs || rows[i].Verb != "" && rows[i].Verb != "run"
	}
	if len(zones) == 1 {
		started.Head = "STARTED (" + zone(rows[0].StartedAt) + ")"
	}
	latency := latencyHead(rows)
	t := table.New(table.Named("ID", "TITLE", "TOOL", "VERB", "WORKLOAD", "THREADS",
		"STARTED", "DURATION", "RESULT", "TPS", latency, "ERRORS")...)
	t.Columns[6] = started
	titles := clipTitles(rows, longest)
	for i := range rows {
		r := &rows[i]
		at := table.Instant(r.StartedAt)
		if len(zones) > 1 {
			at += " " + zone(r.StartedAt)
		}
		if r.StartEstimated {
			at = "~" + at
		}
		verb := ""
		if verbs {
			verb = r.Verb
		}
		t.Add(table.Text(r.ID), table.Text(titles[i]),
			table.Text(r.Tool), table.Text(verb), table.Text(table.Clip(r.Workload, longest)), r.ThreadsCell(),
			table.Text(at), table.Text(table.Duration(r.DurationSeconds)), table.Text(r.ShortStatus()),
			table.Optional(r.Values.Of(tool.Throughput), table.PerSecond), r.HeadlineCell(latency == "LATENCY (ms)"),
			table.Optional(r.Values.Of(tool.Errors), table.Count))
	}
	t.DropUnknown()
	return t
}

// zone is the name of the time zone in which times are displayed.
func zone(t time.Time) string {
	name, _ := t.Local().Zone()
	return name
}

// CSV writes runs, a line each. It has a column for each label and measure that any of the runs has.
func CSV(w io.Writer, rows []review.Row) error {
	facts := rundir.FactNames()
	labels := map[string]bool{}
	for i := range rows {
		for name := range rows[i].Labels {
			labels[name] = true
		}
	}
	measures := review.Measures(rows)
	measures = slices.DeleteFunc(measures, func(m review.Measure) bool { return m.Server })
	t := table.New(table.Named(slices.Concat([]string{"id", "title"}, facts, []string{"started_at", "result", "duration_seconds"})...)...)
	for _, m := range measures {
		t.Columns = append(t.Columns, m.Column())
	}
	names := slices.Sorted(maps.Keys(labels))
	for _, name := range names {
		t.Columns = append(t.Columns, table.Column{Name: "label_" + name})
	}
	for i := range rows {
		r := &rows[i]
		cells := []table.Cell{table.Text(r.ID), table.Text(r.Title)}
		for _, f := range r.Facts()[:len(facts)] {
			cells = append(cells, table.Text(f.Value))
		}
		cells = append(cells, table.Text(r.StartedAt.UTC().Format(timeFormat)),
			table.Text(r.State()), table.Number(r.DurationSeconds, table.Seconds))
		for _, m := range measures {
			cells = append(cells, m.Cell(r))
		}
		for _, name := range names {
			cells = append(cells, table.Text(r.Labels[name]))
		}
		t.Add(cells...)
	}
	return t.CSV(w)
}

// WriteOutcome writes a few lines about a run that has just ended. unsampled is the line about its
// servers if there are none, empty for no line.
func WriteOutcome(w io.Writer, h *record.History, unsampled string, t terminal.Terminal) error {
	s := &h.Snapshot
	r := review.NewObservedRow(h)
	figures := outcomeFigures(&r, s, unsampled)
	var b bytes.Buffer
	_ = figures.Text(&b) // a Buffer takes everything
	part := func(title string, lines ...document.Sentence) {
		fmt.Fprintf(&b, "  %s\n", t.Paint(terminal.Strong, title))
		block := document.Lines(lines...)
		block.Text(&b, t, 4)
	}
	if all := review.Requirements(s.Meta.Required, &r); len(all) > 0 {
		part("required", requirementLines(all, (*review.Requirement).String)...)
	}
	// The report has the configuration that would provide missing evidence.
	if v := r.Limits; v != nil && (len(v.Findings) > 0 || v.Unlimited != "" || v.Unexplained != nil) {
		known := *v
		known.Missing = nil
		part("what limited this run", limitLines(&known)...)
	}
	part("how far to trust this", trustLines(review.Trust(h, &r))...)
	_, err := w.Write(b.Bytes())
	return err
}

// outcomeFigures returns the lines of a run's outcome that have a name and a value.
func outcomeFigures(r *review.Row, s *ingest.Snapshot, unsampled string) *table.Table {
	figures := table.New(table.Named("", "")...)
	add := func(name, value string) {
		figures.Add(table.Text("  "+name), table.Text(value))
	}
	result := r.Status()
	if r.Reason != "" {
		result += ": " + r.Reason
	}
	add("result", result)
	add("duration", strconv.FormatFloat(r.DurationSeconds, 'f', 1, 64)+" s")
	if r.Threads > 0 {
		add("threads", strconv.Itoa(r.Threads))
	}
	for _, m := range review.RowMeasures() {
		v := r.Values.Of(m)
		switch {
		case m != tool.HeadlineLatency:
			if v.Known && (m != tool.Errors || s.Summary != nil) {
				add(m.Short, table.UnitOf(m).Format(v.Value))
			}
			continue
		case len(r.Latency) == 0:
			continue
		}
		stats := review.Stats(r.Latency)
		values, names := make([]string, len(stats)), make([]string, len(stats))
		for i, stat := range stats {
			values[i], names[i] = table.Milliseconds.Format(r.Latency[stat]), tool.StatName(stat)
		}
		add(strings.TrimSpace("latency "+r.LatencyOperation)+" "+strings.Join(names, "/"), strings.Join(values, " / ")+" ms")
	}
	if r.FromIntervals {
		add("note", "the tool printed no summary: computed from its intervals")
	}
	if len(r.Servers) == 0 && unsampled != "" && s.Meta.Servers.Notice() == "" { // else it is said below
		add("servers", unsampled)
	}
	for _, target := range slices.Sorted(maps.Keys(s.Meta.Drain)) {
		add("drain "+target, s.Meta.Drain[target].String())
	}
	return figures
}
