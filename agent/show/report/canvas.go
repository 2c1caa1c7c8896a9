package report

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// point is a place in the drawing, from its upper left corner.
type point struct{ x, y float64 }

// stroke is the number of a colour and of a pattern of dashes, 0 for none.
type stroke struct{ colour, dashes int }

// String returns the classes of the style sheet.
func (s stroke) String() string {
	class := "c" + strconv.Itoa(s.colour)
	if s.dashes > 0 {
		class += " d" + strconv.Itoa(s.dashes)
	}
	return class
}

// textKind is where a text is anchored and how it looks; its value is a class of the style
// sheet.
type textKind string

const (
	plainText textKind = ""
	xText     textKind = "x" // centred
	yText     textKind = "y" // ends at the place
	markText  textKind = "m" // centred, strong
	titleText textKind = "title"
)

const (
	dotRadius  = 2.6
	ringRadius = 7.0
)

// canvas writes SVG elements. The style sheet of a page gives them their look.
type canvas struct{ *strings.Builder }

// grid draws a line behind everything.
func (c canvas) grid(from, to point) {
	fmt.Fprintf(c, `<path class="grid" d="M%.1f %.1fL%.1f %.1f"/>`, from.x, from.y, to.x, to.y)
}

// cell fills a rectangle of a heat map, the stronger the larger share is, from 0 to 1.
func (c canvas) cell(share float64, corner point, width, height float64) {
	fmt.Fprintf(c, `<rect class="cell" fill-opacity="%.2f" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
		share, corner.x, corner.y, width, height)
}

// line draws through spots, bar fills a rectangle, dot draws a point and ring a circle around one.
func (c canvas) line(s stroke, through ...point) {
	fmt.Fprintf(c, `<path class="line %s" d="`, s)
	writePath(c.Builder, through)
	c.WriteString(`"/>`)
}

// writePath writes the commands of a path through points.
func writePath(b *strings.Builder, through []point) {
	for i, at := range through {
		fmt.Fprintf(b, "%c%.1f %.1f", "ML"[min(i, 1)], at.x, at.y)
	}
}

// pieces returns n points in pieces that end where a point is not known.
func pieces(n int, at func(i int) (p point, known bool)) (all [][]point) {
	open := false
	for i := range n {
		p, known := at(i)
		switch {
		case known && open:
			all[len(all)-1] = append(all[len(all)-1], p)
		case known:
			all = append(all, []point{p})
		}
		open = known
	}
	return all
}

func (c canvas) bar(s stroke, corner point, width, height float64) {
	fmt.Fprintf(c, `<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, s, corner.x, corner.y, width, height)
}

func (c canvas) dot(s stroke, at point, of *Point) {
	if of.Link != "" {
		fmt.Fprintf(c, `<a href="%s" tabindex="-1">`, html.EscapeString(of.Link))
		defer c.WriteString(`</a>`)
	}
	fmt.Fprintf(c, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="%g"`, s, at.x, at.y, dotRadius)
	if of.Title == "" {
		c.WriteString(`/>`)
		return
	}
	fmt.Fprintf(c, `><title>%s</title></circle>`, html.EscapeString(of.Title))
}

func (c canvas) ring(s stroke, at point) {
	fmt.Fprintf(c, `<circle class="line %s" cx="%.1f" cy="%.1f" r="%g"/>`, s, at.x, at.y, ringRadius)
}

// text writes at a place of the base line.
func (c canvas) text(k textKind, at point, text string) {
	if k != plainText {
		fmt.Fprintf(c, `<text class="%s" x="%.1f" y="%.1f">%s</text>`, k, at.x, at.y, html.EscapeString(text))
		return
	}
	fmt.Fprintf(c, `<text x="%.1f" y="%.1f">%s</text>`, at.x, at.y, html.EscapeString(text))
}
