package document

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// shades are the colours of the levels.
var shades = map[Level]terminal.Shade{Good: terminal.Good, Warning: terminal.Bad, Unknown: terminal.Doubt}

// Text writes the documents for a terminal.
func (p *Page) Text(w io.Writer, t terminal.Terminal) error {
	var b bytes.Buffer
	for i := range p.Documents {
		if i > 0 {
			b.WriteString("\n\n")
		}
		p.Documents[i].text(&b, t)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (d *Document) text(b *bytes.Buffer, t terminal.Terminal) {
	if d.Title != "" {
		b.WriteString(t.Paint(terminal.Strong, table.Plain(d.Title)) + "\n")
	}
	if note := d.Note; note.plain() != "" {
		line, strong := t.Wrap(note.plain(), 0, 2), table.Plain(note.Strong)
		if at := strings.LastIndex(line, strong); strong != "" && at >= 0 { // unless it is on two lines
			line = line[:at] + t.Paint(shades[note.Level], strong) + line[at+len(strong):]
		}
		b.WriteString(line + "\n")
	}
	for i := range d.Sections {
		d.Sections[i].text(b, t)
	}
}

func (s *Section) text(b *bytes.Buffer, t terminal.Terminal) {
	if s.isHidden() {
		return
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(t.Paint(terminal.Strong, table.Plain(s.Title)) + "\n")
	var long []string
	for i := range s.Blocks {
		block := &s.Blocks[i]
		switch {
		case block.Long && !t.All:
			long = append(long, block.Fold)
			continue
		case block.isHidden():
			continue
		}
		if block.Title != "" {
			b.WriteString(t.Paint(terminal.Faint, table.Plain(block.Title)) + "\n")
		}
		block.Text(b, t, 0)
	}
	if len(long) > 0 {
		b.WriteString(t.Wrap("left out without --all: "+table.Join(long), 0, 2) + "\n")
	}
}

// Text writes the block for a terminal, its lines indented.
func (b *Block) Text(out *bytes.Buffer, t terminal.Terminal, indent int) {
	before := strings.Repeat(" ", indent)
	wrap := func(text string, first, hanging int) {
		out.WriteString(t.Wrap(text, indent+first, indent+hanging) + "\n")
	}
	switch {
	case b.table != nil:
		width := t.Width
		if t.All {
			width = 0
		}
		fitted, dropped := b.table.Fit(width)
		_ = fitted.Text(out) // a Buffer takes everything
		if len(dropped) > 0 {
			wrap("too wide for this terminal: "+table.Plain(strings.Join(dropped, ", ")), 0, 2)
		}
	case len(b.Facts) > 0:
		words := make([]string, len(b.Facts))
		for i, f := range b.Facts {
			words[i] = f.Name + " " + table.Dash(f.Value)
		}
		wrap(table.Plain(strings.Join(words, ", ")), 0, 2)
	case len(b.Drawings) > 0:
		line := t.Wrap(table.Plain(b.drawn()), indent, indent+2) + "\n"
		if !bytes.Contains(out.Bytes(), []byte(line)) { // once for all sections with the same drawings
			out.WriteString(line)
		}
	case b.isCommand:
		out.WriteString(before + t.Command(table.Plain(b.Code), indent) + "\n")
	case b.Code != "":
		for line := range strings.Lines(b.Code) {
			line = table.Plain(strings.TrimSuffix(line, "\n"))
			if indent+utf8.RuneCountInString(line) > t.Width { // a shorter one keeps its blanks
				line = t.Wrap(line, indent, indent+2)
			}
			out.WriteString(before + line + "\n")
		}
	default:
		const level = len(Warning) + 2
		for i := range b.Lines {
			l := &b.Lines[i]
			out.WriteString(before)
			switch {
			case l.Level != "":
				out.WriteString(t.Paint(shades[l.Level], string(l.Level)) + strings.Repeat(" ", max(level-len(l.Level), 0)))
				wrap(l.plain(), level, level)
			case b.Prose || indent > 0:
				wrap(l.plain(), 0, 2)
			default:
				out.WriteString("- ")
				wrap(l.plain(), 2, 2)
			}
		}
	}
}

// drawn names the drawings, which only HTML and the page have.
func (b *Block) drawn() string {
	titles := make([]string, len(b.Drawings))
	for i := range b.Drawings {
		titles[i] = b.Drawings[i].Title
	}
	return "Charts, with -o report.html: " + strings.Join(titles, ", ")
}
