package table

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// Document is headings, paragraphs, lists and tables in order.
type Document struct {
	// Wrap breaks text of Text that begins at column first, other lines at column hanging; nil: it
	// is not broken.
	Wrap func(text string, first, hanging int) string

	parts []part
}

// Line is a paragraph or one item of a list: text, part of which may be strong.
type Line struct{ Text, Strong, Rest string }

type part struct {
	heading string
	level   int
	fold    string // of <details>: its summary, or / at its end
	lines   []Line
	list    bool
	table   *Table
}

// Heading adds a heading of a level from 2 on.
func (d *Document) Heading(level int, text string) {
	d.parts = append(d.parts, part{heading: text, level: level})
}

// Paragraph adds a paragraph.
func (d *Document) Paragraph(line Line) { d.parts = append(d.parts, part{lines: []Line{line}}) }

// List adds a list, nothing if it is empty.
func (d *Document) List(items ...string) {
	lines := make([]Line, len(items))
	for i, item := range items {
		lines[i].Text = item
	}
	d.Lines(lines)
}

// Lines adds a list whose items may have a strong part.
func (d *Document) Lines(lines []Line) {
	if len(lines) > 0 {
		d.parts = append(d.parts, part{lines: lines, list: true})
	}
}

// Table adds a table, nothing if it has no rows.
func (d *Document) Table(t *Table) {
	if len(t.Rows) > 0 {
		d.parts = append(d.parts, part{table: t})
	}
}

// Section adds what add adds, under a heading; nothing if that is nothing.
func (d *Document) Section(level int, heading string, add func()) {
	before := len(d.parts)
	add()
	if len(d.parts) > before {
		d.parts = slices.Insert(d.parts, before, part{heading: heading, level: level})
	}
}

// Fold is Section whose content Markdown hides until the reader opens it.
func (d *Document) Fold(summary string, add func()) {
	before := len(d.parts)
	add()
	if len(d.parts) > before {
		d.parts = append(slices.Insert(d.parts, before, part{fold: summary}), part{fold: endFold})
	}
}

const endFold = "/"

// Text writes the document for a terminal.
func (d *Document) Text(w io.Writer) error {
	var b bytes.Buffer
	apart := false
	for _, p := range d.parts {
		if p.fold != "" {
			continue
		}
		if apart {
			b.WriteByte('\n')
		}
		apart = p.heading == ""
		switch {
		case p.table != nil:
			_ = p.table.Text(&b) // a Buffer takes everything
		case p.heading != "":
			b.WriteString(Plain(p.heading) + "\n")
		}
		for _, l := range p.lines {
			text := Plain(l.Text + l.Strong + l.Rest)
			if d.Wrap != nil {
				text = d.Wrap(text, 0, 2)
			}
			b.WriteString(text + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Markdown writes the document as Markdown, all text escaped.
func (d *Document) Markdown(w io.Writer) error {
	var b bytes.Buffer
	for i, p := range d.parts {
		if i > 0 {
			b.WriteByte('\n')
		}
		switch p.fold {
		case "":
		case endFold:
			b.WriteString("</details>\n")
		default:
			fmt.Fprintf(&b, "<details><summary>%s</summary>\n", html.EscapeString(Plain(p.fold)))
		}
		switch {
		case p.table != nil:
			_ = p.table.Markdown(&b) // a Buffer takes everything
		case p.heading != "":
			fmt.Fprintf(&b, "%s %s\n", strings.Repeat("#", p.level), EscapeMarkdown(p.heading))
		}
		for _, l := range p.lines {
			if p.list {
				b.WriteString("- ")
			}
			b.WriteString(EscapeMarkdown(l.Text))
			if l.Strong != "" {
				b.WriteString("**" + EscapeMarkdown(l.Strong) + "**")
			}
			b.WriteString(EscapeMarkdown(l.Rest) + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// EscapeMarkdown keeps text from being taken for Markdown or HTML. Underscores
// stay: within a word they mean nothing.
func EscapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range Plain(s) {
		if strings.ContainsRune("\\`*[]<>|&~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
