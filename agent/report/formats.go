package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Markdown writes the tables that one would paste.
func (d *Document) Markdown(w io.Writer) error {
	m := &markdown{w: w}
	for i := range d.Runs {
		r := &d.Runs[i]
		if i > 0 {
			m.line("")
		}
		m.line("## %s", escape(r.Title))
		m.line("")
		m.line("%s, started %s, %s, **%s**", escape(r.ID), r.StartedAt.UTC().Format("2006-01-02 15:04:05 MST"), duration(r.DurationSeconds), escape(r.State()))
		m.section("", operationTable(r.Operations))
		m.section("Servers", serverTable(r.Servers, len(r.Settings) == 0))
		if len(r.Observed) > 0 {
			m.heading("What was observed")
			for _, o := range r.Observed {
				m.line("- %s", escape(o))
			}
		}
		m.heading("How far to trust this")
		for _, f := range r.Trust {
			m.line("- **%s** %s", f.Level, escape(f.Text))
		}
		m.settings(r)
		facts := grid{Head: []string{"parameter", "value"}}
		for _, f := range r.Parameters {
			facts.Rows = append(facts.Rows, []string{f.Name, f.Value})
		}
		m.section("Parameters", facts)
		if len(r.Markers) > 0 {
			m.heading("Markers")
			for _, p := range r.Markers {
				m.line("- %s %s", clockText(p.ElapsedSeconds), escape(p.Text))
			}
		}
	}
	return m.err
}

// settings writes how the servers were configured.
func (m *markdown) settings(r *Report) {
	for i := range r.Settings {
		s := &r.Settings[i]
		m.heading("Settings of " + escape(s.Title()))
		if differing := s.Differing(); len(differing.Rows) > 0 {
			m.table(differing)
			m.line("")
		}
		if same := s.Same(); len(same.Rows) > 0 {
			m.table(same)
		}
	}
	switch {
	case len(r.SettingsUnknown) == 0:
	case len(r.Settings) == 0:
		m.heading("Settings of the servers")
	default:
		m.line("")
	}
	for _, text := range r.SettingsUnknown {
		m.line("- %s", escape(text))
	}
}

// markdown writes lines and keeps the first error.
type markdown struct {
	w   io.Writer
	err error
}

func (m *markdown) line(format string, args ...any) {
	if m.err != nil {
		return
	}
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	_, m.err = io.WriteString(m.w, text+"\n")
}

func (m *markdown) heading(text string) {
	m.line("")
	m.line("### %s", text)
	m.line("")
}

// section writes a table with a heading, nothing for an empty table.
func (m *markdown) section(heading string, t grid) {
	if len(t.Rows) == 0 {
		return
	}
	if heading != "" {
		m.heading(heading)
	} else {
		m.line("")
	}
	m.table(t)
}

func (m *markdown) table(t grid) {
	cells := func(row []string) string {
		escaped := make([]string, len(row))
		for i, c := range row {
			escaped[i] = escape(c)
		}
		return "| " + strings.Join(escaped, " | ") + " |"
	}
	m.line("%s", cells(t.Head))
	rule := "|---|"
	for range len(t.Head) - 1 {
		rule += "---:|"
	}
	m.line("%s", rule)
	for _, row := range t.Rows {
		m.line("%s", cells(row))
	}
}

// escape keeps foreign text from being taken for Markdown or HTML.
func escape(s string) string {
	var b strings.Builder
	for _, r := range Plain(s) {
		switch r {
		case '\\', '`', '*', '[', ']', '<', '>', '|', '&', '~':
			b.WriteByte('\\')
		case '_':
			// An underscore within a word is one.
		}
		b.WriteRune(r)
	}
	return b.String()
}

// CSV writes a line for each run: what a spreadsheet wants.
func (d *Document) CSV(w io.Writer) error {
	rows := make([]Row, len(d.Runs))
	for i := range d.Runs {
		rows[i] = d.Runs[i].Row
	}
	return CSV(w, rows)
}

// CSV writes runs, a line each, in base units. Columns of labels and of
// statistics are those that any of the runs has. What is not known is empty.
func CSV(w io.Writer, rows []Row) error {
	labels, all := map[string]bool{}, []Operation{}
	for _, r := range rows {
		for name := range r.Labels {
			labels[name] = true
		}
		all = append(all, Operation{Latency: r.Latency})
	}
	names, latency := slices.Sorted(maps.Keys(labels)), stats(all)
	head := []string{"id", "title", "tool", "tool_version", "workload", "threads", "target", "started_at", "result", "duration_seconds",
		"transactions_per_second", "queries_per_second", "errors"}
	for _, s := range latency {
		head = append(head, "latency_"+s+"_seconds")
	}
	for _, name := range names {
		head = append(head, "label_"+name)
	}
	c := csv.NewWriter(w)
	write := func(cells []string) { _ = c.Write(cells) } // the error stays in c
	write(head)
	for _, r := range rows {
		n := ""
		if r.Threads > 0 {
			n = strconv.Itoa(r.Threads)
		}
		cells := []string{r.ID, cell(r.Title), r.Tool, cell(r.Version), cell(r.Workload), n, cell(r.Target), r.StartedAt.UTC().Format("2006-01-02T15:04:05.000Z"),
			cell(r.State()), plainNumber(&r.DurationSeconds), plainNumber(r.TPS), plainNumber(r.QPS), plainNumber(r.Errors)}
		for _, s := range latency {
			value := ""
			if v, ok := r.Latency[s]; ok {
				value = plainNumber(&v)
			}
			cells = append(cells, value)
		}
		for _, name := range names {
			cells = append(cells, cell(r.Labels[name]))
		}
		write(cells)
	}
	c.Flush()
	return c.Error()
}

// cell keeps a spreadsheet from taking foreign text for a formula.
func cell(s string) string {
	s = Plain(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

func plainNumber(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

// commandLine joins arguments as a shell would take them.
func commandLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = quote(a)
	}
	return strings.Join(quoted, " ")
}

func quote(arg string) string {
	plain := arg != ""
	for _, r := range arg {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:=,@%+", r) {
			plain = false
			break
		}
	}
	if plain {
		return arg
	}
	return "'" + strings.ReplaceAll(Plain(arg), "'", `'\''`) + "'"
}

// MarkdownTable writes a table; all text in it is escaped.
func MarkdownTable(w io.Writer, head []string, rows [][]string) error {
	m := &markdown{w: w}
	m.table(grid{Head: head, Rows: rows})
	return m.err
}

// EscapeMarkdown keeps text from being taken for Markdown or HTML.
func EscapeMarkdown(s string) string { return escape(s) }

// Stats are the statistics of latency that any of the runs has, in the order in
// which people read them.
func Stats(rows []Row) []string {
	all := make([]Operation, len(rows))
	for i, r := range rows {
		all[i].Latency = r.Latency
	}
	return stats(all)
}
