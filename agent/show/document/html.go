package document

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Style is the style sheet of documents, also for a drawing in its own file.
var Style = palette + style

var (
	//go:embed palette.css
	palette string
	//go:embed document.css
	style string
)

// Markup is HTML or SVG.
type Markup string

// MarkupWriter writes HTML.
type MarkupWriter struct {
	strings.Builder
	address string // of the page of runs
}

// Addf formats values in markup: all except Markup are escaped.
func (w *MarkupWriter) Addf(format string, values ...any) {
	for i, v := range values {
		if _, ok := v.(Markup); !ok {
			values[i] = html.EscapeString(fmt.Sprint(v))
		}
	}
	fmt.Fprintf(w, format, values...)
}

// table writes a table. cell writes the content of the cell in a row and column.
func (w *MarkupWriter) table(head []string, rows [][]string, cell func(row, column int)) {
	w.Addf("<table><thead><tr>")
	for _, name := range head {
		w.Addf("<th>%s</th>", name)
	}
	w.Addf("</tr></thead>\n<tbody>")
	for i, row := range rows {
		w.Addf("<tr>")
		for j := range row {
			w.Addf("<td>")
			cell(i, j)
			w.Addf("</td>")
		}
		w.Addf("</tr>")
	}
	w.Addf("</tbody></table>")
}

// HTML writes one file that needs nothing else.
func (p *Page) HTML(to io.Writer) error {
	var w MarkupWriter
	w.Addf(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%s</title>
<style>
%s</style>
</head>
<body>
<header>
`, p.Title, Markup(Style))
	title := "h1"
	if p.Contents != nil {
		title = "h2"
		w.Addf("<h1>%s</h1>\n", p.Title)
	}
	w.Addf("<p class=\"quiet\">%s</p>\n</header>\n", p.Note())
	if p.Contents != nil {
		contents := Table(p.Contents)
		w.Addf(`<nav class="scroll">`)
		w.table(p.Contents.Head(), contents.Rows, func(i, j int) {
			if j == 0 {
				w.Addf(`<a href="#%s">%s</a>`, p.Documents[i].ID, contents.Rows[i][j])
			} else {
				w.Addf("%s", contents.Rows[i][j])
			}
		})
		w.Addf("</nav>\n")
	}
	for i := range p.Documents {
		w.address = p.Address
		w.document(&p.Documents[i], Markup(title))
	}
	w.Addf("</body>\n</html>\n")
	_, err := io.WriteString(table.PlainWriter{W: to}, w.String())
	return err
}

func (w *MarkupWriter) document(d *Document, title Markup) {
	w.Addf("<article id=\"%s\">\n<%s>%s</%s>\n<p class=\"quiet %s\">", d.ID, title, d.Title, title, d.Note.Level)
	w.sentence(&d.Note)
	w.Addf("</p>\n")
	for _, s := range d.Sections {
		w.Addf("<section data-section=\"%s\">\n<h3>%s</h3>\n", s.ID, s.Title)
		for i := range s.Blocks {
			w.framed(&s.Blocks[i])
		}
		w.Addf("</section>\n")
	}
	w.Addf("</article>\n")
}

// framed writes a block with its title, inside the elements that fold and mark it.
func (w *MarkupWriter) framed(b *Block) {
	class := ""
	if b.Unprinted {
		class = "unprinted"
	}
	if b.Title != "" {
		w.Addf("<h4 class=\"%s\">%s</h4>\n", class, b.Title)
	}
	if b.Fold != "" {
		w.Addf(`<details class="%s"><summary>%s</summary>`, class, b.Fold)
	}
	if b.Marked {
		w.Addf(`<div class="differs">`)
	}
	w.block(b)
	if b.Marked {
		w.Addf("</div>")
	}
	if b.Fold != "" {
		w.Addf("</details>")
	}
	w.Addf("\n")
}

// share and unbroken keep a share, and also a range, on one line.
var (
	share    = strings.NewReplacer(" %", "\u00a0%")
	unbroken = strings.NewReplacer(" %", "\u00a0%", " … ", "\u00a0…\u00a0")
)

func (w *MarkupWriter) sentence(s *Sentence) {
	w.Addf("%s", share.Replace(s.Text))
	if s.Strong != "" {
		w.Addf("<b>%s</b>", share.Replace(s.Strong))
	}
	w.Addf("%s", share.Replace(s.Rest))
}

func (w *MarkupWriter) block(b *Block) {
	switch {
	case len(b.Rows) > 0:
		w.Addf(`<div class="scroll">`)
		w.table(b.Head, b.Rows, func(i, j int) {
			if j == 0 && w.address != "" && slices.Contains(b.Runs, b.Rows[i][j]) {
				w.Addf(`<a href="%s#/runs/%s">%s</a>`, w.address, url.PathEscape(b.Rows[i][j]), b.Rows[i][j])
				return
			}
			w.Addf("%s", unbroken.Replace(b.Rows[i][j]))
		})
		w.Addf("</div>")
	case len(b.Facts) > 0:
		class := "settings"
		if b.Large {
			class = "figures"
		}
		w.Addf(`<dl class="%s">`, class)
		for _, f := range b.Facts {
			w.Addf("<div><dt>%s</dt><dd>%s</dd></div>", f.Name, f.Value)
		}
		w.Addf("</dl>")
	case len(b.Drawings) > 0:
		class, width := "charts", 0.0
		if b.Fold != "" {
			class, width = "charts small", SmallWidth
		}
		w.Addf(`<div class="%s">`, class)
		for i := range b.Drawings {
			w.drawing(&b.Drawings[i], width)
		}
		w.Addf("</div>")
	case b.isCommand:
		w.Addf(`<pre class="command">`)
		for i, word := range strings.Split(b.Code, " ") {
			if i > 0 {
				w.Addf(" ")
			}
			w.Addf("<span>%s</span>", word)
		}
		w.Addf("</pre>")
	case b.Code != "":
		w.Addf("<pre>%s</pre>", b.Code)
	default:
		w.lines(b)
	}
}

func (w *MarkupWriter) lines(b *Block) {
	begin, end := "<ul>", "</ul>"
	if b.Prose {
		begin, end = "", ""
	}
	w.Addf("%s", Markup(begin))
	for i := range b.Lines {
		line, last := &b.Lines[i], "</span></li>"
		switch {
		case b.Prose:
			last = "</p>"
			w.Addf(`<p class="summary">`)
		case line.Level != "":
			w.Addf(`<li class="level %s"><b>%s</b> <span>`, line.Level, line.Level)
		default:
			w.Addf("<li><span>")
		}
		w.sentence(line)
		w.Addf("%s", Markup(last))
	}
	w.Addf("%s", Markup(end))
}

func (w *MarkupWriter) drawing(d *Drawing, width float64) {
	w.Addf("<figure>\n<figcaption>%s <span class=\"quiet\">%s</span></figcaption>\n%s\n<ul class=\"legend\">",
		d.Title, d.Unit, d.Draw(width))
	for _, e := range d.Legend {
		w.Addf(`<li><svg viewBox="0 0 24 8"><path class="line %s" d="M0 4H24"/></svg>%s`, e.Class, e.Name)
		if e.Values != "" {
			w.Addf(` <span class="quiet">%s</span>`, e.Values)
		}
		w.Addf("</li>")
	}
	w.Addf("</ul>\n")
	for _, note := range d.Notes {
		w.Addf(`<p class="quiet">%s</p>`, note)
	}
	w.Addf("\n</figure>")
}
