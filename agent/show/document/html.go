package document

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

//go:embed document.html
var frame string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"unbroken": func(s string) string { return strings.ReplaceAll(s, " … ", "\u00a0…\u00a0") }, // a range is on one line
	"svg":      func(d Drawing) template.HTML { return d.Draw(0) },
}).Parse(frame))

// HTML writes one file that needs nothing else.
func (p *Page) HTML(w io.Writer) error { return page.Execute(table.PlainWriter{W: w}, p) }

// Anchors are where the rows of the contents lead.
func (p *Page) Anchors() []string {
	all := make([]string, len(p.Documents))
	for i := range p.Documents {
		all[i] = p.Documents[i].ID
	}
	return all
}

// Style returns the style sheet of drawings, for a drawing that is a file of its own.
func Style() (string, error) {
	var b strings.Builder
	err := page.ExecuteTemplate(&b, "style", nil)
	return b.String(), err
}
