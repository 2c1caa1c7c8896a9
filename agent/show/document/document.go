// Package document is the presentation of runs: sections of blocks, built once and written for a terminal, as Markdown
// and as HTML. In JSON, and on the page, a section has the same blocks.
//
// Builders decide which sections there are, their order and titles, and what is folded. The writers
// only render.
package document

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Document is about one run, or about several together.
type Document struct {
	// ID is the run's; empty for several.
	ID    string
	Title string
	// Note is shown below the title.
	Note     Sentence
	Sections []Section
}

// Section is a part of a document.
type Section struct {
	// ID is the same in every document of a kind.
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Blocks []Block `json:"blocks"`
}

// Block is one of lines, facts, a table, drawings or code.
type Block struct {
	// Title heads the block within its section.
	Title string `json:"title,omitempty"`
	// Fold is the line that stands for the block until a reader opens it, where that is possible.
	Fold string `json:"fold,omitempty"`
	// Prose: the lines are paragraphs, not items of a list.
	Prose bool `json:"prose,omitempty"`
	// Large: the facts are the numbers that readers look for first.
	Large bool `json:"large,omitempty"`
	// Marked: the block needs attention.
	Marked bool `json:"marked,omitempty"`

	Lines []Sentence `json:"lines,omitempty"`
	Facts []Term     `json:"facts,omitempty"`
	// Head and Rows are a table in human-readable form. Its first column names the rows.
	Head []string   `json:"head,omitempty"`
	Rows [][]string `json:"rows,omitempty"`
	// Runs are the ids of the runs of the rows; empty for a row that is not about a single run.
	Runs     []string  `json:"runs,omitempty"`
	Drawings []Drawing `json:"drawings,omitempty"`
	Code     string    `json:"code,omitempty"`

	// Long: a terminal, which folds nothing, leaves the block out unless everything is requested. Unprinted: printed
	// pages leave it out.
	Long      bool `json:"-"`
	Unprinted bool `json:"-"`

	table *table.Table
	// isCommand: Code is a command line, which a terminal breaks between arguments.
	isCommand bool
}

// Level is what a line means for its reader.
type Level string

// The levels. Most lines have none.
const (
	Good    Level = "good"
	Note    Level = "note"
	Warning Level = "warning"
	Unknown Level = "unknown"
)

// Sentence is a paragraph or an item of a list. A part of it may be strong.
type Sentence struct {
	Level  Level  `json:"level,omitempty"`
	Text   string `json:"text,omitempty"`
	Strong string `json:"strong,omitempty"`
	Rest   string `json:"rest,omitempty"`
	// At is the place on the run's axis that the line is about, in seconds.
	At *float64 `json:"at_seconds,omitempty"`
}

func (l *Sentence) plain() string { return table.Plain(l.Text + l.Strong + l.Rest) }

// Term is a name and a value.
type Term struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Drawing is a chart or figure.
type Drawing struct {
	Title string `json:"title"`
	// Unit is what the values are.
	Unit string `json:"unit,omitempty"`
	// Chart is the chart over time that the page draws itself, instead of SVG.
	Chart string `json:"chart,omitempty"`
	// SVG is the drawing, with all foreign text escaped; only on the page and in HTML.
	SVG    string   `json:"svg,omitempty"`
	Legend []Entry  `json:"legend,omitempty"`
	Notes  []string `json:"notes,omitempty"`
	// Draw draws it with the given width, 0 for the usual width.
	Draw func(width float64) Markup `json:"-"`
}

// Entry is a line of a legend.
type Entry struct {
	// Class is the line's colour and dashes.
	Class string `json:"class"`
	Name  string `json:"name"`
	// Values are its mean and extremes, empty for figures.
	Values string `json:"values,omitempty"`
}

// Time is the section with the most important charts over time, More has the others. The page draws both itself, in the
// place of Time.
const Time, More = "time", "more"

// SmallWidth is how wide a drawing in a folded block is: three are in a row.
const SmallWidth = 380

// Draw draws the drawings of the sections for the page, with this width.
func Draw(sections []Section, width float64) {
	for _, s := range sections {
		if s.ID == Time || s.ID == More {
			continue
		}
		for i := range s.Blocks {
			for j := range s.Blocks[i].Drawings {
				d := &s.Blocks[i].Drawings[j]
				d.SVG = string(d.Draw(width))
			}
		}
	}
}

// Add appends a section with the blocks that are not empty, nothing if all are.
func (d *Document) Add(id, title string, blocks ...Block) {
	blocks = slices.DeleteFunc(blocks, func(b Block) bool { return b.isEmpty() })
	if len(blocks) > 0 {
		d.Sections = append(d.Sections, Section{ID: id, Title: title, Blocks: blocks})
	}
}

func (b *Block) isEmpty() bool {
	return len(b.Lines) == 0 && len(b.Facts) == 0 && len(b.Rows) == 0 && len(b.Drawings) == 0 && b.Code == ""
}

// isHidden reports whether the block has only folded drawings: a format without drawings omits even their names.
func (b *Block) isHidden() bool { return b.Fold != "" && len(b.Drawings) > 0 }

// isHidden reports whether the section has nothing for such a format.
func (s *Section) isHidden() bool {
	return !slices.ContainsFunc(s.Blocks, func(b Block) bool { return !b.isHidden() })
}

// Folded returns the block with a line that stands for it, such as "12 rows".
func (b Block) Folded(count int, noun string) Block {
	b.Fold = table.Plural(count, noun)
	return b
}

// List returns a list of texts.
func List(texts ...string) Block {
	lines := make([]Sentence, len(texts))
	for i, text := range texts {
		lines[i].Text = text
	}
	return Block{Lines: lines}
}

// Lines returns a list.
func Lines(lines ...Sentence) Block { return Block{Lines: lines} }

// Prose returns paragraphs.
func Prose(texts ...string) Block {
	b := List(texts...)
	b.Prose = true
	return b
}

// Facts returns names with values.
func Facts(facts ...Term) Block { return Block{Facts: facts} }

// Table returns a table, an empty block if it has no rows.
func Table(t *table.Table) Block {
	if t == nil || len(t.Rows) == 0 {
		return Block{}
	}
	b := Block{Head: t.Head(), table: t}
	for _, cells := range t.Rows {
		row := make([]string, len(cells))
		for i := range cells {
			row[i] = cells[i].String()
		}
		b.Rows = append(b.Rows, row)
	}
	return b
}

// Command returns arguments as a shell takes them.
func Command(args []string) Block {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = table.Plain(table.ShellWord(a))
	}
	return Block{Code: strings.Join(quoted, " "), isCommand: true}
}

// Page is documents as one file.
type Page struct {
	Title   string
	Made    time.Time
	Version string
	// About is the source of the file, a phrase after the time at which it was made.
	About string
	// Address is the address of the agent's page, which has the runs of blocks; empty: there is none.
	Address string
	// Contents has a row for each document, if there are several.
	Contents  *table.Table
	Documents []Document
}

// Write writes the documents in a format: "html", "markdown", or text for a terminal.
func (p *Page) Write(w io.Writer, format string, t terminal.Terminal) error {
	switch format {
	case "html":
		return p.HTML(w)
	case "markdown":
		return p.Markdown(w)
	}
	return p.Text(w, t)
}

// Note is when, and by what, the page was made.
func (p *Page) Note() string {
	by := "benchwatch"
	if p.Version != "" {
		by += " " + p.Version
	}
	return fmt.Sprintf("Made %s by %s%s.", table.Moment(p.Made), by, p.About)
}
