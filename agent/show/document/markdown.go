package document

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Markdown writes the documents as Markdown, all text escaped.
func (p *Page) Markdown(w io.Writer) error {
	var b bytes.Buffer
	for i := range p.Documents {
		p.Documents[i].markdown(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (d *Document) markdown(b *bytes.Buffer) {
	paragraph(b)
	if d.Title != "" {
		fmt.Fprintf(b, "## %s\n", table.EscapeMarkdown(d.Title))
	}
	if d.Note.plain() != "" {
		fmt.Fprintf(b, "\n%s\n", d.Note.markdown())
	}
	for _, s := range d.Sections {
		if s.isHidden() {
			continue
		}
		paragraph(b)
		fmt.Fprintf(b, "### %s\n", table.EscapeMarkdown(s.Title))
		for i := range s.Blocks {
			if !s.Blocks[i].isHidden() {
				b.WriteByte('\n')
				s.Blocks[i].markdown(b)
			}
		}
	}
}

// paragraph begins a new one.
func paragraph(b *bytes.Buffer) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
}

func (l *Sentence) markdown() string {
	text := table.EscapeMarkdown(l.Text)
	if l.Strong != "" {
		text += "**" + table.EscapeMarkdown(l.Strong) + "**"
	}
	return text + table.EscapeMarkdown(l.Rest)
}

func (b *Block) markdown(out *bytes.Buffer) {
	if b.Title != "" {
		fmt.Fprintf(out, "#### %s\n\n", table.EscapeMarkdown(b.Title))
	}
	if b.Fold != "" {
		fmt.Fprintf(out, "<details><summary>%s</summary>\n\n", html.EscapeString(table.Plain(b.Fold)))
		defer out.WriteString("\n</details>\n")
	}
	switch {
	case b.table != nil:
		_ = b.table.Markdown(out) // a Buffer takes everything
	case len(b.Facts) > 0:
		t := table.New(table.Named("", "")...)
		for _, f := range b.Facts {
			t.Add(table.Text(f.Name), table.Text(f.Value))
		}
		_ = t.Markdown(out)
	case len(b.Drawings) > 0:
		out.WriteString(table.EscapeMarkdown(b.drawn()) + "\n")
	case b.Code != "":
		for line := range strings.Lines(b.Code) {
			out.WriteString("- " + table.EscapeMarkdown(strings.TrimSuffix(line, "\n")) + "\n")
		}
	default:
		for i, l := range b.Lines {
			switch {
			case !b.Prose:
				out.WriteString("- ")
			case i > 0:
				out.WriteByte('\n')
			}
			if l.Level != "" {
				fmt.Fprintf(out, "**%s** ", l.Level)
			}
			out.WriteString(l.markdown() + "\n")
		}
	}
}
